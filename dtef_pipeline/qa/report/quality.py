"""The distribution of scores of each model: how many responses have which score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.qa.report.boards_part import boards_of
from dtef_pipeline.report.isolated import inline, missing
from dtef_pipeline.report.markup import fold, paragraph, section
from dtef_pipeline.report.svg import drawing, group, label, line
from dtef_pipeline.text.counted import counted

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
