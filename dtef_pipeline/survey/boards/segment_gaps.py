"""How far a model's scores differ between segments, given the sample sizes: deviations of single segments, and their spread.

Smaller segments score lower with any model, because their answers scatter more around the truth. The loss of a perfect prediction is known:
1 - ceiling. An imperfect prediction loses a share of it: if its distance from the truth and the sample's add in squares, the share is
d(distance) / d(1 - ceiling) = (1 - ceiling) / distance. Scores are compared after adding back this loss.

The standard deviation of segment means grows with the noise of small samples and depends on which questions a segment answered. So the
deviations are modelled as normal around effects with the standard deviation `segment_sd_true`, which is 0 if segments do not differ.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from dtef_pipeline.boards.cells import BoardOptions, BoardSubject
from dtef_pipeline.boards.pairs import ALIKE, BETTER, UNTESTED, WORSE
from dtef_pipeline.boards.reliability import estimate_variance_ratio
from dtef_pipeline.keys import MODEL
from dtef_pipeline.statistics.cluster_robust import (
    MIN_CLUSTERS,
    Estimates,
    count_effective_clusters,
    estimate_ratios,
    estimate_shared_variance,
    explain_missing,
)
from dtef_pipeline.statistics.differences import Codes, sum_by_cluster
from dtef_pipeline.statistics.multiplicity import SIGNIFICANCE, holm
from dtef_pipeline.statistics.ranks import rank_numbers
from dtef_pipeline.survey.baselines.names import CONTAIN_THE_SEGMENT, WHY_NOT_TESTED
from dtef_pipeline.survey.blueprint.options import ContextLevel
from dtef_pipeline.survey.boards.schemas import SEGMENT_GAPS
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.scoring.metrics import Floats

Draws = npt.NDArray[np.floating]

_SQUARED = ("cosine",)
"""Metrics whose distance is a square: a prediction loses as much as a perfect one."""
_DIGITS = 12
"""Decimals of a deviation, so that rounding does not make equal segments differ."""


def add_levels(cells: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Add `level` and `parsed_level` to the scored cells of one model and condition: score and parsed score for a very large sample.

    `read` is the share of the scored draws that were parsed; the others do not change with the answers. If no cell has a ceiling, the
    levels are the scores; otherwise a cell without one has no level.
    """
    read = cells["n_ok"] / cells["n_answered"].where(cells["n_answered"] > 0, 1)
    short, distance = 1 - cells["ceiling"].astype(np.float64), 1 - cells["parsed_score"].astype(np.float64)
    is_known = short.notna() & distance.notna()
    short_total, total = short[is_known].sum(), distance[is_known].sum()
    share = short_total / total if metric not in _SQUARED and total > short_total else 1.0
    loss = share * short if is_known.any() else 0.0
    return cells.assign(read=read, level=cells["score"] + read * loss, parsed_level=cells["parsed_score"] + loss)


def select_comparable_cells(cells: pd.DataFrame, level: str, columns: Sequence[str] = ()) -> pd.DataFrame:
    """Return the cells with a `level` whose question also has one in another segment. A question of two rounds is two questions.

    `columns`: columns in which the other segments must have the same value.
    """
    level_cells = cells[cells[level].notna()]
    together = level_cells.groupby([*columns, *KEYS.shared_item], observed=True, sort=False)[level].transform("size")
    return level_cells[together > 1]


def number_groups(cells: pd.DataFrame, columns: Sequence[str]) -> Codes:
    """Return (cells,) the group of each cell, from 0 in order of appearance. No name may be missing."""
    key = np.zeros(len(cells), dtype=np.int64)
    for name in columns:
        codes = pd.factorize(cells[name])[0]
        key = key * (codes.max(initial=0) + 1) + codes
    return pd.factorize(key)[0].astype(np.int64)


def estimate_segment_deviations(
    cells: pd.DataFrame, level: str, segment: Codes, noise: Draws | None, subject: BoardSubject
) -> Estimates:
    """Return the mean `level` of each segment minus that of the other segments on the same questions, (segments,) each.

    `cells`: one or more from `select_comparable_cells`, with `segment` (cells,) from 0 and `place`, the row of `noise` (cells, replicates),
    the change of the score with other respondents, or None if unknown. The variance is a + b + c. a: the scatter of batteries, by the
    jackknife of whole batteries, minus b. A segment has few batteries, so a is pooled over segments in proportion to 1 / effective
    batteries, and so are the degrees of freedom (analysis of means: Nelson, Wludyka & Copeland 2005). b: the sampling variance of a
    segment's own respondents, which differs between segments (a known sampling variance next to a pooled one: Fay & Herriot 1979). c: the
    part that the same respondents contribute to all batteries (`estimate_shared_variance`).
    """
    item, cluster, people = (number_groups(cells, columns) for columns in (KEYS.shared_item, [KEYS.cluster], ["round"]))
    shape = (int(cluster.max()) + 1, int(segment.max()) + 1)
    offsets = np.round(_subtract_others(cells[level].to_numpy(np.float64), item), _DIGITS)
    sums, counts = (sum_by_cluster(cluster, segment, values, shape) for values in (offsets, np.ones(len(offsets))))
    estimates = estimate_ratios(sums, counts)
    sample, shared = np.zeros(shape[1]), np.zeros(shape[1])
    if noise is not None:
        read = cells["read"].to_numpy()[:, None] if level == "parsed_level" else 1.0
        moves = np.apply_along_axis(_subtract_others, 0, noise[cells["place"].to_numpy()] / read, item)
        many, correlation = counts.sum(axis=0), subject.correlation(cells["model"].iloc[:1])[0]
        sample = np.bincount(segment, (moves**2).mean(axis=1)) / many**2
        shared = estimate_shared_variance(moves, segment, cluster, people, shape[1], correlation) / many**2
    return _pool_scatter(estimates, count_effective_clusters(counts), sample, shared)


def _pool_scatter(estimates: Estimates, batteries: Floats, sample: Floats, shared: Floats) -> Estimates:
    """Return the estimates with a scatter of batteries pooled over segments, plus each known variance."""
    degrees = np.where(estimates.n_clusters > 1, estimates.degrees, 0)
    variances = np.nan_to_num(estimates.se**2) * batteries
    if not (degrees * variances).any():
        return estimates
    scatter = max(float(degrees @ (variances - sample * batteries) / degrees.sum()), 0.0)
    # The deviations of all segments sum to 0, so one of them is redundant.
    free = max(float(degrees.sum()) * (1 - 1 / len(variances)), 1.0)
    return estimates._replace(se=np.sqrt(scatter / batteries + sample + shared), degrees=np.full(len(variances), free))


def _subtract_others(values: Floats, item: Codes) -> Floats:
    """Return values (cells,) minus the mean of the other cells of the same item."""
    count = np.bincount(item)[item]
    return np.asarray((values - np.bincount(item, values)[item] / count) * count / (count - 1))


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
