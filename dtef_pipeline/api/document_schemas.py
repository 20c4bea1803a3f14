"""What the description of the API (OpenAPI) says of bodies and answers with personas and scenarios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode
from pydantic_core import core_schema

from dtef_pipeline.api.etags import UNCHANGED
from dtef_pipeline.api.versioned import MADE_HERE, Versioned
from dtef_pipeline.documents import Part

_TAGGED = {"ETag": {"schema": {"type": "string"}, "description": "Of this state: for If-None-Match and If-Match."}}
_TEXT_MEMBER: dict[str, Any] = {"type": "string"}
_TIME_MEMBER = {"type": "string", "format": "date-time"}
SAME_AS_BEFORE: dict[int | str, dict[str, Any]] = {
    304: {"description": "The client has this state already (If-None-Match).", "headers": _TAGGED}
}

LINES_ANSWERED: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            "application/jsonl": {
                "schema": {
                    "type": "string",
                    "description": "One JSON object per line, with its `kind` and the number of its `schema`.",
                }
            }
        },
        "description": "JSON lines.",
    }
}
LINES_SENT: dict[str, Any] = {"requestBody": {"content": {"text/plain": {"schema": {"type": "string"}}}}}


class AddedRecords(Part):
    """What an import has added, by kind, and how many records were there already."""

    added: dict[str, int]
    known: int


def change_sent(model: type[Versioned]) -> dict[str, Any]:
    """The part `openapi_extra` of a route that changes a document."""
    told = "The ETag of the latest version, as it was read."
    header = {"name": "If-Match", "in": "header", "required": True, "schema": {"type": "string"}, "description": told}
    return {**body_sent(model), "parameters": [header]}


def body_sent(model: type[Versioned]) -> dict[str, Any]:
    """The part `openapi_extra` of a route that takes a document: its fields without version and status."""
    schema = _as_sent(document_schema(model, "validation"))
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def one_answered(model: type[Versioned]) -> dict[str, Any]:
    return _answered("The document.", document_schema(model))


def list_answered(plural: str, model: type[Versioned]) -> dict[str, Any]:
    following = {"type": ["string", "null"], "description": "The `cursor` of what follows; null: nothing does."}
    properties = {plural: {"type": "array", "items": document_schema(model)}, "next": following}
    return _answered("A part of the list.", _object(properties))


def versions_answered(statuses: Sequence[str]) -> dict[int | str, dict[str, Any]]:
    """Of a route that tells of all versions of a document, which have one of these statuses."""
    status = {**_TEXT_MEMBER, "enum": list(statuses)}
    said = _object({"status": status, "who": _TEXT_MEMBER, "said_at": _TIME_MEMBER})
    made_by = {"type": ["string", "null"], "description": "Who made it; null: a file has it."}
    made_at = {**_TIME_MEMBER, "type": ["string", "null"], "description": "null: a file has it."}
    version = {
        "version": {"type": "integer", "minimum": 1},
        "status": status,
        "from": {**_TEXT_MEMBER, "enum": ["file", "store"], "description": "store: it was made here."},
        "made_by": made_by,
        "made_at": made_at,
        "statuses": {"type": "array", "items": said, "description": "What was said of its status, the first first."},
    }
    return _unchanging(_object({"id": _TEXT_MEMBER, "versions": {"type": "array", "items": _object(version)}}))


def templates_answered(model: type[Versioned]) -> dict[int | str, dict[str, Any]]:
    """Of the route that tells of the engines."""
    template = {
        "adapter": {**_TEXT_MEMBER, "description": "The name of the engine."},
        "package": {**_TEXT_MEMBER, "description": "The package that it comes from, in words."},
        "description": {**_TEXT_MEMBER, "description": "That of the manifest."},
        "manifest": {**_as_sent(document_schema(model)), "description": "To start from: as it is sent to make a scenario."},
    }
    return _unchanging(_object({"templates": {"type": "array", "items": _object(template)}}))


def _unchanging(schema: Mapping[str, Any]) -> dict[int | str, dict[str, Any]]:
    return {**UNCHANGED, 200: {**UNCHANGED[200], "content": {"application/json": {"schema": schema}}}}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties]}


def made_answered(model: type[Versioned]) -> dict[str, Any]:
    found = _answered("Made.", document_schema(model))
    location = {"schema": {"type": "string"}, "description": "Where it is."}
    return {**found, "headers": {**found["headers"], "Location": location}}


def _answered(description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": description, "headers": _TAGGED, "content": {"application/json": {"schema": schema}}}


class _OfAnswers(GenerateJsonSchema):
    """What is answered has all fields, those with defaults too."""

    def field_is_required(
        self, field: core_schema.ModelField | core_schema.DataclassField | core_schema.TypedDictField, total: bool
    ) -> bool:
        return self.mode == "serialization" or super().field_is_required(field, total)


def _as_sent(schema: dict[str, Any]) -> dict[str, Any]:
    """Without what nobody sends."""
    kept = {name: one for name, one in schema["properties"].items() if name not in MADE_HERE}
    return {**schema, "properties": kept, "required": [name for name in schema["required"] if name not in MADE_HERE]}


def document_schema(model: type[Versioned], mode: JsonSchemaMode = "serialization") -> dict[str, Any]:
    """The JSON schema of a document, its parts written out in place. `mode`: serialization: as it is answered; validation: as it is sent."""
    schema = model.model_json_schema(schema_generator=_OfAnswers, mode=mode)
    found: dict[str, Any] = _written_out(schema, schema.pop("$defs", {}))
    return found


def _written_out(schema: Any, parts: Mapping[str, Any]) -> Any:
    if isinstance(schema, Mapping):
        if isinstance(named := schema.get("$ref"), str):
            return _written_out(parts[named.rpartition("/")[2]], parts)
        return {name: _written_out(one, parts) for name, one in schema.items()}
    return [_written_out(one, parts) for one in schema] if isinstance(schema, list) else schema
