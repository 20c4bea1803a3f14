"""The published policy: the column `score` for each status.

`score` is always a similarity, higher is better: for a distance (`tv`, `mae`) it is 1 - distance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.scoring.matrices import has_listed_order
from dtef_pipeline.survey.scoring.metrics import Floats, emd_normalized_on_scale, measure
from dtef_pipeline.survey.tables import DISTANCES, METRICS
from dtef_pipeline.tables import STATUSES


class Credit(NamedTuple):
    """The score of every row of one status, or None if the row is left out of every mean."""

    status: str
    score: float | None
    reason: str


CREDITS = (
    Credit("unparseable", 0.0, "methodology 4.4: parsing failed entirely"),
    Credit("refused", 0.0, "the model answered, but gave no distribution"),
    Credit("wrong_length", 0.1, "methodology 4.4: partial credit for attempting a response"),
    Credit("error", None, "the call failed, so the model cannot be scored"),
    Credit("missing", None, "no request was possible, so the model cannot be scored"),
    Credit("budget", None, "no request was sent, because a budget was reached"),
)
"""Status `ok` is scored by the metric; where the metric has no value (emd_normalized on a nominal scale) neither has the score."""

_CREDIT = {credit.status: np.nan if credit.score is None else credit.score for credit in CREDITS}


def check_metric_name(metric: str) -> str:
    """Return the metric's name. Raises ConfigError, with all names, for another."""
    if metric not in METRICS:
        raise ConfigError(f"no metric {metric!r}; allowed: {', '.join(METRICS)}")
    return metric


def apply_policy(
    status: pa.Array | npt.NDArray[np.str_] | list[str], values: npt.ArrayLike, metric: str
) -> npt.NDArray[np.float64]:
    """Return scores (rows,) under the policy; NaN without score.

    `status` is (rows,), `values` (rows,) the metric's values, which are used only if the status is ok (NaN: no value).
    """
    check_metric_name(metric)
    similarity = np.asarray(values, dtype=np.float64)
    if metric in DISTANCES:
        similarity = 1 - similarity
    statuses = status if isinstance(status, pa.Array) else pa.array(list(status), pa.string())
    if pc.all(pc.equal(statuses, "ok"), min_count=0, skip_nulls=False).as_py():
        return similarity
    states = statuses.dictionary_encode()
    named = states.dictionary.to_pylist()
    if strange := sorted(set(named) - set(STATUSES)):
        raise ConfigError(f"no status {strange[0]!r}; allowed: {', '.join(STATUSES)}")
    code = states.indices.to_numpy(zero_copy_only=False)
    credit = np.array([np.nan if name == "ok" else _CREDIT[name] for name in named])
    is_ok = np.array([name == "ok" for name in named], dtype=bool)
    return np.where(is_ok[code], similarity, credit[code]) if len(code) else np.zeros(0)


def measure_on_scale(
    predicted: npt.ArrayLike, observed: npt.ArrayLike, *, ordinal: bool, ranks: npt.NDArray[np.int64]
) -> dict[str, Floats]:
    """Return every metric of one question's rows (rows, k) or of a single (k,), NaN without a value.

    `emd_normalized` has no value on a nominal scale, and uses the `ranks` (k,) of the options on the scale, -1 off it.
    """
    values = measure(predicted, observed)
    if not ordinal:
        values["emd_normalized"] = np.full_like(values["emd_normalized"], np.nan)
    elif not has_listed_order(ranks):
        values["emd_normalized"] = emd_normalized_on_scale(predicted, observed, ranks)
    return values


def compute_similarities(
    predicted: npt.ArrayLike, observed: npt.ArrayLike, *, ordinal: bool, ranks: npt.NDArray[np.int64]
) -> dict[str, Floats]:
    """Return `measure_on_scale` as similarities, higher is better: a distance becomes 1 - distance."""
    values = measure_on_scale(predicted, observed, ordinal=ordinal, ranks=ranks)
    return {name: 1 - value if name in DISTANCES else value for name, value in values.items()}
