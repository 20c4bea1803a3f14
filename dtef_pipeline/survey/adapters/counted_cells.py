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
_WEIGHTED = "Counts are fractions or above n, so they are weighted: shares are those of the weighted counts, and n is as stated"
_COUNTS_BELOW_N = "The counts sum to less than n: their sum is taken for n"
_COUNTS_ABOVE_N = (
    "The counts sum to more than n: a respondent chose several options, or the counts are weighted; write weighted data "
    "as `percent` with `n`"
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
    """Where counts do not sum to the n that is stated. `cells`: (segment, question) -> its cells."""
    below, above = list[str](), list[str]()
    for (segment, question_id), each in cells.items():
        if each.total is not None and each.n is not None and each.total != each.n:
            said = f"{segment}, {beginning(question_id)}: the counts sum to {each.total:g}, n is {each.n}"
            (below if each.total < each.n else above).append(said)
    if weighted:
        yield Finding("warning", "weighted-counts", _WEIGHTED, (*above, *below))
        return
    yield Finding("warning", "counts-below-n", _COUNTS_BELOW_N, tuple(below))
    yield Finding("warning", "counts-above-n", _COUNTS_ABOVE_N, tuple(above))
