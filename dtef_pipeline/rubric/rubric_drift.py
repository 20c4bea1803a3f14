"""Drift of rubrics: hybrid scores of prompts, snapshot by snapshot, and the documented rule.

An item is a prompt of a blueprint with one of its system prompts; its value is the hybrid score of its cell. A series is a model variant
under one set of judges. Items are compared only within one run label: an edited test, another judge or another policy makes other items.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.asking.snapshot_order import among
from dtef_pipeline.drift.judge_verdicts import AnchorJudging
from dtef_pipeline.drift.rule import DriftVerdict, apply_drift_rule, query_first_times, select_answered
from dtef_pipeline.drift.subject import AnchorSubject, Row, Subject
from dtef_pipeline.judging.judges import JudgeConfig
from dtef_pipeline.judging.prompts import Case, Turn
from dtef_pipeline.keys import Keys
from dtef_pipeline.rubric.blueprint.model import SHOULD_NOT, TEXT_KIND
from dtef_pipeline.rubric.board import load_rubric_snapshot_order
from dtef_pipeline.rubric.episodes import JudgingEpisode, read_judgement
from dtef_pipeline.rubric.label_corrections import load_board_runs, load_label_material
from dtef_pipeline.rubric.label_sheet import build_label_items
from dtef_pipeline.rubric.tables import ITEM_KEYS
from dtef_pipeline.text.number_words import list_first_names

COVERAGE_PART = 0.65
"""Part of coverage in the hybrid score: a change of the points changes a model's score by this share of it."""


_PROMPT_OF_ANCHOR = ["blueprint", "prompt"]


def _load_anchor_pool(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """Return the judged criteria of the responses in the latest runs."""
    material = load_label_material(connection, load_board_runs(connection))
    items = build_label_items(material["responses"], material["criteria"], material["prompts"])
    return items.assign(anchor=items["item"], partition=items["blueprint"], item=items["prompt"], score=None)


def _add_anchor_texts(chosen: pd.DataFrame, connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    material = load_label_material(connection, load_board_runs(connection), chosen[_PROMPT_OF_ANCHOR])
    criteria = material["criteria"][material["criteria"]["kind"] == TEXT_KIND].rename(columns={"text": "criterion"})
    criterion_lists = criteria.groupby(_PROMPT_OF_ANCHOR)["criterion"].agg(list).reset_index(name="criteria")
    rows = (
        chosen.merge(material["responses"], on=list(ITEM_KEYS[:8]))
        .merge(criteria.drop(columns="kind"), on=[*_PROMPT_OF_ANCHOR, *ITEM_KEYS[8:]])
        .merge(criterion_lists, on=_PROMPT_OF_ANCHOR)
        .merge(material["prompts"][[*_PROMPT_OF_ANCHOR, "messages"]], on=_PROMPT_OF_ANCHOR)
    )
    names = ["text", "criterion", "criteria", "block"]
    shown = [
        {**row, "messages": [[message["role"], message["text"]] for message in messages]}
        for row, messages in zip(rows[names].to_dict("records"), rows["messages"], strict=True)
    ]
    return rows.assign(shown=[json.dumps(row) for row in shown])


def list_anchor_judgings(
    anchors: Sequence[Row], judges: Mapping[str, Sequence[JudgeConfig]], snapshot: str
) -> Iterator[AnchorJudging]:
    """Yield the judgements of the anchors in this snapshot: each by the judges of its blueprint."""
    for anchor in anchors:
        shown = json.loads(anchor["shown"])
        turns = tuple(Turn(role, text) for role, text in shown["messages"])
        case = Case(shown["text"], shown["criterion"], turns, tuple(shown["criteria"]))
        for judge in judges[anchor["partition"]]:
            yield AnchorJudging(anchor, judge.model, JudgingEpisode({"snapshot": snapshot}, shown, case, judge, 0))


def _read_anchor_judgement(episode: JudgingEpisode, outcome: EpisodeResult) -> Row:
    """Return the judgement with the resulting points (for should_not 1 - the class's number), because these change a model's score."""
    row = read_judgement(episode, outcome)
    is_inverted = episode.criterion["block"] == SHOULD_NOT and row["score"] is not None
    return {**row, "evaluator": "", "score": 1 - row["score"] if is_inverted else row["score"]}


def _select_judgements(row: Row, anchors: pd.DataFrame) -> pd.DataFrame | None:
    return anchors[anchors["judge"].isin(row["judges"].split(", "))] if len(anchors) else None


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
_SERIES_COLUMNS = ("partition", "test", "judges", "model", "model_variant")
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
    for keys, cells in connection.execute(_RULED_CELLS).df().groupby([*_SERIES_COLUMNS], sort=True):
        named = dict(zip(_SERIES_COLUMNS, map(str, keys), strict=True))
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
        labels = list_first_names(missing, _MAX_RUNS_LISTED)
        reason = f"not compared: no score for half of the prompts in {labels}; the rule needs all runs"
        return DriftVerdict(len(run_scores.columns), 0, None, None, None, None, None, False, reason)
    shared = run_scores.dropna()
    mean = np.average(shared, axis=0, weights=weights[shared.index], keepdims=True) if len(shared) else shared
    means = pd.DataFrame(mean, columns=run_scores.columns, dtype=np.float64)
    return replace(apply_drift_rule(means, times, temperature=0.0), n_items=len(shared))


def describe_judge_condition(row: Row) -> str:
    return f"judged by {row['judges']}"


RUBRIC_ANCHORS = AnchorSubject(
    n=200,
    reads=("rubric_responses", "rubric_criteria", "rubric_prompts", "rubric_scores", "rubric_runs"),
    pool=_load_anchor_pool,
    add_texts=_add_anchor_texts,
    stratum=lambda anchors: anchors["partition"],
    read=_read_anchor_judgement,
    judgements=_select_judgements,
    weight=COVERAGE_PART,
)
WATCHED = Subject(
    family="rubric",
    keys=WATCHED_KEYS,
    describe_setting=describe_judge_condition,
    truth="rubric",
    truths="rubrics, judges or policies",
    reads=("rubric_scores", "rubric_runs", "rubric_responses"),
    statements=(_FIRST_ANSWERS, _WATCHED_SCORES, _WATCHED_SERVED),
    rule=apply_rule_to_runs,
    anchors=RUBRIC_ANCHORS,
    reason_left_out="had too few comparable prompts, or another test, judges or policy",
)
"""Scores of rubrics. A blueprint has too few prompts for a verdict of its own."""
