"""The cells of one segment and question in a long table, and whether their counts are people or weighted sums."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from dtef_pipeline.errors import SurveyError
from dtef_pipeline.survey.model import Finding, Unreadable
from dtef_pipeline.text.beginning import beginning

_COUNTS_ALLOWED = (
    "whole counts of people; or weighted counts with the column `n` (people asked, unweighted) or `n_effective`; "
    "or `percent` in place of `count`"
)
_WEIGHTED = (
    "Counts are fractions or above n, so they are weighted: shares are those of the weighted counts, and n is as stated (if they count people, "
    "correct n; if n_effective is known, add it as a column)"
)
_COUNTS_BELOW_N = "The counts sum to less than n: their sum is taken for n"
_COUNTS_ABOVE_N = (
    "In some segments the counts of these questions sum to more than n: write weighted counts as `percent`, with `n` beside it; a "
    "question of which a respondent could choose several options has no distribution to predict"
)


@dataclass
class OptionCells:
    """The rows of one (segment, question): option -> share or count, with the line of each."""

    line: int
    n: int | None
    n_effective: float | None
    shares: dict[str, float | Unreadable | None] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    counted: bool = False

    @property
    def readable(self) -> tuple[float | Unreadable | None, ...]:
        """Its percentages; of counts those of n, where it is stated."""
        if not self.counted:
            return tuple(self.shares.values())
        return tuple(100 * s / self.n if isinstance(s, float | int) and self.n else None for s in self.shares.values())

    @property
    def counts(self) -> list[float]:
        """Its cells that hold a number."""
        return [s for s in self.shares.values() if isinstance(s, float)]

    @property
    def total(self) -> float | None:
        """The sum of its counts, None where it has percentages or a cell that is no count."""
        return sum(self.counts) if self.counted and len(self.counts) == len(self.shares) else None

    @property
    def is_weighted(self) -> bool:
        """Whether people cannot be counted so: a fraction, or more than all of them."""
        return self.counted and any(s != int(s) or (self.n is not None and s > self.n) for s in self.counts)


def are_weighted(cells: Iterable[OptionCells], where: str) -> bool:
    """Whether a round has weighted counts. Raises SurveyError where one is, and of some pair the number of respondents is not stated."""
    listed = [each for each in cells if each.counted]
    weighted = next((each for each in listed if each.is_weighted), None)
    if weighted is None:
        return False
    for each in listed:
        if each.n is None and each.n_effective is None:
            problem = "weighted counts without a number of respondents"
            arrived = f"{', '.join(f'{count:g}' for count in weighted.counts[:3])} at line {weighted.line}"
            raise SurveyError(problem, where=where, line=each.line, arrived=arrived, allowed=_COUNTS_ALLOWED)
    return True


def count_findings(cells: Mapping[tuple[str, str], OptionCells], *, weighted: bool) -> Iterator[Finding]:
    """Where counts do not sum to n: one finding a question, pairs above n first. `cells`: (segment, question) -> its cells."""
    off = [
        (key, each.total, each.n)
        for key, each in cells.items()
        if each.total is not None and each.n is not None and each.total != each.n
    ]
    too_many = {question_id for (_, question_id), total, n in off if total > n}
    below, above = list[str](), list[str]()
    for (of_segment, question_id), total, n in sorted(off, key=lambda pair: pair[1] < pair[2]):
        said = f"{of_segment}, {beginning(question_id)}: the counts sum to {total:g}, n is {n}"
        (above if question_id in too_many else below).append(said)
    if weighted:
        yield Finding("warning", "weighted-counts", _WEIGHTED, (*above, *below))
        return
    yield Finding("warning", "counts-below-n", _COUNTS_BELOW_N, tuple(below))
    yield Finding("warning", "counts-above-n", _COUNTS_ABOVE_N, tuple(above))
