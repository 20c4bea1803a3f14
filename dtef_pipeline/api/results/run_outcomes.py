"""How much of what a run was to ask came, in counts and in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from dtef_pipeline.text.quantity_words import format_count
from dtef_pipeline.text.shortfall import describe_shortfall

ItemOutcome = Literal["answered", "failed", "skipped"]
"""`skipped`: a budget ended before it."""
ITEM_OUTCOMES: Mapping[str, ItemOutcome] = {
    **dict.fromkeys(("answered", "played", "ok", "empty"), "answered"),
    **dict.fromkeys(("budget", "skipped_budget"), "skipped"),
}
"""By the status that a row has; every other one has failed."""


class Unit(NamedTuple):
    """What a family counts."""

    noun: str
    done: str
    """What became of one that was answered, as in `were played`."""


class OutcomeCounts(NamedTuple):
    """What was asked for, and what came of it."""

    asked: int | None
    """None: not known yet."""
    answered: int = 0
    failed: int = 0
    skipped: int = 0
    scored: int = 0

    def in_words(self, unit: Unit) -> str | None:
        """How much is missing and why, in words; None where all that was asked for was answered, and something of it is scored."""
        remark = f"none of {format_count(self.answered, unit.noun)} has a score" if self.answered and not self.scored else None
        return format_remarks(describe_shortfall(self.asked or 0, self.answered, self.skipped, self.failed, unit), remark)


def count_by_group(
    rows: Iterable[tuple[Hashable, str, bool]], plan: Mapping[Hashable, int] | None
) -> dict[Hashable, OutcomeCounts]:
    """Of each group: `rows` are its name, the status of a row, and whether it is scored. `plan`: rows of each group; None: not known.

    More rows than planned were asked for at another time, and count.
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


def sum_counts(counts: Mapping[Hashable, OutcomeCounts]) -> OutcomeCounts:
    """The sum of the groups."""
    if not counts:
        return OutcomeCounts(None)
    return OutcomeCounts(*(sum(group[place] or 0 for group in counts.values()) for place in range(len(OutcomeCounts._fields))))


def build_outcomes_body(counts: Mapping[Hashable, OutcomeCounts], unit: Unit) -> dict[str, Any]:
    """The member `outcomes` of a run."""
    total = sum_counts(counts)
    nothing = (
        f"no {unit.noun} is asked for here: the sample, or what the models go by, leaves none" if total.asked == 0 else None
    )
    return {"unit": unit.noun, **total._asdict(), "warning": nothing or total.in_words(unit)}


def format_further(further: int, noun: str) -> str | None:
    """That a value rests on more than the run asked for: rows of its models that another run of the snapshot has added."""
    return (
        f"the value takes in {format_count(further, f'further {noun}')} that another run of this snapshot asked for"
        if further
        else None
    )


def format_remarks(*parts: str | None) -> str | None:
    """What is to be said, behind each other; None: nothing."""
    return "; ".join(filter(None, parts)) or None


def format_percent(share: float) -> str:
    """`12 %`, with two digits: small shares are not 0."""
    return f"{100 * share:.2g} %" if share < 1 else "100 %"
