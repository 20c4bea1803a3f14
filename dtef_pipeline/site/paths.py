"""Where pages lie. What a page is about has a name that anyone may have written; a file name is plain whatever it holds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from urllib.parse import quote, urlencode

from dtef_pipeline.identity import digest

SITE_FOLDER = "report"
"""What the folder of the site is called: in a warehouse, and where a command writes it."""
FRONT_PAGE, COMPARE_PAGE, DRIFT_PAGE, DATA_PAGE, METHOD_PAGE = (
    f"{name}.html" for name in ("index", "compare", "drift", "data", "method")
)
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}")
_HASH_DIGITS = 12


def board_page(family: str) -> str:
    """The page of a family's leaderboards."""
    return f"{family}/index.html"


def build_model_address(name: str) -> str:
    """The page of a model, by its name alone, so that every family can lead to it; names that differ only in case have two pages."""
    is_its_own = _is_plain(name) and name == name.lower()
    return f"models/{name if is_its_own else f'{_simplify_name(name)}-{_hash(name)}'}.html"


def address_id(*parts: object) -> str:
    """What something is called in addresses: a hash of what it is, so that a link still finds it when more stands before it."""
    return digest("address", *parts)[:_HASH_DIGITS]


def state_address(page: str, **state: str) -> str:
    """A page in a state that its script restores: `qa/suites/mmlu.html#item=anatomy%2F7`."""
    return f"{page}#{urlencode(state, quote_via=quote, safe='')}"


def choose_file_names(ids: Iterable[str]) -> dict[str, str]:
    """A file name without its ending for each id: the id, or where it is no plain name, or would be another's on a disk that ignores case,
    what is plain of it with a hash."""
    ids = list(dict.fromkeys(ids))
    counts = Counter(name.lower() for name in ids)
    return {
        name: name if _is_plain(name) and counts[name.lower()] == 1 else f"{_simplify_name(name)}-{_hash(name)}" for name in ids
    }


def _is_plain(name: str) -> bool:
    return bool(_PLAIN_NAME.fullmatch(name)) and name.lower() != "index" and not name.endswith(".")


def _simplify_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:80] or "page"


def _hash(name: str) -> str:
    return digest("page", name)[:_HASH_DIGITS]
