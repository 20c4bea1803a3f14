"""The report of a family that the engine assembles: one self-contained page with its boards, comparisons, drift and costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

import duckdb
import pyarrow as pa

from dtef_pipeline.family.item_scores import BY_PART, OVERALL
from dtef_pipeline.family.item_subject import item_subject
from dtef_pipeline.family.record import Family
from dtef_pipeline.report.drift_chapter import drift_chapters
from dtef_pipeline.report.isolated import missing, wrapping_name
from dtef_pipeline.report.markup import (
    Column,
    Shown,
    as_is,
    dollars,
    estimate,
    named,
    note,
    p_value,
    section,
    table,
    whole,
    with_intervals,
)
from dtef_pipeline.report.page import Chapter, build_report
from dtef_pipeline.report.page_files import INDEX_PAGE
from dtef_pipeline.report.stored_rows import StoredRows
from dtef_pipeline.tables import COMPARISONS, COSTS, description
from dtef_pipeline.text.counted import plural

_INTERVAL_ENDS = {"score": ("score_low", "score_high"), "difference": ("low", "high")}
"""By the columns of estimates, those of the ends of their intervals, which stand beneath."""
_SHOWN_BY_NAME: Mapping[str, Shown] = {"cost_usd": dollars, "p_adjusted": p_value, "note": note}
"""How columns are shown whose type does not say it."""
_RANKED_SHOWN = ("rank", "model", "score", "rank_low", "rank_high", "n_items", "n_clusters", "coverage", "parse_rate", "note")
_PAIR_COLUMNS = ("model", "other_model", "verdict", "difference", "n_items", "n_clusters", "p_adjusted", "note")
_SPENT = ("role", "first_level", "second_level", "snapshot", "model", "answered", "failed", "calls", "cost_usd", "unpriced")


class _Part(NamedTuple):
    """A chapter that shows rows of one table."""

    anchor: str
    title: str
    how: str
    table: str
    schema: pa.Schema
    columns: Sequence[str]
    where: Mapping[str, str]


def family_pages(family: Family) -> Callable[[duckdb.DuckDBPyConnection], Iterator[tuple[str, str]]]:
    """(file name, HTML) of each page, given a connection with the tables of the family."""

    def pages(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, str]]:
        rows = StoredRows(connection)
        *boards, costs = (Chapter(part.anchor, part.title, _section(rows, family, part)) for part in _parts(family))
        drift = drift_chapters(rows, item_subject(family), plural(family.part))
        introduction = f"<p>{escape(family.help)}</p>"
        yield INDEX_PAGE, build_report(f"DTEF: {family.name}", introduction, [*boards, *drift, costs])

    return pages


def _parts(family: Family) -> Iterator[_Part]:
    board = family.all_tables[family.board].schema
    assert board is not None, f"{family.board} has no schema"
    levels, own = (family.space.first, family.space.second), (*family.scores.board, *_RANKED_SHOWN)
    how = f"Mean score over items, with its 95 % interval by {plural(family.scores.cluster_noun)} beneath."
    yield _Part("board", "Board", how, family.board, board, own, {"cut": OVERALL})
    by = f"By {family.part}"
    yield _Part("parts", by, f"The same in each {family.part}.", family.board, board, (*levels, *own), {"cut": BY_PART})
    how = "Every two models on the items that both have a score for, the better one first."
    yield _Part("compared", "Comparisons", how, "comparisons", COMPARISONS, _PAIR_COLUMNS, {"family": family.name})
    how = "What language models were asked, and what it cost."
    yield _Part("costs", "Costs", how, "costs", COSTS, _SPENT, {"family": family.name})


def _section(rows: StoredRows, family: Family, part: _Part) -> str:
    found = rows.frame(part.table, part.where)
    if not len(found):
        nothing = missing("Nothing to show", f"`dtef {family.name} run` and `dtef {family.name} board --refresh` make it")
        return section(part.anchor, part.title, part.how, nothing)
    ends = [(name, *_INTERVAL_ENDS[name]) for name in part.columns if name in _INTERVAL_ENDS]
    called = {"first_level": family.space.first, "second_level": family.space.second}
    columns = [_column(part.schema.field(name), called.get(name, name)) for name in part.columns]
    names = {one.name: found[one.name].map(wrapping_name) for one in columns if one.shown is named}
    shown = with_intervals(found, ends).assign(**names)
    return section(part.anchor, part.title, part.how, table(shown, columns, caption=part.title, data=found))


def _column(column: pa.Field, called: str) -> Column:
    title = called.removeprefix("n_").replace("_", " ").capitalize()
    return Column(column.name, title, _shown(column), description(column))


def _shown(column: pa.Field) -> Shown:
    if column.name in _INTERVAL_ENDS:
        return as_is
    if column.name in _SHOWN_BY_NAME:
        return _SHOWN_BY_NAME[column.name]
    return estimate if pa.types.is_floating(column.type) else whole if pa.types.is_integer(column.type) else named
