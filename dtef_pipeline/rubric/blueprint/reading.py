"""The reading of blueprint files: structures, aliases of keys, and all findings."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from dtef_pipeline.rubric.blueprint.blueprint_yaml import (
    MAX_CHARACTERS,
    ParsedDocuments,
    SourceLines,
    YamlFault,
    format_scalar,
    read_json,
    read_yaml,
)
from dtef_pipeline.rubric.blueprint.findings import HEADER_PLACE, FindingLog, Spot, shorten_value
from dtef_pipeline.rubric.blueprint.model import Blueprint, BlueprintFinding, ParsedBlueprint, PromptItem
from dtef_pipeline.rubric.blueprint.named_models import Collections, read_judges, read_models
from dtef_pipeline.rubric.blueprint.prompt_items import (
    CITATION_KEYS,
    IDEAL_KEYS,
    PROMPT_TEXT_KEYS,
    SHOULD_KEYS,
    PointReader,
    PromptReader,
    SharedSettings,
    format_citation,
    read_shared_settings,
)

BLUEPRINT_SUFFIXES = (".civic.yml", ".weval.yml", ".yml", ".yaml", ".json")
"""The longer ones first."""
RESERVED_BEGINNINGS = ("_pr_", "_staging_", "_test_")
PROMPT_SIGNS = (*PROMPT_TEXT_KEYS, "messages", "should_not", *IDEAL_KEYS, *SHOULD_KEYS)
"""A mapping with one of these is a prompt, and no header."""
_MAX_FILE_BYTES = 4 * MAX_CHARACTERS
"""Per file; a smaller file is read, and its characters are counted."""
_DEFINITION_KEYS = ("point_defs", "defs")
_ID_KEYS = ("id", "configId")
_HEADER_KEYS = (
    *("title", "configTitle", "description", "author", "tags", "models", "system", "systems", "systemPrompt", "prompts"),
    *("temperature", "temperatures", "concurrency", "evaluationConfig", "evaluationMethods", "toolUse", "tools", "render_as"),
    *("context", "noCache", "externalServices", "embeddingModel", *CITATION_KEYS, *_DEFINITION_KEYS, *_ID_KEYS),
)
_NOT_IN_TAGS = re.compile(r"[^\w-]|_")
_BLANKS_IN_TAGS = re.compile(r"[\s_]+")


class _Parts(NamedTuple):
    """Header and prompts of any structure; each prompt with its line, if known."""

    structure: str
    header: dict[str, Any]
    prompts: list[tuple[Any, int | None]]


def make_blueprint_id(path: str | PurePath) -> str:
    """Return the id of a blueprint from its path below the folder of blueprints: `compass/literal.yml` -> `compass__literal`."""
    name = PurePath(path).as_posix()
    suffix = next((suffix for suffix in BLUEPRINT_SUFFIXES if name.lower().endswith(suffix)), "")
    return name[: len(name) - len(suffix)].replace("/", "__")


def is_blueprint_file(path: str | PurePath) -> bool:
    """Return whether a path below the folder of blueprints has a blueprint's suffix, in either case, and no hidden part."""
    path = PurePath(path)
    return path.name.lower().endswith(BLUEPRINT_SUFFIXES) and not any(part.startswith(".") for part in path.parts)


def read_blueprint(
    source: str | Path,
    identifier: str,
    collections: Collections | None = None,
    *,
    as_json: bool | None = None,
    other_functions: Collection[str] = (),
) -> ParsedBlueprint:
    """Return the blueprint of a file and all findings. A file that cannot be parsed has one finding.

    Args:
        source: a `Path` is a file to read, a `str` is its text.
        identifier: id of the blueprint, from `make_blueprint_id`.
        collections: of models, by name; None if unknown.
        as_json: whether the text is JSON; None: if the file's name ends in `.json`.
        other_functions: names of point functions of other packages.
    """
    as_json = isinstance(source, Path) and source.suffix.lower() == ".json" if as_json is None else as_json
    try:
        documents = _load_documents(source, as_json)
    except YamlFault as fault:
        place = "" if fault.line is None else f"line {fault.line}"
        return ParsedBlueprint(None, (BlueprintFinding("yaml", "error", place, fault.problem, fault.line),))
    log = FindingLog(documents.lines)
    parts = _split(documents, as_json)
    _check_header(identifier, parts, log)
    points = PointReader(log, _read_definitions(parts.header, log), other_functions)
    prompts = PromptReader(log, points, read_shared_settings(parts.header, log))
    items = []
    for number, (value, line) in enumerate(parts.prompts):
        place = f"prompt {number}"
        if (item := prompts.read_prompt_item(value, place, Spot(place, line))) is not None:
            items.append(item)
    models = read_models(parts.header, collections, log)
    judges = read_judges(parts.header, log)
    blueprint = _build_blueprint(identifier, parts.header, items, models, judges, prompts.settings) if items else None
    return ParsedBlueprint(blueprint, tuple(log.findings), parts.structure, prompts.n_omitted + points.n_omitted)


def _load_documents(source: str | Path, as_json: bool) -> ParsedDocuments:
    if isinstance(source, str):
        text = source
    else:
        try:
            if (size := source.stat().st_size) > _MAX_FILE_BYTES:
                raise YamlFault(f"the file has {size:,} bytes; allowed: {_MAX_FILE_BYTES:,}; split it into several files", None)
            text = source.read_bytes().decode("utf-8-sig")
        except OSError as error:
            raise YamlFault(f"the file cannot be read: {error.strerror}", None) from error
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            raise YamlFault(f"the file is not UTF-8: byte 0x{error.object[error.start]:02x}", line) from error
    return (read_json if as_json else read_yaml)(text.removeprefix("\ufeff"))


def _split(documents: ParsedDocuments, as_json: bool) -> _Parts:
    values, lines = documents.values, documents.lines
    if len(values) > 1:
        return _split_several(documents)
    value = values[0] if values else {}
    if isinstance(value, list):
        return _Parts("list", {}, _list_members(value, lines))
    if not isinstance(value, dict):
        return _Parts("header", {}, [(value, documents.find_line(0))])
    if isinstance(value.get("prompts"), list):
        return _Parts("prompts", value, _list_members(value["prompts"], lines))
    if not as_json and any(value.get(key) for key in PROMPT_SIGNS):
        return _Parts("prompt", {}, [(value, lines.find_member_line(value))])
    return _Parts("header", value, [])


def _split_several(documents: ParsedDocuments) -> _Parts:
    values, lines = documents.values, documents.lines
    first = values[0]
    has_header = isinstance(first, dict) and not any(first.get(key) for key in PROMPT_SIGNS)
    body = values[1:] if has_header else values
    inside = first.get("prompts") if has_header else None
    prompts = _list_members(inside, lines) if isinstance(inside, list) else []
    for place, value in enumerate(body, len(values) - len(body)):
        prompts += _list_members(value, lines) if isinstance(value, list) else [(value, documents.find_line(place))]
    lists = sum(isinstance(value, list) for value in body)
    kind = "stream" if lists < len(body) else "list" if lists == 1 else "lists"
    return _Parts(f"header+{kind}" if has_header else kind, first if has_header else {}, prompts)


def _list_members(values: list[Any], lines: SourceLines) -> list[tuple[Any, int | None]]:
    return [(value, lines.find_member_line(values, place)) for place, value in enumerate(values)]


def _check_header(identifier: str, parts: _Parts, log: FindingLog) -> None:
    header = parts.header
    if identifier.startswith(RESERVED_BEGINNINGS) or identifier.endswith("__"):
        text = (
            f"the id {shorten_value(identifier)} is reserved; rename the file so that it does not begin with "
            f"{', '.join(RESERVED_BEGINNINGS)} or end with __"
        )
        log.add("reserved-id", Spot(HEADER_PLACE), text)
    if not parts.prompts:
        got = f"; prompts is {shorten_value(header['prompts'])}" if header.get("prompts") is not None else ""
        spot = Spot(HEADER_PLACE, log.lines.find_member_line(header))
        log.add("no-prompts", spot, f"prompts are missing{got}; write a list of them after a line ---")
    for key in _ID_KEYS:
        if header.get(key) is not None:
            text = f"the {key} {shorten_value(header[key])} is not used; the blueprint gets the name {identifier} from its path"
            log.add_in_header("ignored-id", header, key, text)
    log.check_unknown_keys(header, _HEADER_KEYS, HEADER_PLACE)
    for key in ("title", "configTitle", "description"):
        if isinstance(header.get(key), (dict, list)):
            log.add_in_header(
                "unknown-key", header, key, f"`{key}` is {shorten_value(header[key])}, not a text, and is ignored"
            )
    for names in (("title", "configTitle"), ("system", "systemPrompt"), _DEFINITION_KEYS):
        log.check_second_names(header, names, HEADER_PLACE)


def _read_definitions(header: Mapping[str, Any], log: FindingLog) -> Mapping[str, Any]:
    key = next((key for key in _DEFINITION_KEYS if header.get(key)), None)
    if key is None:
        return {}
    if not isinstance(header[key], dict):
        log.add_in_header("bad-header", header, key, f"{key} is {shorten_value(header[key])}; write a mapping of names")
        return {}
    definitions: Mapping[str, Any] = header[key]
    return definitions


def _build_blueprint(
    identifier: str,
    header: dict[str, Any],
    items: list[PromptItem],
    models: tuple[str, ...],
    judges: tuple[str, ...],
    settings: SharedSettings,
) -> Blueprint:
    title = next((header[key] for key in ("title", "configTitle") if header.get(key)), None)
    return Blueprint(
        id=identifier,
        title=format_scalar(title) if isinstance(title, (str, int, float)) else identifier,
        description=format_scalar(header["description"]) if isinstance(header.get("description"), (str, int, float)) else None,
        tags=_read_tags(header.get("tags")),
        prompts=tuple(items),
        systems=settings.systems,
        models=models,
        judges=judges,
        references=_list_references(header),
        temperatures=settings.temperatures,
    )


def _read_tags(values: Any) -> tuple[str, ...]:
    values = values if isinstance(values, list) else [values] if isinstance(values, str) else []
    tags = (normalise_tag(format_scalar(value)) for value in values if isinstance(value, (str, int, float)))
    return tuple(dict.fromkeys(tag for tag in tags if tag))


def normalise_tag(tag: str) -> str:
    """Convert `Global South` to `global-south`, with only letters, digits and hyphens. A tag that begins with `_` is only stripped."""
    tag = tag.strip()
    return tag if tag.startswith("_") else _NOT_IN_TAGS.sub("", _BLANKS_IN_TAGS.sub("-", tag.lower()))


def _list_references(header: Mapping[str, Any]) -> tuple[str, ...]:
    citations: list[Any] = []
    for key in CITATION_KEYS:
        values = header.get(key)
        citations += values if isinstance(values, list) else [values]
    return tuple(dict.fromkeys(text for value in citations if (text := format_citation(value))))
