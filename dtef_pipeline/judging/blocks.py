"""Blocks of a prompt, `<TEXT>` to `</TEXT>`, and escaping of texts so that they can neither close nor open one."""

from __future__ import annotations

import re
from functools import lru_cache

MATERIAL_TAGS = ("TEXT", "CRITERION", "PROMPT", "CRITERIA_LIST")
"""The blocks that a judge is shown."""
REPLY_TAGS = ("classification", "reflection")
"""The blocks that a judge writes."""
JUDGE_TAGS = (*MATERIAL_TAGS, *REPLY_TAGS, "think")
INVISIBLE = "\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff"
"""Characters that take no room on a screen, as a part of a pattern's character class."""


def escape_tags(text: str, tags: tuple[str, ...] = JUDGE_TAGS) -> str:
    """Replace `<` by `&lt;` wherever the text begins one of the tags, opening or closing, in upper or lower case.

    White space and invisible characters do not hide a tag. The rest of the text is unchanged.
    """
    return _compile_tag_start(tags).sub("&lt;", text) if "<" in text else text


def wrap_in_tags(tag: str, text: str) -> str:
    """Return the escaped text between the tags, on its own lines."""
    return f"<{tag}>\n{escape_tags(text)}\n</{tag}>"


@lru_cache(maxsize=64)
def _compile_tag_start(tags: tuple[str, ...]) -> re.Pattern[str]:
    gap = f"[{INVISIBLE}]*+"
    spellings = "|".join(gap.join(map(re.escape, tag)) for tag in tags)
    return re.compile(rf"<(?=[\s/{INVISIBLE}]*+(?:{spellings}))", re.IGNORECASE)
