"""What models really write, and what must be made of it: a distribution, or the reason why there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_CASES: dict[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
_OPTIONS = {name: tuple(options) for name, options in _CASES["options"].items()}
FOUR, THREE, AGES, COUNTS = (_OPTIONS[name] for name in ("FOUR", "THREE", "AGES", "COUNTS"))


def _options(case: dict[str, Any]) -> tuple[str, ...]:
    """Options of a case, which names them or lists them."""
    return _OPTIONS[case["of"]] if isinstance(case["of"], str) else tuple(case["of"])


OK = [(case["text"], _options(case), case["shares"]) for case in _CASES["read"]]
"""Texts, options and shares."""
NOT_OK = [(case["text"], _options(case), case["status"], case["reason"]) for case in _CASES["not_read"]]
"""Texts, options, statuses and parts of reasons."""
