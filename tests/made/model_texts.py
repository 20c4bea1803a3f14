"""What models really write, and what must be made of it: a distribution, or the reason why there is none."""

from __future__ import annotations

import tomllib
from pathlib import Path

_CASES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_OPTIONS = {name: tuple(options) for name, options in _CASES["options"].items()}
FOUR, THREE, AGES, COUNTS = (_OPTIONS[name] for name in ("four", "three", "ages", "counts"))
OK = [(text, _OPTIONS[case["options"]], tuple(case["values"])) for case in _CASES["ok"] for text in case["texts"]]
NOT_OK = [
    (None, THREE, "unparseable", "empty"),
    (f"[{10**400}, 50, 50]", THREE, "unparseable", "not a finite number"),
    *((text, _OPTIONS[options], status, reason) for text, options, status, reason in _CASES["not_ok"]),
]
