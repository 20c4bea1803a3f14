"""File names of the pages. Ids of blueprints come from paths that anyone may have written; a file name is plain whatever they hold."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from dtef_pipeline.identity import digest

INDEX_PAGE = "index.html"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}")
_HASH_DIGITS = 12


def page_names(blueprints: Iterable[str]) -> dict[str, str]:
    """The file of each blueprint's page: `<id>.html`, or where the id is no plain name, or would be another's on a disk that does not
    tell capitals apart, what is plain of it with a hash."""
    ids = list(dict.fromkeys(blueprints))
    folded = Counter(name.lower() for name in ids)
    return {
        name: f"{name}.html" if _is_plain(name) and folded[name.lower()] == 1 else f"{_plain_part(name)}-{_hash(name)}.html"
        for name in ids
    }


def prompt_page(page: str, position: int) -> str:
    """The file of a prompt that has a page of its own, from that of its blueprint; positions from 1."""
    return f"{page.removesuffix('.html')}.prompt-{position}.html"


def _is_plain(name: str) -> bool:
    reserved = name.lower() == INDEX_PAGE.removesuffix(".html") or ".prompt-" in name or name.endswith(".")
    return bool(_PLAIN_NAME.fullmatch(name)) and not reserved


def _plain_part(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:80] or "blueprint"


def _hash(name: str) -> str:
    return digest("page", name)[:_HASH_DIGITS]
