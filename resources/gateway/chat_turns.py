"""A conversation as the offline model reads it: turns between marks, shortened to what it can hold."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dtef_pipeline.asking.request import Message
from dtef_pipeline.asking.tokens import estimate_tokens

_TOKENS_BESIDE_TEXT = 6
"""Tokens of a turn besides its text: its marks, who speaks, and line ends."""
_USUAL_SYSTEM = Message("system", "You are a helpful AI assistant named SmolLM, trained by Hugging Face")
"""What SmolLM2 was trained to read where there is no system message."""
_MOST_TURNS = 64
_OPENING_SHARE = 0.25
# A mark within a text would end its turn, and the rest would be read as another speaker's.
_TURN_MARK = re.compile(r"<\|(?=im_|endoftext)")


def chat_prompt(messages: Sequence[Message]) -> str:
    """The conversation in the template of SmolLM2, up to where the assistant is to speak."""
    opening = [] if messages and messages[0].role == "system" else [_USUAL_SYSTEM]
    turns = (f"<|im_start|>{message.role}\n{defused(message.text)}<|im_end|>\n" for message in (*opening, *messages))
    return f"{''.join(turns)}<|im_start|>assistant\n"


def defused(text: str) -> str:
    """The text without marks of turns, and without halves of characters, which no encoder takes."""
    return _TURN_MARK.sub("<| ", text.encode("utf-8", "replace").decode("utf-8"))


def chat_tokens(messages: Sequence[Message]) -> int:
    """Estimated tokens of `chat_prompt`, on the high side."""
    return (
        sum(estimate_tokens(message.text) + _TOKENS_BESIDE_TEXT for message in (_USUAL_SYSTEM, *messages)) + _TOKENS_BESIDE_TEXT
    )


def fitted(messages: Sequence[Message], characters: int) -> list[Message]:
    """The conversation in about so many characters: the longest messages lose their middle, and a very long conversation its own."""
    kept = list(messages) if len(messages) <= _MOST_TURNS else [messages[0], *messages[1 - _MOST_TURNS :]]
    most = _longest_allowed([len(message.text) for message in kept], characters)
    return [Message(message.role, shortened(message.text, most)) for message in kept]


def shortened(text: str, budget: int) -> str:
    """At most about `budget` characters: the beginning and the end, cut between words."""
    if len(text) <= budget:
        return text
    head = "".join(text[: int(budget * _OPENING_SHARE)].rsplit(maxsplit=1)[:1])
    tail = text[len(text) - (budget - len(head)) :]
    tail = re.sub(r"^\S*\s", "", tail)
    return f"{head}\n[...]\n{tail}"


def _longest_allowed(lengths: Sequence[int], total: int) -> int:
    """The length at which longer texts have to be cut so that all of them have `total` together; the longest, if none has to."""
    left = total
    for place, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - place)
        if length > share:
            return share
        left -= length
    return max(lengths, default=0)
