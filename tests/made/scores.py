"""Small tables in the pipeline's schemas, written by hand."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa

from dtef_pipeline.identity import digest
from dtef_pipeline.survey.tables import METRICS, REFERENCE_SCORES, SCORES, SURVEY_RESPONSES

AGREE = ["Agree", "Neutral", "Disagree"]


def survey_rows(*rows: dict[str, Any]) -> pa.Table:
    """`survey_responses` rows; each dict says what differs from one plain row."""
    full = []
    for order, given in enumerate(rows):
        row: dict[str, Any] = {
            "round": "S1",
            "segment": "country:kenya",
            "attribute": "country",
            "value": "Kenya",
            "question_id": f"q{order}",
            "question_order": order,
            "draw_order": order,
            "segment_order": 0,
            "question_text": f"Question number {order}?",
            "options": AGREE,
            "scale": "ordinal",
            "scale_reason": "test",
            "dont_know": [False] * 3,
            "observed": [0.5, 0.3, 0.2],
            "n": 40,
            "n_source": "question",
            "segment_n": 44,
            "circular": False,
            "duplicate_of": None,
            "battery": f"rule:q{order}",
            "population": [0.4, 0.4, 0.2],
            "population_n": 400,
            "leave_one_out_marginal": [0.3, 0.3, 0.4],
            "leave_one_out_n": 300,
            "shuffled": [0.1, 0.1, 0.8],
            "shuffled_segment": "country:chile",
        }
        row |= given
        full.append({"battery": f"rule:{row['question_id']}", **row})
    return pa.Table.from_pylist(full, schema=SURVEY_RESPONSES)


def score_row(**given: Any) -> dict[str, Any]:
    """One `scores` row; what is not given is plain."""
    row: dict[str, Any] = {
        "round": "S1",
        "segment": "country:kenya",
        "snapshot": "base",
        "attribute": "country",
        "value": "Kenya",
        "question_id": "q0",
        "question_order": 0,
        "context_level": "0",
        "condition": "distribution/attribute-label",
        "blueprint_hash": "b",
        "model": "m",
        "model_variant": "m[temperature=0]",
        "temperature": 0.0,
        "draw": 0,
        "n": 40,
        "circular": False,
        "status": "ok",
        "metric": "js",
        "score": 0.5,
        **given,
    }
    row.setdefault("js", row["score"] if row["status"] == "ok" else None)
    row.setdefault("prompt_id", digest(row["round"], row["segment"], row["question_id"], row["context_level"]))
    return row


def scores_table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([score_row(**row) for row in rows], schema=SCORES)


def scores_of(model: str, *scores: float | None, **given: Any) -> list[dict[str, Any]]:
    """What differs from a plain `scores` row for a model's scores on q0, q1, ...; None: the call failed."""
    states = ["error" if score is None else "ok" for score in scores]
    named = {"model": model, "model_variant": model, **given}
    return [{"question_id": f"q{i}", "score": score, "status": states[i], **named} for i, score in enumerate(scores)]


def reference_row(**given: Any) -> dict[str, Any]:
    """One `reference_scores` row; what is not given is plain. A number for a struct of similarities is that of every metric."""
    row: dict[str, Any] = {
        "round": "S1",
        "segment": "country:kenya",
        "question_id": "q0",
        "n": 40,
        "gini": 0.6,
        "ceiling": 0.9,
        "ceiling_low": None,
        "uniform_score": 0.6,
        "leave_one_out_score": 0.8,
        "population_score": 0.8,
        **given,
    }
    row.setdefault("cluster", digest(row["question_id"]))
    for name in ("ceiling", "ceiling_low", "uniform_score", "leave_one_out_score", "population_score"):
        if isinstance(row[name], int | float):
            row[name] = dict.fromkeys(METRICS, float(row[name]))
    return row


def reference_table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([reference_row(**row) for row in rows], schema=REFERENCE_SCORES)


def as_cells(frame: pd.DataFrame, **given: Any) -> pd.DataFrame:
    """Rows of `load_cells`, from models, questions and scores: what is not given is plain, and each question a cluster."""
    frame = frame.assign(**given)
    usual = {"round": "S1", "segment": "kenya", "context_level": "0", "condition": "c", "n": 50, "n_ok": 1, "n_answered": 1}
    usual |= {"model_variant": frame["model"], "parsed_score": frame["score"]}
    usual |= dict.fromkeys(("same_item", "cluster"), frame["question_id"])
    return frame.assign(**{name: value for name, value in usual.items() if name not in frame})
