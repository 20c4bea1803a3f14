"""Sections on one model: parts where it is stronger or weaker than others, and items that it gets wrong and others right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from dtef_pipeline.qa.site.boards import Boards, choose_main_keys
from dtef_pipeline.qa.site.qa_labels import format_part_title, format_suite_title
from dtef_pipeline.qa.site.suite_scores import RIGHT_FROM, SHOWN_RUN, SHOWN_RUNS, QaScores, build_cut_sql
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
_WORST_TEXTS = f"""
    SELECT suite, part, item_id, model_variant, {build_cut_sql("text", WORST_CHARACTERS)} AS question,
        CASE WHEN type <> 'code' THEN {build_cut_sql("reference", WORST_CHARACTERS)} END AS expected,
        {build_cut_sql("response", WORST_CHARACTERS)} AS response
    FROM {_WORST_ITEMS} JOIN qa_responses USING (suite, part, item_id, model_variant, condition)
    SEMI JOIN {SHOWN_RUNS} USING ({SHOWN_RUN}) LEFT JOIN qa_items USING (suite, part, item_id)
    WHERE draw = 0 ORDER BY ALL
"""


def prepare_model_sections(scores: QaScores, boards: Boards) -> Callable[[str], list[Section]]:
    """Return a function that builds the sections on a model from its name on the boards; the texts of all models are read at once."""
    parts, worst = _compare_parts(scores, boards), _find_worst_items(scores)
    return lambda name: [
        leads_section("parts", "by suite and part", "Where", convert_to_rows(parts[parts["model"] == name])),
        _build_worst_section(convert_to_rows(worst[worst["model"] == name])),
    ]


def _compare_parts(scores: QaScores, boards: Boards) -> pd.DataFrame:
    """Return every part of every suite on its main board with the mean of the other models; a suite of one part is labelled by its name."""
    board = scores.select_cut("part")
    frame = pd.concat([board.head(0), *(key.select(board) for key in choose_main_keys(boards).values())], ignore_index=True)
    frame = compare_with_others(frame, ["suite", "part"]).sort_values(["lead", "score"], ascending=False)
    links = []
    for suite, part in zip(frame["suite"], frame["part"], strict=True):
        title, page = scores.suites[suite].link
        links.append(Link(title if len(scores.suites[suite].parts) == 1 else f"{title}: {format_part_title(part)}", page))
    return frame.assign(part=pd.Series(links, frame.index, dtype=object))


def _find_worst_items(scores: QaScores) -> pd.DataFrame:
    """Return the items that each model gets wrong and on which the others score highest, by model and suite, with texts."""
    rows = compare_with_others(scores.item_scores, ["item"])
    rows = rows[rows["score"] < RIGHT_FROM].sort_values(
        ["model", "suite", "others", "place"], ascending=[True, True, False, True]
    )
    rows = rows.groupby(["model", "suite"]).head(WORST_OF_A_SUITE)
    scores.connection.register(_WORST_ITEMS, rows)
    texts = scores.connection.sql(_WORST_TEXTS).df()
    return rows.merge(texts, "left", ["suite", "part", "item_id", "model_variant"])


def _build_worst_section(rows: list[dict[str, Any]]) -> Section:
    items = [{**row, "item": Link(f"{format_suite_title(row['suite'])} {row['item_id']}", row["page"])} for row in rows]
    means = [row["others"] for row in rows if not is_unknown(row["others"])]
    score = show(max(means), "score") if means else ""
    answer = f"On the item where it falls behind most, the other models score {score} on average." if means else ""
    which = "For each suite, the items that other models get right most often" if means else "Items of each suite"
    table = Table(which, _MISSED_ITEM_COLUMNS, items)
    return Section("worst", "items that it gets wrong", [table], answer)
