"""Models that nobody has to ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

KnowModels = Callable[..., None]


@pytest.fixture
def know_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KnowModels:
    """Writes a models file: settings by name."""

    def know(**models: Mapping[str, Any]) -> None:
        specs = {name: {"model": f"openai/{name}", **given} for name, given in models.items()}
        text = yaml.safe_dump({"models": specs})
        (tmp_path / "models.yaml").write_text(text, encoding="utf-8")
        monkeypatch.setenv("DTEF_MODELS", str(tmp_path / "models.yaml"))

    for name in ("DTEF_PANEL", "DTEF_WAREHOUSE", "DTEF_RESPONSES"):
        monkeypatch.delenv(name, raising=False)
    know()
    return know
