r"""Patterns of blueprints: JavaScript's regular expressions, searched by the package `regex` within a time limit.

`translate_pattern` handles the differences in syntax. Patterns have no flags, except that `i` functions ignore case. JavaScript differs in
rare cases: it counts a character beyond U+FFFF as two, a reference to a group without a match matches the empty text, `\cJ` is a control
character, and `^*` or two groups of one name are errors.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

LONGEST_SEARCH = 1.0
"""Seconds after which the search for a pattern in a text is given up."""
LARGEST_PATTERN = 500_000
"""Parts of a pattern, each counted as often as it has to occur: `regex` needs memory and time in proportion, before any time limit."""
WHITE_SPACE = "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
"""The characters that JavaScript's `\\s` matches."""

_WORD_RUN = re.compile(f"[^{WHITE_SPACE}]+")
_TOKEN = re.compile(
    r"(?P<any>\[(?:\^|\\s\\S|\\S\\s|\\d\\D|\\D\\d|\\w\\W|\\W\\w)\])|\[\]|\[(?P<set>(?:\\[\s\S]|[^\]\\])+)\]"
    r"|\\(?P<escape>k<\w+>|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[\s\S])|(?P<group>\(\?(?![:=!]|<[=!\w]))"
    r"|\$|\.|(?P<times>(?P<of_group>\)?)(?:[*+?]|\{(?P<least>[0-9]+)(?:,[0-9]*)?\})(?P<again>\+?))|(?P<open>\[)|\{"
)
_IN_SET = re.compile(
    r"(?P<hyphen>-?)\\(?P<named>[dwsDWS])|\\(?P<escape>u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[\s\S])|(?P<bracket>\[)"
)
_NAMED_SETS = {"d": "0-9", "w": "0-9A-Z_a-z", "s": WHITE_SPACE}
_COMPLEMENT_SETS = {
    "D": r"\x00-/:-\U0010ffff",
    "W": r"\x00-/:-@\[-\^`{-\u012f\u0132-\u017e\u0180-\u2129\u212b-\U0010ffff",
    "S": r"\x00-\x08\x0e-\x1f!-\x9f\xa1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e\u2060-\u2fff\u3001-\ufefe\uff00-\U0010ffff",
}
"""Complements of named sets. `\\W` excludes the letters of `_FOLDED_TO_ASCII`, because they would match i, k and s."""
_FOLDED_TO_ASCII = {0x130: "\ue130", 0x131: "\ue131", 0x17F: "\ue17f", 0x212A: "\ue12a"}
"""Letters that `regex`, but not JavaScript, equates with i, s or k when it ignores case, with their substitutes."""


class BadPattern(ValueError):
    """An error in a pattern; the message says why it is invalid."""


class SearchTooLong(Exception):
    """A search for a pattern exceeded the time limit."""


@functools.lru_cache(maxsize=256)
def replace_folding_letters(text: str) -> str:
    """Replace the letters that only `regex` equates with ASCII letters when it ignores case."""
    return text if text.isascii() else text.translate(_FOLDED_TO_ASCII)


@functools.lru_cache(maxsize=4096)
def compile_pattern(pattern: str, ignore_case: bool = False) -> Callable[[str], bool]:
    """Return whether a text has a match, as a function; compiles the pattern once per process.

    Raises BadPattern. The function raises SearchTooLong after `LONGEST_SEARCH` seconds.
    """
    import regex

    try:
        _check_size(pattern)
        translated = translate_pattern(replace_folding_letters(pattern))
        machine = regex.compile(translated, regex.V0 | (regex.I if ignore_case else 0))
    except regex.error as fault:
        raise BadPattern(str(fault.msg)) from fault
    except (RecursionError, MemoryError, OverflowError) as fault:
        raise BadPattern(f"it is too large ({type(fault).__name__})") from fault

    def has_match(text: str) -> bool:
        try:
            return machine.search(replace_folding_letters(text), timeout=LONGEST_SEARCH) is not None
        except (TimeoutError, MemoryError) as error:
            raise SearchTooLong from error

    return has_match


def pattern_fault(pattern: str, ignore_case: bool = False) -> str | None:
    """Return why a text is not a valid pattern, or None if it is valid."""
    try:
        compile_pattern(pattern, ignore_case)
    except BadPattern as fault:
        return str(fault)
    return None


def _check_size(pattern: str) -> None:
    """Raise BadPattern if a pattern could have more than `LARGEST_PATTERN` parts; counted groups may be nested."""
    repeats, groups = 1, 1
    for token in _TOKEN.finditer(pattern):
        minimum = int((token["least"] or "1")[:9])
        repeats = max(repeats, minimum)
        groups *= max(1, minimum) if token["of_group"] else 1
    if len(pattern) * repeats * groups > LARGEST_PATTERN:
        raise BadPattern(f"its parts must occur more than {LARGEST_PATTERN:,} times")


def translate_pattern(pattern: str) -> str:
    """Translate a JavaScript pattern for `regex`. Raises BadPattern for syntax that only `regex` accepts."""
    return _TOKEN.sub(_translate, pattern)


def _translate(token: re.Match[str]) -> str:
    if token["group"]:
        raise BadPattern(f"{token.string[token.start() : token.end() + 1]!r} does not open a known kind of group")
    if token["open"]:
        raise BadPattern("a square bracket is not closed")
    if token["times"]:
        if token["again"]:
            raise BadPattern(f"'+' at {token.end()} has nothing before it to repeat")
        return token["times"]
    if token["set"]:
        return f"[{_IN_SET.sub(_translate_in_set, token['set'])}]"
    if token["escape"]:
        return _translate_escape(token["escape"])
    if token["any"]:
        return "(?s:.)"
    return {"[]": "(?!)", "$": r"\Z", ".": _make_caseless_set("^\n\r\u2028\u2029"), "{": r"\{"}[token[0]]


def _translate_escape(escape: str) -> str:
    kind = escape[0]
    if kind in "bB":
        return rf"(?a:\{kind})"
    if kind.lower() in _NAMED_SETS:
        return _make_caseless_set(f"{'^' if kind.isupper() else ''}{_NAMED_SETS[kind.lower()]}")
    if kind == "k" and len(escape) > 1:
        return f"(?P={escape[2:-1]})"
    return _translate_plain_escape(escape)


def _make_caseless_set(members: str) -> str:
    """Return a set with both cases of its letters; `regex` is several times faster if it need not try both."""
    return f"(?-i:[{members}])"


def _translate_in_set(token: re.Match[str]) -> str:
    if token["bracket"]:
        return r"\["
    if kind := token["named"]:
        hyphen = r"\-" if token["hyphen"] else ""
        return f"{hyphen}{(_NAMED_SETS | _COMPLEMENT_SETS)[kind]}"
    return _translate_plain_escape(token["escape"]) if token["escape"] != "b" else r"\x08"


def _translate_plain_escape(escape: str) -> str:
    """Translate an escape of one character: letters without a special meaning match themselves."""
    letter = escape if len(escape) == 1 and escape.isalpha() and escape not in "cfnrtv" else ""
    return letter or f"\\{escape}"


def count_words(text: str) -> int:
    r"""Return the number of runs of characters that are not white space in JavaScript (`\S+`)."""
    return sum(1 for _ in _WORD_RUN.finditer(text))
