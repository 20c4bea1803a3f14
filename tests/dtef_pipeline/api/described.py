"""The description of an API, and what is wrong with an answer by it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2
import jsonschema_rs  # comes with schemathesis


def faults_of(answer: httpx2.Response, told: Mapping[str, Any], document: Mapping[str, Any]) -> list[str]:
    """What is wrong with the body of an answer: members, types, times, and members that are not named. `told`: its description."""
    kind = answer.headers["content-type"].partition(";")[0]
    whole = closed({**told["content"][kind]["schema"], "components": document["components"]})
    checked = jsonschema_rs.Draft202012Validator(whole, validate_formats=True)
    return [f"{one.instance_path}: {one.message[:500]}" for one in checked.iter_errors(answer.json())]


def closed(schema: Any) -> Any:
    """The schema, so that an object may have no members but those that are named."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    found = {name: closed(one) for name, one in schema.items()}
    return {**found, "additionalProperties": False} if isinstance(found.get("properties"), Mapping) else found
