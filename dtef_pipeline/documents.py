"""YAML files that people write: read with unique keys, checked against a model, and every fault reported in one form:

panel.yaml:3: drift.baseline: got 1; allowed: 2 or more
"""

from __future__ import annotations

import copy
import functools
import json
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic.fields import FieldInfo

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.member_docstrings import DescribedMembers

Place = tuple[int | str, ...]
"""Where a value stands in a document: keys and places in lists, from the outside in."""
_Model = TypeVar("_Model", bound=BaseModel)
_LONGEST_ECHO = 80
_MOST_IN_LINE = 20
"""Reasons."""
_OF_KEY = "[key]"
"""What pydantic adds to the place of a key that is wrong itself."""
_IN_OUR_WORDS: Mapping[str, str] = {
    "string_type": "text",
    "bool_type": "true or false",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
}
"""What is allowed, by pydantic's name of the fault."""
_LIMITS = {"ge": "{} or more", "gt": "more than {}", "le": "at most {}", "lt": "less than {}"}
_SEVERAL: Mapping[Any, str] = {str: "texts", int: "whole numbers", float: "numbers"}


class Part(DescribedMembers):
    """No unknown key, no infinity, no guessing of types.

    A key without a value was not given, unless null is one of its values or it must be given.
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
    """A document that was read.

    `where`: its file, or what it is called. `text`: as it was read. `values`: its keys, none of an empty file. `members`: what one member of a
    top-level key is called, such as `model` for `models`: a fault in one then names it, `model 'mini': top_p`.
    """

    where: str
    text: str
    values: dict[Any, Any]
    members: Mapping[str, str] = field(default_factory=dict)

    def validate_as(self, model: type[_Model], values: Any = None, place: Place = (), *, context: Any = None) -> _Model:
        """The document as a model, or `values` that stand at `place` in it. `context`: what the model's own checks need besides.

        Raises ConfigError for all that is wrong.
        """
        try:
            return model.model_validate(self.values if values is None else values, context=context)
        except ValidationError as error:
            messages = [self._format_place((*place, *reason.place), reason.message) for reason in reasons(error, model)]
            raise ConfigError("; ".join(messages)) from error

    def mapping(self, place: Place, known_keys: Iterable[str] | None = None) -> dict[Any, Any]:
        """The mapping at a place, empty where there is none. Raises ConfigError for another value, and for keys that are not `known_keys`."""
        value: Any = self.values
        for part in place:
            value = value.get(part) if isinstance(value, dict) else None
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.error(place, f"got {format_value(value)}; allowed: a mapping")
        if known_keys is not None and (unknown := [str(key) for key in value if key not in (known_keys := list(known_keys))]):
            # The keys alone: a value may be an API key in the wrong place.
            raise ConfigError("; ".join(self._format_place((*place, key), _unknown(known_keys)) for key in unknown))
        return value

    def section(self, name: str, model: type[_Model]) -> _Model | None:
        """The mapping under a top-level key as a model; None where the key is absent or empty. Raises ConfigError as `validate_as`."""
        return None if self.values.get(name) is None else self.validate_as(model, self.mapping((name,)), (name,))

    def error(self, place: Place, message: str) -> ConfigError:
        """What is wrong at a place, with its file, line and name."""
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
    """What is wrong with a value, and where it stands in what was checked."""

    place: Place
    message: str


def reasons(error: ValidationError, model: type[BaseModel]) -> Iterator[Reason]:
    """All that pydantic found wrong with values for `model`: what arrived and what is allowed, or which keys are known."""
    yield from convert_pydantic_errors(error.errors(include_url=False, include_context=False), model)


def convert_pydantic_errors(faults: Iterable[Mapping[str, Any]], model: type[BaseModel]) -> Iterator[Reason]:
    """The same of pydantic's own list of faults."""
    for fault in faults:
        place, kind, message = tuple(part for part in fault["loc"] if part != _OF_KEY), fault["type"], fault["msg"]
        if kind == "extra_forbidden":
            yield Reason(place, _unknown(_find_owner(model, place).model_fields))
        elif kind == "missing":
            yield Reason(place, "is missing")
        elif kind == "value_error":  # a check of ours, which says what arrived
            yield Reason(place, message.removeprefix("Value error, "))
        else:
            choices = (
                _describe_list(model, place)
                if kind == "list_type"
                else _describe_bounds(model, place, kind) or _describe_allowed(kind, message)
            )
            yield Reason(place, f"got {format_value(fault['input'])}; allowed: {choices}")


def format_in_one_line(error: ValidationError, model: type[BaseModel]) -> str:
    """The reasons in one line, of many the first 20, for values that stand in no document."""
    fault_texts = [
        f"{format_path(item.place)}: {item.message}".removeprefix(": ") for item in islice(reasons(error, model), _MOST_IN_LINE)
    ]
    further = error.error_count() - len(fault_texts)
    return "; ".join([*fault_texts, f"and {further:,} more"] if further else fault_texts)


def format_path(place: Place) -> str:
    """`drift.severity.watch`"""
    return ".".join(str(part) for part in place)


def _unknown(known_keys: Iterable[str]) -> str:
    return f"unknown key; known: {', '.join(known_keys)}"


def format_value(value: Any) -> str:
    """A value that arrived, as an error says it."""
    # As JSON and YAML spell them: null, true, false.
    text = json.dumps(value) if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= _LONGEST_ECHO else f"{text[:_LONGEST_ECHO]}..."


def _describe_bounds(model: type[BaseModel], place: Place, kind: str) -> str:
    """`1 or more`, `more than 0 and less than 1`: both bounds of the number at a place, `a whole number, 1 or more` where it was no number at
    all; empty where a fault is of another kind, or there are none.
    """
    field = _find_owner(model, place).model_fields.get(str(place[-1])) if place else None
    noun = _IN_OUR_WORDS.get(kind, "") if kind.startswith(("int_", "float_")) else None
    if field is None or (noun is None and not kind.startswith(("greater_than", "less_than"))):
        return ""
    bounds = _format_bounds(field)
    return f"{noun}, {bounds}" if noun and bounds else bounds


def _format_bounds(field: FieldInfo) -> str:
    limits = {
        name: getattr(limit, name)
        for limit in _iterate_limits(field.annotation, field.metadata)
        for name in _LIMITS
        if hasattr(limit, name)
    }
    if "ge" in limits and "le" in limits:
        return f"{_format_number(limits['ge'])} to {_format_number(limits['le'])}"
    return " and ".join(_LIMITS[name].format(_format_number(limits[name])) for name in _LIMITS if name in limits)


def _format_number(value: float) -> str:
    """As people write it: 0.5, 20, 1,000,000."""
    return f"{value:,.12g}"


def _iterate_limits(annotation: Any, metadata: Iterable[Any]) -> Iterator[Any]:
    """What a field says of its values, wherever in its annotation: the bound of `Annotated[int, Field(ge=1)] | None`."""
    for entry in metadata:
        yield from entry.metadata if isinstance(entry, FieldInfo) else (entry,)
    for argument in get_args(annotation):
        yield from _iterate_limits(argument, getattr(argument, "__metadata__", ()))


def _describe_allowed(kind: str, message: str) -> str:
    """What is allowed, in our words where pydantic's are those of a programmer."""
    if kind in _IN_OUR_WORDS:
        return _IN_OUR_WORDS[kind]
    text = re.sub(r"^\w+ should (be |have |(?=match ))", "", message)
    if kind == "literal_error":
        return text.replace("'", "").replace(" or ", ", ")
    if kind == "string_pattern_mismatch":
        return f"text that {text.replace('match pattern', 'matches')}"
    if kind in ("dict_type", "model_type"):
        return "a mapping"
    return re.sub(r"( after validation)?,.*", "", text)


def _describe_list(model: type[BaseModel], place: Place) -> str:
    """`a list of texts`: what the list at a place may hold."""
    field = _find_owner(model, place).model_fields.get(str(place[-1])) if place else None
    kind = next(_iterate_list_types(field.annotation), None) if field else None
    if get_origin(kind) is Literal:
        return f"a list of any of {', '.join(map(str, get_args(kind)))}"
    parts = list(_iterate_models(kind))
    return (
        f"a list of mappings with {', '.join(parts[0].model_fields)}" if parts else f"a list of {_SEVERAL.get(kind, 'values')}"
    )


def _iterate_list_types(annotation: Any) -> Iterator[Any]:
    """What `list[...]` holds, wherever in an annotation it stands: `str` of `list[str] | None`."""
    for argument in get_args(annotation):
        if get_origin(annotation) is list:
            yield get_args(argument)[0] if get_origin(argument) is Annotated else argument
        else:
            yield from _iterate_list_types(argument)


def _find_owner(model: type[BaseModel], place: Place) -> type[BaseModel]:
    """The part of the model that has the field at a place."""
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
    """A document whose top level is a mapping, or empty.

    Args:
        source: a `Path` is a file to read, a `str` is YAML text.
        kind: what it should be, such as `panel file`.
        known: the top-level keys that it may have. That there are no others is for `Document.checked` to say.
        members: as in `Document`.
        called: what a YAML text is called where a file would be named.

    Raises:
        ConfigError: with the file, and the line where it is known.
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
        raise ConfigError(f"{where}:{line}: not a readable {kind}: {problem}") from error
    if not isinstance(values, dict | None):
        raise ConfigError(
            f"{where}:1: not a readable {kind}: got {format_value(values)}; allowed: a mapping with {', '.join(known_keys)}"
        )
    return Document(where, text, values or {}, members or {})


@functools.lru_cache(maxsize=64)
def _parse_yaml(text: str) -> Any:
    """One run asks for the same model file, panel or manifest many times, and to parse it takes longer than all else of a small stage."""
    return yaml.load(text, Loader=UniqueKeys)  # noqa: S506 - a SafeLoader


def describe_yaml_problem(error: yaml.YAMLError, text: str) -> tuple[int, str]:
    """The 1-based line and what is wrong with it, without what YAML's own message says of both."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        start = f" (begun in line {error.context_mark.line + 1})" if error.context_mark else ""
        context = f"{error.context}{start}: " if error.context else ""
        return (mark.line + 1 if mark else 1), f"{context}{error.problem}"
    if isinstance(error, yaml.reader.ReaderError):
        return text.count("\n", 0, error.position) + 1, f"the character {chr(error.character)!r} is not allowed in YAML"
    return 1, str(error)


def _find_line(node: Any, place: Place) -> int:
    """The 1-based line of a field, or of the last part of its place that the document has."""
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
    """YAML in which a key that occurs twice in one mapping is an error instead of a silent overwrite, and every error has its line."""

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
        except ValueError as error:  # what looks like a date or a number and is none
            is_date = node.tag == "tag:yaml.org,2002:timestamp"
            example = "a date such as 2026-03-01" if is_date else "a number such as 5 or 0.7"
            problem = (
                f"{node.value} is not a {'date' if is_date else 'number'}: {error}; allowed: {example}, or quotes around a text"
            )
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from error


def find_existing_parent(path: Path) -> Path:
    """The path, or the nearest folder or file above it that is there."""
    return next(place for place in (path, *path.parents) if place.exists())


def explain_missing_folder(folder: Path, error: OSError) -> str:
    """Why a folder cannot be made: the file that is in its way, which the system does not name, or else what the system says."""
    parent = find_existing_parent(folder)
    return str(error.strerror) if parent.is_dir() else f"{parent} is a file, where a folder is needed"
