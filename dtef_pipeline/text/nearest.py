"""Names that are known, in the message about one that is not."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable

from dtef_pipeline.text.counted import and_more

_MOST = 8


def nearest(word: str, known: Iterable[str], most: int = _MOST, told: Callable[[str], str] = str) -> str:
    """The known names that are most like the word, and some others: `gpt-4.1, grok-4.20, ... and 22 more`. `none` where none is known.

    At most `most` names, each as it is `told`.
    """
    names = sorted(known)
    near = difflib.get_close_matches(word, names, n=3)
    names = [*near, *(name for name in names if name not in near)]
    return and_more([*map(told, names[:most]), *names[most:]], most) or "none"
