"""What is watched for drift of rubrics: hybrid scores of prompts, night by night, beside the documented rule.

An item is a prompt of a blueprint with one of its system prompts; its value is the hybrid score of its cell. A series is a model variant under
one set of judges. Items are compared within one run label alone: an edited test, another judge or another policy makes other items.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.snapshot_order import among
from dtef_pipeline.drift.anchored import JudgeDrift, drifts_of_judges, night_times
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.drift.rule import DriftVerdict, answered, drift_verdict
from dtef_pipeline.drift.rule_table import first_times
from dtef_pipeline.drift.subject import JudgedAgain, Row, Subject
from dtef_pipeline.keys import Keys
from dtef_pipeline.rubric.anchor_rows import net_of_judge_drifts, points_of_anchors
from dtef_pipeline.rubric.board import rubric_snapshot_order
from dtef_pipeline.text.counted import and_more

_MOST_RUNS_NAMED = 3
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
_RULED_BY = ("partition", "test", "judges", "model", "model_variant")
_RULED_CELLS = f"""
    SELECT cells.blueprint::VARCHAR AS partition, run_label AS test, {_JUDGED_BY} AS judges, model, model_variant, prompt,
        coalesce(system_index, -1) AS system, cells.snapshot::VARCHAR AS snapshot, hybrid, weight
    FROM rubric_scores AS cells JOIN rubric_runs AS runs ON cells.blueprint = runs.blueprint AND cells.snapshot = runs.snapshot
    WHERE level = 'cell' AND temperature = 0 ORDER BY ALL
"""
_FIRST_ANSWERS = """
    CREATE OR REPLACE TEMP TABLE first_answers AS
    SELECT blueprint::VARCHAR AS blueprint, snapshot::VARCHAR AS snapshot, min(answered_at) AS first_answered
    FROM rubric_responses GROUP BY ALL
"""


def rule_on_runs(connection: duckdb.DuckDBPyConnection) -> Iterator[dict[str, Any]]:
    """The documented rule on every run label and variant at temperature 0. Runs of one label have test, judges and policy in common.

    An item is a prompt with its place in the list of system prompts; a run's score is the mean hybrid score, by the weights of the prompts,
    over the items scored in every run that has half of them. A model must have taken part in all runs of the label, which are to span 23
    hours.
    """
    runs = connection.execute("SELECT blueprint::VARCHAR, run_label, list(snapshot::VARCHAR) FROM rubric_runs GROUP BY ALL")
    taken = {(blueprint, label): snapshots for blueprint, label, snapshots in runs.fetchall()}
    times, order = first_times(connection, "rubric_responses", ("blueprint",)), rubric_snapshot_order(connection)
    for keys, cells in connection.execute(_RULED_CELLS).df().groupby([*_RULED_BY], sort=True):
        named = dict(zip(_RULED_BY, map(str, keys), strict=True))
        snapshots = among(order, taken[named["partition"], named["test"]])
        when = {snapshot: times.get((named["partition"], snapshot)) for snapshot in snapshots}
        yield {**named, "way": way_of_judging(named), **asdict(_verdict(cells, snapshots, when))}


def _verdict(cells: pd.DataFrame, snapshots: Sequence[str], times: Mapping[str, datetime | None]) -> DriftVerdict:
    """The rule on the cells of one variant, one run label; `snapshots`: all runs of the label."""
    items = ["prompt", "system"]
    weights = cells.groupby(items, sort=True)["weight"].first().to_numpy(dtype=np.float64)
    grid = cells.pivot(index=items, columns="snapshot", values="hybrid")  # noqa: PD010 - pivot_table loses items without a score
    # In rows, one after the other: sums have the same bits whatever the layout in memory was.
    values = np.ascontiguousarray(grid.reindex(columns=list(snapshots)), dtype=np.float64)
    known = answered(pd.DataFrame(values, columns=list(snapshots)))
    if missing := [label for label in snapshots if label not in known.columns]:
        return _not_compared(len(known.columns), missing)
    shared = known.dropna()
    mean = np.average(shared, axis=0, weights=weights[shared.index], keepdims=True) if len(shared) else shared
    means = pd.DataFrame(mean, columns=known.columns, dtype=np.float64)
    return replace(drift_verdict(means, times, temperature=0.0), n_items=len(shared))


def _not_compared(n_snapshots: int, missing: Sequence[str]) -> DriftVerdict:
    why = f"not compared: no score for half of the prompts in {and_more(missing, _MOST_RUNS_NAMED)}; the rule asks for all runs"
    return DriftVerdict(n_snapshots, 0, None, None, None, None, None, False, why)


def way_of_judging(row: Row) -> str:
    return f"judged by {row['judges']}"


def net_of_judges(rows: Sequence[Row], anchored: pa.Table, options: WatchOptions) -> Iterator[Row]:
    """Of each series what is the judges' part of its shift; nothing where no stored answers were judged again.

    `rows`: of `ModelDrift`. `anchored`: the rows of `rubric_anchors`, which judges were shown again in these nights.
    """
    frame = points_of_anchors(anchored)
    nights = night_times(frame["snapshot"].unique().tolist())
    judged: dict[str | None, list[JudgeDrift]] = {}
    for row in rows:
        if not len(frame):
            yield {}
            continue
        since = options.since_of(row["model"], row["model_variant"])
        if since not in judged:
            judged[since] = drifts_of_judges(frame, nights, options.beside(row["model"], row["model_variant"]))
        net = net_of_judge_drifts(row, [one for one in judged[since] if one.judge in row["judges"].split(", ")])
        yield {"cause": net.cause, "net_shift": net.net_shift, "judges_note": net.text}


WATCHED = Subject(
    family="rubric",
    keys=WATCHED_KEYS,
    way=way_of_judging,
    truth="rubric",
    truths="rubrics, judges or policies",
    reads=("rubric_scores", "rubric_runs", "rubric_responses"),
    statements=(_FIRST_ANSWERS, _WATCHED_SCORES, _WATCHED_SERVED),
    rule=rule_on_runs,
    judged_again=JudgedAgain("rubric_anchors", points_of_anchors, net_of_judges),
    unlike="had other prompts or another run label: test, judges or policy",
)
"""Scores of rubrics. A blueprint has too few prompts for a verdict of its own."""
