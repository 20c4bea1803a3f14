"""Paths of pages. Names of their subjects may be arbitrary; file names are always plain."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from urllib.parse import quote, urlencode

from dtef_pipeline.identity import digest

SITE_FOLDER = "report"
"""Name of the site's folder in a warehouse, and of the folder that a command writes by default."""
FRONT_PAGE, COMPARE_PAGE, DRIFT_PAGE, DATA_PAGE, METHOD_PAGE = (
    f"{name}.html" for name in ("index", "compare", "drift", "data", "method")
)
MODELS_ADDRESS = f"{FRONT_PAGE}#models"
"""The list of models."""
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}")
_HASH_DIGITS = 12


def board_page(family: str) -> str:
    """Return the page of a family's leaderboards."""
    return f"{family}/index.html"


def build_model_address(name: str) -> str:
    """Return the page of a model, from its name only, so that every family can link to it; names that differ in case have two pages."""
    return f"models/{_name_file(name, is_unique=name == name.lower())}.html"


def address_id(*parts: object) -> str:
    """Return an id for addresses: a hash of the content, so that links still work when more content precedes it."""
    return digest("address", *parts)[:_HASH_DIGITS]


def state_address(page: str, **state: str) -> str:
    """Return the address of a page in a state that its script restores: `qa/suites/mmlu.html#item=anatomy%2F7`."""
    return f"{page}#{urlencode(state, quote_via=quote, safe='')}"


def choose_file_names(ids: Iterable[str]) -> dict[str, str]:
    """Return a file name without extension for each id."""
    ids = list(dict.fromkeys(ids))
    counts = Counter(name.lower() for name in ids)
    return {name: _name_file(name, is_unique=counts[name.lower()] == 1) for name in ids}


def _name_file(name: str, is_unique: bool) -> str:
    """Return the name, or its plain part with a hash if it is not plain or not `is_unique` on a case-insensitive disk."""
    if is_unique and _PLAIN_NAME.fullmatch(name) and name.lower() != "index" and not name.endswith("."):
        return name
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:80] or "page"
    return f"{plain}-{digest('page', name)[:_HASH_DIGITS]}"


PAGE_MARK = '<meta name="generator" content="dtef">'
"""In every page."""
SCRIPT_MARK = "/* dtef */"
"""How every style sheet, script and data file begins."""
