"""Self-preference of judges: an estimate of how much they favour models of their own maker, and the removal of such judgements.

Let y be the point of a judgement (1 - the class's number for should_not) and an item a criterion of a response. The model is y = item +
judge + gamma x (judge and model have one maker) + error. The item effect removes the quality of the response as all its judges see it, the
judge effect removes strictness; gamma is how much more a judge gives to responses of its own maker than others give to the same responses.
Both effects are removed exactly, even if judgements are missing (Frisch & Waugh 1933; Lovell 1963), which leaves a ratio of sums; its
interval and test are by whole prompts (`estimate_ratios`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.makers import find_maker
from dtef_pipeline.rubric.blueprint.model import SHOULD_NOT
from dtef_pipeline.rubric.levels import number_groups
from dtef_pipeline.rubric.tables import JUDGED_UNIT
from dtef_pipeline.statistics.cluster_robust import estimate_ratios, explain_missing
from dtef_pipeline.statistics.multiplicity import holm

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

MakerOf = Callable[[str], str | None]
"""A model's maker by the model's name; None: unknown, and different from every other maker."""
ALL_JUDGES = "all"
FAVOURED_AT = 0.05
_NO_OTHER_JUDGE = "no judge of another maker judged the same responses"
_NO_VARIATION = 1e-9
_NOT_IDENTIFIABLE = (
    "cannot be separated from the judge's strictness: judges of other makers must judge the same responses, and a judge or a model of a "
    "third maker is needed"
)
_GAMMA_NUMBERS = ("gamma", "low", "high", "p")
_PREFERENCE = ("judge", "model", "maker", *_GAMMA_NUMBERS, "p_adjusted", "n", "n_prompts", "flagged", "reason")


def map_makers(judgements: pd.DataFrame) -> MakerOf:
    """Map the names in `model` and `judge_model` to makers, by the model strings in `model_variant` and `judge_variant`.

    A name such as `gpt-4.1-mini` does not identify the provider.
    """
    pairs = [
        pair
        for names in (("model", "model_variant"), ("judge_model", "judge_variant"))
        for pair in judgements[list(names)].drop_duplicates().itertuples(index=False, name=None)
    ]
    return {str(name): find_maker(str(variant)) for name, variant in pairs}.get


def is_same_maker(judgements: pd.DataFrame, get_maker: MakerOf) -> npt.NDArray[np.bool_]:
    """Return whether `judge_model` and `model` have the same known maker, (judgements,)."""
    judges, models = (_find_makers(judgements[name], get_maker) for name in ("judge_model", "model"))
    return np.asarray((judges == models) & (judges != ""))


def remove_own_judges(judgements: pa.Table) -> pa.Table:
    """Return the rows of `rubric_judgements` without judgements of a model by a judge of its own maker."""
    named = judgements.select(["judge_model", "judge_variant", "model", "model_variant"]).to_pandas()
    return judgements.filter(pa.array(~is_same_maker(named, map_makers(named))))


def estimate_self_preference(judgements: pd.DataFrame, get_maker: MakerOf) -> pd.DataFrame:
    """Return one row for all judges together (`judge` and `model` are `all`), then one per judge and model of one maker.

    Columns: `judge`, `model`, `maker`, `gamma` (units of the score; above 0: the own maker is favoured), `low`, `high` (95 %), `p`
    (two-sided), `p_adjusted` (over all pairs; in the first row, p), `n` (same-maker judgements used), `n_prompts` (of these), `flagged`
    (gamma above 0 and p_adjusted below .05), `reason` (why there is no estimate or interval). A pair is compared only with judgements by
    judges of other makers; other pairs of one maker are left out.

    `judgements`: see rubric_judgements; judgements without a class and items with one judge are ignored.
    """
    rows = judgements[judgements["score"].notna()].reset_index(drop=True)
    is_own = is_same_maker(rows, get_maker)
    score = rows["score"].to_numpy(dtype=np.float64)
    y = np.where(rows["block"].to_numpy() == SHOULD_NOT, 1 - score, score)
    item = number_groups(rows, JUDGED_UNIT)
    judge, prompt = number_groups(rows, ["judge"]), number_groups(rows, ["blueprint", "prompt"])
    estimates: list[dict[str, Any]] = [
        {"judge": ALL_JUDGES, "model": ALL_JUDGES, "maker": None, **_estimate(y, is_own, item, judge, prompt)}
    ]
    pairs = (
        rows.loc[is_own, ["judge", "model", "judge_model"]].drop_duplicates(["judge", "model"]).sort_values(["judge", "model"])
    )
    names, models = rows["judge"].to_numpy(), rows["model"].to_numpy()
    for pair in pairs.itertuples():
        is_pair = is_own & (names == pair.judge) & (models == pair.model)
        mask = ~is_own | is_pair
        estimate = _estimate(y[mask], is_pair[mask], item[mask], judge[mask], prompt[mask])
        estimates.append({"judge": pair.judge, "model": pair.model, "maker": get_maker(str(pair.judge_model)), **estimate})
    table = pd.DataFrame(estimates)
    adjusted = np.concatenate([table["p"].to_numpy()[:1], holm(table["p"].to_numpy()[1:])])
    is_favoured = (adjusted < FAVOURED_AT) & (table["gamma"].to_numpy() > 0)
    return table.assign(p_adjusted=adjusted, flagged=is_favoured)[list(_PREFERENCE)]


def _estimate(y: Floats, is_own: npt.NDArray[np.bool_], item: Codes, judge: Codes, prompt: Codes) -> dict[str, Any]:
    several = np.bincount(item)[item] > 1
    y, x = y[several], is_own[several].astype(np.float64)
    item, judge, prompt = (
        np.asarray(pd.factorize(code[several], sort=True)[0], dtype=np.int64) for code in (item, judge, prompt)
    )
    row: dict[str, Any] = dict.fromkeys(_GAMMA_NUMBERS, np.nan)
    clusters = np.unique(prompt[x > 0])
    row |= {"n": int(x.sum()), "n_prompts": len(clusters)}
    if not len(clusters):
        return row | {"reason": _NO_OTHER_JUDGE if is_own.any() else "no judge shares a maker with a model it judged"}
    residuals = _remove_judge_effects(np.stack([y, x], axis=1), item, judge)
    size = float(residuals[:, 1] @ residuals[:, 1])
    if size <= _NO_VARIATION * len(y):
        return row | {"reason": _NOT_IDENTIFIABLE}
    sums, squares = (np.bincount(prompt, residuals[:, 1] * column)[:, None] for column in residuals.T)
    informs = squares > _NO_VARIATION * size
    ratio = estimate_ratios(np.where(informs, sums, 0), np.where(informs, squares, 0))
    row |= {"gamma": float(ratio.value[0]), "reason": explain_missing(min(int(ratio.n_clusters[0]), len(clusters)), "prompt")}
    if row["reason"]:
        return row
    (low, high), p = ratio.interval(), ratio.p()
    return row | {"low": float(low[0]), "high": float(high[0]), "p": float(p[0])}


def _remove_judge_effects(columns: Floats, item: Codes, judge: Codes) -> Floats:
    """Return `columns` (rows, columns) minus the item and judge effects that fit each best."""
    dummies = (judge[:, None] == np.arange(1, judge.max() + 1)).astype(np.float64)
    sizes = np.bincount(item)
    deviations = np.stack([column - (np.bincount(item, column) / sizes)[item] for column in (*columns.T, *dummies.T)], axis=1)
    mine, judges = deviations[:, : columns.shape[1]], deviations[:, columns.shape[1] :]
    if not judges.shape[1]:
        return mine
    slopes = np.linalg.lstsq(judges.T @ judges, judges.T @ mine, rcond=1e-10)[0]
    return np.asarray(mine - judges @ slopes)


def _find_makers(names: pd.Series, get_maker: MakerOf) -> npt.NDArray[np.object_]:
    """Return the maker of each name, looked up once per name; empty if unknown."""
    codes, distinct = pd.factorize(names)
    return np.array([get_maker(str(name)) or "" for name in distinct] or [""], dtype=object)[codes]
