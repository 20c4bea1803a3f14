"""Descriptions of an evaluation for pages: its state, progress, cost, and events by stage."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from dtef_pipeline.api.queue.evaluation_progress import EvaluationView
from dtef_pipeline.api.results.result_routes import results_kept, run_context
from dtef_pipeline.api.results.run_outcomes import format_remarks
from dtef_pipeline.api.services import Services
from dtef_pipeline.text.number_words import format_count
from dtef_pipeline.text.unknown_cost import describe_unknown_cost
from resources.evaluations.evaluation_store import Event

if TYPE_CHECKING:
    from dtef_pipeline.site.content import Table
    from dtef_pipeline.site.family_content import FamilySite


ITSELF = "itself"
"""Label of a model without a persona."""
_NO_PERSONA = ("", "none")
_LONGEST_SETTING = 200
"""Largest number of characters of a run's request."""


@cache
def site_of(family: str) -> FamilySite | None:
    """Return the family's part of the site, which has the labels. It imports pandas, so the first page loads it, not the server's start."""
    from dtef_pipeline.sites import load_family_sites

    return next((site for site in load_family_sites() if site.family == family), None)


def family_title(family: str) -> str:
    """`Surveys`."""
    site = site_of(family)
    return site.title if site else family.capitalize()


def find_family(title: str) -> str:
    """The family that pages call by this title, in any case; other words stay as they are."""
    from dtef_pipeline.sites import load_family_sites

    return next((site.family for site in load_family_sites() if site.title.lower() == title.lower()), title)


def partition_words(family: str, key: str) -> str:
    """`GD4, Kenya` of the partition `GD4/country:kenya`."""
    site = site_of(family)
    return site.partition_words(key) if site else key


def metric_words(family: str, metric: str) -> str:
    """`Jensen-Shannon` of `js`."""
    site = site_of(family)
    return site.metric_words(metric) if site else metric


def setting_words(family: str, row: Mapping[str, Any]) -> str:
    """Return the condition of a row's models; empty if all have the same."""
    level, condition = (str(row[name]) if row.get(name) is not None else "" for name in ("context_level", "condition"))
    site = site_of(family)
    return (
        site.describe_asking(level, condition) if site and (level or condition) else ", ".join(filter(None, (level, condition)))
    )


def persona_words(names: Sequence[str]) -> list[str]:
    """Return the names of personas, `itself` for none."""
    return [ITSELF if name in _NO_PERSONA else name for name in names]


def describe_run_request(family: str, asks: Mapping[str, Any]) -> str:
    """Describe a run's request in one line: `Persona: calm:v2; seeds: 1-40`. Long lists are shortened; `–`: there is nothing to show."""
    texts = {name.removesuffix("_id"): words for name, value in asks.items() if (words := _value_words(family, name, value))}
    return "; ".join(f"{name.replace('_', ' ')}: {words}" for name, words in texts.items()) or "–"


def _value_words(family: str, name: str, value: Any) -> str:
    if name in ("persona", "persona_id"):
        return value and ", ".join(persona_words([str(value)]))
    if name in ("partition", "scenario_id"):
        return partition_words(family, str(value))
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= _LONGEST_SETTING else f"{text[:_LONGEST_SETTING]}…"


_LINES_OF_STAGE = 200


class TimelineEvent(NamedTuple):
    """An event of an evaluation."""

    time: datetime
    kind: str
    words: str


class StageStory(NamedTuple):
    """The events of a stage."""

    stage: str
    summary: str
    is_over: bool
    began: datetime
    last_at: datetime
    """Time of the latest event."""
    lines: Sequence[TimelineEvent]
    """Latest first."""
    n_left_out: int
    """Number of earlier events."""


class Steps(NamedTuple):
    """Progress of an evaluation."""

    value: float
    """Of `total`."""
    total: int
    words: str


def describe_state(view: EvaluationView) -> str | None:
    """Describe its place in the queue; None: it is no longer waiting."""
    if view.n_before is None or view.state != "queued":
        return None
    return f"{format_count(view.n_before, 'evaluation')} before it" if view.n_before else "the next to start"


def steps(view: EvaluationView) -> Steps | None:
    """Return the progress; None: there is nothing to report."""
    counts = view.progress.steps
    if not counts.n_planned or (view.is_over and not counts.done):
        return None
    is_asking = not view.is_over and counts.n_requests and counts.answered is not None
    notes = [f"{counts.done:,} of {format_count(counts.n_planned, 'partition')} done"]
    notes += [f"{counts.failed:,} failed"] if counts.failed else []
    notes += [f"stage {counts.stage}"] if not view.is_over and counts.stage else []
    notes += [f"{counts.answered:,} of {format_count(counts.n_requests or 0, 'call')} answered"] if is_asking else []
    # The stage that asks moves with its calls: the others are quick.
    share = (counts.answered or 0) / (counts.n_requests or 1) if is_asking else 0.0
    return Steps(float(f"{min(counts.done + share, counts.n_planned):.4g}"), counts.n_planned, "; ".join(notes))


def format_calls(calls: Mapping[str, Any]) -> str:
    """`21 of 24 calls answered, 2 failed, 1 left out`."""
    notes = [f"{calls[name]:,} {words}" for name, words in (("failed", "failed"), ("skipped", "left out")) if calls[name]]
    return ", ".join([f"{calls['answered']:,} of {format_count(calls['n_requests'], 'call')} answered", *notes])


def format_calls_by_stage(calls: Mapping[str, Any] | None) -> list[str]:
    """Format all calls, then those of each stage if several make requests."""
    if not calls:
        return []
    stages = calls.get("stages") or {}
    by_stage = [f"{stage}: {format_calls(counts)}" for stage, counts in stages.items()] if len(stages) > 1 else []
    return [format_calls(calls), *by_stage]


def format_call_cost(cost: Mapping[str, Any]) -> str:
    """`0.0120 US dollars, 40 calls (3 attempts of unknown cost, at most $0.0120)`. `cost`: the fields of `UsageTotals`."""
    amount = "cost not known" if cost["usd"] is None else f"{cost['usd']:.4f} US dollars"
    unknown = describe_unknown_cost(cost["unpriced"], cost.get("unpriced_usd_most"))
    return f"{amount}, {format_count(cost['calls'], 'call')}{f' ({unknown})' if unknown else ''}"


def build_story(view: EvaluationView) -> list[TimelineEvent | StageStory]:
    """Build the list of events, latest first, with each stage once at its latest event."""
    stages: dict[str, list[Event]] = {}
    story: dict[int, TimelineEvent | StageStory] = {}
    for event in view.events:
        stage = event.data.get("stage")
        if event.kind == "item" and isinstance(stage, str):
            stages.setdefault(stage, []).append(event)
        else:
            words = _describe_event(event, view.evaluation.family)
            story[event.seq] = TimelineEvent(event.happened_at, event.kind, words)
    story |= {events[-1].seq: _build_stage_story(stage, events, view) for stage, events in stages.items()}
    return [story[seq] for seq in sorted(story, reverse=True)]


def _build_stage_story(stage: str, events: Sequence[Event], view: EvaluationView) -> StageStory:
    statuses = {event.data["key"]: event.data.get("status") for event in events if "key" in event.data}
    n_done, n_keys = sum(status == "done" for status in statuses.values()), len(view.evaluation.plan.get("keys", ()))
    n_failed = sum(status == "failed" for status in statuses.values())
    notes = [f"{n_done:,} of {format_count(max(n_keys, len(statuses)), 'partition')} done"] if statuses else []
    notes += [f"{n_failed:,} failed"] if n_failed else []
    family = view.evaluation.family
    calls = next(
        (_describe_event(item, family) for item in reversed(events) if "calls" in item.data or "answered" in item.data), None
    )
    is_left = view.progress.steps.stage != stage and not n_failed
    return StageStory(
        stage=stage,
        summary="; ".join([*notes, *([calls] if calls else [])]),
        is_over=view.is_over or is_left or 0 < n_keys <= n_done,
        began=events[0].happened_at,
        last_at=events[-1].happened_at,
        lines=[
            TimelineEvent(item.happened_at, str(item.data.get("status", item.kind)), _describe_event(item, family))
            for item in reversed(events[-_LINES_OF_STAGE:])
        ],
        n_left_out=max(0, len(events) - _LINES_OF_STAGE),
    )


def _describe_event(event: Event, family: str) -> str:
    data = event.data
    match event.kind:
        case "queued":
            return f"Stored with {format_count(int(data.get('runs', 0)), 'run')}"
        case "started":
            return "Dagster's run has started"
        case "completed" | "failed" | "cancelled":
            return _describe_end(data)
    if "restarted" in data:
        return f"Dagster started the run again: {data.get('reason', 'no reason was given')}"
    if "key" in data:
        return f"{partition_words(family, str(data['key']))}{f': {reason}' if (reason := data.get('reason')) else ''}"
    if "calls" in data:
        reasons = "; ".join(str(data[name]) for name in ("failure_reason", "skip_reason") if name in data)
        return format_calls(data["calls"]) + (f" ({reasons})" if reasons else "")
    if "answered" in data:
        return f"{data['answered']:,} of {format_count(int(data.get('n_planned') or data['answered']), 'call')} answered"
    return json.dumps(data, ensure_ascii=False)


def _describe_end(data: Mapping[str, Any]) -> str:
    requester = f"requested by {data['by']}" if "by" in data else None
    calls = format_calls(data["calls"]) if data.get("calls") else None
    cost = f"cost: {format_call_cost(data['call_costs'])}" if data.get("call_costs") else None
    return "; ".join(str(text) for text in (data.get("reason"), requester, calls, data.get("warning"), cost) if text)


RUNS_WITH_VALUES = 8
"""Largest number of runs whose values are shown on an evaluation's page, because results of many runs take long."""
_MODELS_SHOWN = 5
_log = logging.getLogger(__name__)


def main_values(services: Services, view: EvaluationView) -> Table | None:
    """Return the first value of each model in each of the first runs of a finished evaluation, one row per run and condition."""
    if not view.is_over:
        return None
    from dtef_pipeline.site.content import Column, Estimate, Link, Table

    family = view.evaluation.family
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    models: dict[str, str] = {}
    for run in view.evaluation.runs[:RUNS_WITH_VALUES]:
        for item in _select_first_metrics(services, run.run_id):
            names = {
                "persona": ", ".join(persona_words([run.asks["persona"]])) if "persona" in run.asks else "",
                "setting": setting_words(family, item),
                "metric": metric_words(family, item["metric"]),
            }
            link = Link(partition_words(family, run.key), f"runs/{run.run_id}")
            row = rows.setdefault((run.run_id, *names.values()), {"run": link, **names})
            row[models.setdefault(item["model"], f"model {len(models)}")] = Estimate(item["value"], item["low"], item["high"])
    named = [Column(*entry) for entry in (("run", "Partition"), ("persona", "Persona"), ("setting", "Setting"))]
    named.append(Column("metric", "Metric", always=True))
    model_columns = [Column(name, model, "score", more=i >= _MODELS_SHOWN) for i, (model, name) in enumerate(models.items())]
    caption = "The first value of each model, with its 95% interval; the page of each run has all values"
    return Table(caption, [*named, *model_columns], list(rows.values()), first=24) if rows else None


def _select_first_metrics(services: Services, run_id: str) -> list[Mapping[str, Any]]:
    """Return the first metric with a value for each model and condition. None if the tables cannot be read, so that the rest of the page is
    shown."""
    try:
        metrics = results_kept.get_results(run_context(run_id, services)).metrics
    except Exception:
        _log.exception("the values of the run %s cannot be read", run_id)
        return []
    first: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for item in metrics:
        if item["value"] is not None:
            first.setdefault((item["model"], item.get("context_level"), item.get("condition")), item)
    return list(first.values())


def build_value_rows(family: str, metrics: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Build the metrics of a run as rows of a table."""
    from dtef_pipeline.site.content import Estimate

    return [
        {
            "model": item["model"],
            "metric": metric_words(family, item["metric"]),
            "setting": setting_words(family, item),
            "value": Estimate(item["value"], item["low"], item["high"]),
            "n": f"{item['n']:,}" if item["n_requested"] in (None, item["n"]) else f"{item['n']:,} of {item['n_requested']:,}",
            "note": format_remarks(item["reason"], item["remark"]) or "",
        }
        for item in metrics
    ]
