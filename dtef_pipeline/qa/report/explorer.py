"""The explorer of a part's items: filters, a list, and the item that is chosen, made by the page's script of the data in the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from dtef_pipeline.report.markup import paragraph, section
from dtef_pipeline.report.page_files import packed
from dtef_pipeline.report.palette import STEPS

EXPLORER_HOW = (
    "Every item with what was expected, what each model said of it, and how that was read. Scores are 0-1, higher is better; a dash is no "
    "score, and the reason stands beside it. Models stand in the order of their means, the best first."
)
_ONLY = {
    "": "all items",
    "asked": "items with a response",
    "low": "some score below 0.5",
    "none": "no score of 0.5 or more",
    "all": "every score 0.5 or more",
    "differ": "models differ by 0.5 or more",
    "unread": "a response could not be read",
    "null": "a response without a score",
    "flagged": "something was noticed",
    "invented": "a quotation was not found",
}
"""What items can be chosen by, with the words for it; the script knows the same."""
BADGE_STYLE = "".join(f".badge.h{at}{{background:{ground};color:{ink}}}" for at, (ground, ink) in enumerate(STEPS))
_NO_SCRIPT = "<noscript><p>The explorer needs JavaScript. The same rows are in the tables qa_items, qa_responses and qa_scores.</p></noscript>"


def qa_file(name: str) -> str:
    """A style sheet or script of these pages."""
    return files("dtef_pipeline.qa.report").joinpath(name).read_text(encoding="utf-8")


def explorer_style() -> str:
    return f"{BADGE_STYLE}\n{qa_file('explorer.css')}"


def explorer_section(data: Mapping[str, Any]) -> str:
    """The section of a page's items: `data` as of `explored.explored_pages`."""
    if not data["items"]:
        return section("items", "Items", EXPLORER_HOW, paragraph("No items."))
    body = (
        f'{_NO_SCRIPT}{_tools(data)}<p class="count" role="status" id="explorer-told"></p><div class="explorer">'
        '<div class="list" tabindex="0" role="region" aria-label="Items"><ol id="explorer-list"></ol>'
        '<button type="button" id="explorer-more" hidden>Show more</button></div>'
        '<article id="explorer-item" tabindex="-1" aria-label="The item that is chosen"></article></div>'
        f'<script type="application/json" id="explorer-data">{packed(data)}</script>'
    )
    return section("items", "Items", EXPLORER_HOW, body)


def _tools(data: Mapping[str, Any]) -> str:
    models = [model["name"] if _is_only_one(data, model["name"]) else model["variant"] for model in data["models"]]
    metrics = [_metric_words(data, one) for one in data["metrics"]]
    only = {key: words for key, words in _ONLY.items() if key != "invented" or _cites(data)}
    parts = [
        '<label>Find in items and responses <input type="search" id="explorer-words" autocomplete="off"></label>',
        _select("only", "Show", list(only.items())),
        _select("model", "Model", [("", "all models"), *_numbered(models)]),
        _select("way", "Asked as", [("", "all ways"), *_numbered(data["ways"])]) if len(data["ways"]) > 1 else "",
        _select("metric", "Scored by", _numbered(metrics)) if len(metrics) > 1 else "",
    ]
    return f'<div class="tools">{"".join(parts)}</div>'


def _select(name: str, label: str, options: Sequence[tuple[str, str]]) -> str:
    shown = "".join(f'<option value="{value}">{escape(words)}</option>' for value, words in options)
    return f'<label>{label} <select id="explorer-{name}" autocomplete="off">{shown}</select></label>'


def _numbered(names: Sequence[str]) -> list[tuple[str, str]]:
    return [(str(at), name) for at, name in enumerate(names)]


def _is_only_one(data: Mapping[str, Any], name: str) -> bool:
    return [model["name"] for model in data["models"]].count(name) == 1


def _metric_words(data: Mapping[str, Any], one: Mapping[str, str]) -> str:
    """The metric; where there are several of the name, with what it was measured by."""
    alone = sum(other["metric"] == one["metric"] for other in data["metrics"]) == 1
    return one["metric"].replace("_", " ") if alone else f"{one['metric']} ({one['by']})"


def _cites(data: Mapping[str, Any]) -> bool:
    return any("quoted" in said for item in data["items"] for said in item.get("said", ()))
