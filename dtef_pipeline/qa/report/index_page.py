"""The first page: boards by suite, bars, pass@k, comparisons, validity, retrieval, distributions, drift, costs, and the parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.qa.qa_paired import QA_PAIRED
from dtef_pipeline.qa.report.boards_part import (
    PUBLISHED_PARTS,
    bars_section,
    boards_of,
    boards_section,
    costs_section,
    published_section,
    retrieval_section,
)
from dtef_pipeline.qa.report.explorer import explorer_style
from dtef_pipeline.qa.site.part_rows import PartName
from dtef_pipeline.qa.watched_scores import QA_WATCHED
from dtef_pipeline.report.drift_chapter import drift_chapters
from dtef_pipeline.report.isolated import inline, missing
from dtef_pipeline.report.markup import Column, estimate, fold, is_unknown, named, paragraph, section, table, text, whole
from dtef_pipeline.report.page import Chapter, build_report
from dtef_pipeline.report.preference_chapter import preference_chapters
from dtef_pipeline.report.stored_rows import StoredRow, StoredRows
from dtef_pipeline.report.svg import drawing, group, label, line
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


_QUALITY_HOW = (
    "How many responses of each model have which score: ten classes from 0 to 1, of which the last has the 1. A response that cannot be read "
    "counts 0; what has no score for another reason is in no class, and is counted beside it."
)
BINS, MOST_HISTOGRAMS = 10, 80
"""Classes of scores, and figures on one page."""
_PANEL_HEIGHT, _PANEL_TOP, _PANEL_FOOT = 120, 22, 18
"""Of one histogram, in pixels: all of it, above its columns, and beneath them."""
_WANTED_SCORES = ("suite", "condition", "metric", "measured_by", "model", "model_variant", "score")


def quality_section(latest: pa.Table) -> str:
    """The section. `latest`: rows of `latest_scores`, one per response and metric."""
    if not len(latest):
        return section(
            "quality", "Distribution of scores", _QUALITY_HOW, missing("No scores yet", "`dtef qa run` asks and scores")
        )
    parts, left = [], MOST_HISTOGRAMS
    for suite in sorted(pc.unique(latest["suite"].cast(pa.string())).to_pylist()):
        own = latest.filter(pc.equal(latest["suite"].cast(pa.string()), suite)).select(list(_WANTED_SCORES)).to_pandas()
        boards = list(boards_of(own.astype(dict.fromkeys(_WANTED_SCORES[:-1], "str"))))
        shown = [
            fold(board.heading, _panels(board.rows, board.metric), is_open=at == 0)
            for at, board in enumerate(boards)
            if left > 0
        ]
        left -= sum(board.rows["model_variant"].nunique() for board in boards)
        parts.append(f"<h3>{inline(suite)}</h3>{''.join(shown)}")
    more = paragraph("Not every distribution is drawn; the table qa_scores has every score.") if left < 0 else ""
    return section("quality", "Distribution of scores", _QUALITY_HOW, "".join(parts) + more)


def _panels(found: pd.DataFrame, metric: str) -> str:
    drawn = [
        histogram(
            own["score"].to_numpy(dtype=np.float64, na_value=np.nan), f"{own['model'].iloc[0]}, {metric.replace('_', ' ')}"
        )
        for _, own in found.groupby("model_variant", sort=True)
    ]
    return f'<div class="panels">{"".join(drawn)}</div>'


def counts_of(scores: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[int]:
    """(BINS,) how many of the scores, 0-1, lie in each class; NaN lies in none."""
    known = scores[np.isfinite(scores)]
    return [int(count) for count in np.histogram(np.clip(known, 0.0, 1.0), bins=BINS, range=(0.0, 1.0))[0]]


def histogram(scores: np.ndarray[tuple[int], np.dtype[np.float64]], title: str) -> str:
    """A small drawing: a column for each class with its count above it, and beneath how many scores there are."""
    counts, unknown = counts_of(scores), int(np.isnan(scores).sum())
    n = sum(counts)
    told = f"{title}: {counted(n, 'score')}" + (f", {unknown:,} without" if unknown else "")
    bottom = _PANEL_HEIGHT - _PANEL_FOOT
    heading = label(0, 12, told, anchor="start")
    if not n:
        return drawing([heading, label(50, 60, "no data", anchor="middle", kind="soft")], _PANEL_HEIGHT, told, standalone=False)
    columns = [_column(at, count, max(counts), bottom) for at, count in enumerate(counts)]
    ends = [label(0, bottom + 14, "0", anchor="start", kind="soft"), label(100, bottom + 14, "1", anchor="end", kind="soft")]
    in_words = f"{told}. {_in_classes(counts)}"
    return drawing([heading, *columns, line(0, bottom, 100, bottom, "axis"), *ends], _PANEL_HEIGHT, in_words, standalone=False)


def _column(at: int, count: int, most: int, bottom: float) -> str:
    width, tall = 100 / BINS, (bottom - _PANEL_TOP - 14) * count / most
    rect = f'<rect x="{at * width + 0.6:.2f}%" y="{bottom - tall:.1f}" width="{width - 1.2:.2f}%" height="{tall:.1f}" class="bar"/>'
    number = label((at + 0.5) * width, bottom - tall - 3, f"{count:,}", anchor="middle", kind="soft") if count else ""
    return group([rect, number], f"{at / BINS:.1f} to {(at + 1) / BINS:.1f}: {count:,}")


def _in_classes(counts: Sequence[int]) -> str:
    return "; ".join(f"{at / BINS:.1f} to {(at + 1) / BINS:.1f}: {count:,}" for at, count in enumerate(counts) if count)
