"""How much a model's accuracy truly differs between segments: a variance component instead of a raw standard deviation.

The standard deviation of segment means grows with the noise of small samples and with the luck of which questions a segment answered. Here the
scores of one model are laid out as segments x questions and modelled as

    score = question effect + curve of the segment's ceilings + segment effect + rest,

the segment effects being random with standard deviation `segment_sd_true`. The rest of the questions of a battery hangs together, so that
segments are told apart by how much batteries differ within them. A segment's ceilings stand for what a small sample does to every
score. How much of that a model feels is estimated (a parabola), for a poor predictor's score is lowered less than a good one's: the shortfall
`ceiling - score` would make segments with few respondents look well predicted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from dtef_pipeline.boards.cells import BoardOptions
from dtef_pipeline.keys import MODEL
from dtef_pipeline.statistics.ranks import ranks
from dtef_pipeline.statistics.resampling import MIN_CLUSTERS, why_none
from dtef_pipeline.statistics.variance_ratio import VarianceRatio, variance_ratio
from dtef_pipeline.survey.baselines.names import CONTAIN_THE_SEGMENT, WHY_NOT_TESTED
from dtef_pipeline.survey.blueprint.options import ContextLevel
from dtef_pipeline.survey.boards.segment_luck import Cells, Draws, of_second_order, people_correlation, same_people
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.scoring.metrics import Floats

_COMPONENT_KEYS = list(KEYS.series)
_COMPONENTS = ("segment_sd_expected", "segment_sd_true", "segment_sd_low", "segment_sd_high", "segment_p")
_VERDICT = ("segment_sd_low", "segment_sd_high", "segment_p")
_SMALL = 1e-9
Ints = npt.NDArray[np.int64]


def consistency_board(cells: pd.DataFrame, options: BoardOptions) -> pd.DataFrame:
    """How evenly a model does over the segments: the spread of its segment means, smallest first."""
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
        loaded = cells[[*names, "score", "n_ok", "n_answered"]]
        connection.register("cells", pa.Table.from_pandas(loaded, preserve_index=False))
        found = connection.execute(sql).df()
    return ranked_by(found, "segment_sd").assign(metric=options.metric)


def ranked_by(frame: pd.DataFrame, spread: str) -> pd.DataFrame:
    """Rows of a consistency board with their `rank` by a column of spreads, the smallest first, and in its order.

    Rows that were asked in the same way stand together and are ranked together; a row whose spread is null has no rank and stands last.
    """
    group = frame.groupby(list(KEYS.asked), sort=False).ngroup()
    rank = pd.Series(ranks(frame[spread], group, highest_first=False), index=frame.index).astype("Int64")
    order = frame.assign(group=group, rank=rank).sort_values(["group", "rank", *MODEL], na_position="last")
    return order.drop(columns="group").reset_index(drop=True)


def with_fewer_segments(frame: pd.DataFrame) -> pd.Series:
    """The notes of a consistency board, each with a caution where other models asked in the same way have a score in more segments."""
    most = frame.groupby(list(KEYS.asked), sort=False)["n_segments"].transform("max")
    cautions = [
        f"only {own} of {other} segments: spreads over different segments do not compare" if own < other else ""
        for own, other in zip(frame["n_segments"], most, strict=True)
    ]
    notes = frame["consistency_note"].fillna("")
    return pd.Series(
        ["; ".join(filter(None, both)) for both in zip(notes, cautions, strict=True)], index=frame.index, dtype=object
    )


def consistency_components(cells: pd.DataFrame, options: BoardOptions, noise: Draws | None = None) -> pd.DataFrame:
    """One row per (model, model_variant, context_level, condition), over its scored `cells` (as of `load_cells`).

    `segment_sd_expected`: standard deviation of the segment means that would be seen without any segment effect, from sample sizes, the
    questions that each answered and noise. `segment_sd_true`: standard deviation of the segment effects, 0 or more, in units of the score;
    0 = equally accurate everywhere. `segment_sd_low`, `segment_sd_high`: its 95 % interval. `segment_p`: of the hypothesis that it is 0 (F
    test). `consistency_note`: why something is null, or that ceilings are not known and scores are not adjusted for sample size. A baseline
    that contains the segments' own answers has neither interval nor p.

    Segments are those of one round; their effects are taken as normal, the rest as normal and independent between batteries, but for what
    `noise` (cells, replicates; as of `sampling_noise`) says of the same people in all batteries (see `segment_luck`). Nothing is random:
    `options` has no say in it beyond the choice of cells.
    """
    scored = cells.assign(place=np.arange(len(cells)))[cells["score"].notna()].assign(
        row=lambda frame: frame.groupby(list(KEYS.space), observed=True, sort=False).ngroup(),
        battery=lambda frame: frame.groupby(KEYS.cluster, observed=True, sort=False).ngroup(),
        column=lambda frame: frame.groupby("same_item", observed=True, sort=False).ngroup(),
    )
    designs: dict[bytes, Design] = {}  # models asked alike share one
    rows = [
        _judged(dict(zip(_COMPONENT_KEYS, key, strict=True)) | _components(group, designs, noise, options))
        for key, group in scored.groupby(_COMPONENT_KEYS, observed=True, sort=False)
    ]
    frame = pd.DataFrame(rows, columns=[*_COMPONENT_KEYS, *_COMPONENTS, "consistency_note"])
    return frame.astype(dict.fromkeys(_COMPONENTS, "float64"))


def _judged(row: dict[str, object]) -> dict[str, object]:
    if row["model"] not in CONTAIN_THE_SEGMENT:
        return row
    note = "; ".join(filter(None, [str(row["consistency_note"]), WHY_NOT_TESTED]))
    return row | dict.fromkeys(_VERDICT) | {"consistency_note": note}


def _components(
    cells: pd.DataFrame, designs: dict[bytes, Design], noise: Draws | None, options: BoardOptions
) -> dict[str, object]:
    known = bool(cells["ceiling"].notna().any())
    used = cells[cells["ceiling"].notna()] if known else cells
    segment, question, battery = (
        np.unique(used[name].to_numpy(), return_inverse=True)[1] for name in ("row", "column", "battery")
    )
    found: dict[str, object] = dict.fromkeys(_COMPONENTS)
    batteries, segments = int(battery.max()) + 1, int(segment.max()) + 1
    if segments < 2 or batteries < MIN_CLUSTERS:
        return found | {
            "consistency_note": "one segment"
            if segments < 2
            else why_none(batteries, KEYS.cluster_noun, "estimate and no test")
        }
    size = segment_sizes(used["ceiling"].to_numpy(), segment, question) if known else np.zeros(segments)
    same = segment.tobytes() + question.tobytes() + size.tobytes()
    if same not in designs:
        designs[same] = Design.of(segment, question, size, np.ones(len(used)))
    layout = designs[same].fit(used["score"].to_numpy())
    if layout is not None and batteries <= question.max():
        layout = _of_batteries(layout, segment, question, battery, size)
    if layout is None:
        return found | {"consistency_note": "too few segments and shared questions to tell segments from noise"}
    if noise is not None:
        of_model = people_correlation(options.subject, used["model"].iloc[0])
        of_people = of_second_order(noise[used["place"].to_numpy()], used)
        shared = same_people(Cells(segment, battery, np.zeros_like(segment)), of_people, of_model)
        layout = replace(layout, people=float(shared.mean()))
    ratio = layout.ratio()
    components = (float(np.sqrt(part * layout.residual)) for part in ratio[:3])
    numbers = (layout.expected_sd(), *components, ratio.p)
    note = "" if known else "ceilings are not known: not adjusted for sample size"
    return dict(zip(_COMPONENTS, numbers, strict=True)) | {"consistency_note": note}


def _of_batteries(whole: Layout, segment: Ints, question: Ints, battery: Ints, size: Floats) -> Layout | None:
    """The layout of segments and batteries: one mean in place of a battery's questions, which vary together in a segment.

    A mean of m questions varies by residual / m + component of the battery in the segment. It is weighted with m / (1 + ratio m), the ratio
    of the two being that at which the residual mean square of means with weight m is as expected (Henderson 1953). Segments are told from
    what the weighted means leave, so that a ratio that is off costs power and not validity.
    """
    batteries = int(battery.max()) + 1
    place, block = np.unique(segment * batteries + battery, return_inverse=True)
    many = np.bincount(block).astype(np.float64)
    mean = np.bincount(block, whole.left) / many
    adjusted = whole.effects[place // batteries] + mean
    inside = whole.left - mean[block]
    freedom = len(segment) - int(question.max()) - 1 - (len(place) - batteries)
    one = inside @ inside / freedom if freedom > 0 else 0.0
    equal = Design.of(place // batteries, place % batteries, size, many).fit(adjusted)
    if equal is None:
        return None
    weight = np.ones(len(many))
    if one > _SMALL * equal.residual:
        typical = np.bincount(place % batteries, many) / np.bincount(place % batteries)
        share = (typical.sum() - (typical**2).sum() / typical.sum()) / (batteries - 1)
        weight = many / (1 + max(equal.residual / one - 1, 0) / share * many)
    weighted = Design.of(place // batteries, place % batteries, size, weight).fit(adjusted)
    if weighted is None:
        return None
    # Of a segment's mean over its questions, in which a battery counts by how many it has.
    chance = np.bincount(place // batteries, many**2 / weight) / np.bincount(segment) ** 2
    return replace(weighted, fitted=whole.fitted, chance=chance)


@dataclass(frozen=True, slots=True)
class Layout:
    """A two-way layout after question effects and the curve are taken out of the segment totals.

    With C the information matrix of the segments, its eigenvalues `scale` and the segment totals `projected` on its eigenvectors, each
    projected total has the variance residual x scale + component x scale^2, independently of each other and of `residual`.
    """

    scale: Floats  # (segments - 1 or fewer,), above 0
    projected: Floats
    residual: float  # mean square of what segments, questions and curve leave
    freedom: int  # its degrees of freedom
    fitted: Floats  # (segments,): mean of what question effects and curve alone say of each segment
    chance: Floats  # (segments,): variance of each one's mean, in residuals
    effects: Floats  # (segments,): how far each lies from the others
    left: Floats  # (cells,): what segments, questions and curve leave of each score
    people: float = 0.0  # variance of the segments' means that is for the same people in all questions

    def expected_sd(self) -> float:
        """Standard deviation of the segment means without segment effects."""
        return float(np.sqrt(self.fitted.var(ddof=1) + self.residual * self.chance.mean() + self.people))

    def ratio(self) -> VarianceRatio:
        """Of the segments' variance component to the residual: mean projected^2 / (scale + ratio scale^2) / residual follows F.

        What `people` make is no difference between segments: it is part of every ratio.
        """
        always = self.people / self.residual

        def statistic(ratio: float) -> float:
            return float((self.projected**2 / (self.scale + (always + ratio) * self.scale**2)).mean() / self.residual)

        return variance_ratio(statistic, len(self.scale), self.freedom)


@dataclass(frozen=True, slots=True)
class Design:
    """Which segments answered which questions, ready to be fitted to any model's scores: question effects and a curve are fixed.

    A cell's residual has the variance residual / weight.
    """

    segment: Ints  # (cells,), numbered from 0
    question: Ints
    weight: Floats
    curve: Floats  # (cells, 0-2): orthonormal, in units of 1 / root of the weight
    scale: Floats  # (rank,): eigenvalues of the segments' information matrix
    vectors: Floats  # (segments, rank)

    @classmethod
    def of(cls, segment: Ints, question: Ints, size: Floats, weight: Floats) -> Design:
        """`size` (segments,) stands for sample size: a parabola in it is taken out, or nothing where it is 0 throughout."""
        weights, root = np.zeros((len(size), question.max() + 1)), np.sqrt(weight)
        np.add.at(weights, (segment, question), weight)
        powers = [root * _within(power[segment], question, weight) for power in (size, size**2)]
        curve = _basis(np.stack(powers, axis=1))
        shared = np.zeros((len(size), curve.shape[1]))
        np.add.at(shared, segment, root[:, None] * curve)
        information = np.diag(weights.sum(axis=1)) - (weights / weights.sum(axis=0)) @ weights.T - shared @ shared.T
        scale, vectors = np.linalg.eigh(information)
        kept = scale > _SMALL * max(float(scale.max()), 1.0)
        return cls(segment, question, weight, curve, scale[kept], vectors[:, kept])

    def fit(self, score: Floats) -> Layout | None:
        """None where nothing tells segments from noise: no two comparable segments, no residual degrees of freedom or no spread."""
        root = np.sqrt(self.weight)
        rest = self._without_fixed(score)
        projected = self.vectors.T @ np.bincount(self.segment, root * rest)
        freedom = len(score) - int(self.question.max()) - 1 - self.curve.shape[1] - len(self.scale)
        left = rest @ rest - (projected**2 / self.scale).sum()
        if not len(self.scale) or freedom < 1 or left <= _SMALL * max(float(rest @ rest), _SMALL**2):
            return None
        effects = self.vectors @ (projected / self.scale)
        cells = np.bincount(self.segment).astype(np.float64)
        fitted = np.bincount(self.segment, score - rest / root) / cells
        unexplained = self._without_fixed(score - effects[self.segment]) / root
        return Layout(self.scale, projected, left / freedom, freedom, fitted, 1 / cells, effects, unexplained)

    def _without_fixed(self, score: Floats) -> Floats:
        """Scores (cells,) less question effects and curve, times the root of the weight."""
        rest = np.sqrt(self.weight) * _within(score, self.question, self.weight)
        return np.asarray(rest - self.curve @ (self.curve.T @ rest))


def _within(values: Floats, question: Ints, weight: Floats | None = None) -> Floats:
    """Values (cells,) less their weighted mean over the cells of the same question."""
    weight = np.ones(len(values)) if weight is None else weight
    return np.asarray(values - (np.bincount(question, weight * values) / np.bincount(question, weight))[question])


def _basis(columns: Floats) -> Floats:
    """Orthonormal columns that span the given ones, without those that add nothing."""
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, sizes > _SMALL * max(float(sizes.max(initial=0)), _SMALL)])


def segment_sizes(ceiling: Floats, segment: Ints, question: Ints) -> Floats:
    """What sample size does to each segment's ceilings, (segments,): their mean excess over those of the same questions."""
    return np.asarray(np.bincount(segment, _within(ceiling, question)) / np.bincount(segment))
