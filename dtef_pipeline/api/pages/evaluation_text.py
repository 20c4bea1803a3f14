"""What pages say of an evaluation in words: its state, how far it is, what it cost, and what happened, by stage."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from dtef_pipeline.api.pages.part_words import part_words
from dtef_pipeline.api.queue.evaluation_views import EvaluationView
from dtef_pipeline.text.quantity_words import format_count
from dtef_pipeline.text.unknown_cost import describe_unknown_cost
from resources.evaluations.evaluation_store import Event

_LINES_OF_STAGE = 200


class Happening(NamedTuple):
    """Something that happened to an evaluation."""

    at: datetime
    kind: str
    words: str


class StageStory(NamedTuple):
    """What happened in a stage."""

    stage: str
    summary: str
    is_over: bool
    began: datetime
    at: datetime
    """When it was heard of last."""
    lines: Sequence[Happening]
    """The last first."""
    n_left_out: int
    """How many came before these."""


class Steps(NamedTuple):
    """How far an evaluation is."""

    value: float
    """Of `of`."""
    of: int
    words: str


def describe_state(shown: EvaluationView) -> str | None:
    """Its place in the queue; None: it waits no more."""
    if shown.before is None or shown.state != "queued":
        return None
    return f"{format_count(shown.before, 'evaluation')} before it" if shown.before else "the next to start"


def steps(shown: EvaluationView) -> Steps | None:
    """How far it is; None: there is nothing to tell yet, or nothing was done."""
    found = shown.progress.steps
    if not found.of or (shown.is_over and not found.done):
        return None
    is_asking = not shown.is_over and found.asked and found.answered is not None
    notes = [f"{found.done:,} of {format_count(found.of, 'part')} done"]
    notes += [f"{found.failed:,} failed"] if found.failed else []
    notes += [f"stage {found.stage}"] if not shown.is_over and found.stage else []
    notes += [f"{found.answered:,} of {format_count(found.asked or 0, 'call')} answered"] if is_asking else []
    # The stage that asks moves with its calls: the others are quick.
    share = (found.answered or 0) / (found.asked or 1) if is_asking else 0.0
    return Steps(float(f"{min(found.done + share, found.of):.4g}"), found.of, "; ".join(notes))


def format_calls(calls: Mapping[str, Any]) -> str:
    """`21 of 24 calls answered, 2 failed, 1 left out`."""
    others = [f"{calls[name]:,} {words}" for name, words in (("failed", "failed"), ("skipped", "left out")) if calls[name]]
    return ", ".join([f"{calls['answered']:,} of {format_count(calls['asked'], 'call')} answered", *others])


def format_calls_by_stage(calls: Mapping[str, Any] | None) -> list[str]:
    """All calls, then those of each stage where several ask."""
    if not calls:
        return []
    stages = calls.get("stages") or {}
    by_stage = [f"{stage}: {format_calls(one)}" for stage, one in stages.items()] if len(stages) > 1 else []
    return [format_calls(calls), *by_stage]


def format_call_cost(cost: Mapping[str, Any]) -> str:
    """`0.0120 US dollars, 40 calls (3 attempts of unknown cost, at most $0.0120)`. `cost`: the fields of `UsageTotals`."""
    known = "cost not known" if cost["usd"] is None else f"{cost['usd']:.4f} US dollars"
    unknown = describe_unknown_cost(cost["unpriced"], cost.get("unpriced_usd_most"))
    return f"{known}, {format_count(cost['calls'], 'call')}{f' ({unknown})' if unknown else ''}"


def build_story(shown: EvaluationView) -> list[Happening | StageStory]:
    """What happened, the last first: each stage once, where it was heard of last."""
    stages: dict[str, list[Event]] = {}
    found: dict[int, Happening | StageStory] = {}
    for event in shown.events:
        stage = event.data.get("stage")
        if event.kind == "item" and isinstance(stage, str):
            stages.setdefault(stage, []).append(event)
        else:
            words = _describe_event(event, shown.evaluation.family)
            found[event.seq] = Happening(event.happened_at, event.kind, words)
    found |= {events[-1].seq: _build_stage_story(stage, events, shown) for stage, events in stages.items()}
    return [found[seq] for seq in sorted(found, reverse=True)]


def _build_stage_story(stage: str, events: Sequence[Event], shown: EvaluationView) -> StageStory:
    parts = {event.data["key"]: event.data.get("status") for event in events if "key" in event.data}
    done, n_keys = sum(one == "done" for one in parts.values()), len(shown.evaluation.plan.get("keys", ()))
    failed = sum(one == "failed" for one in parts.values())
    parts_in_words = [f"{done:,} of {format_count(max(n_keys, len(parts)), 'part')} done"] if parts else []
    parts_in_words += [f"{failed:,} failed"] if failed else []
    family = shown.evaluation.family
    calls = next(
        (_describe_event(one, family) for one in reversed(events) if "calls" in one.data or "answered" in one.data), None
    )
    is_left = shown.progress.steps.stage != stage and not failed
    return StageStory(
        stage=stage,
        summary="; ".join([*parts_in_words, *([calls] if calls else [])]),
        is_over=shown.is_over or is_left or 0 < n_keys <= done,
        began=events[0].happened_at,
        at=events[-1].happened_at,
        lines=[
            Happening(one.happened_at, _kind_of(one), _describe_event(one, family))
            for one in reversed(events[-_LINES_OF_STAGE:])
        ],
        n_left_out=max(0, len(events) - _LINES_OF_STAGE),
    )


def _kind_of(event: Event) -> str:
    """`done` or `failed` of a part; else the kind of the event."""
    status = event.data.get("status")
    return status if status in ("done", "failed") else event.kind


def _describe_event(event: Event, family: str) -> str:
    data = event.data
    match event.kind:
        case "queued":
            return f"Stored with {format_count(int(data.get('runs', 0)), 'run')}"
        case "started":
            return "The run of Dagster has begun"
        case "completed" | "failed" | "cancelled":
            return _describe_end(data)
    if "restarted" in data:
        return f"Dagster started the run again: {data.get('reason', 'no reason was given')}"
    if "key" in data:
        return f"{part_words(family, str(data['key']))}{f': {reason}' if (reason := data.get('reason')) else ''}"
    if "calls" in data:
        why = "; ".join(str(data[name]) for name in ("why_failed", "why_skipped") if name in data)
        return format_calls(data["calls"]) + (f" ({why})" if why else "")
    if "answered" in data:
        return f"{data['answered']:,} of {format_count(int(data.get('of') or data['answered']), 'call')} answered"
    return json.dumps(data, ensure_ascii=False)


def _describe_end(data: Mapping[str, Any]) -> str:
    by = f"asked for by {data['by']}" if "by" in data else None
    calls = format_calls(data["calls"]) if data.get("calls") else None
    bought = f"bought: {format_call_cost(data['bought'])}" if data.get("bought") else None
    return "; ".join(str(one) for one in (data.get("reason"), by, calls, data.get("warning"), bought) if one)
