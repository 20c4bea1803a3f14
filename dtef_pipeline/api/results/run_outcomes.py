"""Outcomes of a run's planned requests, as counts and in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from dtef_pipeline.text.number_words import format_count
from dtef_pipeline.text.shortfall import describe_shortfall

ItemOutcome = Literal["answered", "failed", "skipped"]
"""`skipped`: a budget was used up before it."""
ITEM_OUTCOMES: Mapping[str, ItemOutcome] = {
    **dict.fromkeys(("answered", "played", "ok", "empty"), "answered"),
    **dict.fromkeys(("budget", "skipped_budget"), "skipped"),
}
"""Outcomes by status; any other status is a failure."""


class Unit(NamedTuple):
    """The unit that a family counts."""

    noun: str
    done: str
    """Verb for answered units, as in `were played`."""


class OutcomeCounts(NamedTuple):
    """The planned requests and their outcomes."""

    n_planned: int | None
    """None: unknown until now."""
    answered: int = 0
    failed: int = 0
    skipped: int = 0
    scored: int = 0

    def describe_missing(self, unit: Unit) -> str | None:
        """Describe how much is missing and why; None if all was answered and at least one is scored."""
        remark = f"none of {format_count(self.answered, unit.noun)} has a score" if self.answered and not self.scored else None
        return format_remarks(describe_shortfall(self.n_planned or 0, self.answered, self.skipped, self.failed, unit), remark)


def count_by_group(
    rows: Iterable[tuple[Hashable, str, bool]], plan: Mapping[Hashable, int] | None
) -> dict[Hashable, OutcomeCounts]:
    """Count by group. `rows`: group, status, and whether the row is scored. `plan`: planned rows by group; None: unknown.

    Rows beyond the plan are from other runs, and count.
    """
    outcomes: dict[Hashable, Counter[str]] = {group: Counter() for group in plan or ()}
    for group, status, is_scored in rows:
        counts = outcomes.setdefault(group, Counter())
        counts[ITEM_OUTCOMES.get(status, "failed")] += 1
        counts["scored"] += is_scored
    return {
        group: OutcomeCounts(
            max((plan or {}).get(group, 0), sum(counts[name] for name in ("answered", "failed", "skipped"))), **counts
        )
        for group, counts in outcomes.items()
    }


def build_outcomes_body(counts: Mapping[Hashable, OutcomeCounts], unit: Unit) -> dict[str, Any]:
    """Build the member `outcomes` of a run."""
    total = OutcomeCounts(None)
    if counts:
        total = OutcomeCounts(*(sum(number or 0 for number in column) for column in zip(*counts.values(), strict=True)))
    warning = (
        f"no {unit.noun} is planned here: the sample or the data of the models leaves none" if total.n_planned == 0 else None
    )
    return {"unit": unit.noun, **total._asdict(), "warning": warning or total.describe_missing(unit)}


def format_other_answers(further: int, noun: str) -> str | None:
    """Say that a value includes rows that another run of the snapshot added for the same models."""
    return (
        f"the value includes {format_count(further, f'further {noun}')} from another run of this snapshot" if further else None
    )


def format_remarks(*parts: str | None) -> str | None:
    """Join the remarks; None: there are none."""
    return "; ".join(filter(None, parts)) or None


def format_percent(share: float) -> str:
    """Format a share with two digits, so that small shares are not 0: `12 %`."""
    return f"{100 * share:.2g} %" if share < 1 else "100 %"
