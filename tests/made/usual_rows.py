"""A usual row of a table, of which tests say what is different in theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_USUAL: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))


def make_usual_row(table: str, **given: Any) -> dict[str, Any]:
    return {**_USUAL[table], **given}
