"""Responses as the store keeps them, by number."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from dtef_pipeline.asking.request import Response
from dtef_pipeline.identity import digest
from resources.responses.store import ResponseStore


def response(number: int, **changed: object) -> Response:
    one = Response(
        request_key=digest(number),
        prompt_id=digest("prompt", number),
        model="mini",
        model_variant="openai/mini[temperature=0]",
        draw=0,
        snapshot="base",
        text=f"[{number}]",
        finish_reason="stop",
        served_model="mini-2025",
        fingerprint="fp_1",
        prompt_tokens=10,
        completion_tokens=5,
        cost_usd=None,
        latency_s=0.25,
        attempts=1,
        answered_at=datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    )
    return replace(one, **changed)  # type: ignore[arg-type]


def stored(store: ResponseStore) -> int:
    """How many responses the store has."""
    return sum(store.summary()["responses"].to_pylist())


def keys(*numbers: int) -> list[str]:
    return [digest(number) for number in numbers]
