"""Accuracy gaps between the groups of an attribute, beside the gaps that equal groups of the same sizes would show.

The best of several noisy means always beats the worst: a gap says something of a model only by what it exceeds the gap that chance makes of
groups which differ in size alone (see `equal_groups` for that null hypothesis).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from dtef_pipeline.boards.cells import BoardOptions
from dtef_pipeline.statistics.multiplicity import holm
from dtef_pipeline.statistics.permutation import benjamini_hochberg, permutations_for
from dtef_pipeline.statistics.range_of_means import MeanNoise, range_of_means
from dtef_pipeline.statistics.ranks import ranks
from dtef_pipeline.statistics.resampling import MIN_CLUSTERS, why_none
from dtef_pipeline.survey.baselines.names import CONTAIN_THE_SEGMENT, WHY_NOT_TESTED
from dtef_pipeline.survey.boards.equal_groups import Ints, null_scores, numbered
from dtef_pipeline.survey.boards.schemas import GAPS, QUESTION_GAPS
from dtef_pipeline.survey.boards.segment_luck import CellDraws, Cells, Draws, luck, of_second_order, people_correlation
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.scoring.metrics import Floats

_NO_CEILINGS = "no ceilings known, so all groups are taken to answer alike: ingest the round again"
_NO_N = "n is unknown, so the gap of equal groups is not known"
_JUDGED = ["score", "parsed_score", "n_ok", "n_answered", "ceiling"]
_NOT_OF_THESE = ("gap_low", "gap_high", "excess_low", "excess_high", "expected_low", "expected_high", "p", "parsed_p")


def gaps(
    connection: duckdb.DuckDBPyConnection, cells: pd.DataFrame, options: BoardOptions, noise: Draws | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables `gaps` and `question_gaps` (schemas GAPS and QUESTION_GAPS), without the attributes that have one segment only.

    `cells` as of `load_cells`, `connection` with `scores`, `survey_responses` and, or not, `reference_scores`; `noise` (cells, replicates): what
    respondents drawn anew would do to each score, as of `sampling_noise`. `gap` is the best segment's mean score less the worst's, over each
    one's scored cells of all rounds, 0..1; `expected_gap` its mean between equal groups, `excess` the difference of the two, about 0 where
    groups differ in size alone, below 0 by chance. `expected_low` to `expected_high` hold 95 % of the gaps between equal groups;
    p = (b + 1) / (m + 1) with b of m such gaps at least as large (one-sided), `p_holm` and `p_bh` adjusted over the rows of the same context
    level and condition. `excess_low` to `excess_high`: see `range_of_means`; `gap_low` and `gap_high` are `expected_gap` plus these. Of fewer
    than MIN_CLUSTERS batteries, where a segment's n is unknown, and of a baseline that contains the segments' own answers, neither range nor
    interval nor p: `note` says so. Without n there is no `expected_gap` either.
    """
    is_scored = cells["score"].notna()
    scored = cells[is_scored].reset_index(drop=True)
    if scored.empty:
        return _table([], GAPS, options), _table([], QUESTION_GAPS, options)
    null = null_scores(connection, scored, options)
    of_people = None if noise is None else of_second_order(noise[is_scored.to_numpy()], scored)
    evidence = CellDraws(null, of_people, _ceilings(scored))
    tables = _attribute_gaps(scored, evidence, options), _question_gaps(scored, null, options)
    if scored["ceiling"].isna().all() and not np.isnan(null).all():
        for table in tables:
            table["note"] = [f"{note}; {_NO_CEILINGS}" if note else _NO_CEILINGS for note in table["note"]]
    return tables


def _attribute_gaps(cells: pd.DataFrame, evidence: CellDraws, options: BoardOptions) -> pd.DataFrame:
    by = [*KEYS.series, "attribute"]
    groups = [group for group in _groups(cells, by) if group.several]
    keys = cells.loc[[group.first for group in groups], by].reset_index(drop=True)
    alike = keys.groupby(list(KEYS.asked), observed=True).size()
    sets = permutations_for(int(alike.max())) if groups else 0
    widest = max((len(group.segments) for group in groups), default=0)
    # One set of draws serves all rows: which models and attributes there are besides does not change a row.
    normal = np.random.default_rng(options.seed).standard_normal((widest, sets))
    names, numbers = cells["segment"].to_numpy(), cells[_JUDGED].astype(np.float64)
    rows: list[dict[str, object]] = []
    for key, group in zip(keys.itertuples(index=False, name=None), groups, strict=True):
        row = dict(zip(by, key, strict=True))
        row |= _gap(names, group, group.means(numbers["score"].to_numpy()[group.rows]))
        of_group = evidence.of(group.rows)._replace(people=people_correlation(options.subject, row["model"]))
        row |= _beside_chance(group, numbers.take(group.rows), of_group, normal, options.seed)
        rows.append(row if row["model"] not in CONTAIN_THE_SEGMENT else _without_verdict(row))
    return _table(_adjusted(rows), GAPS, options)


@dataclass(frozen=True, slots=True)
class _Group:
    """The cells of one model, context level, condition and attribute."""

    rows: Ints  # (cells,): in the order of the frame
    layout: Cells
    segments: Ints  # (segments,): a row of each

    @property
    def first(self) -> int:
        return int(self.rows[0])

    @property
    def several(self) -> bool:
        return len(self.segments) > 1

    def means(self, values: Floats) -> Floats:
        """Mean (segments,) of values (cells,)."""
        return np.asarray(np.bincount(self.layout.segment, values) / np.bincount(self.layout.segment))


def _groups(cells: pd.DataFrame, by: list[str]) -> Iterator[_Group]:
    number, segment = numbered(cells, by), numbered(cells, ["segment"])
    inside = [numbered(cells, names) for names in ([KEYS.cluster], ["round"])]
    order = np.argsort(number, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(number[order])) + 1):
        _, some, places = np.unique(segment[rows], return_index=True, return_inverse=True)
        yield _Group(rows, Cells(places, *(np.unique(codes[rows], return_inverse=True)[1] for codes in inside)), rows[some])


def _gap(names: npt.NDArray[np.str_], group: _Group, means: Floats) -> dict[str, object]:
    best, worst = int(means.argmax()), int(means.argmin())
    return {
        "best_segment": names[group.segments[best]],
        "worst_segment": names[group.segments[worst]],
        "n_best": np.count_nonzero(ranks(means) == 1),
        "n_worst": np.count_nonzero(ranks(means, highest_first=False) == 1),
        "n_segments": len(means),
        "n_pairs": len(group.rows),
        "best_score": means[best],
        "worst_score": means[worst],
        "gap": means[best] - means[worst],
    }


def _beside_chance(group: _Group, cells: pd.DataFrame, evidence: CellDraws, normal: Floats, seed: int) -> dict[str, object]:
    """The gap beside those of equal groups, and the same over parsed draws alone; `normal`: (segments or more, sets)."""
    if np.isnan(evidence.null).any():
        return {"note": _NO_N}
    found = _tested(group.layout, cells["score"].to_numpy(), evidence, normal, seed)
    unread = (cells["n_ok"] < cells["n_answered"]).to_numpy()
    parsed = found if not unread.any() else _over_parsed(group.layout, cells, evidence, normal, seed)
    return found | {f"parsed_{name}": parsed.get(name) for name in ("gap", "excess", "p")}


def _tested(
    layout: Cells, score: Floats, evidence: CellDraws, normal: Floats, seed: int, *, interval: bool = True
) -> dict[str, object]:
    """Segment means are sums over many questions, so they are drawn as normal."""
    chance = luck(layout, score, evidence)
    means = np.asarray(np.bincount(layout.segment, score) / np.bincount(layout.segment))
    gap = float(np.ptp(means))
    drawn = range_of_means(
        means, chance.center, MeanNoise.drawn(chance.covariance, chance.freedom, normal, seed), interval=interval
    )
    clusters = int(layout.cluster.max()) + 1
    found: dict[str, object] = {
        "gap": gap,
        "expected_gap": drawn.expected,
        "excess": gap - drawn.expected,
        "note": why_none(clusters, KEYS.cluster_noun, "interval and no test"),
    }
    if clusters < MIN_CLUSTERS:
        return found
    return found | {
        "gap_low": drawn.expected + drawn.excess_low,
        "gap_high": drawn.expected + drawn.excess_high,
        "excess_low": drawn.excess_low,
        "excess_high": drawn.excess_high,
        "expected_low": drawn.low,
        "expected_high": drawn.high,
        "p": drawn.p,
    }


def _over_parsed(layout: Cells, cells: pd.DataFrame, evidence: CellDraws, normal: Floats, seed: int) -> dict[str, object]:
    """The same over parsed draws alone: without the constant scores of the others. Empty where fewer than two segments have any."""
    has = cells["parsed_score"].notna().to_numpy()
    segments = np.unique(layout.segment[has])
    if len(segments) < 2:
        return {}
    share = _share(cells)[has][:, None]
    score, parsed = (cells[name].to_numpy()[has] for name in ("score", "parsed_score"))
    of_all = evidence.of(has)
    null = (of_all.null - score[:, None]) / share + parsed[:, None]
    noise = None if of_all.noise is None else of_all.noise / share
    of_parsed = of_all._replace(null=null, noise=noise, ceiling=cells["ceiling"].to_numpy()[has])
    some = Cells(*(np.unique(codes[has], return_inverse=True)[1] for codes in layout))
    return _tested(some, parsed, of_parsed, normal, seed, interval=False)


def _share(cells: pd.DataFrame) -> Floats:
    """Share (cells,) of the draws that were parsed."""
    return np.asarray(cells["n_ok"] / cells["n_answered"].where(cells["n_answered"] > 0, 1), dtype=np.float64)


def _ceilings(cells: pd.DataFrame) -> Floats:
    """What a perfect prediction would have scored in each cell, (cells,), where the draws that could not be parsed keep their scores."""
    share, parsed = _share(cells), cells["parsed_score"].fillna(0).to_numpy()
    return np.asarray(cells["score"].to_numpy() + share * (cells["ceiling"].to_numpy(dtype=np.float64) - parsed))


def _without_verdict(row: dict[str, object]) -> dict[str, object]:
    """The row of a baseline whose own predictions contain what they are scored against: what equal groups show says nothing of it."""
    kept = {name: value for name, value in row.items() if name not in _NOT_OF_THESE}
    return kept | {"note": "; ".join(filter(None, [str(row["note"]), WHY_NOT_TESTED]))}


def _adjusted(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    if not rows:
        return rows
    frame = pd.DataFrame(rows)
    p = pd.to_numeric(frame.get("p", pd.Series(np.nan, index=frame.index)))
    by = p.groupby([frame[name] for name in KEYS.asked])
    ways = {"p_holm": holm, "p_bh": benjamini_hochberg}
    adjusted = {name: by.transform(lambda column, way=way: way(column.to_numpy())) for name, way in ways.items()}
    return [row | {name: values.iloc[at] for name, values in adjusted.items()} for at, row in enumerate(rows)]


def _question_gaps(cells: pd.DataFrame, null: Draws, options: BoardOptions) -> pd.DataFrame:
    """`gap` and `expected_gap` of each question, cells side by side by question; no test of one question."""
    by = [*KEYS.series, "attribute", *KEYS.shared_item]
    group = numbered(cells, by)
    score = cells["score"].to_numpy()
    order = np.lexsort((np.arange(len(cells)), score, group))
    start = np.flatnonzero(np.diff(group[order], prepend=-1))
    size = np.diff(start, append=len(cells))
    several = size > 1
    worst, best = order[start], order[start + size - 1]
    drawn = np.maximum.reduceat(null[order], start) - np.minimum.reduceat(null[order], start)
    frame = cells.loc[best, by].reset_index(drop=True)
    frame["best_segment"], frame["worst_segment"] = (cells["segment"].to_numpy()[rows] for rows in (best, worst))
    for name, is_best in (("n_best", True), ("n_worst", False)):
        is_end = ranks(score, group, highest_first=is_best) == 1
        frame[name] = np.add.reduceat(is_end[order].astype(np.int64), start)
    frame["n_segments"], frame["best_score"], frame["worst_score"] = size, score[best], score[worst]
    frame["gap"], frame["expected_gap"] = score[best] - score[worst], drawn.mean(axis=1, dtype=np.float64)
    frame["excess"] = frame["gap"] - frame["expected_gap"]
    frame["note"] = np.where(frame["expected_gap"].isna(), _NO_N, "")
    return _table(frame[several], QUESTION_GAPS, options)


def _table(rows: list[dict[str, object]] | pd.DataFrame, schema: pa.Schema, options: BoardOptions) -> pd.DataFrame:
    """The rows with the schema's columns, in the order of the names that they have."""
    frame = pd.DataFrame(rows).assign(targets=options.targets, metric=options.metric, seed=options.seed)
    frame = frame.reindex(columns=schema.names).reset_index(drop=True)
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    numbers = [field.name for field in schema if pa.types.is_floating(field.type)]
    return frame.astype(dict.fromkeys(texts, "str") | dict.fromkeys(numbers, "float64"))
