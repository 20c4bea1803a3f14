"""What to do about a text that YAML cannot read; and tabs and line ends that YAML's reader takes otherwise than js-yaml does."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice

import yaml

_NO_BEGINNING = "cannot start any token"
_SAID_OF_TABS = (_NO_BEGINNING, "violates indentation", "indentation space is expected")
_OLD_BREAKS = "\x85\u2028\u2029"
_PRIVATE_USE = range(0xE000, 0xF900)
_LINE_END = re.compile(r"\r\n|\r|\n")
_REMEDIES = {
    "mapping values are not allowed": "put quotes around a text with `: ` in it, and mind the indentation",
    "violates indentation": "indent with spaces",
    "indentation space is expected": "indent with spaces",
    "unknown escape character": "put single quotes around a text with a backslash",
    "scanning a quoted scalar": "close the quote that begins there",
    "scanning an alias": "put quotes around a text that begins with *",
    "scanning an anchor": "put quotes around a text that begins with &",
    "scanning a tag": "put quotes around a text that begins with !",
    "parsing a flow": "close the bracket that begins there, or put quotes around the text",
    "scanning a block scalar": "put quotes around a text that begins with | or >",
    "could not find expected ':'": "write `key: value`, or put quotes around the text",
    "expected key": "mind the indentation, and put a text with quotes in it into other quotes",
    "expected '-' indicator": "begin each member of the list with `- `, all equally far to the right",
    "expected <document start>": "write a line --- between documents",
    "expected the node content": "put quotes around the text",
}
"""What to do, by a part of what YAML's reader says."""


def yaml_remedy(error: yaml.YAMLError, text: str) -> str:
    """`; ` and what to do about an error of YAML's reader in this text; empty where nothing is known."""
    said = f"{getattr(error, 'context', None)} {getattr(error, 'problem', None)}"
    if _NO_BEGINNING in said:
        here = _here(error, text)
        character = here[0][here[1] : here[1] + 1] if here else ""
        return "; indent with spaces" if character == "\t" else f"; put quotes around a text that begins with {character}"
    return next((f"; {remedy}" for part, remedy in _REMEDIES.items() if part in said), "")


def without_harmless_tab(error: yaml.YAMLError, text: str) -> str | None:
    """The text with a space in place of the tab that is the error, where the tab indents nothing; None: it is another error.

    A tab in an empty line, before a comment and behind `- ` is read by js-yaml, and refused by YAML's reader here.
    """
    said = str(getattr(error, "problem", None))
    if not any(part in said for part in _SAID_OF_TABS) or (here := _here(error, text)) is None:
        return None
    line, column, start = here
    before, after = line[:column], line[column:]
    indents = not before.strip(" ") and after.strip() != "" and not after.lstrip().startswith("#")
    if not after.startswith("\t") or indents:
        return None
    at = start + column
    return f"{text[:at]} {text[at + 1 :]}"


def without_old_breaks(text: str) -> tuple[str, Callable[[str], str]]:
    """The text as it can be parsed, and how the texts in it become again what they were.

    YAML 1.1 ends a line at three characters that YAML 1.2 and js-yaml take as they are. Characters that the text does not have stand in.
    """
    if not any(character in text for character in _OLD_BREAKS):
        return text, str
    unused = "".join(islice((chr(code) for code in _PRIVATE_USE if chr(code) not in text), len(_OLD_BREAKS)))
    if len(unused) < len(_OLD_BREAKS):
        return text, str
    back = str.maketrans(unused, _OLD_BREAKS)
    return text.translate(str.maketrans(_OLD_BREAKS, unused)), lambda value: value.translate(back)


def _here(error: yaml.YAMLError, text: str) -> tuple[str, int, int] | None:
    """The line of the error, the place in it, and where in the text the line begins."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return None
    start = 0
    for _ in range(mark.line):
        if (end := _LINE_END.search(text, start)) is None:
            return None
        start = end.end()
    end = _LINE_END.search(text, start)
    return text[start : end.start() if end else len(text)], int(mark.column), start
