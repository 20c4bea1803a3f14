"""A models file of a test's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from resources.gateway.queues import Backoff
from tests.fake_llm_server import FakeLLM


def write_models(
    folder: Path, names: Iterable[str], collections: Mapping[str, Sequence[str]] | None = None, **settings: Any
) -> Path:
    """The path of a new file with the models `openai/NAME` under these names, all with the same settings."""
    models = {name: {"model": f"openai/{name}", **settings} for name in names}
    path = folder / "models.yaml"
    path.write_text(yaml.safe_dump({"collections": dict(collections or {}), "models": models}), encoding="utf-8")
    return path


def serve_models(
    server: FakeLLM,
    folder: Path,
    patch: pytest.MonkeyPatch,
    names: Iterable[str],
    collections: Mapping[str, Sequence[str]] | None = None,
    *,
    key: str = "sk-made-up",
    **settings: Any,
) -> None:
    """The server as each of these models, by a file named in DTEF_MODELS: asked with this key, and again after short waits."""
    usual = {"api_base": server.base_url, "api_key_env": "OPENAI_API_KEY", "max_concurrency": 8, "timeout": 60}
    patch.setenv("DTEF_MODELS", str(write_models(folder, names, collections, **{**usual, **settings})))
    patch.setenv("OPENAI_API_KEY", key)
    patch.setattr("resources.gateway.gateway.Backoff", partial(Backoff, first=0.01, longest=0.1))
