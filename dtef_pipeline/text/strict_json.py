"""JSON without ambiguity: no key twice in one object, no NaN, no infinite number."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from dtef_pipeline.text.shortening import shorten_to_line


class JsonFault(ValueError):
    """The reason why a text is not such JSON."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line
        """Line of the text, from 1; None: unknown."""


def parse_json(text: str | bytes) -> Any:
    """Parse a JSON value; bytes are UTF-8. Raises JsonFault."""
    try:
        return _DECODER.decode(text.decode("utf-8-sig") if isinstance(text, bytes) else text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise JsonFault(f"{error.msg}, character {error.pos + 1}", error.lineno) from None
    except RecursionError:
        raise JsonFault("it is nested too deeply") from None
    except ValueError as error:
        raise JsonFault(str(error)) from None


def _require_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in values if names.count(name) > 1)
        raise ValueError(f"the key {shorten_to_line(twice)!r} is given twice")
    return values


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _parse_finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {shorten_to_line(text, 40)} is too large")
    return value


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_parse_finite, object_pairs_hook=_require_unique_keys)
