"""Normalise a response for the readers: no thinking, no markup, one spelling of digits, dashes and spaces.

All functions are linear in the length of the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator

from dtef_pipeline.text.alignment import CharacterTable

LOOK_BACK = 5_000
"""Only this many characters at the end of a response (after the thinking is taken out) are read: answers come last."""
LOOK_BACK_FAR = 12_000
"""The same where one response holds many answers: those of hundreds of people, each on its own line, or several tasks with explanations."""
RECENT = 120
"""Each reader looks at this many places at the end of the text, and at four more per option: a bound for hostile text."""

_ESCAPED = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|\\u([0-9a-fA-F]{4})")
_THINKING = re.compile(
    r"<(/?)(?:[a-z]{1,12}:)?(?:think|thinking|thoughts?|reasoning|scratchpad)(?:\s[^<>\n/]{0,80})?>"
    r"|(?-i:\[(/?)THINK\])|◁(/?)think▷|<\|(?:begin|(end))_of_thought\|>",
    re.IGNORECASE,
)
_CODE_SPAN = re.compile(r"^```.*?^```|`[^`\n]{1,200}`", re.MULTILINE | re.DOTALL)
_ONE_TAG = re.compile(rf"`\s*(?:{_THINKING.pattern})\s*`", re.IGNORECASE)
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)[^<]{0,80}<\|message\|>", re.IGNORECASE)
_CHANNEL_ENDS = re.compile(r"<\|(?:start|end|return|call|channel)\|>", re.IGNORECASE)
_BARE_CHANNELS = re.compile(r"\s*analysis(?=[^\Wa-z]|\W).*assistantfinal", re.DOTALL)
"""What is left of channels where a server drops the marks between them."""
_SPACES = re.compile(r"[^\S\n]+")
_LINE_ENDS = re.compile(r" ?\n[\n ]*")
_DELETED = "\"'`*“”„‟‘’‚‛«»\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad"
_REPLACED = {
    "\r": "\n",
    "\u2028": "\n",
    "\u2029": "\n",
    "_": " ",
    "\\": " ",
    "$": " ",
    "\u2010": "-",
    "\u2011": "-",
    "\u2212": "-",
    "\u2012": "–",
    "\u2014": "–",
    "\u2015": "–",
    "\u066a": "%",
    "\u066b": ".",
    "\u066c": ",",
    "\u3001": ",",
    "⇒": "→",
    "➔": "→",
    "≈": "~",
    "∼": "~",
    "【": "[",
    "】": "]",
}
_NOT_A_VALUE = ("<super>", "<sub>", "<circle>")


def _plain_character(char: str) -> str:
    if unicodedata.decomposition(char).startswith(_NOT_A_VALUE):
        return " "  # footnote marks and circled numbers are no values
    if (digit := unicodedata.decimal(char, None)) is not None:
        return str(digit)
    normal = unicodedata.normalize("NFKC", char)
    return normal if len(normal) == 1 else char


_TABLE = CharacterTable(dict.fromkeys(_DELETED, "") | _REPLACED, _plain_character)


def strip_thinking(text: str) -> str:
    """Return the text outside `<think>...</think>` and similar tags, or the last channel `final` of a reply in channels (gpt-oss).

    An opening tag without an end hides everything after it; a closing tag without a start (some chat templates
    open it in the prompt) hides everything before it. A tag in backticks, or in code that also closes it, is a quotation and hides nothing.
    """
    if (bare := _BARE_CHANNELS.match(text)) is not None:
        return text[bare.end() :]
    if "<|channel|>" in text:
        text = _extract_final_channel(text)
    if _THINKING.search(text) is None:
        return text
    parts: list[str] = []
    start, thinking = 0, False
    for tag in _find_thinking_tags(text):
        if any(tag.groups()):
            if not thinking:
                parts.clear()
            start, thinking = tag.end(), False
        elif not thinking:
            parts.append(text[start : tag.start()])
            thinking = True
    if not thinking:
        parts.append(text[start:])
    return "\n".join(parts)


def _extract_final_channel(text: str) -> str:
    channels = list(_CHANNEL.finditer(text))
    final = next((channel for channel in reversed(channels) if channel[1].casefold() == "final"), None)
    if final is None:
        return text[: text.index("<|channel|>")].removesuffix("<|start|>assistant")
    ends = _CHANNEL_ENDS.search(text, final.end())
    return text[final.end() : ends.start() if ends else None]


def _find_thinking_tags(text: str) -> Iterator[re.Match[str]]:
    """Find the tags that are not quotations. Code between an opening and a closing tag is not parsed, because drafts break off."""
    place, thinking = 0, False
    for tag in _THINKING.finditer(text):
        while not thinking and (mark := text.find("`", place, tag.start())) >= 0:
            code = _CODE_SPAN.match(text, mark, tag.end() + LOOK_BACK)
            is_code = code is not None and (code.end() <= tag.start() or _is_quoted(code[0]))
            place = code.end() if code is not None and is_code else mark + 1
        if place <= tag.start():
            thinking, place = not any(tag.groups()), tag.end()
            yield tag


def _is_quoted(code: str) -> bool:
    closing = [any(tag.groups()) for tag in _THINKING.finditer(code)]
    return _ONE_TAG.fullmatch(code) is not None or 2 * sum(closing) == len(closing)


def _decode_escape(match: re.Match[str]) -> str:
    if match[3]:
        return chr(int(match[3], 16))
    return chr(0x10000 + ((int(match[1], 16) - 0xD800) << 10) + int(match[2], 16) - 0xDC00)


def normalise_text(text: str) -> str:
    r"""Return the text case folded, without quotes and emphasis, with single spaces, no blank lines, ASCII digits and signs, and `\u00e9` as
    é.
    """
    if "\\u" in text:
        text = _ESCAPED.sub(_decode_escape, text)
    text = text.translate(_TABLE).casefold()
    return _LINE_ENDS.sub("\n", _SPACES.sub(" ", text)).strip()


def take_recent(places: Iterable[re.Match[str]], n: int) -> Iterable[re.Match[str]]:
    """Return the last matches of a pattern, in order, for n options."""
    return deque(places, maxlen=RECENT + 4 * n)


def extract_answer_text(text: str, look_back: int = LOOK_BACK) -> str:
    """Return the part of a response that is read: the end of the plain text outside the thinking."""
    return normalise_text(strip_thinking(text)[-look_back:])
