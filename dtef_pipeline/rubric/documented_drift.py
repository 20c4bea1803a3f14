"""The documented drift rule over runs of one blueprint: lowest against highest hybrid score of a model on an identical test.

Source: weval methodology, 5.2. The rule itself is that of `dtef_pipeline.drift.rule`; here stands what it is applied to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime

import numpy as np
import pandas as pd

from dtef_pipeline.asking.snapshot_order import among
from dtef_pipeline.drift.rule import DriftVerdict, answered, drift_verdict
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.rubric.aggregate import CELL_LEVEL
from dtef_pipeline.rubric.levels import CELL_KEYS, RUN_KEYS, grouped, in_order, with_key_types
from dtef_pipeline.text.counted import and_more

_SERIES_KEYS = ("blueprint", "run_label", "model", "model_variant")
_MOST_RUNS_NAMED = 3
DOCUMENTED_DRIFT = (*_SERIES_KEYS, *DriftVerdict.__dataclass_fields__, "investigate")


def documented_drift(
    table: pd.DataFrame, runs: pd.DataFrame, times: Mapping[tuple[str, ...], datetime | None], order: Sequence[str]
) -> pd.DataFrame:
    """One row per blueprint, run label and variant at temperature 0; columns DOCUMENTED_DRIFT.

    `table`: cells as of `scores`. `runs`: blueprint, snapshot and `run_label`, which is equal where test, judges and policy are; runs of
    different labels are never compared. `times`: when each (blueprint, snapshot) was run; unknown: None or not there. `order`: snapshots
    from the oldest on.

    An item is a prompt with its place in the list of system prompts; a run's score is the mean hybrid score, by the weights of the prompts,
    over the items scored in every run that has half of them. A model must have taken part in all runs of the label, which are to span 23
    hours. `lowest_snapshot` and `highest_snapshot` are the two runs to compare; `investigate`: true for the flagged row of a blueprint and run
    label that has the largest gap. What the other columns say: `DriftVerdict`.
    """
    keys = ("blueprint", "snapshot", "run_label")
    labelled = with_key_types(runs, "runs", keys)[list(keys)].astype({"run_label": "str"})
    cells = with_key_types(table, "scores", ("level", *CELL_KEYS, "hybrid", "weight"))
    cells = cells[(cells["level"] == CELL_LEVEL) & (cells["temperature"] == 0)].reset_index(drop=True)
    cells = in_order(cells, CELL_KEYS, "scores").merge(labelled, "inner", list(RUN_KEYS), validate="many_to_one")
    rows = []
    for (blueprint, label), own in cells.groupby(["blueprint", "run_label"], sort=True):
        taken = labelled[(labelled["blueprint"] == blueprint) & (labelled["run_label"] == label)]["snapshot"]
        snapshots = among(order, taken.tolist())
        when = {snapshot: times.get((str(blueprint), snapshot)) for snapshot in snapshots}
        for (model, variant), series in own.groupby(["model", "model_variant"], sort=True):
            verdict = _verdict(series, snapshots, when)
            rows.append({**dict(zip(_SERIES_KEYS, (blueprint, label, model, variant), strict=True)), **asdict(verdict)})
    found = pd.DataFrame(rows, columns=[*DOCUMENTED_DRIFT[:-1]])
    return found.assign(investigate=_largest(found))


def _verdict(series: pd.DataFrame, snapshots: Sequence[str], times: Mapping[str, datetime | None]) -> DriftVerdict:
    """The rule on the cells of one variant, one run label; `snapshots`: all runs of the label."""
    items = grouped(series, ("prompt", "system_index"))
    weights = series["weight"].to_numpy(dtype=np.float64)[np.unique(items.code, return_index=True)[1]]
    grid = np.full((len(items), len(snapshots)), np.nan)
    place = {label: at for at, label in enumerate(snapshots)}
    grid[items.code, [place[label] for label in series["snapshot"]]] = series["hybrid"].to_numpy(dtype=np.float64)
    known = answered(pd.DataFrame(grid, columns=list(snapshots)))
    if missing := [label for label in snapshots if label not in known.columns]:
        return _not_compared(len(known.columns), missing)
    shared = known.dropna()
    mean = np.average(shared, axis=0, weights=weights[shared.index], keepdims=True) if len(shared) else shared
    means = pd.DataFrame(mean, columns=known.columns, dtype=np.float64)
    return replace(drift_verdict(means, times, temperature=0.0), n_items=len(shared))


def _not_compared(n_snapshots: int, missing: Sequence[str]) -> DriftVerdict:
    why = f"not compared: no score for half of the prompts in {and_more(missing, _MOST_RUNS_NAMED)}; the rule asks for all runs"
    return DriftVerdict(n_snapshots, 0, None, None, None, None, None, False, why)


def _largest(found: pd.DataFrame) -> pd.Series:
    """(rows,) whether each is the flagged row with the largest gap of its blueprint and run label; of equal ones the first."""
    flagged = found[found["flagged"].astype(bool)].sort_values("gap", ascending=False, kind="stable")
    first = flagged.drop_duplicates(["blueprint", "run_label"]).index
    return pd.Series(found.index.isin(first), found.index)


def times_of(rows: pd.DataFrame) -> dict[tuple[str, ...], datetime | None]:
    """When each run was: the earliest `answered_at` of its rows, by (blueprint, snapshot); None where none is known."""
    if missing := {*RUN_KEYS, "answered_at"} - set(rows):
        raise ConfigError(f"times of runs: no column {', '.join(sorted(missing))}; got {', '.join(map(str, rows.columns))}")
    first = rows.groupby(list(RUN_KEYS), sort=True, as_index=False)["answered_at"].min()
    return {
        (str(blueprint), str(snapshot)): None if pd.isna(time) else pd.Timestamp(time).to_pydatetime()
        for blueprint, snapshot, time in first.itertuples(index=False, name=None)
    }
