"""A family's content on the site: its verdict, its leaderboards, sections on each model, and detail pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import duckdb
import pandas as pd

from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.site.content import Column, DataFile, Estimate, Page, Section, is_unknown


class BoardRow(NamedTuple):
    """A model on a leaderboard."""

    model: str
    """Its name; a model that is asked in several variants has one for each."""
    score: Estimate
    rank: int | None = None
    """Among the rows that are no references; None: not ranked."""
    rank_low: int | None = None
    rank_high: int | None = None
    """The best and the worst rank that its intervals leave."""
    is_reference: bool = False
    """Whether it is a baseline, which is not a model."""
    note: str = ""
    more: Mapping[str, Any] = {}
    """Values of the board's further columns."""

    @classmethod
    def from_row(cls, row: Mapping[str, Any], score: Estimate, columns: Sequence[Column], model: str = "model") -> BoardRow:
        """Build the row of a stored row: ranks, note, whether it is a reference, and further columns; `model`: the column with its name."""
        rank, low, high = (None if is_unknown(row.get(name)) else int(row[name]) for name in ("rank", "rank_low", "rank_high"))
        more = {column.name: row.get(column.name) for column in columns}
        return cls(row[model], score, rank, low, high, bool(row.get("is_reference")), row.get("note") or "", more)


class Reference(NamedTuple):
    """A value for reading scores, such as a ceiling."""

    label: str
    value: float


@dataclass(frozen=True)
class RankedBoard:
    """Models that were measured alike, best first."""

    id: str
    title: str
    """The shared property of its rows: `letters`; empty if the family has one board."""
    measure: str
    """Meaning of a score: `Similarity of the distributions, 0-1, higher is better`."""
    rows: Sequence[BoardRow]
    references: Sequence[Reference] = ()
    """Lines in its chart, in addition to those of reference rows."""
    columns: Sequence[Column] = ()
    """Further columns, by the names in `BoardRow.more`."""
    guide: str = ""
    unit: str = ""
    """Unit of a score, in the plural: `chips`; empty: a score on 0-1."""

    @property
    def models(self) -> list[BoardRow]:
        """The ranked models, best first."""
        return sorted(
            (row for row in self.rows if not row.is_reference and row.rank is not None), key=lambda row: row.rank or 0
        )

    @property
    def anchor(self) -> str:
        """The id of its section on the page of leaderboards."""
        return f"board-{self.id}" if self.id else "board"

    @property
    def is_contest(self) -> bool:
        """Whether ranks say anything: there are two models or more."""
        return len(self.models) > 1


ITEM_COLUMNS = ("model", "item", "label", "page", "score")
"""Of `FamilyContent.item_scores`: the model's name, the item's id and its words, the page that shows it, and the score, higher is better."""


def format_setting(row: Mapping[str, Any]) -> str:
    """Return the values of the columns that identify settings."""
    values = (row.get(name) for name in ("first_level", "context_level", "condition", "metric"))
    return " · ".join(str(value) for value in values if not is_unknown(value))


@dataclass(frozen=True)
class FamilyContent:
    """The content of one family, computed from its tables."""

    verdict: str
    """The result, in one sentence with numbers."""
    boards: Sequence[RankedBoard]
    """The first is the one of the front page."""
    sections: Sequence[Section] = ()
    """Beneath the leaderboards: links to pages of details, gaps, agreement, ..."""
    build_model_sections: Callable[[str], Sequence[Section]] = lambda name: ()
    """Builds the sections on a model from its name on the boards: strengths and weaknesses, worst items with prompt and response."""
    item_scores: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(ITEM_COLUMNS)))
    """One row per model and item, where two models may be compared item by item."""
    item_note: str = ""
    """Describes these items in a sentence, for example as a sample."""
    pages: Callable[[], Iterable[Page | DataFile]] = tuple
    """Its pages of details, under the folder of its name."""
    data: Sequence[Section] = ()
    """Sections for the page on data: items and models, rows set aside with their reasons, and items that models may know from training."""
    method: Sequence[str] = ()
    """How its scores are made and read, in paragraphs, for the page on method."""
    variants: Mapping[str, str] = field(default_factory=dict)
    """By a model's name on the boards, its variant in the tables, where that is another."""
    setting_text: Callable[[Mapping[str, Any]], str] = format_setting
    """How the models of a row of `comparisons` were asked, in words."""

    def name_of(self, model: str, variant: str | None) -> str:
        """Return the name on the boards of a model in a table."""
        return self._names.get(variant or "", model)

    def is_called(self, name: str, model: str, variant: str | None) -> bool:
        """Whether a model in a table has this name on the boards; tables of whole models have no variant."""
        return name in (self.name_of(model, variant), variant)

    @cached_property
    def _names(self) -> Mapping[str, str]:
        return {variant: name for name, variant in self.variants.items()}


@dataclass(frozen=True)
class FamilySite:
    """A family's place on the site."""

    family: str
    title: str
    """In the navigation: `Games`."""
    tables: tuple[str, ...]
    """Tables that it reads, in addition to those over all families."""
    scored: str
    """Table of scores; without rows in it the family has no pages."""
    read: Callable[[duckdb.DuckDBPyConnection], FamilyContent]
    subject: Subject
    """The subject of the drift tests."""
    partition_words: Callable[[str], str] = str
    """Returns the title of a partition, or of a value of its first level: `GD4, Kenya` for `GD4/country:kenya`."""
    read_partition_titles: Callable[[duckdb.DuckDBPyConnection], Mapping[str, str]] = lambda connection: {}
    """Reads titles of values of the first level of partitions from tables, such as titles of blueprints by id."""
    metric_words: Callable[[str], str] = str
    """Returns the title of a metric: one of its scores, or one that votes are compared with."""
    describe_asking: Callable[[str, str], str] = lambda level, condition: ", ".join(filter(None, (level, condition)))
    """How models were asked, by the columns `context_level` (empty: there is none) and `condition`."""
    describe_watched_setting: Callable[[str], str] = str
    """How the models of a drift series were asked, by its column `setting`."""
    responses: str = ""
    """The table of candidates' responses, with `model_variant` and, where it is known, `latency_s`."""

    def title_partition(self, titles: Mapping[str, str], part: str) -> str:
        """Return the title of a partition, or of a value of its first level. `titles`: see `read_partition_titles`."""
        return titles.get(part) or self.partition_words(part)
