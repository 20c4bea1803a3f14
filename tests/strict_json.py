"""JSON as other programs read it."""

from __future__ import annotations

import json
from typing import Any


def strict(text: str) -> Any:
    """What the text says; NaN and infinity, which Python writes and JSON does not know, fail the test."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)
