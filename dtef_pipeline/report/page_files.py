"""File names of pages. What a page is about has a name that anyone may have written; a file name is plain whatever it holds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

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
