"""The point functions by name, the other spellings of their names, and their arguments."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

PatternFault = Callable[[str, bool], str | None]
"""Why a text is no JavaScript pattern (given it, and whether case is ignored), or None: it is one."""

EXTERNAL_FUNCTIONS = ("call", "factcheck")
"""Functions that need an external service, which is not supported: their criteria stay unscored."""
REFERENCE_FUNCTION = "ref"
"""Not a function, but a reference to a definition in the header."""


class PointFunction(NamedTuple):
    """The name and argument of a point function."""

    argument: str
    """Description, as in the table of functions."""
    fault: Callable[[Any], bool]
    """Whether an argument is of another form."""
    takes_text: bool = False
    """Whether the argument is one text."""
    patterns: Callable[[Any], list[str]] | None = None
    """The patterns in a sound argument; None: it has none."""


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_n_of(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and _is_number(value[0]) and _is_texts(value[1])


def _is_range(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_number, value)) and 0 <= value[0] <= value[1]


def _is_call_range(value: Any) -> bool:
    if not isinstance(value, list) or len(value) not in (2, 3):
        return False
    return _is_range(value[:2]) and (len(value) == 2 or value[2] is None or isinstance(value[2], str))


def _is_calls_match(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or not value["name"]:
        return False
    spaces = value.get("normalizeWhitespace", False)
    has_known_keys = value.keys() <= {"name", "where", "normalizeWhitespace"}
    return has_known_keys and isinstance(spaces, bool) and isinstance(value.get("where"), (dict, list, str))


def _is_some_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _negate(sound: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: not sound(value)


_ONE_TEXT = PointFunction("a text", _negate(lambda value: isinstance(value, str)), takes_text=True)
_TEXT_LIST = PointFunction("a list of texts", _negate(_is_texts))
_N_OF = PointFunction("[a number, a list of texts]", _negate(_is_n_of))
_ONE_PATTERN = _ONE_TEXT._replace(argument="a pattern", patterns=lambda value: [value])
_PATTERN_LIST = _TEXT_LIST._replace(argument="a list of patterns", patterns=lambda value: list(value))
_N_OF_PATTERNS = _N_OF._replace(argument="[a number, a list of patterns]", patterns=lambda value: list(value[1]))
_SEARCHING: Mapping[str, PointFunction] = {
    "contains": _ONE_TEXT,
    "contains_any_of": _TEXT_LIST,
    "contains_all_of": _TEXT_LIST,
    "contains_at_least_n_of": _N_OF,
    "contains_word": _ONE_TEXT,
    "starts_with": _ONE_TEXT,
    "ends_with": _ONE_TEXT,
    "matches": _ONE_PATTERN,
    "matches_all_of": _PATTERN_LIST,
    "matches_at_least_n_of": _N_OF_PATTERNS,
}
"""Functions that search the response; each has a case-insensitive form, with `i` before its name."""
_COUNTING: Mapping[str, PointFunction] = {
    "word_count_between": PointFunction("[least, most], 0 <= least <= most", _negate(_is_range)),
    "is_json": PointFunction("true, or nothing", lambda value: value is not None and value is not True),
    "tool_called": PointFunction("the name of a tool", _negate(_is_some_text), takes_text=True),
    "tool_call_count_between": PointFunction("[least, most] or [least, most, name of a tool]", _negate(_is_call_range)),
    "tool_call_order": PointFunction("a list of names of tools", _negate(_is_texts)),
    "tool_args_match": PointFunction(
        "{name: tool, where: {argument: value}, normalizeWhitespace: false}", _negate(_is_calls_match)
    ),
}
_POSITIVE = {**_SEARCHING, **{f"i{name}": function for name, function in _SEARCHING.items()}, **_COUNTING}
POINT_FUNCTIONS: Mapping[str, PointFunction] = {
    **_POSITIVE,
    **{f"not_{name}": function for name, function in _POSITIVE.items() if not name.endswith("_at_least_n_of")},
    "js": PointFunction("a JavaScript expression or function body", _negate(_is_some_text), takes_text=True),
    "call": PointFunction("a mapping with service or url", lambda value: False),
    "factcheck": PointFunction("a text that says what to check", lambda value: False, takes_text=True),
}
"""Every point function by its canonical name."""

_SINGULAR = re.compile(r"(not_)?(i)?(contain|match|start_with|end_with)(?=_|\Z)")
_PLURALS = {"contain": "contains", "match": "matches", "start_with": "starts_with", "end_with": "ends_with"}
_OTHER_NAMES = {"expr": "js", "external": "call"}


def find_canonical_name(name: str) -> str | None:
    """Return the canonical name of any spelling of a function (`icontain_any_of` -> `icontains_any_of`), or None if unknown."""
    name = _OTHER_NAMES.get(name, name)
    if match := _SINGULAR.match(name):
        name = f"{match[1] or ''}{match[2] or ''}{_PLURALS[match[3]]}{name[match.end() :]}"
    return name if name in POINT_FUNCTIONS else None


def is_case_insensitive(name: str) -> bool:
    """Return whether a function, by its canonical name, ignores case."""
    positive = name.removeprefix("not_")
    return positive.startswith("i") and positive[1:] in _SEARCHING


def check_argument(name: str, args: Any) -> str | None:
    """Return what is wrong with an argument of a function (canonical name), or None."""
    function = POINT_FUNCTIONS[name]
    if not function.fault(args):
        return None
    got = "nothing" if args is None else f"{args!r:.60}"
    hint = "; put quotes around it" if function.takes_text and isinstance(args, (int, float)) else ""
    return f"${name} takes {function.argument}; got {got}{hint}"


def check_patterns(name: str, args: Any, fault: PatternFault) -> Iterable[str]:
    """Yield what is wrong with each pattern in a valid argument."""
    patterns = POINT_FUNCTIONS[name].patterns
    for pattern in patterns(args) if patterns else ():
        if (reason := fault(pattern, is_case_insensitive(name))) is not None:
            yield f"the pattern {pattern!r:.60} of ${name}: {reason}"
