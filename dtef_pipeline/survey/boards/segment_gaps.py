"""Segments that a model predicts worse or better than the other segments of their attribute, given the sample sizes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.boards.cells import BoardOptions
from dtef_pipeline.boards.pairs import ALIKE, BETTER, UNTESTED, WORSE
from dtef_pipeline.statistics.cluster_robust import explain_missing
from dtef_pipeline.statistics.multiplicity import SIGNIFICANCE, holm
from dtef_pipeline.survey.baselines.names import CONTAIN_THE_SEGMENT, WHY_NOT_TESTED
from dtef_pipeline.survey.boards.schemas import SEGMENT_GAPS
from dtef_pipeline.survey.boards.segment_deviations import (
    Draws,
    add_levels,
    estimate_segment_deviations,
    number_groups,
    select_comparable_cells,
)
from dtef_pipeline.survey.keys import KEYS

_TESTED = ("deviation", "low", "high", "p", "p_adjusted", "note")
_NO_CEILINGS = "not tested: ceilings are unknown, so sample size cannot be accounted for; ingest the round again"
_EACH_BY_THE_OTHER = "not tested: each of the two segments is predicted by the other's answers"
_ABOVE_CEILING = "not tested: the scores are above the ceiling; the model seems to know the observed answers"
_NO_COMMON_QUESTION = "not tested: no other segment of the attribute was asked the same questions"


def compute_segment_gaps(cells: pd.DataFrame, options: BoardOptions, noise: Draws | None = None) -> pd.DataFrame:
    """Return the table `segment_gaps` (schema SEGMENT_GAPS): a row per model, condition, attribute and segment, the worst predicted first.

    `cells` are from `load_cells`, `noise` (cells, replicates) from `estimate_sampling_noise`. `deviation` is the mean score minus
    `expected`, the mean that the attribute's other segments would have on the same questions with as many people. Its interval and
    two-sided `p` are from a t test by whole batteries (see `estimate_segment_deviations`). `p_adjusted` (Holm) is over the segments of the
    model's attribute: the probability of any false finding among them is at most 5 %. `parsed_verdict` uses parsed responses only.
    Attributes of one segment have no rows; segments that share no question with another one of their attribute have no deviation.
    `note` says why a row has no interval or no verdict.
    """
    frame = _select_cells_of_groups(cells, options.metric)
    rows = _judge(frame, "level", options, noise)
    # Where all was read, readable responses say what all responses say.
    unread = (frame["read"] != 1).groupby(frame["group"]).transform("any")
    parsed_rows = pd.concat(
        [_judge(frame[unread], "parsed_level", options, noise), rows[~rows.index.isin(frame["group"][unread], level=0)]]
    )
    rows = rows.join(parsed_rows["verdict"].rename("parsed_verdict")).fillna({"parsed_verdict": UNTESTED})
    rows["expected"] = (rows["score"] - rows["deviation"]).clip(upper=1)
    uncompared = _average_by_segment(frame)
    uncompared = uncompared[~uncompared.index.isin(rows.index)].assign(
        verdict=UNTESTED, parsed_verdict=UNTESTED, note=_NO_COMMON_QUESTION
    )
    rows = pd.concat([rows, uncompared]).reset_index().sort_values(["group", "deviation"], kind="stable")
    names = frame.drop_duplicates("group").set_index("group")[[*KEYS.series, "attribute"]].astype(str)
    table = rows.join(names, on="group")
    return table.assign(targets=options.targets, metric=options.metric).reindex(columns=SEGMENT_GAPS.names)


def _select_cells_of_groups(cells: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return the scored cells, with levels, of attributes with several segments. A `group` is one model's attribute; groups are
    consecutive.
    """
    scored_cells = cells.assign(place=np.arange(len(cells)))[cells["score"].notna()]
    models = [
        add_levels(model_cells, metric) for _, model_cells in scored_cells.groupby(list(KEYS.series), observed=True, sort=False)
    ]
    frame = pd.concat(models) if models else add_levels(scored_cells, metric)
    attribute, names = pd.factorize(frame["attribute"].astype(str), sort=True)
    frame = frame.assign(group=number_groups(frame, KEYS.series) * len(names) + attribute, segment=frame["segment"].astype(str))
    several = frame.groupby("group")["segment"].transform("nunique") > 1
    return frame[several].sort_values("group", kind="stable")


def _average_by_segment(cells: pd.DataFrame) -> pd.DataFrame:
    by_segment = cells.groupby(["group", "segment"], sort=False)
    return by_segment.agg(n=("n", "median"), n_pairs=("score", "size"), score=("score", "mean"))


def _judge(cells: pd.DataFrame, level: str, options: BoardOptions, noise: Draws | None) -> pd.DataFrame:
    """Return a row per group and segment, by the `level` of the cells; no rows if there is nothing to compare."""
    comparable_cells = select_comparable_cells(cells, level, columns=["group"])
    tests = [_test(group, level, options, noise) for _, group in comparable_cells.groupby("group", sort=False)]
    columns = {name: np.concatenate([test[name] for test in tests] or [[]]) for name in _TESTED}
    rows = _average_by_segment(comparable_cells).assign(**columns)
    significant = np.where(rows["p_adjusted"] < SIGNIFICANCE, np.where(rows["deviation"] < 0, WORSE, BETTER), ALIKE)
    return rows.assign(verdict=np.where(rows["p"].isna(), UNTESTED, significant))


def _test(cells: pd.DataFrame, level: str, options: BoardOptions, noise: Draws | None) -> dict[str, npt.ArrayLike]:
    """Return the results of each segment of one group, by the names of _TESTED, with segments in the order of the cells."""
    deviations = estimate_segment_deviations(cells, level, number_groups(cells, ["segment"]), noise, options.subject)
    p = deviations.p()
    # The deviations of two segments have the same size, so they are one test.
    adjusted = p if len(p) == 2 else holm(p)
    reason = _explain_untested(cells, len(p), options)
    few = (explain_missing(int(count), KEYS.cluster_noun, "interval and no test") for count in deviations.n_clusters)
    notes = ["; ".join(filter(None, [note, reason])) for note in few]
    tests = [*deviations.interval(), p, adjusted]
    if reason:
        tests = [np.full(len(p), np.nan)] * len(tests)
    return dict(zip(_TESTED, [deviations.value, *tests, notes], strict=True))


def _explain_untested(cells: pd.DataFrame, segments: int, options: BoardOptions) -> str:
    model = cells["model"].iloc[0]
    if model in CONTAIN_THE_SEGMENT:
        return WHY_NOT_TESTED
    if segments == 2 and model in options.subject.observed_baselines:
        return _EACH_BY_THE_OTHER
    if not cells["ceiling"].notna().any():
        return _NO_CEILINGS
    return _ABOVE_CEILING if (cells["parsed_score"] - cells["ceiling"]).mean() > 0 else ""


def sort_by_significance(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows of `segment_gaps` sorted by adjusted p, smallest first, then the worst predicted first."""
    return rows.sort_values(["p_adjusted", "deviation", "attribute", "model"], kind="stable", na_position="last")
