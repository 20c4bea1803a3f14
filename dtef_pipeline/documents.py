"""YAML files that people write: read with unique keys, validated against a model, with every fault reported in one form:

panel.yaml:3: drift.baseline: got 1; allowed: 2 or more

Descriptions of a model's members in its JSON schema are the docstrings below them in the source.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import json
import re
import textwrap
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, ValidationError, model_validator
from pydantic_core import CoreSchema

from dtef_pipeline.errors import ConfigError


class DescribedMembers(BaseModel):
    """A model whose JSON schema describes each member by the docstring below it, unless its field has a description.

    Pydantic's setting `use_attribute_docstrings` reads the source of every model at import, a tenth of the start time of most commands. It is
    read here when a schema is built.
    """

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler(core_schema)
        members = handler.resolve_ref_schema(schema).get("properties", {})
        for name, member_text in member_docstrings(cls).items():
            named = name if name in members else cls.model_fields[name].alias
            if named in members:
                members[named].setdefault("description", member_text)
        return schema


def member_docstrings(model: type[BaseModel]) -> Mapping[str, str]:
    """Return the docstrings of a model's own and inherited members, by name."""
    docstrings: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            docstrings |= {
                name: member_text for name, member_text in _read_own_docstrings(base).items() if name in model.model_fields
            }
    return docstrings


@cache
def _read_own_docstrings(model: type[BaseModel]) -> Mapping[str, str]:
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    except (OSError, TypeError):  # a model class that was created at run time has no source
        return {}
    assert isinstance(definition, ast.ClassDef)
    return {
        member.target.id: inspect.cleandoc(below.value.value)
        for member, below in pairwise(definition.body)
        if isinstance(member, ast.AnnAssign)
        and isinstance(member.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


Place = tuple[int | str, ...]
"""The path of a value in a document: keys and list indexes, from the outside in."""
_Model = TypeVar("_Model", bound=BaseModel)
_LONGEST_ECHO = 80
_KNOWN = "; known: "
_MAX_IN_LINE = 20
"""Maximum number of reasons in a message."""
_OF_KEY = "[key]"
"""Pydantic's suffix of the path if the key itself is wrong."""
_IN_OUR_WORDS: Mapping[str, str] = {
    "string_type": "text",
    "bool_type": "true or false",
    "list_type": "a list",
    **dict.fromkeys(("dict_type", "model_type"), "a mapping"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
}
"""Allowed values, by pydantic's name of the fault."""
_LIMITS = {"ge": "{} or more", "gt": "more than {}", "le": "at most {}", "lt": "less than {}"}
_YAML_REMEDIES = {
    "mapping values are not allowed": "put quotes around a text with `: ` in it, and check the indentation",
    "violates indentation": "indent with spaces",
    "indentation space is expected": "indent with spaces",
    "unknown escape character": "put single quotes around a text with a backslash",
    "scanning a quoted scalar": "close the quote that begins there",
    "scanning an alias": "put quotes around a text that begins with *",
    "undefined alias": "put quotes around a text that begins with *",
    "scanning an anchor": "put quotes around a text that begins with &",
    "scanning a tag": "put quotes around a text that begins with !",
    "constructor for the tag": "leave the tag out, or put quotes around a text that begins with !",
    "parsing a flow": "close the bracket that begins there, or put quotes around the text",
    "scanning a block scalar": "put quotes around a text that begins with | or >",
    "could not find expected ':'": "write `key: value`, or put quotes around the text",
    "expected key": "check the indentation, and put a text with quotes in it into other quotes",
    "expected <block end>": "check the indentation",
    "expected '-' indicator": "begin each member of the list with `- `, all with the same indentation",
    "expected <document start>": "write a line --- between documents",
    "expected the node content": "put quotes around the text",
}
"""What to do, by a part of PyYAML's message."""


class Part(DescribedMembers):
    """Base of document models: no unknown keys, no infinity, no type guessing.

    A key without a value counts as absent, unless null is an allowed value or the key is required.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
    )

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        return {key: value for key, value in values.items() if value is not None or cls._is_nullable(key)}

    @classmethod
    def _is_nullable(cls, key: Any) -> bool:
        info = cls.model_fields.get(str(key))
        return info is None or info.is_required() or type(None) in get_args(info.annotation)


@dataclass(frozen=True)
class Document:
    """A parsed document.

    `where`: its file or name. `text`: its source. `values`: its keys, none if the file is empty. `members`: what one member of a
    top-level key is called, such as `model` for `models`: a fault then names the member, `model 'mini': top_p`.
    """

    where: str
    text: str
    values: dict[Any, Any]
    members: Mapping[str, str] = field(default_factory=dict)

    def validate_as(self, model: type[_Model], values: Any = None, place: Place = (), *, context: Any = None) -> _Model:
        """Validate the document, or the `values` at `place` in it, as a model. `context`: what the model's own checks need.

        Raises ConfigError with all faults.
        """
        try:
            return model.model_validate(self.values if values is None else values, context=context)
        except ValidationError as error:
            messages = [self._format_place((*place, *reason.place), reason.message) for reason in reasons(error, model)]
            raise ConfigError(_join_faults(messages)) from error

    def mapping(self, place: Place, known_keys: Iterable[str] | None = None) -> dict[Any, Any]:
        """Return the mapping at a place, empty if absent. Raises ConfigError for another type, and for keys not in `known_keys`."""
        value: Any = self.values
        for part in place:
            value = value.get(part) if isinstance(value, dict) else None
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.error(place, f"got {format_value(value)}; allowed: a mapping")
        if known_keys is not None and (unknown := [str(key) for key in value if key not in (known_keys := list(known_keys))]):
            # Only the keys: a value may be an API key in the wrong place.
            raise ConfigError(_join_faults([self._format_place((*place, key), _unknown(known_keys)) for key in unknown]))
        return value

    def section(self, name: str, model: type[_Model]) -> _Model | None:
        """Return the mapping under a top-level key as a model, or None if the key is absent or empty. Raises ConfigError, see
        `validate_as`.
        """
        return None if self.values.get(name) is None else self.validate_as(model, self.mapping((name,)), (name,))

    def error(self, place: Place, message: str) -> ConfigError:
        """Return an error about a place, with file, line and name."""
        return ConfigError(self._format_place(place, message))

    def _format_place(self, place: Place, message: str) -> str:
        line = _find_line(yaml.compose(self.text, Loader=yaml.SafeLoader), place)
        return ": ".join(part for part in (f"{self.where}:{line}", self._name_member(place), message) if part)

    def _name_member(self, place: Place) -> str:
        if len(place) < 2 or (label := self.members.get(str(place[0]))) is None:
            return format_path(place)
        name = place[1]
        if isinstance(name, int):
            member = self.values[place[0]][name]
            name = member.get("name", name + 1) if isinstance(member, dict) else name + 1
        return ": ".join(part for part in (f"{label} {name!r}", format_path(place[2:])) if part)


class Reason(NamedTuple):
    """A fault of a value, and its place in the checked values."""

    place: Place
    message: str


def reasons(error: ValidationError, model: type[BaseModel]) -> Iterator[Reason]:
    """List all faults that pydantic finds in values for `model`: the value and what is allowed, or the known keys."""
    yield from convert_pydantic_errors(error.errors(include_url=False), model)


def convert_pydantic_errors(faults: Iterable[Mapping[str, Any]], model: type[BaseModel]) -> Iterator[Reason]:
    """Convert pydantic's list of errors to reasons."""
    for fault in faults:
        place, kind, message = tuple(part for part in fault["loc"] if part != _OF_KEY), fault["type"], fault["msg"]
        if kind == "extra_forbidden":
            yield Reason(place, _unknown(_find_owner(model, place).model_fields))
        elif kind == "missing":
            yield Reason(place, "is missing")
        elif kind == "value_error":  # raised by our own checks, with the value
            yield Reason(place, message.removeprefix("Value error, "))
        else:
            choices = _describe_bounds(model, place, fault.get("ctx", {})) or _describe_allowed(kind, message)
            yield Reason(place, f"got {format_value(fault['input'])}; allowed: {choices}")


def format_path(place: Place) -> str:
    """Return a place as a dotted path: `drift.severity.watch`."""
    return ".".join(str(part) for part in place)


def format_in_one_line(
    error: ValidationError, model: type[BaseModel], format_place: Callable[[Place], str] = format_path
) -> str:
    """Return the first 20 reasons in one line, for values that are not in a document. `format_place`: names the place of a value."""
    fault_texts = [
        f"{format_place(item.place)}: {item.message}".removeprefix(": ") for item in islice(reasons(error, model), _MAX_IN_LINE)
    ]
    n_more = error.error_count() - len(fault_texts)
    return "; ".join([*fault_texts, f"and {n_more:,} more"] if n_more else fault_texts)


def _join_faults(messages: Sequence[str]) -> str:
    """Join the messages. Known keys follow only the last of successive unknown keys of one mapping."""
    keys = [message.partition(_KNOWN)[2] for message in messages]
    last = [not key or key != after for key, after in zip(keys, [*keys[1:], ""], strict=True)]
    return "; ".join(m if is_last else m.partition(_KNOWN)[0] for m, is_last in zip(messages, last, strict=True))


def _unknown(known_keys: Iterable[str]) -> str:
    return f"unknown key{_KNOWN}{', '.join(known_keys)}"


def format_value(value: Any) -> str:
    """Return a value as errors show it."""
    # As JSON and YAML spell them: null, true, false.
    text = json.dumps(value) if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= _LONGEST_ECHO else f"{text[:_LONGEST_ECHO]}..."


def _describe_bounds(model: type[BaseModel], place: Place, limits: Mapping[str, Any]) -> str:
    """Return both bounds of the number at a place: `1 to 5`, or `more than 0`. `limits`: the one that was broken; "" without one."""
    broken = {name: limits[name] for name in _LIMITS if name in limits}
    info = _find_owner(model, place).model_fields.get(str(place[-1])) if broken and place else None
    constraints = info.metadata if info else []
    stated = {name: getattr(limit, name) for limit in constraints for name in _LIMITS if hasattr(limit, name)}
    bounds = {name: f"{value:,.12g}" for name, value in (stated | broken).items()}
    if {"ge", "le"} <= bounds.keys():
        return f"{bounds['ge']} to {bounds['le']}"
    return " and ".join(_LIMITS[name].format(bounds[name]) for name in _LIMITS if name in bounds)


def _describe_allowed(kind: str, message: str) -> str:
    """Describe what is allowed, by pydantic's message if it has no words of ours."""
    if kind in _IN_OUR_WORDS:
        return _IN_OUR_WORDS[kind]
    text = re.sub(r"^\w+ should (be |have |match )?", "", message)
    if kind == "literal_error":
        return text.replace("'", "").replace(" or ", ", ")
    if kind == "string_pattern_mismatch":  # its commas are part of the pattern
        return text
    return re.sub(r"( after validation)?,.*", "", text)


def _find_owner(model: type[BaseModel], place: Place) -> type[BaseModel]:
    """Return the part of the model that has the field at a place."""
    for name in place[:-1]:
        info = model.model_fields.get(str(name))
        model = next(_iterate_models(info.annotation), model) if info else model
    return model


def _iterate_models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _iterate_models(argument)


def read_document(
    source: str | Path, kind: str, known_keys: Iterable[str], members: Mapping[str, str] | None = None, *, label: str = "text"
) -> Document:
    """Read a document whose top level is a mapping, or empty.

    Args:
        source: a `Path` is a file to read, a `str` is YAML text.
        kind: what it should be, such as `panel file`.
        known_keys: top-level keys that it may have; only `Document.mapping` and `validate_as` refuse others.
        members: see `Document`.
        label: name of a YAML text in errors, in place of a file name.

    Raises:
        ConfigError: with the file, and the line if it is known.
    """
    where = str(source) if isinstance(source, Path) else label
    try:
        text = source.read_text(encoding="utf-8") if isinstance(source, Path) else source
    except OSError as error:
        raise ConfigError(f"{where}: not a readable {kind}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line, byte = error.object.count(b"\n", 0, error.start) + 1, error.object[error.start]
        raise ConfigError(f"{where}:{line}: not a readable {kind}: not UTF-8 (byte 0x{byte:02x})") from error
    try:
        values = copy.deepcopy(_parse_yaml(text))
    except yaml.YAMLError as error:
        line, problem = describe_yaml_problem(error, text)
        remedy = describe_yaml_remedy(error, text)
        raise ConfigError(f"{where}:{line}: not a readable {kind}: {problem}{remedy}") from error
    if not isinstance(values, dict | None):
        raise ConfigError(
            f"{where}:1: not a readable {kind}: got {format_value(values)}; allowed: a mapping with {', '.join(known_keys)}"
        )
    return Document(where, text, values or {}, members or {})


@functools.lru_cache(maxsize=64)
def _parse_yaml(text: str) -> Any:
    """Parse YAML with a cache, because a run reads the same models file, panel or manifest many times."""
    return yaml.load(text, Loader=UniqueKeys)  # noqa: S506 - a SafeLoader


def describe_yaml_problem(error: yaml.YAMLError, text: str) -> tuple[int, str]:
    """Return the 1-based line and the problem, without YAML's own position text."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        begins = f" that begins in line {error.context_mark.line + 1}" if error.context_mark else ""
        context = f"{error.context}{begins}: " if error.context else ""
        return mark.line + 1 if mark else 1, f"{context}{error.problem}"
    if isinstance(error, yaml.reader.ReaderError):
        return text.count("\n", 0, error.position) + 1, f"the character {chr(error.character)!r} is not allowed in YAML"
    return 1, str(error)


def describe_yaml_remedy(error: yaml.YAMLError, text: str) -> str:
    """Return `; ` and a remedy for an error, or an empty text if none is known."""
    error_text = f"{getattr(error, 'context', None)} {getattr(error, 'problem', None)}"
    if "cannot start any token" in error_text and isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        line = re.split(r"\r\n|\r|\n", text)[error.problem_mark.line]
        character = line[error.problem_mark.column : error.problem_mark.column + 1]
        return "; indent with spaces" if character == "\t" else f"; put quotes around a text that begins with {character}"
    return next((f"; {remedy}" for part, remedy in _YAML_REMEDIES.items() if part in error_text), "")


def _find_line(node: Any, place: Place) -> int:
    """Return the 1-based line of a field, or of the nearest parent that the document has."""
    line = int(node.start_mark.line) if node else 0
    for part in place:
        if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
        elif isinstance(node, yaml.MappingNode):
            key, node = next(((key, value) for key, value in node.value if key.value == str(part)), (None, None))
            if key is not None:
                line = int(key.start_mark.line)
                continue
        if node is None:
            break
        line = int(node.start_mark.line)
    return line + 1


class UniqueKeys(yaml.SafeLoader):
    """A YAML loader that raises an error with its line if a key occurs twice in a mapping."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.constructor.ConstructorError(None, None, f"{format_value(key)} is not a key", key_node.start_mark)
            if key in keys:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is given twice", key_node.start_mark)
            if key_node.tag != "tag:yaml.org,2002:merge":
                keys.add(key)
        return super().construct_mapping(node, deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except ValueError as error:  # an invalid date or number
            is_date = node.tag == "tag:yaml.org,2002:timestamp"
            example = "a date such as 2026-03-01" if is_date else "a number such as 5 or 0.7"
            problem = (
                f"{node.value} is not a {'date' if is_date else 'number'}: {error}; allowed: {example}, or quotes around a text"
            )
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from error


def find_existing_parent(path: Path) -> Path:
    """Return the path, or its nearest parent that exists."""
    return next(place for place in (path, *path.parents) if place.exists())


def explain_missing_folder(folder: Path, error: OSError) -> str:
    """Explain why a folder cannot be created: the file in its place, or else the system's message."""
    parent = find_existing_parent(folder)
    return str(error.strerror) if parent.is_dir() else f"{parent} is a file, where a folder is needed"
