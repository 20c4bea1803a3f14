"""File names of pages. What a page is about has a name that anyone may have written; a file name is plain whatever it holds."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pandas as pd

from dtef_pipeline.identity import digest

INDEX_PAGE = "index.html"
FURTHER = ("prompt", "items", "episode")
"""What a page's parts are called that have pages of their own."""
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}")
_HASH_DIGITS = 12


def page_names(ids: Iterable[str]) -> dict[str, str]:
    """The file of each page: `<id>.html`, or where the id is no plain name, or would be another's on a disk that does not tell capitals
    apart, what is plain of it with a hash."""
    ids = list(dict.fromkeys(ids))
    folded = Counter(name.lower() for name in ids)
    return {
        name: f"{name}.html" if _is_plain(name) and folded[name.lower()] == 1 else f"{_plain_part(name)}-{_hash(name)}.html"
        for name in ids
    }


def further_page(page: str, noun: str, number: int) -> str:
    """The file of a part of a page that has a page of its own, named after the first; `noun`: of FURTHER; numbers from 1."""
    return f"{page.removesuffix('.html')}.{noun}-{number}.html"


def _is_plain(name: str) -> bool:
    reserved = (
        name.lower() == INDEX_PAGE.removesuffix(".html") or any(f".{noun}-" in name for noun in FURTHER) or name.endswith(".")
    )
    return bool(_PLAIN_NAME.fullmatch(name)) and not reserved


def _plain_part(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:80] or "page"


def _hash(name: str) -> str:
    return digest("page", name)[:_HASH_DIGITS]


def packed(data: Any) -> str:
    """Data as JSON that can stand in a script element: whatever its texts say, they cannot end the element or begin another."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def rows_for_download(frame: pd.DataFrame) -> str:
    """Markup of the frame's columns, each with its values: a list, or where they repeat the distinct ones and the place of each row's.

    An unknown value is null, a list is one text.
    """
    held = {str(name): _column([_plain(value) for value in frame[name]]) for name in frame.columns}
    return f'<script type="application/json" class="rows">{packed(held)}</script>'


def _column(values: list[Any]) -> Any:
    distinct = list(dict.fromkeys(values))
    if 2 * len(distinct) > len(values):
        return values
    place = {value: at for at, value in enumerate(distinct)}
    return {"distinct": distinct, "at": [place[value] for value in values]}


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return "; ".join(str(_plain(item)) for item in value)
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value if isinstance(value, str | int | float | bool) else str(value)
