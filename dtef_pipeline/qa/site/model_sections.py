"""Sections on one model: parts where it is stronger or weaker than others, and items that it gets wrong and others right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from dtef_pipeline.qa.site.boards import SuiteBoard
from dtef_pipeline.qa.site.qa_labels import format_part_title, format_suite_title
from dtef_pipeline.qa.site.suite_page import build_item_address
from dtef_pipeline.qa.site.suite_scores import RIGHT_FROM, RUN_OF_A_PART, SHOWN_RUNS, QaScores, SuiteScores
from dtef_pipeline.site.content import Column, Link, Section, Table, convert_to_rows, is_unknown
from dtef_pipeline.site.leads import compare_with_others, leads_section
from dtef_pipeline.site.number_text import show

WORST_OF_A_SUITE, WORST_CHARACTERS = 3, 400
"""Number of items of each suite on a model's page, and characters of each text."""
_WORST_ITEMS = "worst_items_of_qa"
_MISSED_ITEM_COLUMNS = (
    Column("item", "Item"),
    Column("question", "Question", "long"),
    Column("expected", "Expected", "long"),
    Column("response", "Response", "long"),
    Column("others", "Others' mean", "score"),
)


class WorstItem(NamedTuple):
    """An item that a model gets wrong."""

    suite: SuiteScores
    item: str
    part: str
    variant: str
    mean_of_others: float
    """Mean score of the other models; NaN: there are no others."""


class QaModelSections:
    """Sections on each model; the texts of all models are read at once."""

    def __init__(self, scores: QaScores, main: Mapping[str, SuiteBoard]) -> None:
        self._scores, self._main = scores, main

    def build_model_sections(self, name: str) -> list[Section]:
        """Return the sections on one model, by its name on the boards."""
        return [self._build_part_section(name), self._build_worst_section(name)]

    @cached_property
    def _parts(self) -> pd.DataFrame:
        """Every part of every suite on its main board, with the mean of the other models; a suite with one part is labelled by its name."""
        board = self._scores.board
        frames = [frame for entry in self._main.values() if len(frame := entry.filter_alike(board[board["cut"] == "part"]))]
        if not frames:
            return pd.DataFrame()
        return compare_with_others(pd.concat(frames, ignore_index=True), ["suite", "part"])

    def _build_part_section(self, name: str) -> Section:
        parts = self._parts
        frame = parts[parts["model"] == name].sort_values(["lead", "score"], ascending=False) if len(parts) else parts
        single = {suite for suite, scores in self._scores.suites.items() if len({*scores.items["part"]}) == 1}
        rows = [{**row, "part": self._build_place_link(row, row["suite"] in single)} for row in convert_to_rows(frame)]
        return leads_section("parts", "by suite and part", "Where", rows)

    def _build_place_link(self, row: Mapping[str, Any], is_single: bool) -> Link:
        suite = self._scores.suites[row["suite"]]
        title = format_suite_title(row["suite"])
        return Link(title if is_single else f"{title}: {format_part_title(row['part'])}", suite.page)

    @cached_property
    def _worst(self) -> list[WorstItem]:
        """The items that each model gets wrong and on which the others score highest, by model and suite."""
        return [item for suite in self._scores.suites.values() for item in _find_worst_items(suite)]

    @cached_property
    def _texts(self) -> dict[tuple[str, str, str, str], dict[str, Any]]:
        """Question, expected answer and response of all these items, by suite, part, item and variant."""
        rows = [
            {"suite": entry.suite.suite, "part": entry.part, "item_id": entry.item, "model_variant": entry.variant}
            for entry in self._worst
        ]
        if not rows or not self._scores.rows.has("qa_responses") or not self._scores.rows.has("qa_items"):
            return {}
        connection = self._scores.connection
        main = [{"suite": name, "condition": board.measure.condition} for name, board in self._main.items()]
        connection.register(_WORST_ITEMS, pa.Table.from_pylist(rows))
        connection.register(f"{_WORST_ITEMS}_main", pa.Table.from_pylist(main or [{"suite": "", "condition": ""}]))
        frame = connection.sql(_WORST_TEXTS).df()
        return {(row["suite"], row["part"], row["item_id"], row["model_variant"]): row for row in convert_to_rows(frame)}

    def _build_worst_section(self, name: str) -> Section:
        rows = list(self._iterate_worst_rows(name))
        means = [row["others"] for row in rows if not is_unknown(row["others"])]
        answer = (
            f"On the item where it falls behind most, the other models score {show(max(means), 'score')} on average."
            if means
            else ""
        )
        return Section(
            "worst",
            "items that it gets wrong",
            [Table("For each suite, the items that other models get right most often", _MISSED_ITEM_COLUMNS, rows)],
            answer,
        )

    def _iterate_worst_rows(self, name: str) -> Iterator[dict[str, Any]]:
        for miss in self._worst:
            if self._scores.names[miss.variant] == name:
                texts = self._texts.get((miss.suite.suite, miss.part, miss.item, miss.variant), {})
                link = Link(f"{format_suite_title(miss.suite.suite)} {miss.item}", build_item_address(miss.suite, miss.item))
                yield {"item": link, **texts, "others": miss.mean_of_others}


def _build_truncated_column(name: str) -> str:
    return f"left({name}, {WORST_CHARACTERS}) || CASE WHEN length({name}) > {WORST_CHARACTERS} THEN '…' ELSE '' END"


_WORST_TEXTS = f"""
    SELECT r.suite::VARCHAR AS suite, r.part::VARCHAR AS part, r.item_id, r.model_variant, {_build_truncated_column("i.text")} AS question,
        CASE WHEN i.type = 'code' THEN NULL ELSE {_build_truncated_column("i.reference")} END AS expected,
        {_build_truncated_column("r.response")} AS response
    FROM qa_responses r SEMI JOIN {SHOWN_RUNS} USING ({", ".join(RUN_OF_A_PART)})
    SEMI JOIN {_WORST_ITEMS} USING (suite, part, item_id, model_variant)
    SEMI JOIN {_WORST_ITEMS}_main USING (suite, condition)
    LEFT JOIN qa_items i ON i.suite = r.suite AND i.part = r.part AND i.item_id = r.item_id
    WHERE r.draw = 0 ORDER BY ALL
"""


def _find_worst_items(suite: SuiteScores) -> Iterator[WorstItem]:
    grid = suite.main
    mask = ~np.isnan(grid)
    total, count = np.nansum(grid, axis=0), mask.sum(axis=0)
    for row, variant in enumerate(suite.models):
        wrong = np.flatnonzero(mask[row] & (grid[row] < RIGHT_FROM))
        n = count[wrong] - 1
        means = np.divide(total[wrong] - grid[row, wrong], n, out=np.full(len(wrong), np.nan), where=n > 0)
        order = np.lexsort((wrong, -np.nan_to_num(means, nan=-1.0)))[:WORST_OF_A_SUITE]
        for index in order:
            place = suite.items.iloc[int(wrong[index])]
            yield WorstItem(suite, str(place["item_id"]), str(place["part"]), variant, float(means[index]))
