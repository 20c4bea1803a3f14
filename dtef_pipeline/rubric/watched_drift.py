"""What is watched for drift of rubrics: hybrid scores of prompts, night by night, beside the documented rule.

An item is a prompt of a blueprint with one of its system prompts; its value is the hybrid score of its cell. A series is a model variant under
one set of judges. Items are compared within one run label alone: an edited test, another judge or another policy makes other items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.snapshot_order import among
from dtef_pipeline.drift.anchored import JudgeDrift, night_times
from dtef_pipeline.drift.models import ModelDrift
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.drift.rule import DriftVerdict, answered, drift_verdict
from dtef_pipeline.drift.watched import first_times, of_whole_models, watched_models
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.keys import Keys
from dtef_pipeline.rubric.aggregate import CELL_LEVEL
from dtef_pipeline.rubric.anchor_rows import judge_drifts, net_of_judges
from dtef_pipeline.rubric.board import rubric_snapshot_order
from dtef_pipeline.rubric.levels import CELL_KEYS, RUN_KEYS, grouped, in_order, with_key_types
from dtef_pipeline.rubric.roll_up_tables import RUBRIC_DRIFT, RUBRIC_DRIFT_SERIES, RUBRIC_MODEL_DRIFT
from dtef_pipeline.tables import in_schema
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


DRIFT_READS = ("rubric_scores", "rubric_runs", "rubric_responses")
"""The tables that drift is told by."""
WATCHED_KEYS = Keys(
    space=("blueprint", "system"),
    item="prompt",
    noun="prompt",
    asked=("judges",),
    cluster="cluster",
    score_again="score those blueprints again with `dtef rubric run`",
)
_JUDGED_BY = "coalesce(nullif(array_to_string(judges, ', '), ''), 'functions alone')"
_WATCHED_SCORES = f"""
    CREATE OR REPLACE TEMP TABLE scores AS
    SELECT cells.blueprint::VARCHAR AS blueprint, system_index::VARCHAR AS system, prompt, {_JUDGED_BY} AS judges, model, model_variant,
        cells.snapshot::VARCHAR AS snapshot, temperature, hybrid AS score, CASE WHEN hybrid IS NULL THEN 'error' ELSE 'ok' END AS status,
        'hybrid' AS metric, prompt AS prompt_id, run_label AS truth_id, first_answered AS answered_at
    FROM rubric_scores AS cells JOIN rubric_runs AS runs ON cells.blueprint = runs.blueprint AND cells.snapshot = runs.snapshot
        LEFT JOIN first_answers ON cells.blueprint::VARCHAR = first_answers.blueprint AND cells.snapshot::VARCHAR = first_answers.snapshot
    WHERE level = 'cell'
"""
_WATCHED_SERVED = f"""
    CREATE OR REPLACE TEMP TABLE predictions AS
    SELECT DISTINCT responses.blueprint::VARCHAR AS blueprint, {_JUDGED_BY} AS judges, model, model_variant,
        responses.snapshot::VARCHAR AS snapshot, served_model, fingerprint
    FROM rubric_responses AS responses JOIN rubric_runs AS runs
        ON responses.blueprint = runs.blueprint AND responses.snapshot = runs.snapshot
"""
_FIRST_ANSWERS = """
    CREATE OR REPLACE TEMP TABLE first_answers AS
    SELECT blueprint::VARCHAR AS blueprint, snapshot::VARCHAR AS snapshot, min(answered_at) AS first_answered
    FROM rubric_responses GROUP BY ALL
"""


WATCHED = of_whole_models(
    WATCHED_KEYS,
    RUBRIC_MODEL_DRIFT,
    RUBRIC_DRIFT_SERIES,
    truth="rubric",
    truths="rubrics, judges or policies",
    way="judged by {judges}",
    unlike="had other prompts or another run label: test, judges or policy",
)
"""Scores of rubrics. A blueprint has too few prompts for a verdict of its own."""


def documented_drift_table(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """RUBRIC_DRIFT: the documented rule on every run label and variant at temperature 0. `connection` has the tables of DRIFT_READS."""
    cells = connection.execute("SELECT * EXCLUDE (reasons) FROM rubric_scores WHERE level = 'cell'").df()
    runs = connection.execute(
        "SELECT blueprint::VARCHAR AS blueprint, snapshot::VARCHAR AS snapshot, run_label FROM rubric_runs"
    ).df()
    times = first_times(connection, "rubric_responses", ("blueprint",))
    return in_schema(documented_drift(cells, runs, times, rubric_snapshot_order(connection)), RUBRIC_DRIFT)


def watched_drift(connection: duckdb.DuckDBPyConnection, options: WatchOptions | None = None) -> ModelDrift:
    """The project's evidence: one row per model variant and set of judges, and its timeline. `connection` has the tables of DRIFT_READS."""
    return watched_models(connection, WATCHED, (_FIRST_ANSWERS, _WATCHED_SCORES, _WATCHED_SERVED), options)


def net_drift(checks: pa.Table, anchored: pd.DataFrame, options: WatchOptions | None = None) -> pa.Table:
    """RUBRIC_MODEL_DRIFT with what is the judges' part of each model's shift; as it was where no anchors were judged.

    `anchored`: the rows of `rubric_anchors`, which judges were shown again in these nights.
    """
    if not len(anchored):
        return checks
    options, nights = options or WatchOptions(), night_times(anchored["snapshot"].astype(str).unique().tolist())
    judged: dict[str | None, list[JudgeDrift]] = {}
    rows = []
    for row in checks.to_pylist():
        since = options.since_of(row["model"], row["model_variant"])
        if since not in judged:
            judged[since] = judge_drifts(anchored, nights, options.beside(row["model"], row["model_variant"]))
        own = [one for one in judged[since] if one.judge in row["judges"].split(", ")]
        net = net_of_judges(row, own)
        told = {"cause": net.cause, "judges_shift": net.judges_shift, "net_shift": net.net_shift, "told_of_judges": net.text}
        rows.append({**row, **told})
    return pa.Table.from_pylist(rows, checks.schema)
