"""What the description of the API (OpenAPI) says of bodies and answers with personas and scenarios."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtef_pipeline.api.versioned import MADE_HERE, Versioned

_TAGGED = {"ETag": {"schema": {"type": "string"}, "description": "Of this state: for If-None-Match and If-Match."}}
SAME_AS_BEFORE: dict[int | str, dict[str, Any]] = {
    304: {"description": "The client has this state already (If-None-Match).", "headers": _TAGGED}
}


def change_sent(model: type[Versioned]) -> dict[str, Any]:
    """The part `openapi_extra` of a route that changes a document."""
    told = "The ETag of the latest version, as it was read."
    header = {"name": "If-Match", "in": "header", "required": True, "schema": {"type": "string"}, "description": told}
    return {**body_sent(model), "parameters": [header]}


def body_sent(model: type[Versioned]) -> dict[str, Any]:
    """The part `openapi_extra` of a route that takes a document: its fields without version and status."""
    schema = document_schema(model)
    schema["properties"] = {name: one for name, one in schema["properties"].items() if name not in MADE_HERE}
    schema["required"] = [name for name in schema["required"] if name not in MADE_HERE]
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def one_answered(model: type[Versioned]) -> dict[str, Any]:
    return _answered("The document.", document_schema(model))


def list_answered(plural: str, model: type[Versioned]) -> dict[str, Any]:
    following = {"type": ["string", "null"], "description": "The `cursor` of what follows; null: nothing does."}
    properties = {plural: {"type": "array", "items": document_schema(model)}, "next": following}
    return _answered("A part of the list.", {"type": "object", "properties": properties, "required": [plural, "next"]})


def made_answered(model: type[Versioned]) -> dict[str, Any]:
    found = _answered("Made.", document_schema(model))
    location = {"schema": {"type": "string"}, "description": "Where it is."}
    return {**found, "headers": {**found["headers"], "Location": location}}


def _answered(description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": description, "headers": _TAGGED, "content": {"application/json": {"schema": schema}}}


def document_schema(model: type[Versioned]) -> dict[str, Any]:
    """The JSON schema of a document, its parts written out in place."""
    schema = model.model_json_schema()
    found: dict[str, Any] = _written_out(schema, schema.pop("$defs", {}))
    return found


def _written_out(schema: Any, parts: Mapping[str, Any]) -> Any:
    if isinstance(schema, Mapping):
        if isinstance(named := schema.get("$ref"), str):
            return _written_out(parts[named.rpartition("/")[2]], parts)
        return {name: _written_out(one, parts) for name, one in schema.items()}
    return [_written_out(one, parts) for one in schema] if isinstance(schema, list) else schema
