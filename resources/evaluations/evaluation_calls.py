"""Counts of an evaluation's answered requests, from the events of its stages, in numbers and words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from dtef_pipeline.text.number_words import format_count

if TYPE_CHECKING:
    from resources.evaluations.evaluation_store import Event


class CallCounts(NamedTuple):
    """Requests to models, each counted once."""

    answered: int
    """Requests with a response, stored before or now."""
    failed: int
    skipped: int
    """Requests that were not sent, because a budget ended."""

    @property
    def n_requests(self) -> int:
        """The number of requests to send."""
        return sum(self)

    def build_json(self) -> dict[str, int]:
        return {"n_requests": self.n_requests, **self._asdict()}


class StageCalls(NamedTuple):
    """The outcome of one stage's requests."""

    counts: CallCounts
    failure_reason: str | None = None
    """The most frequent reason, after its count if there are others."""
    skip_reason: str | None = None
    """The budget that was reached."""

    def build_json(self) -> dict[str, Any]:
        """Return the members of the event that reports these counts."""
        reasons = {"failure_reason": self.failure_reason, "skip_reason": self.skip_reason}
        return {"calls": self.counts.build_json(), **{name: reason for name, reason in reasons.items() if reason is not None}}

    @property
    def unanswered_note(self) -> str | None:
        """A sentence on the unanswered requests, or None if there are none."""
        counts = self.counts
        if not (missing := counts.n_requests - counts.answered):
            return None
        summary = (
            f"{missing:,} of {format_count(counts.n_requests, 'request')} {'was' if missing == 1 else 'were'} not answered"
        )
        none = f"none of {format_count(counts.n_requests, 'request')} was answered"
        failures = f"{counts.failed:,} failed{f' ({self.failure_reason})' if self.failure_reason else ''}"
        left_out = f"{counts.skipped:,} {'was' if counts.skipped == 1 else 'were'} left out as the budget ended"
        skips = f"{left_out}{f' ({self.skip_reason})' if self.skip_reason else ''}"
        parts = [part for number, part in ((counts.failed, failures), (counts.skipped, skips)) if number]
        return f"{summary if counts.answered else none}: {', '.join(parts)}"


class EvaluationCalls(NamedTuple):
    """The outcome of an evaluation's requests, by stage."""

    stages: Mapping[str, StageCalls]

    @property
    def counts(self) -> CallCounts:
        return CallCounts(*map(sum, zip(*(calls.counts for calls in self.stages.values()), strict=True)))

    @property
    def is_without_answer(self) -> bool:
        """Whether there were requests and none was answered."""
        return self.counts.n_requests > 0 and self.counts.answered == 0

    @property
    def unanswered_note(self) -> str | None:
        """A note on the unanswered requests, by stage if there are several, or None if all were answered."""
        notes_by_stage = {stage: calls.unanswered_note for stage, calls in self.stages.items()}
        by_stage = [
            f"{stage}: {words}" if len(notes_by_stage) > 1 else words for stage, words in notes_by_stage.items() if words
        ]
        return "; ".join(by_stage) or None

    def build_json(self) -> dict[str, Any]:
        """Return the member `calls` of the last event: the sums, and `stages` by name."""
        return {**self.counts.build_json(), "stages": {stage: part.counts.build_json() for stage, part in self.stages.items()}}


def sum_reported_calls(events: Iterable[Event]) -> EvaluationCalls | None:
    """Return the last counts that each stage reported, or None without any, as in runs without requests."""
    stages: dict[str, StageCalls] = {}
    for event in events:
        if event.kind == "item" and "calls" in event.data:
            data = event.data
            counts = CallCounts(*(data["calls"][name] for name in CallCounts._fields))
            stages[data["stage"]] = StageCalls(counts, data.get("failure_reason"), data.get("skip_reason"))
    return EvaluationCalls(stages) if stages else None


def count_calls_left(events: Iterable[Event]) -> int:
    """Return how many requests the last active stage still had to send, as far as known."""
    progress: Mapping[str, Any] = {"n_planned": 0}
    last: Mapping[str, Any] = {"n_requests": 0}
    for event in events:
        if event.kind == "item" and "answered" in event.data:
            progress, last = event.data, {"n_requests": 0}
        elif event.kind == "item" and "calls" in event.data:
            last = event.data["calls"]
            progress = progress if event.data["stage"] == progress.get("stage") else {"n_planned": 0}
    return max(0, int(progress["n_planned"]) - int(last["n_requests"]))
