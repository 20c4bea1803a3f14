"""What one run of an evaluation came to, as a page: metrics with intervals, cost, and the texts behind them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import quote

from fastapi import Request, Response

from dtef_pipeline.api.access import Operating
from dtef_pipeline.api.pages.elements import Content, Html, element, html, link
from dtef_pipeline.api.pages.layout import page, page_router
from dtef_pipeline.api.pages.page_parts import (
    TableRow,
    asked_in_words,
    badge,
    box_of_table,
    cost_in_words,
    listed,
    long_text,
    moment,
    row_of,
)
from dtef_pipeline.api.queue.evaluation_progress import progress_of
from dtef_pipeline.api.results.result_routes import Asked, results_kept, trace_of, trace_uri
from dtef_pipeline.api.results.run_outcomes import in_words
from dtef_pipeline.api.services import Used
from dtef_pipeline.text.counted import counted

_LONGEST_BESIDE_NAME = 120
"""Characters of a text that stands beside its name; a longer one stands below it."""
_LOWEST_LEVEL = 6
_UNIT_OF_ENDING = {"_s": "s", "_usd": "US dollars"}
"""How names of values end that have a unit."""
_METRICS_SHOWN, _TRACES_SHOWN = 500, 100
_NOT_KNOWN_YET = "no row of the run is written; the page of the evaluation has what was bought in all"

router = page_router()


@router.get("/runs/{run_id}")
def run_page(request: Request, services: Used, held: Operating, asked: Asked) -> Response:
    """One run with its results so far."""
    run, results = asked.run, results_kept.of(asked)
    state = progress_of(asked.evaluation, services.evaluations.events(run.queue_id)).runs[run.run_id]
    metrics, traces = results.metrics, results.traces
    terms: dict[str, Content] = {
        "State": html(badge(state.status), " ", long_text(state.reason)),
        "Evaluation": link(f"/queue/{run.queue_id}", element("code", run.queue_id)),
        "Partition": run.key,
        "Asked": asked_in_words(run.asks),
        "Snapshot": asked.snapshot,
        "Outcomes": _outcomes(results.outcomes),
        "Cost": f"{cost_in_words(results.cost._asdict())}, whoever paid for them" if traces else _NOT_KNOWN_YET,
        "Bought by this evaluation": cost_in_words(results.bought._asdict()) if traces else _NOT_KNOWN_YET,
    }
    caption = f"{counted(len(metrics), 'metric')}, with 95 % intervals"
    if len(metrics) > _METRICS_SHOWN:
        caption += f"; the first {_METRICS_SHOWN} are shown, the JSON has all"
    rows = [_metric_row(one) for one in metrics[:_METRICS_SHOWN]]
    table = box_of_table(caption, ("Model", "Metric", "Value", "Of", "Remark"), rows, nothing="Nothing is scored yet.")
    whole = element("p", link(f"/api/evaluations/{run.run_id}", "All of it as JSON"))
    body = (
        listed(terms),
        element("h2", "Metrics"),
        table,
        whole,
        element("h2", "Texts behind them"),
        _traces(run.run_id, traces),
    )
    return page(request, f"Run {run.run_id[:8]}", *body)


@router.get("/runs/{run_id}/traces/{trace_id}")
def trace_page(request: Request, held: Operating, asked: Asked, trace_id: str) -> Response:
    """What was asked and answered: of games a whole episode with its turns, elsewhere a response and how it was scored."""
    run_id, found = asked.run.run_id, {**trace_of(asked, trace_id)}
    del found["run_id"]
    if "turns" in found:
        found = readable_episode(found)
    body = (
        element(
            "p", link(f"/runs/{run_id}", f"Run {run_id[:8]}"), " · ", link(trace_uri(run_id, trace_id), "This trace as JSON")
        ),
        trace_members(found),
    )
    return page(request, f"Trace {trace_id[:8]}", *body)


def readable_episode(episode: Mapping[str, Any]) -> dict[str, Any]:
    """The episode with its moves as an object, not as JSON, and its turns without what stands beside them."""
    turns = episode["turns"]
    repeated = {name for name in episode if all(turn.get(name) == episode[name] for turn in turns)}
    own = [{name: one for name, one in turn.items() if name not in repeated} for turn in turns]
    return {**episode, "trace": json.loads(episode["trace"] or "null"), "turns": own}


def trace_members(told: Mapping[str, Any], level: int = 2) -> Html:
    """The members of an object that have a value: long texts and lists under headings of a level, after what is short."""
    known = {name: one for name, one in told.items() if one not in (None, "", [], {})}
    long = {name: one for name, one in known.items() if _is_part(one)}
    short: dict[str, Content] = {_label_of(name): _short_value(name, one) for name, one in known.items() if name not in long}
    parts = [html(element(f"h{level}", _label_of(name)), _part(name, one, level)) for name, one in long.items()]
    return html(listed(short) if short else None, parts)


def _is_part(told: Any) -> bool:
    if isinstance(told, str):
        return "\n" in told or len(told) > _LONGEST_BESIDE_NAME
    return isinstance(told, dict) or (isinstance(told, list) and any(isinstance(one, dict) for one in told))


def _part(name: str, told: Any, level: int) -> Html:
    if isinstance(told, str):
        return element("div", told, class_="raw", dir="auto", tabindex="0")
    if isinstance(told, dict):
        return trace_members(told, min(level + 1, _LOWEST_LEVEL))
    if any(isinstance(one, list) and any(isinstance(each, dict) for each in one) for row in told for one in row.values()):
        below = min(level + 1, _LOWEST_LEVEL)
        shown = [
            (element(f"h{below}", f"{at:,} of {len(told):,}"), trace_members(row, below)) for at, row in enumerate(told, 1)
        ]
        return html(shown)
    names = dict.fromkeys(name for row in told for name in row)
    columns = [column for column in names if any(row.get(column) not in (None, "", []) for row in told)] or list(names)
    rows = [row_of(*(_short_value(column, row.get(column)) for column in columns)) for row in told]
    return box_of_table(f"{_label_of(name)}: {len(told):,}", [_label_of(column) for column in columns], rows)


def _label_of(name: str) -> str:
    """`Prompt id` of `prompt_id`, `Latency (s)` of `latency_s`."""
    for ending, unit in _UNIT_OF_ENDING.items():
        if name.endswith(ending):
            return f"{_label_of(name.removesuffix(ending))} ({unit})"
    return name.replace("_", " ").capitalize()


def _short_value(name: str, told: Any) -> Content:
    """A value in a line: numbers with four digits, times to the second, lists with commas."""
    if name.endswith("_at") and isinstance(told, str):
        told = datetime.fromisoformat(told)
    if isinstance(told, datetime):
        return moment(told)
    if isinstance(told, bool) or told is None:
        return {True: "yes", False: "no", None: "–"}[told]
    if isinstance(told, int | float):
        return told if isinstance(told, int) else four_digits(told)
    if isinstance(told, list):
        return ", ".join(str(four_digits(one)) for one in told)
    return str(told)


def _outcomes(told: Mapping[str, Any]) -> Html:
    asked = "not known yet" if told["asked"] is None else counted(told["asked"], told["unit"])
    numbers = ", ".join(f"{told[name]:,} {name}" for name in ("answered", "failed", "skipped", "scored"))
    warning = element("strong", told["warning"]) if told["warning"] else None
    return html(f"asked for: {asked}; {numbers}. " if warning else f"asked for: {asked}; {numbers}", warning)


def _metric_row(one: Mapping[str, Any]) -> TableRow:
    value, low, high = one.get("value"), one.get("low"), one.get("high")
    ends = (
        element("span", f"{four_digits(low)} to {four_digits(high)}", class_="ci")
        if low is not None and high is not None
        else None
    )
    number = f"{one['n']:,}"
    if one["n_asked"] is not None and one["n_asked"] != one["n"]:
        number += f" of {one['n_asked']:,}"
    names = (str(one.get(name, "–")) for name in ("model", "metric"))
    return row_of(*names, html(four_digits(value), ends), number, in_words(one["reason"], one["remark"]) or "")


def four_digits(value: Any) -> str:
    """`0.0003736`: a number with four digits, and never with an exponent; a dash for none."""
    if isinstance(value, int | float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{Decimal(f'{value:.4g}'):f}"
    return "–" if value is None else str(value)


def _traces(run_id: str, traces: list[str]) -> Html:
    rows = [row_of(link(f"/runs/{run_id}/traces/{quote(one, safe='')}", one)) for one in traces[:_TRACES_SHOWN]]
    more = f", the first {_TRACES_SHOWN} of them" if len(traces) > _TRACES_SHOWN else ""
    return box_of_table(f"{counted(len(traces), 'trace')}{more}", ("Trace",), rows, nothing="None yet.")
