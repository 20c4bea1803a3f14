"""Small blueprints that between them have every part that a blueprint can have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_DOCUMENTS: dict[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
PATHS: dict[str, Any] = _DOCUMENTS["PATHS"]
ONE: dict[str, Any] = _DOCUMENTS["ONE"]
PATHS_PROMPTS: list[dict[str, Any]] = _DOCUMENTS["PATHS_PROMPTS"]
ONE_PROMPTS: list[dict[str, Any]] = _DOCUMENTS["ONE_PROMPTS"]
EDITED_PROMPTS: list[dict[str, Any]] = _DOCUMENTS["EDITED_PROMPTS"]
BROKEN_PROMPTS: list[dict[str, Any]] = _DOCUMENTS["BROKEN_PROMPTS"]
