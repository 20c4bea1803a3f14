"""How much a model's accuracy truly differs between segments: a variance component instead of a raw standard deviation.

The standard deviation of segment means grows with the noise of small samples and depends on which questions a segment answered. So the
segments' deviations from each other (see `estimate_segment_deviations`) are modelled as normal around effects with the standard deviation
`segment_sd_true`, which is 0 if segments do not differ.
"""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from dtef_pipeline.boards.cells import BoardOptions
from dtef_pipeline.boards.reliability import estimate_variance_ratio
from dtef_pipeline.keys import MODEL
from dtef_pipeline.statistics.cluster_robust import MIN_CLUSTERS, Estimates, explain_missing
from dtef_pipeline.statistics.ranks import rank_numbers
from dtef_pipeline.survey.baselines.names import CONTAIN_THE_SEGMENT, WHY_NOT_TESTED
from dtef_pipeline.survey.blueprint.options import ContextLevel
from dtef_pipeline.survey.boards.segment_deviations import (
    Draws,
    add_levels,
    estimate_segment_deviations,
    number_groups,
    select_comparable_cells,
)
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.scoring.metrics import Floats

_COMPONENTS = ("segment_sd_expected", "segment_sd_true", "segment_sd_low", "segment_sd_high", "segment_p")
_OF_TRUE_SPREAD = ("segment_sd_true", "segment_sd_low", "segment_sd_high", "segment_p")
_CANNOT_TELL = "too few segments and shared questions to separate segments from noise"


def build_consistency_board(cells: pd.DataFrame, options: BoardOptions) -> pd.DataFrame:
    """Return the spread of each model's segment means, smallest first."""
    names = [*KEYS.space, *KEYS.asked, *MODEL]
    series = ", ".join(KEYS.series)
    # Categories would be ordered as they were found.
    texts = ", ".join(f"{name}::VARCHAR AS {name}" for name in names)
    sql = f"""WITH segments AS (
        SELECT {texts}, avg(score) AS score, count(score) AS n_pairs, sum(n_ok) AS n_ok, sum(n_answered) AS n_answered
        FROM cells GROUP BY ALL HAVING count(score) > 0
    ), spread AS (
        SELECT {series}, avg(score) AS score, stddev_samp(score) AS segment_sd, min(score) AS lowest,
            arg_min(segment, score) AS lowest_segment, max(score) AS highest, arg_max(segment, score) AS highest_segment,
            count(*) AS n_segments, sum(n_pairs)::BIGINT AS n_pairs, sum(n_ok) / nullif(sum(n_answered), 0) AS parse_rate
        FROM segments GROUP BY ALL
    )
    SELECT 0 AS rank, * FROM spread ORDER BY {ContextLevel.ORDER_SQL}, condition
    """
    with duckdb.connect() as connection:
        # Sums of several threads are added in any order: equal scores are to give equal digits.
        connection.execute("SET threads = 1")
        columns = cells[[*names, "score", "n_ok", "n_answered"]]
        connection.register("cells", pa.Table.from_pandas(columns, preserve_index=False))
        board = connection.execute(sql).df()
    return rank_by_spread(board, "segment_sd").assign(metric=options.metric)


def rank_by_spread(frame: pd.DataFrame, spread: str) -> pd.DataFrame:
    """Return the rows of a consistency board, sorted and with their `rank` by the column `spread`, smallest first.

    Rows of the same condition and context level are adjacent and ranked together. A row whose spread is null has no rank and comes last.
    """
    group = frame.groupby(list(KEYS.asked), sort=False).ngroup()
    rank = pd.Series(rank_numbers(frame[spread], group, highest_first=False), index=frame.index).astype("Int64")
    order = frame.assign(group=group, rank=rank).sort_values(["group", "rank", *MODEL], na_position="last")
    return order.drop(columns="group").reset_index(drop=True)


def add_segment_cautions(frame: pd.DataFrame) -> pd.Series:
    """Return the notes of a consistency board, with a caution if another model has scores in more segments under the same conditions."""
    maxima = frame.groupby(list(KEYS.asked), sort=False)["n_segments"].transform("max")
    cautions = [
        f"only {n} of {n_most} segments: do not compare its spread with models that have other segments" if n < n_most else ""
        for n, n_most in zip(frame["n_segments"], maxima, strict=True)
    ]
    notes = frame["consistency_note"].fillna("")
    return pd.Series(
        ["; ".join(filter(None, parts)) for parts in zip(notes, cautions, strict=True)], index=frame.index, dtype=object
    )


def estimate_consistency(cells: pd.DataFrame, options: BoardOptions, noise: Draws | None = None) -> pd.DataFrame:
    """Return one row per (model, model_variant, context_level, condition), over its scored `cells` (from `load_cells`).

    `segment_sd_expected`: standard deviation that segment means would have without any segment effect, given sample sizes, answered
    questions and noise. `segment_sd_true`: standard deviation of the segment effects, 0 or more, in units of the score; 0 = equally
    accurate everywhere. `segment_sd_low`, `segment_sd_high`: its 95 % interval. `segment_p`: p of the hypothesis that it is 0 (F test).
    `consistency_note`: why a value is null, or that ceilings are unknown and scores are not adjusted for sample size. A baseline that
    contains the segments' own answers has only `segment_sd_expected`. Each segment is compared with all others of its round. `noise`:
    (cells, replicates) from `estimate_sampling_noise`.
    """
    scored_cells = cells.assign(place=np.arange(len(cells)))[cells["score"].notna()]
    rows = [
        dict(zip(KEYS.series, key, strict=True)) | _estimate_spread_components(part, options, noise)
        for key, part in scored_cells.groupby(list(KEYS.series), observed=True, sort=False)
    ]
    frame = pd.DataFrame(rows, columns=[*KEYS.series, *_COMPONENTS, "consistency_note"])
    return frame.astype(dict.fromkeys(_COMPONENTS, "float64"))


def _estimate_spread_components(cells: pd.DataFrame, options: BoardOptions, noise: Draws | None) -> dict[str, object]:
    unknown: dict[str, object] = dict.fromkeys(_COMPONENTS)
    level_cells = add_levels(cells, options.metric)
    batteries, model = level_cells[KEYS.cluster].nunique(), level_cells["model"].iloc[0]
    if level_cells[list(KEYS.space)].drop_duplicates().shape[0] < 2:
        return unknown | {"consistency_note": "one segment"}
    if batteries < MIN_CLUSTERS:
        return unknown | {"consistency_note": explain_missing(batteries, KEYS.cluster_noun, "estimate and no test")}
    # A round with too few batteries is as uninformative among others as by itself.
    level_cells = level_cells[level_cells.groupby("round", observed=True)[KEYS.cluster].transform("nunique") >= MIN_CLUSTERS]
    level_cells = select_comparable_cells(level_cells, "level")
    if not len(level_cells):
        return unknown | {"consistency_note": _CANNOT_TELL}
    segment = number_groups(level_cells, KEYS.space)
    deviations = estimate_segment_deviations(level_cells, "level", segment, noise, options.subject)
    if not (deviations.se > 0).all():
        return unknown | {"consistency_note": _CANNOT_TELL}
    notes = [] if level_cells["ceiling"].notna().any() else ["ceilings are unknown: not adjusted for sample size"]
    notes += [WHY_NOT_TESTED] if model in CONTAIN_THE_SEGMENT else []
    means = np.bincount(segment, level_cells["score"]) / np.bincount(segment)
    parts = _split_spread(deviations, means, level_cells["round"].nunique())
    return (
        parts
        | (dict.fromkeys(_OF_TRUE_SPREAD) if model in CONTAIN_THE_SEGMENT else {})
        | {"consistency_note": "; ".join(notes)}
    )


def _split_spread(deviations: Estimates, means: Floats, rounds: int) -> dict[str, object]:
    """Return the components, from the deviation of each segment from the others of its round, and from `means` (segments,)."""
    # The deviation of a segment from the mean of all, including itself, is this share of its deviation from the others.
    share = (len(means) - rounds) / len(means)
    effects, variance = share * deviations.value, share * deviations.se**2
    residual = float(variance.mean())

    def statistic(ratio: float) -> float:
        """Return the mean square of the effects over its expectation: F at the true ratio of the component to the residual (Wald 1947)."""
        weight = 1 / (variance + ratio * residual)
        offsets = effects - weight @ effects / weight.sum()
        return float(weight @ offsets**2 / (len(means) - rounds))

    ratio = estimate_variance_ratio(statistic, len(means) - rounds, deviations.degrees[0])
    expected = np.sqrt((means - effects).var(ddof=1) + residual)
    components = (float(np.sqrt(part * residual)) for part in ratio[:3])
    return dict(zip(_COMPONENTS, (float(expected), *components, ratio.p), strict=True))
