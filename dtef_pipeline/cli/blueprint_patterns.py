"""What `--blueprint` chooses: ids, or patterns such as `compass__*`."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.text.nearest import nearest


def fitting(known: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """Those that fit any of the patterns, in their order; all without one. Raises ConfigError for a pattern that fits none."""
    for pattern in patterns:
        if not any(fnmatchcase(one, pattern) for one in known):
            raise ConfigError(f"--blueprint {pattern!r} fits none; known: {nearest(pattern, known)}")
    return [one for one in known if not patterns or any(fnmatchcase(one, pattern) for pattern in patterns)]
