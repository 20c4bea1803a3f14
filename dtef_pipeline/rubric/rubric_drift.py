"""Drift of rubrics: hybrid scores of prompts, snapshot by snapshot, and the documented rule.

An item is a prompt of a blueprint with one of its system prompts; its value is the hybrid score of its cell. A series is a model variant
under one set of judges. Items are compared only within one run label: an edited test, another judge or another policy makes other items.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.asking.snapshot_order import among
from dtef_pipeline.drift.judge_verdicts import JudgeDrift, compute_judge_drifts, sort_snapshot_times, subtract_judges_of_row
from dtef_pipeline.drift.rule import DriftVerdict, apply_drift_rule, query_first_times, select_answered
from dtef_pipeline.drift.settings import WatchOptions
from dtef_pipeline.drift.subject import AnchorSubject, Row, Subject
from dtef_pipeline.identity import digest
from dtef_pipeline.judging.judges import JudgeConfig, find_judging_model
from dtef_pipeline.judging.prompts import Case
from dtef_pipeline.keys import Keys
from dtef_pipeline.rubric.blueprint.model import SHOULD_NOT, TEXT_KIND, Turn
from dtef_pipeline.rubric.board import load_rubric_snapshot_order
from dtef_pipeline.rubric.judge_requests import JudgingEpisode, build_rubric_judgement_rows
from dtef_pipeline.rubric.labels.label_sheet import build_label_items
from dtef_pipeline.rubric.roll_up_tables import RUBRIC_ANCHOR_ITEMS, RUBRIC_ANCHORS
from dtef_pipeline.rubric.tables import ITEM_KEYS
from dtef_pipeline.tables import convert_to_schema
from dtef_pipeline.text.number_words import list_first_names

COVERAGE_PART = 0.65
"""Part of coverage in the hybrid score: a change of the points changes a model's score by this share of it."""


def choose_anchors(items: pd.DataFrame, n: int, *, seed: int, anchors: Collection[str] = ()) -> pd.DataFrame:
    """Return at most `n` rows of `items` (from `build_label_items`) to judge again, one per `item`, sorted by item.

    Existing `anchors` among the items are chosen first; others are added blueprint by blueprint in the order of a hash of the seed and the
    item. So the choice does not depend on the order of rows, and later runs repeat it regardless of the rows stored in between.
    """
    rows = items.drop_duplicates("item")
    place = np.array([digest("anchor", seed, item) for item in rows["item"]], dtype=object)
    rows = rows.assign(place=place, is_new=~rows["item"].isin(list(anchors)))
    rows = rows.sort_values(["is_new", "place"], kind="stable")
    # The first of each blueprint, then the second of each: large blueprints do not crowd out small ones.
    rows = rows.assign(turn=rows.groupby(["is_new", "blueprint"]).cumcount())
    sample = rows.sort_values(["is_new", "turn", "place"], kind="stable").head(n)
    return sample.drop(columns=["place", "is_new", "turn"]).sort_values("item").reset_index(drop=True)


def convert_rubric_anchor_points(anchors: pa.Table) -> pd.DataFrame:
    """Convert the rows of `rubric_anchors` for `compute_judge_drifts`.

    The values are the resulting points (for should_not 1 - the class's number), because these change a model's score. Anchors of one prompt
    are one cluster.
    """
    frame: pd.DataFrame = anchors.to_pandas().astype({"snapshot": "str"})
    point = np.where(frame["block"] == SHOULD_NOT, 1 - frame["score"], frame["score"])
    cluster = frame["blueprint"] + "/" + frame["prompt"]
    return frame.assign(point=point, cluster=cluster, judge_model=frame["judge"].map(find_judging_model), evaluator="")


NOTHING_TO_JUDGE_AGAIN = "no scored response has a judged criterion, so there are no anchors; `dtef rubric run` makes some"
_PROMPT_OF_ANCHOR = ["blueprint", "prompt"]


def add_anchors(anchors: pa.Table, n: int, seed: int, material: Mapping[str, pd.DataFrame]) -> pa.Table:
    """Return `rubric_anchor_items` with new anchors up to `n`, if there are enough; existing ones stay even if their blueprint has changed.

    `material`: `responses`, `criteria` (with `criterion_id`) and `prompts`, from `load_label_material`.
    """
    items = build_label_items(material["responses"], material["criteria"], material["prompts"])
    anchor_items = set(anchors["item"].to_pylist())
    new_anchors = choose_anchors(items[~items["item"].isin(anchor_items)], max(0, n - len(anchors)), seed=seed)
    if new_anchors.empty:
        return anchors
    criteria = material["criteria"][material["criteria"]["kind"] == TEXT_KIND].rename(columns={"text": "criterion"})
    criterion_lists = criteria.groupby(_PROMPT_OF_ANCHOR)["criterion"].agg(list).reset_index(name="criteria")
    rows = (
        new_anchors.merge(material["responses"], on=list(ITEM_KEYS[:8]))
        .merge(criteria.drop(columns="kind"), on=[*_PROMPT_OF_ANCHOR, *ITEM_KEYS[8:]])
        .merge(criterion_lists, on=_PROMPT_OF_ANCHOR)
        .merge(material["prompts"][[*_PROMPT_OF_ANCHOR, "messages"]], on=_PROMPT_OF_ANCHOR)
    )
    return pa.concat_tables([anchors, convert_to_schema(rows, RUBRIC_ANCHOR_ITEMS)])


def list_anchor_judgings(anchors: pa.Table, judges: Mapping[str, Sequence[JudgeConfig]], snapshot: str) -> list[JudgingEpisode]:
    """List the judgements of the anchors in this snapshot: each by the judges of its blueprint."""
    episodes = []
    for row in anchors.to_pylist():
        turns = tuple(Turn(message["role"], message["text"]) for message in row["messages"])
        case = Case(row["text"], row["criterion"], turns, tuple(row["criteria"]))
        response = {name: row[name] for name in ITEM_KEYS[1:8]} | {"snapshot": snapshot}
        episodes += [JudgingEpisode(response, row, case, judge, 0) for judge in judges[row["blueprint"]]]
    return episodes


def build_anchor_rows(episodes: Sequence[JudgingEpisode], outcomes: Sequence[EpisodeResult]) -> pa.Table:
    """Return the rows of `rubric_anchors`, in the order of the episodes."""
    rows = build_rubric_judgement_rows("", episodes, outcomes)
    columns: dict[str, Any] = {
        name: pa.array([episode.criterion[name] for episode in episodes], pa.string()) for name in ("blueprint", "item")
    }
    return pa.table(
        [columns.get(field.name, rows[field.name] if field.name not in columns else None) for field in RUBRIC_ANCHORS],
        schema=RUBRIC_ANCHORS,
    )


_MAX_RUNS_LISTED = 3
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
        'hybrid' AS metric, prompt AS prompt_id, run_hash AS truth_id, first_answered AS answered_at
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
    SELECT cells.blueprint::VARCHAR AS partition, run_hash AS test, {_JUDGED_BY} AS judges, model, model_variant, prompt,
        coalesce(system_index, -1) AS system, cells.snapshot::VARCHAR AS snapshot, hybrid, weight
    FROM rubric_scores AS cells JOIN rubric_runs AS runs ON cells.blueprint = runs.blueprint AND cells.snapshot = runs.snapshot
    WHERE level = 'cell' AND temperature = 0 ORDER BY ALL
"""
_FIRST_ANSWERS = """
    CREATE OR REPLACE TEMP TABLE first_answers AS
    SELECT blueprint::VARCHAR AS blueprint, snapshot::VARCHAR AS snapshot, min(answered_at) AS first_answered
    FROM rubric_responses GROUP BY ALL
"""


def apply_rule_to_runs(connection: duckdb.DuckDBPyConnection) -> Iterator[dict[str, Any]]:
    """Apply the documented rule to every run label and variant at temperature 0. Runs of one label share test, judges and policy.

    An item is a prompt with its place in the list of system prompts; a run's score is the mean hybrid score, by the weights of the prompts,
    over the items scored in every run. A model is compared only if each run of the label has a score for half of the items and the runs
    span 23 hours.
    """
    runs = connection.execute("SELECT blueprint::VARCHAR, run_hash, list(snapshot::VARCHAR) FROM rubric_runs GROUP BY ALL")
    run_snapshots = {(blueprint, label): snapshots for blueprint, label, snapshots in runs.fetchall()}
    times, order = query_first_times(connection, "rubric_responses", ("blueprint",)), load_rubric_snapshot_order(connection)
    for keys, cells in connection.execute(_RULED_CELLS).df().groupby([*_RULED_BY], sort=True):
        named = dict(zip(_RULED_BY, map(str, keys), strict=True))
        snapshots = among(order, run_snapshots[named["partition"], named["test"]])
        run_times = {snapshot: times.get((named["partition"], snapshot)) for snapshot in snapshots}
        yield {**named, "setting": describe_judge_condition(named), **asdict(_judge_cells(cells, snapshots, run_times))}


def _judge_cells(cells: pd.DataFrame, snapshots: Sequence[str], times: Mapping[str, datetime | None]) -> DriftVerdict:
    """Apply the rule to the cells of one variant and run label; `snapshots`: all runs of the label."""
    items = ["prompt", "system"]
    weights = cells.groupby(items, sort=True)["weight"].first().to_numpy(dtype=np.float64)
    grid = cells.pivot(index=items, columns="snapshot", values="hybrid")  # noqa: PD010 - pivot_table loses items without a score
    # Row by row, so that sums do not depend on the memory layout, to the last bit.
    values = np.ascontiguousarray(grid.reindex(columns=list(snapshots)), dtype=np.float64)
    run_scores = select_answered(pd.DataFrame(values, columns=list(snapshots)))
    if missing := [label for label in snapshots if label not in run_scores.columns]:
        return _make_not_compared(len(run_scores.columns), missing)
    shared = run_scores.dropna()
    mean = np.average(shared, axis=0, weights=weights[shared.index], keepdims=True) if len(shared) else shared
    means = pd.DataFrame(mean, columns=run_scores.columns, dtype=np.float64)
    return replace(apply_drift_rule(means, times, temperature=0.0), n_items=len(shared))


def _make_not_compared(n_snapshots: int, missing: Sequence[str]) -> DriftVerdict:
    reason = f"not compared: no score for half of the prompts in {list_first_names(missing, _MAX_RUNS_LISTED)}; the rule needs all runs"
    return DriftVerdict(n_snapshots, 0, None, None, None, None, None, False, reason)


def describe_judge_condition(row: Row) -> str:
    return f"judged by {row['judges']}"


def subtract_judges(rows: Sequence[Row], anchors: pa.Table, options: WatchOptions) -> Iterator[Row]:
    """Yield the judges' part of the shift of each row; empty if no anchors were judged again.

    `rows`: see `ModelDrift`. `anchors`: the rows of `rubric_anchors` of these snapshots.
    """
    frame = convert_rubric_anchor_points(anchors)
    snapshots = sort_snapshot_times(frame["snapshot"].unique().tolist())
    drifts: dict[str | None, list[JudgeDrift]] = {}
    for row in rows:
        if not len(frame):
            yield {}
            continue
        since = options.find_since(row["model"], row["model_variant"])
        if since not in drifts:
            drifts[since] = compute_judge_drifts(
                frame, snapshots, options.settings_for_judges(row["model"], row["model_variant"])
            )
        judges = [drift for drift in drifts[since] if drift.judge in row["judges"].split(", ")]
        yield subtract_judges_of_row(row, judges, COVERAGE_PART)._asdict()


WATCHED = Subject(
    family="rubric",
    keys=WATCHED_KEYS,
    describe_setting=describe_judge_condition,
    truth="rubric",
    truths="rubrics, judges or policies",
    reads=("rubric_scores", "rubric_runs", "rubric_responses"),
    statements=(_FIRST_ANSWERS, _WATCHED_SCORES, _WATCHED_SERVED),
    rule=apply_rule_to_runs,
    anchors=AnchorSubject("rubric_anchors", convert_rubric_anchor_points, subtract_judges),
    reason_left_out="had too few comparable prompts, or another test, judges or policy",
)
"""Scores of rubrics. A blueprint has too few prompts for a verdict of its own."""
