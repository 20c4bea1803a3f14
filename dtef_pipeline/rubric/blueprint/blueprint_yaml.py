"""The documents of a YAML or JSON file of blueprints: PyYAML's SafeLoader with the scalars of js-yaml 4, and the line of every value.

`yes`, `on`, `12:30` and dates are text, `0o17` is octal, `017` is seventeen, and keys are texts.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

import yaml
from yaml.composer import Composer
from yaml.constructor import ConstructorError, SafeConstructor

from dtef_pipeline.documents import describe_yaml_problem, describe_yaml_remedy
from dtef_pipeline.text.number_words import format_count

MAX_CHARACTERS = 5_000_000
"""Per file."""
DEEPEST_VALUE = 50
"""Maximum nesting depth of lists and mappings."""
_TOO_DEEP = f"lists and mappings are nested more than {DEEPEST_VALUE} deep; allowed: {DEEPEST_VALUE}"
MAX_EXPANDED = 20_000_000
"""Maximum characters and values of a file; those of an alias count at each use, so that a small file cannot expand to a huge one."""

_TAG = "tag:yaml.org,2002:"
_RESOLVERS = {
    "null": (r"(?:~|null|Null|NULL|)\Z", ["~", "n", "N", ""]),
    "bool": (r"(?:true|True|TRUE|false|False|FALSE)\Z", list("tTfF")),
    "int": (
        r"[-+]?(?:0b[01_]{1,300}|0o[0-7_]{1,300}|0x[0-9a-fA-F_]{1,300}|[0-9][0-9_]{0,299})(?<!_)\Z",
        list("-+0123456789"),
    ),
    "float": (
        r"(?:[-+]?[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9_]+(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))(?<!_)\Z",
        list("-+.0123456789"),
    ),
    "merge": (r"<<\Z", ["<"]),
}
"""By tag, the pattern of its unquoted scalars, and their possible first characters."""
_OLD_BREAKS = {0x85: 0xF0085, 0x2028: 0xF2028, 0x2029: 0xF2029}
"""Characters that end a line in YAML 1.1 only, with their substitutes while a file is parsed."""
_BREAKS_OF_STAND_INS = {stand_in: character for character, stand_in in _OLD_BREAKS.items()}


class YamlFault(ValueError):
    """An error in YAML or JSON. `line`: from 1, None: unknown; `problem`: a description."""

    def __init__(self, problem: str, line: int | None) -> None:
        super().__init__(problem)
        self.problem, self.line = problem, line


@dataclass
class SourceLines:
    """The line of each member of a list or mapping."""

    _lines_by_id: dict[int, tuple[int, dict[Any, int]]] = field(default_factory=dict)

    def note(self, container: list[Any] | dict[str, Any], line: int, members: dict[Any, int]) -> None:
        """Store the first `line` of a container and those of its `members`, by key or place."""
        self._lines_by_id[id(container)] = (line, members)

    def find_member_line(self, container: object, key: object = None) -> int | None:
        """Return the line, from 1, of a member, or of the container if it has no such member; None if unknown, as in JSON."""
        line, members = self._lines_by_id.get(id(container), (None, {}))
        return members.get(key, line)


@dataclass(frozen=True)
class ParsedDocuments:
    """The documents of a file without null ones. Keys of mappings are texts."""

    values: tuple[Any, ...]
    lines: SourceLines
    first_lines: tuple[int | None, ...] = ()
    """The line in which each document begins; empty where it is not known, as in JSON."""

    def find_line(self, place: int) -> int | None:
        """Return the first line of a document, by its place from 0, or None if unknown."""
        return self.first_lines[place] if place < len(self.first_lines) else None


def read_yaml(text: str) -> ParsedDocuments:
    """Parse a YAML text. Raises YamlFault if it is invalid, has a duplicate key, or exceeds the limits."""
    _check_length(text)
    try:
        loader = _Loader(text.translate(_OLD_BREAKS))
        try:
            documents = [(value, line) for value, line in loader.documents() if value is not None]
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        line, problem = describe_yaml_problem(error, text)
        mark = getattr(error, "problem_mark", None)
        column = f", at column {mark.column + 1}" if mark else ""
        raise YamlFault(f"{problem}{column}{describe_yaml_remedy(error, text)}", line) from error
    return ParsedDocuments(tuple(value for value, _ in documents), loader.lines, tuple(line for _, line in documents))


def read_json(text: str) -> ParsedDocuments:
    """Parse a JSON text, without lines of members. Raises YamlFault as `read_yaml` does."""
    _check_length(text)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_require_unique_pairs,
            parse_constant=_refuse_constant,
            parse_int=_parse_whole_number,
            parse_float=float,
        )
        _check_depth(value)
        json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise YamlFault(_TOO_DEEP, None) from error
    except json.JSONDecodeError as error:
        raise YamlFault(f"not JSON: {error.msg}, at column {error.colno}", error.lineno) from error
    except UnicodeEncodeError as error:
        raise YamlFault("a text has half a character: a `\\ud...` escape without its second half", None) from error
    return ParsedDocuments((value,) if value is not None else (), SourceLines())


def format_scalar(value: Any) -> str:
    """Format a scalar as JavaScript does."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else format_js_number(value)


def format_js_number(value: float) -> str:
    """Format a number as JavaScript does: 3.0 is `3`."""
    if isinstance(value, float) and math.isfinite(value) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    return str(value)


_BASES: Any = (Composer, yaml.CSafeLoader)


class _Loader(*_BASES):  # type: ignore[misc]
    """A loader of the tags of `_RESOLVERS`, texts, lists and mappings; any other tag is an error with its line.

    The composer in Python limits the recursion.
    """

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}
    yaml_constructors: ClassVar[dict[str | None, Callable[..., Any]]] = {None: SafeConstructor.construct_undefined}

    def __init__(self, text: str) -> None:
        yaml.CSafeLoader.__init__(self, text)
        self.anchors: dict[str | None, yaml.Node] = {}
        self.lines = SourceLines()
        self._depth = self._size = 0
        self._sizes: dict[yaml.Node, int] = {}

    def documents(self) -> Iterator[tuple[Any, int]]:
        """Yield each document and its first line."""
        while self.check_node():
            node = self.get_node()
            yield self.construct_document(node), _node_line(node)

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node:
        event, before = self.peek_event(), self._size
        is_collection = isinstance(event, yaml.CollectionStartEvent)
        self._depth += is_collection
        if self._depth > DEEPEST_VALUE:
            raise ConstructorError(None, None, _TOO_DEEP, event.start_mark)
        if not isinstance(event, yaml.AliasEvent):
            self.anchors.pop(event.anchor, None)  # a name may be given again
        node: yaml.Node = super().compose_node(parent, index)
        self._depth -= is_collection
        self._size += self._sizes.get(node, 1 if is_collection else len(node.value) + 1)
        if self._size > MAX_EXPANDED:
            problem = f"with its aliases expanded the file has more than {format_count(MAX_EXPANDED, 'character')}"
            raise ConstructorError(None, None, problem, event.start_mark)
        self._sizes.setdefault(node, self._size - before)
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, KeyError) as error:
            problem = f"{node.value!r} is not a value of the tag {node.tag.replace(_TAG, '!!')}"
            raise ConstructorError(None, None, problem, node.start_mark) from error

    def construct_scalar(self, node: yaml.ScalarNode) -> str:
        return str(super().construct_scalar(node)).translate(_BREAKS_OF_STAND_INS)

    def construct_list(self, node: yaml.SequenceNode) -> list[Any]:
        values: list[Any] = self.construct_sequence(node, deep=True)
        self.lines.note(values, _node_line(node), {place: _node_line(member) for place, member in enumerate(node.value)})
        return values

    def construct_text_mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        if not isinstance(node, yaml.MappingNode):
            raise ConstructorError(None, None, "a value with the tag !!map is not a mapping", node.start_mark)
        direct_keys = {key for key, _ in node.value}
        self.flatten_mapping(node)
        values: dict[str, Any] = {}
        lines: dict[Any, int] = {}
        for key_node, value_node in node.value:
            key = self._construct_key(key_node)
            if key in lines and key_node in direct_keys:
                raise ConstructorError(None, None, f"the key {key!r} occurs twice in one mapping", key_node.start_mark)
            if key_node in direct_keys:
                lines[key] = _node_line(key_node)
            values[key] = self.construct_object(value_node, deep=True)
        self.lines.note(values, _node_line(node), lines)
        return values

    def _construct_key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            problem = "a list or mapping cannot be a key; put quotes around a text that begins with [ or {"
            raise ConstructorError(None, None, problem, node.start_mark)
        return format_scalar(self.construct_object(node, deep=True))


for _tag, (_pattern, _beginnings) in _RESOLVERS.items():
    _Loader.add_implicit_resolver(_TAG + _tag, re.compile(_pattern), _beginnings)
for _tag, _construct in {
    "null": _Loader.construct_yaml_null,
    "bool": _Loader.construct_yaml_bool,
    "int": lambda loader, node: _parse_whole_number(loader.construct_scalar(node)),
    "float": _Loader.construct_yaml_float,
    "str": _Loader.construct_scalar,
    "seq": _Loader.construct_list,
    "map": _Loader.construct_text_mapping,
}.items():
    _Loader.add_constructor(_TAG + _tag, _construct)


def _node_line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _parse_whole_number(text: str) -> float:
    digits = text.replace("_", "")
    if digits.lstrip("+-")[1:2] in ("b", "o", "x"):
        return int(digits, 0)
    return int(digits) if len(digits) < 400 else float(digits)


def _check_length(text: str) -> None:
    if len(text) > MAX_CHARACTERS:
        raise YamlFault(
            f"the file has {format_count(len(text), 'character')}; allowed: {MAX_CHARACTERS:,}; split it into several files",
            None,
        )


def _require_unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise YamlFault(f"the key {key!r} occurs twice in one object", None)
        values[key] = value
    return values


def _refuse_constant(name: str) -> NoReturn:
    raise YamlFault(f"{name} is not JSON", None)


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEEPEST_VALUE + 1):
        level = [part for v in level if isinstance(v, (dict, list)) for part in (v.values() if isinstance(v, dict) else v)]
    if level:
        raise YamlFault(_TOO_DEEP, None)
