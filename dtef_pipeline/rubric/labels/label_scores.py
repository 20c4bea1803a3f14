"""The score of each response of the board by judges, and by people if they labelled every judged point."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.rubric.blueprint.model import TEXT_KIND
from dtef_pipeline.rubric.conversations import OK
from dtef_pipeline.rubric.coverage import compute_coverage
from dtef_pipeline.rubric.hybrid import ScoringPolicy, compute_hybrid, compute_hybrid_at
from dtef_pipeline.rubric.labels.human_labels import apply_human_labels
from dtef_pipeline.rubric.labels.label_sheet import build_label_items
from dtef_pipeline.rubric.levels import RESPONSE_KEYS, sort_unique
from dtef_pipeline.rubric.score_rows import parse_policy
from dtef_pipeline.rubric.tables import ITEM_KEYS
from dtef_pipeline.tables import convert_to_schema

Floats = npt.NDArray[np.float64]

_RESPONSE = list(RESPONSE_KEYS)
_PROMPT_OF_RESPONSE = ["blueprint", "prompt"]
_OF_POINTS = """
    SELECT blueprint::VARCHAR AS blueprint, snapshot::VARCHAR AS snapshot, prompt, model, model_variant, temperature, system_index, draw,
        block, path, position, kind, weight, CASE WHEN labelled THEN judge_score ELSE score END AS score, inverted
    FROM rubric_points SEMI JOIN latest ON rubric_points.blueprint = latest.blueprint AND rubric_points.snapshot = latest.snapshot
"""
_OF_SIMILARITIES = """
    SELECT blueprint::VARCHAR AS blueprint, snapshot::VARCHAR AS snapshot, prompt, model, model_variant, temperature, system_index, draw,
        ideal_similarity AS similarity
    FROM rubric_similarities SEMI JOIN latest
        ON rubric_similarities.blueprint = latest.blueprint AND rubric_similarities.snapshot = latest.snapshot
"""
_OF_RESPONSES = """
    SELECT blueprint::VARCHAR AS blueprint, snapshot::VARCHAR AS snapshot, prompt, model, model_variant, temperature, system_index, draw
    FROM rubric_responses SEMI JOIN latest
        ON rubric_responses.blueprint = latest.blueprint AND rubric_responses.snapshot = latest.snapshot
    WHERE status = 'ok'
"""
_OF_PROMPTS = """
    SELECT blueprint::VARCHAR AS blueprint, prompt, weight, ideal IS NOT NULL AS has_ideal,
        prompt IN (SELECT prompt FROM rubric_criteria AS own WHERE own.blueprint = rubric_prompts.blueprint) AS has_criteria
    FROM rubric_prompts
"""
LABELLED_SCORES_READ = (
    "rubric_points",
    "rubric_similarities",
    "rubric_responses",
    "rubric_prompts",
    "rubric_criteria",
    "rubric_runs",
)
"""The tables that labelled scores are made of."""


def compare_labelled_scores(
    connection: duckdb.DuckDBPyConnection, runs: pd.DataFrame, items: pd.DataFrame, labels: pd.DataFrame
) -> pd.DataFrame:
    """Return one row per response of `runs` with a hybrid score: its keys, the prompt's `weight`, `judge_score`, `labelled`, `can_be_labelled`.

    `judge_score`: its hybrid score by judges, even if a run was scored with labels. `labelled`: its score with labels in place of all judged
    points; NaN if a label is missing, and `judge_score` if no point is judged (`can_be_labelled` is false). `connection`: the tables of
    LABELLED_SCORES_READ. `items`: from `build_label_items`, for the responses of these runs.
    """
    connection.register("latest", runs[["blueprint", "snapshot"]])
    points, similar, responses, prompts = (
        connection.execute(sql).df() for sql in (_OF_POINTS, _OF_SIMILARITIES, _OF_RESPONSES, _OF_PROMPTS)
    )
    points_with_labels = apply_human_labels(points, items, labels)
    completeness = (
        points_with_labels[points_with_labels["kind"] == TEXT_KIND]
        .groupby(_RESPONSE, dropna=False, sort=False)["labelled"]
        .all()
        .reset_index(name="whole")
    )
    # Sums over rows have the same bits whatever order the database returned them in.
    rows = (
        sort_unique(responses, _RESPONSE, "responses")
        .merge(prompts, on=_PROMPT_OF_RESPONSE)
        .merge(similar, "left", _RESPONSE)
        .merge(completeness, "left", _RESPONSE)
    )
    tables = [
        _compare_under_policy(rows, points, points_with_labels, policy_runs, policy)
        for policy, policy_runs in _group_by_policy(connection, runs)
    ]
    return (
        pd.concat(tables, ignore_index=True)
        if tables
        else _compare_under_policy(rows, points, points_with_labels, runs, ScoringPolicy())
    )


def apply_labels(points: pa.Table, responses: pa.Table, criteria: pa.Table, prompts: pa.Table, labels: pa.Table) -> pa.Table:
    """Return `rubric_points` with labels in place of their scores; the judges' score stays in `judge_score`.

    Tables: of one blueprint and snapshot, and `rubric_labels`.
    """
    keys = [*_RESPONSE, "text"]
    items = build_label_items(
        responses.filter(pc.equal(responses["status"], OK)).select(keys).to_pandas(),
        criteria.select([*_PROMPT_OF_RESPONSE, *ITEM_KEYS[8:], "kind", "text"]).to_pandas(),
        prompts.select([*_PROMPT_OF_RESPONSE, "messages"]).to_pandas(),
    )
    labelled_items = items[items["item"].isin(set(labels["item"].to_pylist()))]
    if labelled_items.empty:
        return points
    rows = points.to_pandas()
    points_with_labels = apply_human_labels(rows, labelled_items, labels.to_pandas())
    has_label = points_with_labels["labelled"]
    return convert_to_schema(
        points_with_labels.assign(
            judge_score=rows["score"].where(has_label), partial=points_with_labels["partial"] & ~has_label
        ),
        points.schema,
    )


def _group_by_policy(connection: duckdb.DuckDBPyConnection, runs: pd.DataFrame) -> Iterator[tuple[ScoringPolicy, pd.DataFrame]]:
    run_policies = connection.execute(
        "SELECT blueprint::VARCHAR AS blueprint, snapshot::VARCHAR AS snapshot, policy FROM rubric_runs"
    ).df()
    for policy, policy_runs in runs.merge(run_policies, on=["blueprint", "snapshot"]).groupby("policy", sort=True):
        yield parse_policy(str(policy)), policy_runs


def _compare_under_policy(
    rows: pd.DataFrame, points: pd.DataFrame, points_with_labels: pd.DataFrame, runs: pd.DataFrame, policy: ScoringPolicy
) -> pd.DataFrame:
    table = rows[rows["blueprint"].isin(runs["blueprint"])]
    judges, people = (
        _compute_hybrids(table, part[part["blueprint"].isin(runs["blueprint"])], policy)
        for part in (points, points_with_labels)
    )
    can = table["whole"].notna().to_numpy()
    is_full = table["whole"].eq(True).to_numpy()
    scores = table[[*_RESPONSE, "weight"]].assign(
        judge_score=judges, labelled=np.where(can, np.where(is_full, people, np.nan), judges), can_be_labelled=can
    )
    return scores[np.isfinite(judges)].reset_index(drop=True)


def _compute_hybrids(responses: pd.DataFrame, points: pd.DataFrame, policy: ScoringPolicy) -> Floats:
    """Return the hybrid score of each response from these points; NaN: unscored."""
    coverages = compute_coverage(points, policy)[[*_RESPONSE, "coverage"]]
    # The keys of both in one type: a null in either makes floats of whole numbers.
    kinds = {name: responses[name].dtype for name in _RESPONSE}
    coverage = responses[_RESPONSE].merge(coverages.astype(kinds), "left", _RESPONSE)["coverage"]
    hybrid = compute_hybrid(
        coverage.to_numpy(dtype=np.float64, na_value=np.nan),
        responses["similarity"],
        responses["has_criteria"],
        responses["has_ideal"],
    )
    return compute_hybrid_at(*hybrid, policy.beta)
