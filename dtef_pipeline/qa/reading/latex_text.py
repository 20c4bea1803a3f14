r"""LaTeX and programs in replies: `\boxed{}`, `\frac`, `1{,}234`, fenced code."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

_BOX = re.compile(r"(?:\\f?|\x08)(?:boxed|oxed|box)\s*\{")
_BRACE = re.compile(r"\\?[{}]")
_LONGEST_BOX = 300
_LAST_BOXES = 60
_FENCED_PROGRAM = re.compile(
    r"```[ ]*(?:python[0-9.]*|py|tool_code|javascript|js|java|c\+\+|cpp|c|sh|bash)[ \t]*\n.*?(?:```|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_REWRITTEN = (
    (re.compile(r"\\(?:text|mbox|textbf|textit|mathrm|mathbf|mathit|rm|bf|operatorname)\b\s*\{([^{}]*)\}"), r" \1 "),
    (re.compile(r"(?<=[0-9])(?:\{,\}|\\,|\\!|\\ )(?=[0-9]{3})"), ","),
    (re.compile(r"(?<=[0-9])\s*(?:\\[dtc]?|\x0c)f?rac\s*\{([^{}]*)\}\s*\{([^{}]*)\}"), r" \1/\2"),
    (re.compile(r"(?:\\[dtc]?|\x0c)f?rac\s*\{([^{}]*)\}\s*\{([^{}]*)\}"), r"\1/\2"),
    (re.compile(r"(?:\\[dtc]?|\x0c)f?rac\s*([0-9])\s*([0-9])"), r"\1/\2"),
    (re.compile(r"\^\s*\{?\s*\\circ\s*\}?"), " "),
    (re.compile(r"\\(?:times|cdot)(?![a-zA-Z])"), "×"),
    (re.compile(r"\\([$%#&_])"), r"\1"),
    (re.compile(r"\\(?:[a-zA-Z]+|[^a-zA-Z0-9])|\\"), " "),
    (re.compile(r"(?<!\^)\{|(?<![0-9])\}|~"), " "),
)


class Box(NamedTuple):
    """The content of a `\\boxed{}`, and the start and end of the box in the text."""

    content: str
    start: int
    end: int


def find_boxes(text: str) -> Iterator[Box]:
    r"""Return the closed `\boxed{}` and `\fbox{}` of a text, from left to right: among the last 60, those of at most 300 characters."""
    for match in deque(_BOX.finditer(text), maxlen=_LAST_BOXES) if "box" in text or "oxed" in text else ():
        depth = 1
        for brace in _BRACE.finditer(text, match.end(), match.end() + _LONGEST_BOX):
            depth += {"{": 1, "}": -1}.get(brace[0], 0)
            if not depth:
                yield Box(text[match.end() : brace.start()], match.start(), brace.end())
                break


def strip_latex(text: str) -> str:
    r"""Replace `\frac{3}{4}` by `3/4`, `1{,}234` by `1,234`, `\text{dollars}` by its words, and other commands by spaces."""
    if "\\" not in text and "{" not in text and "\x0c" not in text:
        return text
    for pattern, replacement in _REWRITTEN:
        text = pattern.sub(replacement, text)
    return text


def strip_programs(text: str) -> str:
    """Remove fenced blocks labelled as code of a programming language: a program is not its own output."""
    return _FENCED_PROGRAM.sub("\n", text) if "```" in text else text
