"""Labels of families and partitions for pages, the events of an evaluation by stage, and the values of its runs."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from dtef_pipeline.api.queue.evaluation_progress import EvaluationView
from dtef_pipeline.api.results.result_routes import load_run_results, run_context
from dtef_pipeline.api.results.run_context import format_remarks
from dtef_pipeline.api.services import Services
from dtef_pipeline.text.number_words import list_first_names
from resources.evaluations.evaluation_store import Evaluation, Event

if TYPE_CHECKING:
    from dtef_pipeline.site.family_content import FamilySite

NAMES_SHOWN = 3
ITSELF = "itself"
"""Label of a model without a persona."""
RUNS_WITH_VALUES = 8
"""Largest number of runs whose values are shown on an evaluation's page, because results of many runs take long."""
_SHOWN_ELSEWHERE = ("partition", "persona_id", "scenario_id")
"""Parts of a run's request that stand elsewhere: as the run's partition, or as its persona with a version."""
_log = logging.getLogger(__name__)


@cache
def _site_of(family: str) -> FamilySite | None:
    """Return the family's part of the site, which has the labels. It imports pandas, so the first page loads it, not the server's start."""
    from dtef_pipeline.sites import load_family_sites

    return next((site for site in load_family_sites() if site.family == family), None)


def family_title(family: str) -> str:
    """`Surveys`."""
    site = _site_of(family)
    return site.title if site else family.capitalize()


def find_family(title: str) -> str:
    """The family that pages call by this title, in any case; other words stay as they are."""
    from dtef_pipeline.sites import load_family_sites

    return next((site.family for site in load_family_sites() if site.title.lower() == title.lower()), title)


def partition_words(family: str, key: str) -> str:
    """`GD4, Kenya` of the partition `GD4/country:kenya`."""
    site = _site_of(family)
    return site.partition_words(key) if site else key


def subject_words(evaluation: Evaluation) -> str:
    """The first partitions of an evaluation: scenarios in games."""
    keys = evaluation.manifest.get("scenario_ids") or sorted({*evaluation.plan.get("keys", ())})
    return list_first_names([partition_words(evaluation.family, key) for key in keys], NAMES_SHOWN)


def describe_run_request(asks: Mapping[str, Any]) -> str:
    """Describe what distinguishes a run from others of its partition: `persona: calm:v2; seeds: 1-40`. Empty outside games."""
    shown = {name: value for name, value in asks.items() if value and name not in _SHOWN_ELSEWHERE}
    if "persona" in asks:
        shown = {"persona": asks["persona"] or ITSELF} | shown
    texts = {name: ", ".join(value) if isinstance(value, list) else value for name, value in shown.items()}
    return "; ".join(f"{name.replace('_', ' ')}: {text}" for name, text in texts.items())


class EventGroup(NamedTuple):
    """The events of a stage, or one event of no stage."""

    stage: str | None
    events: Sequence[Event]
    """In their order."""
    n_partitions: int
    """Partitions that the stage reports on; 0: none yet."""
    n_done: int
    n_failed: int
    """By the latest report on each partition."""
    is_over: bool
    last_count: Event | None
    """Its last event that counts calls."""


def group_events(view: EvaluationView) -> list[EventGroup]:
    """Group the events of an evaluation by stage; the group with the latest event comes first."""
    groups: dict[str | int, list[Event]] = {}
    for event in view.events:
        groups.setdefault(event.data.get("stage") or event.seq, []).append(event)
    n_keys = len(view.evaluation.plan.get("keys", ()))
    story = []
    for stage, events in sorted(groups.items(), key=lambda group: group[1][-1].seq, reverse=True):
        statuses = {event.data["key"]: event.data.get("status") for event in events if "key" in event.data}
        counts = Counter(statuses.values())
        is_left = view.progress.steps.stage != stage and not counts["failed"]
        is_over = view.is_over or is_left or 0 < n_keys <= counts["done"]
        n_partitions = max(n_keys, len(statuses)) if statuses else 0
        name = stage if isinstance(stage, str) else None
        last_count = next((event for event in reversed(events) if {"calls", "answered"} & event.data.keys()), None)
        story.append(EventGroup(name, events, n_partitions, counts["done"], counts["failed"], is_over, last_count))
    return story


def group_failures(view: EvaluationView) -> list[tuple[str, str]]:
    """Group failed runs by reason, with the partitions before each reason."""
    keys: dict[str, dict[str, None]] = {}
    for run in view.evaluation.runs:
        outcome = view.progress.runs[run.run_id]
        if outcome.status == "failed":
            reason = outcome.reason or "no reason was given"
            keys.setdefault(reason, {})[partition_words(view.evaluation.family, run.key)] = None
    return [(list_first_names(list(names), NAMES_SHOWN), reason) for reason, names in keys.items()]


def main_values(services: Services, view: EvaluationView) -> list[dict[str, Any]]:
    """Return the first metric with a value of each model and condition, for the first runs of a finished evaluation.

    A run whose tables cannot be read is left out, so that the rest of the page is shown.
    """
    from dtef_pipeline.site.content import Link

    rows: list[dict[str, Any]] = []
    for run in view.evaluation.runs[:RUNS_WITH_VALUES] if view.is_over else ():
        try:
            metrics = load_run_results(run_context(run.run_id, services)).metrics
        except Exception:
            _log.exception("the values of the run %s cannot be read", run.run_id)
            continue
        first: dict[tuple[Any, ...], Mapping[str, Any]] = {}
        for item in metrics:
            if item["value"] is not None:
                first.setdefault((item["model"], item.get("context_level"), item.get("condition")), item)
        persona = run.asks["persona"] or ITSELF if "persona" in run.asks else ""
        about = {"link": Link(partition_words(view.evaluation.family, run.key), f"runs/{run.run_id}"), "persona": persona}
        rows += [about | row for row in build_value_rows(view.evaluation.family, list(first.values()))]
    return rows


def build_value_rows(family: str, metrics: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Build the metrics of a run as rows of a table."""
    from dtef_pipeline.site.content import Estimate

    site, rows = _site_of(family), []
    for item in metrics:
        level, condition = (str(item[name]) if item.get(name) is not None else "" for name in ("context_level", "condition"))
        is_partial = item["n_requested"] not in (None, item["n"])
        row = {
            "model": item["model"],
            "metric": site.metric_words(item["metric"]) if site else item["metric"],
            "setting": site.describe_asking(level, condition) if site and (level or condition) else "",
            "value": Estimate(item["value"], item["low"], item["high"]),
            "n": f"{item['n']:,} of {item['n_requested']:,}" if is_partial else f"{item['n']:,}",
            "note": format_remarks(item["reason"], item["remark"]) or "",
        }
        rows.append(row)
    return rows
