"""Which parts of suites a command or a panel is about: names of suites and of parts, or patterns with * and ?."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.space import QA_SPACE
from dtef_pipeline.text.nearest import nearest


def parts_that_fit(
    known: Sequence[str], suites: Sequence[str], parts: Sequence[str], *, given_as: tuple[str, str] = ("--suite", "--part")
) -> list[str]:
    """The parts among those `known` whose suite fits any pattern of `suites` and that fit any of `parts`, in their order; all without patterns.

    A pattern of parts is a name (`college_*`), or has its suite before it (`mmlu/*`). Raises ConfigError for a pattern that fits none;
    `given_as`: what the patterns of suites and of parts are called where they are given.
    """
    of_suites = set(_fitting(list(dict.fromkeys(QA_SPACE.split(key)[0] for key in known)), suites, given_as[0]))
    among = [key for key in known if QA_SPACE.split(key)[0] in of_suites]
    return _fitting(among, [one if "/" in one else f"*/{one}" for one in parts], given_as[1])


def _fitting(known: Sequence[str], patterns: Sequence[str], given_as: str) -> list[str]:
    for pattern in patterns:
        if not any(fnmatchcase(one, pattern) for one in known):
            raise ConfigError(f"{given_as} {pattern!r} fits none; known: {nearest(pattern, known)}")
    return [one for one in known if not patterns or any(fnmatchcase(one, pattern) for pattern in patterns)]
