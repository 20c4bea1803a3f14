"""Which segments a model predicts worse or better than the other segments of their attribute, sample size accounted for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from dtef_pipeline.boards.cells import BoardOptions
from dtef_pipeline.boards.families import ALIKE, BETTER, UNTESTED, WORSE
from dtef_pipeline.statistics.cluster_robust import why_none
from dtef_pipeline.statistics.multiplicity import SIGNIFICANCE, holm
from dtef_pipeline.survey.baselines.names import CONTAIN_THE_SEGMENT, WHY_NOT_TESTED
from dtef_pipeline.survey.boards.schemas import SEGMENT_GAPS
from dtef_pipeline.survey.boards.segment_deviations import Draws, add_levels, codes, compared_cells, segment_deviations
from dtef_pipeline.survey.keys import KEYS

_NO_CEILINGS = "not tested: ceilings are not known, so sample size is not accounted for; ingest the round again"
_EACH_BY_THE_OTHER = "not tested: each of the two segments is predicted by the other's answers"
_ABOVE_CEILING = "not tested: the scores lie above the ceiling, as those of a model that knows the observed answers"
_NO_COMMON_QUESTION = "not tested: no other segment of the attribute was asked the same questions"


def segment_gaps(cells: pd.DataFrame, options: BoardOptions, noise: Draws | None = None) -> pd.DataFrame:
    """The table `segment_gaps` (schema SEGMENT_GAPS): a row per model, way of asking, attribute and segment, the worst predicted segment first.

    `cells` as of `load_cells`, `noise` (cells, replicates) as of `sampling_noise`. `deviation` is how far the mean score lies from `expected`:
    from the mean of the attribute's other segments on the same questions, had they as many people. Its interval and two-sided `p` are by t of
    whole batteries (see `segment_deviations`). `p_adjusted` is over the segments of the model's attribute (Holm): any false finding among them
    is as rare as 5 %. `parsed_deviation` and `parsed_verdict` are the same over parsed responses alone. Attributes of one segment have no rows;
    segments that share no question with another one of their attribute have no deviation. `note` says why a row has no interval or no verdict.
    """
    scored = cells.assign(place=np.arange(len(cells)))[cells["score"].notna()]
    tables = [
        rows.assign(**dict(zip(KEYS.series, map(str, key), strict=True)))
        for key, own in scored.groupby(list(KEYS.series), observed=True, sort=False)
        for rows in _attributes(add_levels(own, options.metric), options, noise)
    ]
    table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
    return table.assign(targets=options.targets, metric=options.metric, seed=options.seed).reindex(columns=SEGMENT_GAPS.names)


def _attributes(cells: pd.DataFrame, options: BoardOptions, noise: Draws | None) -> Iterator[pd.DataFrame]:
    """The rows of each attribute of one model, without the columns that name the model."""
    for attribute, own in cells.groupby("attribute", observed=True):
        if own["segment"].nunique() < 2:
            continue
        rows = _judge(own, "level", options, noise)
        parsed = rows if (own["read"] == 1).all() else _judge(own, "parsed_level", options, noise)
        rows = rows.join(parsed[["deviation", "verdict"]].add_prefix("parsed_")).fillna({"parsed_verdict": UNTESTED})
        rows["expected"] = (rows["score"] - rows["deviation"]).clip(upper=1)
        rows = pd.concat([rows, _alone(own, rows)])
        yield rows.reset_index().assign(attribute=attribute).sort_values("deviation", kind="stable")


def _alone(cells: pd.DataFrame, compared: pd.DataFrame) -> pd.DataFrame:
    """A row for each segment of an attribute that is not among the `compared` ones."""
    left = cells[~cells["segment"].isin(compared.index)]
    rows = left.groupby("segment", observed=True, sort=False).agg(
        n=("n", "median"), n_pairs=("score", "size"), score=("score", "mean")
    )
    return rows.assign(verdict=UNTESTED, parsed_verdict=UNTESTED, note=_NO_COMMON_QUESTION)


def _judge(cells: pd.DataFrame, level: str, options: BoardOptions, noise: Draws | None) -> pd.DataFrame:
    """A row per segment of an attribute, by the `level` of its cells; no rows where there is nothing to compare."""
    cells = compared_cells(cells, level)
    grouped = cells.groupby("segment", observed=True, sort=False)
    rows = grouped.agg(n=("n", "median"), n_pairs=("score", "size"), score=("score", "mean"))
    if rows.empty:
        return rows.assign(deviation=np.nan, verdict=UNTESTED)
    found = segment_deviations(cells, level, codes(cells, ["segment"]), noise, options.subject)
    low, high = found.interval()
    p = found.p()
    # Of two segments each lies as far from the other: one test.
    rows = rows.assign(deviation=found.value, low=low, high=high, p=p, p_adjusted=p if len(p) == 2 else holm(p))
    reason = _why_not_tested(cells, len(rows), options)
    if reason:
        rows[["low", "high", "p", "p_adjusted"]] = np.nan
    significant = np.where(rows["p_adjusted"] < SIGNIFICANCE, np.where(rows["deviation"] < 0, WORSE, BETTER), ALIKE)
    few = (why_none(int(count), KEYS.cluster_noun, "interval and no test") for count in found.n_clusters)
    return rows.assign(
        verdict=np.where(rows["p"].isna(), UNTESTED, significant), note=["; ".join(filter(None, [why, reason])) for why in few]
    )


def _why_not_tested(cells: pd.DataFrame, segments: int, options: BoardOptions) -> str:
    model = cells["model"].iloc[0]
    if model in CONTAIN_THE_SEGMENT:
        return WHY_NOT_TESTED
    if segments == 2 and model in options.subject.of_observed:
        return _EACH_BY_THE_OTHER
    if not cells["ceiling"].notna().any():
        return _NO_CEILINGS
    return _ABOVE_CEILING if (cells["parsed_score"] - cells["ceiling"]).mean() > 0 else ""
