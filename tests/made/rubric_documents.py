"""Small blueprints that between them have every part that a blueprint can have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_DOCUMENTS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
PATHS: dict[str, Any] = _DOCUMENTS["paths"]
ONE: dict[str, Any] = _DOCUMENTS["one"]
PATHS_PROMPTS: list[dict[str, Any]] = _DOCUMENTS["paths_prompts"]
ONE_PROMPTS: list[dict[str, Any]] = _DOCUMENTS["one_prompts"]
BROKEN_PROMPTS: list[dict[str, Any]] = _DOCUMENTS["broken_prompts"]
EDITED_PROMPTS: list[dict[str, Any]] = [{**ONE_PROMPTS[0], "should": ["It is right.", "It is warm."]}, ONE_PROMPTS[1]]
SYSTEMS: list[str | None] = PATHS["systems"]
