"""Responses as the tests of files of responses write and read them."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

from dtef_pipeline.asking.request import Response
from dtef_pipeline.identity import request_key
from resources.responses.store import ResponseStore
from tests.made.responses import response as unhashed


def response(number: int, **changed: object) -> Response:
    """A response under the key of what it answers."""
    one = unhashed(number, **changed)
    return replace(one, request_key=request_key(one.prompt_id, one.model_variant, one.draw, one.snapshot))


def contents(store: ResponseStore) -> list[dict[str, Any]]:
    return [row for page in store.pages() for row in page.to_pylist()]


def line(**changed: object) -> str:
    row = asdict(response(1)) | {"answered_at": "2026-01-02T03:04:05.678901+00:00"} | changed
    return json.dumps(row)
