"""What `--blueprint` chooses: ids, or patterns such as `compass__*`."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.text.nearest import nearest


def fitting(known: Sequence[str], patterns: Sequence[str], given_as: str = "--blueprint") -> list[str]:
    """Those that fit any of the patterns, in their order; all without one. Raises ConfigError for a pattern that fits none.

    `given_as`: what the patterns are called where they are given.
    """
    for pattern in patterns:
        if not any(fnmatchcase(one, pattern) for one in known):
            raise ConfigError(f"{given_as} {pattern!r} fits none; known: {nearest(pattern, known)}")
    return [one for one in known if not patterns or any(fnmatchcase(one, pattern) for pattern in patterns)]
