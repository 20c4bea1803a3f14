"""How much a model's accuracy truly differs between segments: a variance component instead of a raw standard deviation.

The standard deviation of segment means grows with the noise of small samples and with the luck of which questions a segment answered. Here the
scores of one model are laid out as segments x questions and modelled as

    score = question effect + curve of the segment's ceilings + segment effect + rest,

the segment effects being random with standard deviation `segment_sd_true`. A segment's ceilings stand for what a small sample does to every
score. How much of that a model feels is estimated (a parabola), for a poor predictor's score is lowered less than a good one's: the shortfall
`ceiling - score` would make segments with few respondents look well predicted.
"""

from __future__ import annotations

from dataclasses import dataclass

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
from dtef_pipeline.survey.blueprint.options import ContextLevel
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.scoring.metrics import Floats

_COMPONENT_KEYS = list(KEYS.series)
_COMPONENTS = ("segment_sd_expected", "segment_sd_true", "segment_sd_low", "segment_sd_high", "segment_p")
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


def consistency_components(cells: pd.DataFrame, options: BoardOptions) -> pd.DataFrame:
    """One row per (model, model_variant, context_level, condition), over its scored `cells` (as of `load_cells`).

    `segment_sd_expected`: standard deviation of the segment means that would be seen without any segment effect, from sample sizes, the
    questions that each answered and noise. `segment_sd_true`: standard deviation of the segment effects, 0 or more, in units of the score;
    0 = equally accurate everywhere. `segment_sd_low`, `segment_sd_high`: its 95 % interval. `segment_p`: of the hypothesis that it is 0 (F
    test). `consistency_note`: why something is null, or that ceilings are not known and scores are not adjusted for sample size.

    Segments are those of one round; their effects are taken as normal, the rest as normal and independent. Nothing is random: `options` has
    no say in it beyond the choice of cells.
    """
    scored = cells[cells["score"].notna()].assign(
        row=lambda frame: frame.groupby(list(KEYS.space), observed=True, sort=False).ngroup(),
        column=lambda frame: frame.groupby("cluster", observed=True, sort=False).ngroup(),
    )
    designs: dict[bytes, Design] = {}  # models asked alike share one
    rows = [
        dict(zip(_COMPONENT_KEYS, key, strict=True)) | _components(group, designs)
        for key, group in scored.groupby(_COMPONENT_KEYS, observed=True, sort=False)
    ]
    frame = pd.DataFrame(rows, columns=[*_COMPONENT_KEYS, *_COMPONENTS, "consistency_note"])
    return frame.astype(dict.fromkeys(_COMPONENTS, "float64"))


def _components(cells: pd.DataFrame, designs: dict[bytes, Design]) -> dict[str, object]:
    known = bool(cells["ceiling"].notna().any())
    used = cells[cells["ceiling"].notna()] if known else cells
    _, segment = np.unique(used["row"].to_numpy(), return_inverse=True)
    _, question = np.unique(used["column"].to_numpy(), return_inverse=True)
    found: dict[str, object] = dict.fromkeys(_COMPONENTS)
    questions, segments = int(question.max()) + 1, int(segment.max()) + 1
    if segments < 2 or questions < MIN_CLUSTERS:
        return found | {"consistency_note": "one segment" if segments < 2 else why_none(questions, "question")}
    size = segment_sizes(used["ceiling"].to_numpy(), segment, question) if known else np.zeros(segments)
    same = segment.tobytes() + question.tobytes() + size.tobytes()
    if same not in designs:
        designs[same] = Design.of(segment, question, size)
    layout = designs[same].fit(used["score"].to_numpy())
    if layout is None:
        return found | {"consistency_note": "too few segments and shared questions to tell segments from noise"}
    ratio = layout.ratio()
    components = (float(np.sqrt(part * layout.residual)) for part in ratio[:3])
    numbers = (layout.expected_sd(), *components, ratio.p)
    note = "" if known else "ceilings are not known: not adjusted for sample size"
    return dict(zip(_COMPONENTS, numbers, strict=True)) | {"consistency_note": note}


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
    cells: Floats  # (segments,): cells of each

    def expected_sd(self) -> float:
        """Standard deviation of the segment means without segment effects."""
        return float(np.sqrt(self.fitted.var(ddof=1) + self.residual * (1 / self.cells).mean()))

    def ratio(self) -> VarianceRatio:
        """Of the segments' variance component to the residual: mean projected^2 / (scale + ratio scale^2) / residual follows F."""

        def statistic(ratio: float) -> float:
            return float((self.projected**2 / (self.scale + ratio * self.scale**2)).mean() / self.residual)

        return variance_ratio(statistic, len(self.scale), self.freedom)


@dataclass(frozen=True, slots=True)
class Design:
    """Which segments answered which questions, ready to be fitted to any model's scores: question effects and a curve are fixed."""

    segment: Ints  # (cells,), numbered from 0
    question: Ints
    curve: Floats  # (cells, 0-2): orthonormal
    scale: Floats  # (rank,): eigenvalues of the segments' information matrix
    vectors: Floats  # (segments, rank)

    @classmethod
    def of(cls, segment: Ints, question: Ints, size: Floats) -> Design:
        """`size` (segments,) stands for sample size: a parabola in it is taken out, or nothing where it is 0 throughout."""
        counts = np.zeros((len(size), question.max() + 1))
        np.add.at(counts, (segment, question), 1.0)
        powers = [_within(power[segment], question) for power in (size, size**2)]
        curve = _basis(np.stack(powers, axis=1))
        shared = np.zeros((len(size), curve.shape[1]))
        np.add.at(shared, segment, curve)
        information = np.diag(counts.sum(axis=1)) - (counts / counts.sum(axis=0)) @ counts.T - shared @ shared.T
        scale, vectors = np.linalg.eigh(information)
        kept = scale > _SMALL * max(float(scale.max()), 1.0)
        return cls(segment, question, curve, scale[kept], vectors[:, kept])

    def fit(self, score: Floats) -> Layout | None:
        """None where nothing tells segments from noise: no two comparable segments, no residual degrees of freedom or no spread."""
        rest = _within(score, self.question)
        rest = rest - self.curve @ (self.curve.T @ rest)
        projected = self.vectors.T @ np.bincount(self.segment, rest)
        freedom = len(score) - int(self.question.max()) - 1 - self.curve.shape[1] - len(self.scale)
        left = rest @ rest - (projected**2 / self.scale).sum()
        if not len(self.scale) or freedom < 1 or left <= _SMALL * max(float(rest @ rest), _SMALL**2):
            return None
        cells = np.bincount(self.segment).astype(np.float64)
        return Layout(self.scale, projected, left / freedom, freedom, np.bincount(self.segment, score - rest) / cells, cells)


def _within(values: Floats, question: Ints) -> Floats:
    """Values (cells,) less their mean over the cells of the same question."""
    return np.asarray(values - (np.bincount(question, values) / np.bincount(question))[question])


def _basis(columns: Floats) -> Floats:
    """Orthonormal columns that span the given ones, without those that add nothing."""
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, sizes > _SMALL * max(float(sizes.max(initial=0)), _SMALL)])


def segment_sizes(ceiling: Floats, segment: Ints, question: Ints) -> Floats:
    """What sample size does to each segment's ceilings, (segments,): their mean excess over those of the same questions."""
    return np.asarray(np.bincount(segment, _within(ceiling, question)) / np.bincount(segment))
