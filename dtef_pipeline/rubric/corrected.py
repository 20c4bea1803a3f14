"""Board rows corrected by people's labels of a few prompts, and how well judges know each class that people chose.

What is estimated is the board's own number, had people decided every point that judges decide: the mean over blueprints of the plain mean over
variants of the mean over prompts, by the prompts' weights, of the mean over draws. `part` is what a response counts for in it, so that the
sum of part times score over a row's responses is that number to the last digit, also where responses are missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.rubric.human_labels import in_force
from dtef_pipeline.rubric.label_keys import ITEM_KEYS
from dtef_pipeline.statistics.cluster_robust import MIN_CLUSTERS, why_none
from dtef_pipeline.statistics.prediction_powered import HALF_WIDTH, Corrected, Labelled, corrected_means
from dtef_pipeline.text.counted import counted

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

BOARD_ROW = ("model",)
BLUEPRINT_ROW = ("blueprint", "model")
_OF_ONE_VARIANT = ("model_variant", "temperature", "system_index")
_DRAWN_KEY = ["blueprint", "prompt"]
CORRECTED_COLUMNS = (
    "judged",
    "corrected",
    "corrected_low",
    "corrected_high",
    "here_low",
    "here_high",
    "power",
    "n_prompts",
    "n_prompts_labelled",
    "prompts_needed",
    "reason",
)


def parts(responses: pd.DataFrame, row: Sequence[str] = BOARD_ROW) -> Floats:
    """(responses,) what each counts for in the number of its board row; those of a row sum to 1.

    `responses`: one row per scored response of the latest snapshot of each blueprint, with the keys of a response and the prompt's `weight`.
    `row`: the columns of a board row, BOARD_ROW or BLUEPRINT_ROW.
    """
    rows, of_blueprint = list(row), list(dict.fromkeys([*row, "blueprint"]))
    variant = [*of_blueprint, *_OF_ONE_VARIANT]

    def groups(names: list[str]) -> Codes:
        return np.asarray(responses.groupby(names, dropna=False, sort=False).ngroup(), dtype=np.int64)

    found = 1 / _members(groups(rows), groups(of_blueprint)) / _members(groups(of_blueprint), groups(variant))
    cell, code = groups([*variant, "prompt"]), groups(variant)
    draws = np.bincount(cell)[cell]
    share = responses["weight"].to_numpy(dtype=np.float64) / draws
    return np.asarray(found * share / np.bincount(code, share)[code])


def corrected(
    responses: pd.DataFrame, drawn: pd.DataFrame, row: Sequence[str] = BOARD_ROW, *, half_width: float = HALF_WIDTH
) -> pd.DataFrame:
    """One row per board row: its columns `row` and CORRECTED_COLUMNS.

    `responses`: one row per scored response with the keys of a response, the prompt's `weight`, `judged` (its score by judges) and `labelled`
    (its score with a label in the place of each point that judges decide; NaN where one of them has no label). `drawn`: as of `sampled`, the
    `probability` of each prompt and whether it was `drawn`, of one draw or several below each other; labels of prompts that were never drawn
    play no part.

    `corrected_low` to `corrected_high` takes prompts for a sample of what might be asked, as the board's own interval does; `here_low` to
    `here_high` is of the board's number on these very prompts. `power` is the lambda of PPI++ (`tuned` of `Corrected`), 0-1.
    `prompts_needed`: prompts to label for a `here` of +- `half_width`. Null where fewer than 5 prompts have labels; `reason` says so.
    """
    if "blueprint" in row:
        made = [_corrected(own, drawn, row, half_width) for _, own in responses.groupby("blueprint", sort=True)]
        return pd.concat(made, ignore_index=True)
    return _corrected(responses, drawn, row, half_width)


def _corrected(responses: pd.DataFrame, drawn: pd.DataFrame, row: Sequence[str], half_width: float) -> pd.DataFrame:
    rows = responses.assign(part=parts(responses, row)).reset_index(drop=True)
    names = list(row)
    code = np.asarray(rows.groupby(names, sort=True, dropna=False).ngroup(), dtype=np.int64)
    unit = np.asarray(rows.groupby(_DRAWN_KEY, sort=True).ngroup(), dtype=np.int64)
    first = np.unique(unit, return_index=True)[1]
    chance = (
        rows.iloc[first][_DRAWN_KEY].merge(_chances(drawn), on=_DRAWN_KEY, how="left")["probability"].to_numpy(dtype=np.float64)
    )
    there = np.isfinite(rows["labelled"].to_numpy(dtype=np.float64)) & np.isfinite(chance[unit])
    found = corrected_means(_tables(rows, unit, code, there, chance), half_width=half_width)
    labels = rows.groupby(names, sort=True, dropna=False).size().reset_index()[names]
    judged = np.asarray(np.bincount(code, rows["part"] * rows["judged"]), dtype=np.float64)
    n_prompts: Codes = np.bincount(np.unique(np.stack([code, unit]), axis=1)[0])
    return labels.assign(**_columns(found, judged, n_prompts))


def _chances(drawn: pd.DataFrame) -> pd.DataFrame:
    """The prompts of any draw, and the chance of each to be in at least one."""
    missed = (
        drawn.assign(missed=1 - drawn["probability"]).groupby(_DRAWN_KEY).agg(missed=("missed", "prod"), drawn=("drawn", "any"))
    )
    return missed[missed["drawn"]].assign(probability=1 - missed["missed"])[["probability"]].reset_index()


def _columns(found: Corrected, judged: Floats, n_prompts: Codes) -> dict[str, Any]:
    reasons = [why_none(int(n), "labelled prompt") for n in found.n_labelled]
    numbers = (found.value, found.low, found.high, found.here_low, found.here_high)
    clipped = [np.clip(number, 0, 1) for number in numbers]
    values = (judged, *clipped, found.tuned, n_prompts, found.n_labelled, found.needed, reasons)
    return dict(zip(CORRECTED_COLUMNS, values, strict=True))


def _tables(rows: pd.DataFrame, unit: Codes, code: Codes, there: npt.NDArray[np.bool_], chance: Floats) -> Labelled:
    """By prompt and board row: the parts of its responses added up, and means by them."""
    shape = (len(chance), int(code.max(initial=-1)) + 1)
    part = rows["part"].to_numpy(dtype=np.float64)
    judged, labelled = (rows[name].to_numpy(dtype=np.float64) for name in ("judged", "labelled"))

    def table(values: Floats) -> Floats:
        flat = np.bincount(unit * shape[1] + code, values, minlength=shape[0] * shape[1])
        return np.asarray(flat.reshape(shape), dtype=np.float64)

    weights, seen = table(part), table(part * there)
    mean = np.divide(table(part * judged), weights, out=np.full(shape, np.nan), where=weights > 0)
    said, judged_there = (
        np.divide(table(part * np.where(there, values, 0.0)), seen, out=np.full(shape, np.nan), where=seen > 0)
        for values in (labelled, judged)
    )
    return Labelled(weights, mean, said, judged_there, chance)


def _members(group: Codes, member: Codes) -> Codes:
    """(rows,) how many distinct members the group of each row has."""
    pairs = np.unique(np.stack([group, member]), axis=1)
    return np.asarray(np.bincount(pairs[0])[group])


def known_classes(judgements: pd.DataFrame, items: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """One row per judge and class that people chose: how judges do where people said this.

    Columns: `judge`, `said` (the number of the class, the mean of its authors rounded to quarters), `n` (judgements), `same` (share of the same
    number, the judge's sensitivity, 0-1: higher is better), `near` (share within a quarter), `bias` (mean judge's number less people's, above 0:
    too generous), `note` (fewer than 5 prompts).
    """
    keys = list(ITEM_KEYS)
    said = items[[*keys, "item"]].merge(in_force(labels)[["item", "score"]], on="item").rename(columns={"score": "said"})
    left, right = (part.assign(path=part["path"].astype("Int64").fillna(-1)) for part in (judgements, said))
    both = left[left["score"].notna()].merge(right[[*keys, "said"]].drop_duplicates(keys), on=keys)
    off = both["score"] - both["said"]
    unit = both["blueprint"] + "/" + both["prompt"]
    both = both.assign(said=(both["said"] * 4).round() / 4, same=off.abs() < 1 / 8, near=off.abs() < 3 / 8, bias=off, unit=unit)
    grouped = both.groupby(["judge", "said"], sort=True)
    found = grouped.agg(
        n=("same", "size"), same=("same", "mean"), near=("near", "mean"), bias=("bias", "mean"), units=("unit", "nunique")
    )
    notes = ["" if n >= MIN_CLUSTERS else f"of {counted(int(n), 'prompt')} alone" for n in found["units"]]
    return found.assign(note=notes).drop(columns="units").reset_index()
