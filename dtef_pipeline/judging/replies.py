"""Reading of judges' replies: the class, or why there is none, and the reflection."""

from __future__ import annotations

import re
import string
from dataclasses import dataclass

from dtef_pipeline.judging.consensus import FIVE_CLASSES, ClassScale
from dtef_pipeline.judging.prompts import INVISIBLE
from dtef_pipeline.text.plain import strip_thinking

REPLY_CONTRACT = 2
"""Version of the form and of the rules here; part of the hash of judges. Other rules could read another class from a stored reply."""
UNREADABLE, EMPTY, DECLINED = "unreadable", "empty", "declined"

_INVISIBLE_CHARACTER = re.compile(f"[{INVISIBLE}]")
_REPLY_TAG = r"<\s*+(/?)\s*+{}\s*+>"
_CLASSIFICATION = re.compile(_REPLY_TAG.format("classification"), re.IGNORECASE)
_REFLECTION = re.compile(_REPLY_TAG.format("reflection"), re.IGNORECASE)
_CLASS_NAME = re.compile(r"(?<![A-Za-z0-9])CLASS(?:_[A-Z0-9]+)+", re.IGNORECASE)
_MARKS_AROUND_NAME = string.whitespace + "\u00a0\u3000\"'`´*._“”„‟‘’‚‛«»‹›"
_DECLINES = re.compile(
    r"(?:i['’]?m (?:really |very |so )?sorry|(?:my )?apologies|i apologi[sz]e|sorry"
    r"|i (?:cannot|can['’]?t|can not|will not|won['’]?t|must decline|decline|refuse|am unable|am not able|am not comfortable)"
    r"|i['’]m (?:unable|not able|not comfortable)|as an ai\b|unfortunately,? i)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """The content of a judge's reply: a class, or the reason why none can be read."""

    name: str | None
    """A name of the scale."""
    reason: str | None
    """unreadable | empty | declined; None: there is a class."""
    reflection: str | None
    """The judge's explanation; None: it gave none."""
    is_tagged: bool = False
    """Whether the class was in its tags. A bare name counts only if the reply is complete."""


def read_reply(text: str, scale: ClassScale = FIVE_CLASSES) -> JudgeReply:
    """Read the class that the `<classification>` tags name, or the only class that a reply without such tags names.

    Thinking and invisible characters are dropped first. Tags may be in upper or lower case. White space, quotes, asterisks, backticks and
    dots around the name are ignored, and `CLASS_` may be missing. Nothing is guessed: unmatched tags, a name not on the scale, and several
    different names, in tags or bare, are unreadable.
    """
    reply = strip_thinking(text if text.isascii() else _INVISIBLE_CHARACTER.sub("", text)).replace("\\_", "_").strip()
    if not reply:
        return JudgeReply(None, EMPTY, None)
    tags = list(_CLASSIFICATION.finditer(reply))
    if tags:
        name = _read_tagged_class(reply, tags, scale)
    else:
        named = {bare.upper() for bare in _CLASS_NAME.findall(reply)} & scale.numbers.keys()
        name = named.pop() if len(named) == 1 else None
    reflection = _extract_reflection(reply, tags)
    if name is not None:
        return JudgeReply(name, None, reflection, bool(tags))
    is_declined = not tags and _DECLINES.match((reflection or "").lstrip(_MARKS_AROUND_NAME))
    return JudgeReply(None, DECLINED if is_declined else UNREADABLE, reflection)


def _read_tagged_class(text: str, tags: list[re.Match[str]], scale: ClassScale) -> str | None:
    """Return the name in the tags if they are paired, opening first, and all pairs have the same name."""
    opening, closing = tags[::2], tags[1::2]
    if len(opening) != len(closing) or any(tag[1] for tag in opening) or not all(tag[1] for tag in closing):
        return None
    pairs = zip(opening, closing, strict=True)
    inside = (text[first.end() : last.start()].strip(_MARKS_AROUND_NAME).upper() for first, last in pairs)
    named = {f"CLASS_{name.removeprefix('CLASS_')}" for name in inside}
    name = named.pop()
    return name if not named and name in scale.numbers else None


def _extract_reflection(text: str, tags: list[re.Match[str]]) -> str | None:
    """Return the content of the reflection's tags or, without them, the text before the classification."""
    matches = list(_REFLECTION.finditer(text))
    start = next((tag.end() for tag in matches if not tag[1]), 0)
    ends = [tag.start() for tag in matches if tag[1] and tag.start() >= start]
    after = [tag.start() for tag in tags if tag.start() >= start]
    end = ends[-1] if ends else after[0] if after else len(text)
    return text[start:end].strip() or None
