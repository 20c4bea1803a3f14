"""The first page: boards by suite, bars, pass@k, comparisons, validity, retrieval, distributions, drift, costs, and the parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.qa.qa_paired import QA_PAIRED
from dtef_pipeline.qa.report.beside_boards import PUBLISHED_PARTS, costs_section, published_section, retrieval_section
from dtef_pipeline.qa.report.boards_part import bars_section, boards_of, boards_section
from dtef_pipeline.qa.report.explorer import explorer_style
from dtef_pipeline.qa.report.part_rows import PartName
from dtef_pipeline.qa.report.quality import quality_section
from dtef_pipeline.qa.watched_scores import QA_WATCHED
from dtef_pipeline.report.drift_chapter import drift_chapters
from dtef_pipeline.report.isolated import inline, missing
from dtef_pipeline.report.markup import Column, estimate, is_unknown, named, section, table, text, whole
from dtef_pipeline.report.page import Chapter, build_report
from dtef_pipeline.report.preference_chapter import preference_chapters
from dtef_pipeline.report.stored_rows import StoredRow, StoredRows
from dtef_pipeline.text.counted import counted

_QA_INTRODUCTION = (
    "<p>How well language models answer questions with an expected answer: benchmarks such as MMLU, GSM8K and HumanEval, and questions about "
    "interviews whose quotations are looked up. Each part has a page with every item, every response and how it was read.</p>"
)
_PARTS_HOW = (
    "Every part that was read. Best: the model with the highest mean on the first board of the part. Errors: rows of its files that were left "
    "out."
)
_FIND_A_PART = (
    '<label class="search">Find a part <input type="search" data-filters="part-table" autocomplete="off"></label>'
    '<p class="count" role="status" data-counts="part-table">{n} of {n} parts</p>'
)
_PART_TABLE = (
    Column("link", "Part", named),
    Column("suite", "Suite", text),
    Column("n_items", "Items", whole),
    Column("n_models", "Models", whole, "Models with a row on its boards"),
    Column("metric", "Metric", text),
    Column("best", "Best", named),
    Column("best_score", "Its score", estimate),
    Column("n_errors", "Errors", whole),
)


def index_page(rows: StoredRows, connection: duckdb.DuckDBPyConnection, latest: pa.Table, pages: Mapping[PartName, str]) -> str:
    """The page. `latest`: rows of `latest_scores`; `pages`: the file of each part."""
    chapters = [
        Chapter("boards", "Boards", boards_section(rows), style=explorer_style()),
        Chapter("parts", "Parts", _parts(rows, pages)),
        Chapter("bars", "By subject and transcript", bars_section(rows)),
        *(Chapter(part.anchor, part.title, published_section(rows, part)) for part in PUBLISHED_PARTS),
        Chapter("retrieval", "Retrieval", retrieval_section(rows)),
        Chapter("quality", "Distribution of scores", quality_section(latest)),
        *drift_chapters(rows, QA_WATCHED, "parts"),
        Chapter("costs", "Costs", costs_section(rows)),
        *preference_chapters(connection, "qa", QA_PAIRED.metrics),
    ]
    return build_report("DTEF: questions with an expected answer", _QA_INTRODUCTION, chapters)


def _parts(rows: StoredRows, pages: Mapping[PartName, str]) -> str:
    if not pages:
        nothing = missing("No parts yet", "`dtef qa add SUITE PATH` reads some, and `dtef qa run` asks")
        return section("parts", "Parts", _PARTS_HOW, nothing)
    items = _counted(rows, "qa_items", "1 = 1")
    errors = _counted(rows, "qa_findings", "level = 'error'")
    boards = rows.frame("qa_board", {"cut": "part"})
    held = {(str(suite), str(part)): own for (suite, part), own in boards.groupby(["suite", "part"])} if len(boards) else {}
    listed = [_listed(name, page, items.get(name, 0), errors.get(name, 0), held.get(name)) for name, page in pages.items()]
    frame = pd.DataFrame(listed)
    data = frame.assign(part=[part for _, part in pages]).drop(columns=["link", "best"])
    shown = table(frame, _PART_TABLE, caption=counted(len(listed), "part"), row_head="link", anchor="part-table", data=data)
    return section("parts", "Parts", _PARTS_HOW, _FIND_A_PART.format(n=len(listed)) + shown)


def _counted(rows: StoredRows, name: str, condition: str) -> dict[PartName, int]:
    """Rows of a table by part; the condition is ours."""
    if not {"suite", "part"} <= rows.columns(name):
        return {}
    query = f"(SELECT suite, part, count(*) AS n FROM {name} WHERE {condition} GROUP BY ALL)"
    return {(str(row["suite"]), str(row["part"])): int(row["n"]) for row in rows.rows(query, ("suite", "part", "n"), {})}


def _listed(name: PartName, page: str, n_items: int, n_errors: int, boards: pd.DataFrame | None) -> StoredRow:
    suite, part = name
    first = None if boards is None else next(boards_of(boards), None)
    best: dict[Any, Any] = {}
    if first is not None:
        scored = first.rows[first.rows["score"].notna()].sort_values(["score", "model"], ascending=[False, True])
        best = scored.iloc[0].to_dict() if len(scored) else {}
    return {
        "link": f'<span class="name"><a href="{page}">{inline(part)}</a></span>',
        "suite": suite,
        "n_items": n_items,
        "n_models": 0 if boards is None else len(set(boards["model_variant"])),
        "metric": "" if first is None else first.metric.replace("_", " "),
        "best": "" if is_unknown(best.get("model")) else inline(best["model"]),
        "best_score": best.get("score"),
        "n_errors": n_errors,
    }
