"""The documents of a YAML or JSON file, read as js-yaml 4 reads them: `yes`, `on`, `y` and `12:30` are text, and so are dates.

A value that is built from aliases counts as often as it is used, so that a small file cannot stand for a huge one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

import yaml

from dtef_pipeline.documents import yaml_problem
from dtef_pipeline.rubric.yaml_faults import without_harmless_tab, without_old_breaks, yaml_remedy
from dtef_pipeline.text.counted import counted

MOST_CHARACTERS = 5_000_000
"""Of a file."""
DEEPEST_VALUE = 50
"""How many lists and mappings may lie in one another."""
MOST_EXPANDED = 20_000_000
"""Characters and values of a file, those behind an alias counted at each use."""

_MOST_TABS = 200
"""Tabs of one file that are read as spaces; each takes a further look at the file, so that of a large one fewer are."""
_BEYOND_DOUBLES = 400
_INTEGER_TEXT = re.compile(
    r"[-+]?(?:0b[01_]*[01]|0x[\da-fA-F_]*[\da-fA-F]|0o[0-7_]*[0-7]|0|0\d(?:[\d_]*\d)?|[1-9](?:[\d_]*\d)?)"
)
_FLOAT_TEXT = re.compile(
    r"(?:[-+]?\d[\d_]*(?:\.[\d_]*)?(?:[eE][-+]?\d+)?|\.[\d_]+(?:[eE][-+]?\d+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))(?<!_)"
)
_CONSTANTS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBER_START = frozenset("0123456789+-.")
_BASES = {"0b": 2, "0x": 16, "0o": 8}
_TAG = "tag:yaml.org,2002:"
_SURROGATE = re.compile("[\ud800-\udfff]")


class YamlFault(ValueError):
    """A file is not the YAML or JSON that it should be. `line`: counted from 1, None where it is not known; `problem`: in words."""

    def __init__(self, problem: str, line: int | None) -> None:
        super().__init__(problem)
        self.problem, self.line = problem, line


@dataclass
class SourceLines:
    """Where in its file each member of a list or mapping stands."""

    _of: dict[int, tuple[int, dict[Any, int]]] = field(default_factory=dict)

    def note(self, container: list[Any] | dict[str, Any], line: int, members: dict[Any, int]) -> None:
        """`line`: of the container's beginning; `members`: by key or by place in the list."""
        self._of[id(container)] = (line, members)

    def of(self, container: object, key: object = None) -> int | None:
        """The line, from 1, of a member, or of the whole where there is no such member; None: not known, as in JSON."""
        line, members = self._of.get(id(container), (None, {}))
        return members.get(key, line)


@dataclass(frozen=True)
class ReadDocuments:
    """The documents of a file, those that are null left out. Mappings have texts as keys."""

    values: tuple[Any, ...]
    lines: SourceLines
    begin: tuple[int | None, ...] = ()
    """The line in which each document begins; empty where it is not known, as in JSON."""

    def line_of(self, place: int) -> int | None:
        """The line in which a document begins, by its place from 0."""
        return self.begin[place] if place < len(self.begin) else None


def read_yaml(text: str) -> ReadDocuments:
    """The documents of a YAML text. Raises YamlFault for what is no YAML, a key that is given twice, and a file beyond the limits."""
    _check_length(text)
    parsed, restored = without_old_breaks(text)
    most = min(_MOST_TABS, 1 + MOST_EXPANDED // (len(text) + 1))
    for _ in range(most):
        try:
            return _parsed(parsed, restored)
        except yaml.YAMLError as error:
            if (mended := without_harmless_tab(error, parsed)) is None:
                line, problem = yaml_problem(error, text)
                raise YamlFault(f"{problem}{yaml_remedy(error, parsed)}", line) from error
            parsed = mended
    raise YamlFault(f"more than {counted(most - 1, 'line')} have tabs between what they say; write spaces", None)


def _parsed(text: str, restored: Callable[[str], str]) -> ReadDocuments:
    loader = (yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader)(text)
    try:
        builder = _Builder(loader.get_event, restored)
        found = [(value, line) for value, line in builder.documents() if value is not None]
    finally:
        loader.dispose()
    return ReadDocuments(tuple(value for value, _ in found), builder.lines, tuple(line for _, line in found))


def read_json(text: str) -> ReadDocuments:
    """The one document of a JSON text. Raises YamlFault as `read_yaml` does; its members' lines are not known."""
    _check_length(text)
    try:
        value = json.loads(
            text, object_pairs_hook=_unique_pairs, parse_constant=_refused_constant, parse_int=_integer, parse_float=float
        )
        _check_shape(value)
    except RecursionError as error:
        raise YamlFault(_too_deep(), None) from error
    except json.JSONDecodeError as error:
        raise YamlFault(f"no JSON: {error.msg}", error.lineno) from error
    return ReadDocuments((value,) if value is not None else (), SourceLines())


def scalar(text: str) -> Any:
    """What a scalar without quotes means: null, a truth value, a number, or else the text itself.

    The rules are those of js-yaml 4: `0o17` is octal, `017` is seventeen, `1e3` is a number, `yes`, `12:30` and `2026-03-01` are text.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in _NUMBER_START:
        return text
    if _INTEGER_TEXT.fullmatch(text):
        return _integer(text)
    if _FLOAT_TEXT.fullmatch(text):
        return _float(text)
    return text


def number_text(value: float) -> str:
    """A number as JavaScript writes it, where people write numbers for text: 3.0 is `3`."""
    if isinstance(value, float) and math.isfinite(value) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    return str(value)


def _integer(text: str) -> int | float:
    digits = text.replace("_", "").lstrip("+-")
    sign = -1 if text[0] == "-" else 1
    if len(digits) > _BEYOND_DOUBLES:
        return sign * math.inf
    base = _BASES.get(digits[:2], 10)
    return sign * int(digits if base == 10 else digits[2:], base)


def _float(text: str) -> float:
    plain = text.replace("_", "").lower()
    return float(plain.replace(".inf", "inf").replace(".nan", "nan"))


def _check_length(text: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise YamlFault(
            f"the file has {counted(len(text), 'character')}; allowed: {MOST_CHARACTERS:,}; split it in several files", None
        )


def _too_deep() -> str:
    return f"lists and mappings lie in one another more than {DEEPEST_VALUE} deep; allowed: {DEEPEST_VALUE}"


class _Builder:
    """Values from the parser's events. Recursion is bounded by `DEEPEST_VALUE`, and work by `MOST_EXPANDED`."""

    def __init__(self, event: Callable[[], Any], restored: Callable[[str], str]) -> None:
        self._event, self._restored = event, restored
        self._anchors: dict[str, tuple[Any, int] | None] = {}
        self._size = 0
        self.lines = SourceLines()

    def documents(self) -> Iterator[tuple[Any, int]]:
        """Each with the line that it begins in."""
        while not isinstance(event := self._event(), yaml.StreamEndEvent):
            if isinstance(event, yaml.DocumentStartEvent):
                self._anchors.clear()
                first = self._event()
                yield self._value(first, 0), _line(first)

    def _value(self, event: Any, depth: int) -> Any:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        before = self._size
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            self._grow(1 + len(event.value), event)
            event.value = self._restored(event.value)
            value = _tagged_scalar(event)
        else:
            self._grow(1, event)
            if depth == DEEPEST_VALUE:
                raise YamlFault(_too_deep(), _line(event))
            is_list = isinstance(event, yaml.SequenceStartEvent)
            value = self._sequence(event, depth + 1) if is_list else self._mapping(event, depth + 1)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, self._size - before)
        return value

    def _alias(self, event: Any) -> Any:
        if event.anchor not in self._anchors:
            raise YamlFault(f"the alias *{event.anchor} has no anchor &{event.anchor} before it", _line(event))
        anchored = self._anchors[event.anchor]
        if anchored is None:
            raise YamlFault(f"the alias *{event.anchor} stands within what it stands for", _line(event))
        value, size = anchored
        self._grow(size, event)
        return value

    def _grow(self, size: int, event: Any) -> None:
        self._size += size
        if self._size > MOST_EXPANDED:
            raise YamlFault(
                f"with its aliases written out the file has more than {counted(MOST_EXPANDED, 'character')}", _line(event)
            )

    def _sequence(self, start: Any, depth: int) -> list[Any]:
        _check_tag(start, ("seq", "omap", "pairs"))
        values: list[Any] = []
        lines: dict[Any, int] = {}
        while not isinstance(event := self._event(), yaml.SequenceEndEvent):
            lines[len(values)] = _line(event)
            values.append(self._value(event, depth))
        self.lines.note(values, _line(start), lines)
        return values

    def _mapping(self, start: Any, depth: int) -> dict[str, Any]:
        _check_tag(start, ("map", "set"))
        values: dict[str, Any] = {}
        merged: list[dict[str, Any]] = []
        lines: dict[Any, int] = {}
        while not isinstance(event := self._event(), yaml.MappingEndEvent):
            if _is_merge(event):
                merged += _merged(self._value(self._event(), depth), event)
                continue
            key = _key(self._value(event, depth), event)
            if key in values:
                raise YamlFault(f"the key {key!r} is given twice in one mapping", _line(event))
            lines[key] = _line(event)
            values[key] = self._value(self._event(), depth)
        for other in merged:
            self._grow(len(other), start)
            for key, value in other.items():
                values.setdefault(key, value)
        self.lines.note(values, _line(start), lines)
        return values


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _is_merge(event: Any) -> bool:
    return isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0] and event.tag is None


def _merged(value: Any, event: Any) -> list[dict[str, Any]]:
    found = value if isinstance(value, list) else [value]
    if not all(isinstance(one, dict) for one in found):
        raise YamlFault("what `<<` merges is no mapping", _line(event))
    return found


def _key(value: Any, event: Any) -> str:
    if isinstance(value, (list, dict)):
        raise YamlFault("a list or mapping cannot be a key; put quotes around a text that begins with [ or {", _line(event))
    return scalar_text(value)


def scalar_text(value: Any) -> str:
    """A scalar as JavaScript makes a text of it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else number_text(value)


def _check_tag(event: Any, known: tuple[str, ...]) -> None:
    if event.tag not in (None, "!") and event.tag not in {_TAG + name for name in known}:
        raise YamlFault(f"the tag {event.tag!r} means nothing in a blueprint; leave it out", _line(event))


def _tagged_scalar(event: Any) -> Any:
    if event.tag is None:
        return scalar(event.value) if event.implicit[0] else event.value
    _check_tag(event, ("str", "int", "float", "bool", "null", "timestamp"))
    kind = event.tag.removeprefix(_TAG)
    if kind in ("!", "str", "timestamp"):
        return event.value
    value: Any = scalar(event.value)
    kinds: dict[str, Any] = {"int": (int,), "float": (int, float), "bool": (bool,), "null": (type(None),)}
    if not isinstance(value, kinds[kind]) or (isinstance(value, bool) and kind != "bool"):
        raise YamlFault(f"{event.value!r} is no value of the tag !!{kind}", _line(event))
    return float(value) if kind == "float" else value


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise YamlFault(f"the key {key!r} is given twice in one object", None)
        values[key] = value
    return values


def _refused_constant(name: str) -> NoReturn:
    raise YamlFault(f"{name} is no JSON", None)


def _check_shape(value: Any) -> None:
    """That a value is not too deep, and that its texts can be written down again."""
    level = [value]
    for _ in range(DEEPEST_VALUE + 1):
        texts = [one for one in level if isinstance(one, str)]
        texts += [key for one in level if isinstance(one, dict) for key in one]
        if any(_SURROGATE.search(text) for text in texts):
            raise YamlFault("a text has half a character: one `\\ud...` escape where two belong together", None)
        level = [
            part for one in level if isinstance(one, (dict, list)) for part in (one.values() if isinstance(one, dict) else one)
        ]
    if level:
        raise YamlFault(_too_deep(), None)
