"""Small tables in the pipeline's schemas, written by hand."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa

from dtef_pipeline.identity import digest
from dtef_pipeline.survey.tables import METRICS, REFERENCE_SCORES, SCORES, SURVEY_RESPONSES
from tests.made.usual_rows import make_usual_row

AGREE = ["Agree", "Neutral", "Disagree"]


def survey_rows(*rows: dict[str, Any]) -> pa.Table:
    """`survey_responses` rows; each dict says what differs from one plain row."""
    full = []
    for order, given in enumerate(rows):
        numbers = {"question_order": order, "draw_order": order}
        texts = {"question_id": f"q{order}", "question_text": f"Question number {order}?", "battery": f"rule:q{order}"}
        full.append(make_usual_row("survey_responses", **{**numbers, **texts, **given}))
    return pa.Table.from_pylist(full, schema=SURVEY_RESPONSES)


def score_row(**given: Any) -> dict[str, Any]:
    """One `scores` row; what is not given is plain."""
    row = make_usual_row("scores", **given)
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
    row = make_usual_row("reference_scores", **given)
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
