"""The drift subject and the site section of a family that the engine assembles: its boards, partitions and item scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import duckdb
import pandas as pd

from dtef_pipeline.drift.subject import Subject, build_statements
from dtef_pipeline.family.item_scores import BY_PART, OVERALL, build_scores_sql
from dtef_pipeline.family.record import Family
from dtef_pipeline.keys import Keys
from dtef_pipeline.report.row_reader import StoredRows
from dtef_pipeline.report.terminal import rename_variants
from dtef_pipeline.site.content import Column, Estimate, Section, Table, convert_to_rows
from dtef_pipeline.site.family_content import BoardRow, FamilyContent, FamilySite, RankedBoard
from dtef_pipeline.site.leaderboard import describe_best_of_models
from dtef_pipeline.text.number_words import format_count, format_plural


def item_subject(family: Family) -> Subject:
    """Return the drift subject; a series is one model variant, condition and metric over all partitions."""
    space, columns = family.space, family.scores
    keys = Keys(
        space=(space.first, space.second),
        item="item_id",
        noun="item",
        asked=columns.board,
        cluster="cluster",
        cluster_noun=columns.cluster_noun,
        score_again=f"score them again with `dtef {family.name} run`",
    )

    def describe_setting(row: Mapping[str, Any]) -> str:
        return ", ".join(str(row[name]) for name in columns.board)

    return Subject(
        family=family.name,
        keys=keys,
        describe_setting=describe_setting,
        truth="expected answer",
        truths="expected answers",
        reads=(family.scores_table, family.responses),
        statements=build_statements(
            build_scores_sql(family.scores_table, space, columns), family.responses, space.first, columns.board, columns.asked
        ),
        reason_left_out="had too few comparable items",
    )


_ITEM_MEASURE = "Mean score over items, 0-1, higher is better"
_FURTHER_COLUMNS = (
    Column("n_items", "Items", "count", always=True),
    Column("coverage", "Coverage", "percent"),
    Column("parse_rate", "Read", "percent"),
)


def item_site(family: Family) -> FamilySite:
    """Build the family's site section from its record."""
    return FamilySite(
        family=family.name,
        title=family.name.capitalize(),
        tables=tuple(family.all_tables),
        scored=family.board,
        read=partial(_read, family=family),
        subject=item_subject(family),
        responses=family.responses,
    )


def _read(connection: duckdb.DuckDBPyConnection, family: Family) -> FamilyContent:
    frame = rename_variants(StoredRows(connection).frame(family.board))
    boards = list(_build_boards(frame[frame["cut"] == OVERALL], family))
    verdict = describe_best_of_models(boards[0]) if boards else "Nothing is scored yet."
    parts = frame[frame["cut"] == BY_PART]
    return FamilyContent(
        verdict,
        boards,
        sections=[_build_part_section(parts, family)],
        item_scores=_query_item_scores(connection, family),
        method=[
            family.help,
            f"A score is the mean over items; its interval takes {format_plural(family.scores.cluster_noun)} whole.",
        ],
        variants=dict(zip(frame["model"], frame["model_variant"], strict=True)),
        data=[_build_counts_section(parts, family)],
    )


def _build_boards(frame: pd.DataFrame, family: Family) -> Iterator[RankedBoard]:
    columns = list(family.scores.board)
    for index, (values, group) in enumerate(frame.groupby(columns, sort=True, dropna=False)):
        entries = convert_to_rows(group.sort_values(["rank", "model"]))
        rows = [BoardRow.from_row(entry, Estimate.from_row(entry, "score"), _FURTHER_COLUMNS) for entry in entries]
        title = " · ".join(str(value) for value in values if value)
        yield RankedBoard(str(index) if index else "", title, _ITEM_MEASURE, rows, columns=_FURTHER_COLUMNS)


def _build_part_section(frame: pd.DataFrame, family: Family) -> Section:
    levels = [name for name in (family.space.first, family.space.second) if name]
    columns = [
        *(Column(name, name.capitalize()) for name in levels),
        Column("model", "Model", "model"),
        Column("rank", "Rank", "count", always=True),
    ]
    columns += [Column("score", "Score", "score", ends=("score_low", "score_high")), *_FURTHER_COLUMNS]
    rows = sorted(convert_to_rows(frame), key=lambda row: [row[name] for name in (*levels, "model")])
    return Section("parts", f"By {family.part}", [Table(f"Scores in each {family.part}", columns, rows)])


def _query_item_scores(connection: duckdb.DuckDBPyConnection, family: Family) -> pd.DataFrame:
    levels = ", ".join(name for name in (family.space.first, family.space.second) if name)
    scores = build_scores_sql(family.scores_table, family.space, family.scores)
    frame = connection.sql(
        f"""
        SELECT model, model_variant, concat_ws('/', {levels}, item_id) AS item, avg(score) AS score
        FROM ({scores}) GROUP BY ALL ORDER BY ALL
        """
    ).df()
    return rename_variants(frame).assign(label=frame["item"], page="")


def _build_counts_section(frame: pd.DataFrame, family: Family) -> Section:
    items = frame.groupby([name for name in (family.space.first, family.space.second) if name])["n_items"].max()
    answer = f"{format_count(len(items), family.part)} with {format_count(int(items.sum()), 'item')}."
    return Section("items", "what was asked", [], answer)
