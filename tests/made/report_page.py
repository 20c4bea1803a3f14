"""The report of a small survey as a file, for tests that open it in a browser."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa

from dtef_pipeline.drift.checks import drift_checks
from dtef_pipeline.survey.boards.schemas import SEGMENT_GAPS
from dtef_pipeline.survey.drift_subject import SUBJECT
from dtef_pipeline.survey.report.chapters import survey_report
from tests.made.scores import scores_table, survey_rows

QUESTIONS = {"q0": ("Do you trust AI?", 0.9), "q1": ("Is the climate changing?", 0.5), "q2": ("Do you trust people?", 0.7)}
MODELS = {"baseline/population-marginal": 0.05, "baseline/leave-one-out-marginal": 0.03, "gpt": 0.0, "llama": -0.2}
SEGMENTS = ("country:kenya", "country:chile")


def tables() -> dict[str, pa.Table]:
    scores = [
        {
            "model": model,
            "model_variant": model,
            "question_id": question,
            "segment": segment,
            "context_level": level,
            "snapshot": snapshot,
            "score": score + lead,
            "predicted": [0.2, 0.3, 0.5] if level == "0" else [0.45, 0.35, 0.2],
        }
        for model, lead in MODELS.items()
        for question, (_, score) in QUESTIONS.items()
        for segment in SEGMENTS
        for level in ("0", "all")
        for snapshot in ("base", "2026-01-02")
    ]
    scores.append({"model": "mute", "model_variant": "mute", "question_id": "q0", "status": "refused", "score": 0.0})
    survey = [
        {"question_id": question, "question_text": text, "segment": segment, "question_order": order}
        for order, (question, (text, _)) in enumerate(QUESTIONS.items())
        for segment in SEGMENTS
    ]
    gap = {
        "model": "gpt",
        "model_variant": "gpt",
        "context_level": "all",
        "condition": "c",
        "targets": "clean",
        "attribute": "country",
        "segment": "country:kenya",
        "score": 0.6,
        "expected": 0.65,
        "deviation": -0.05,
        "low": -0.08,
        "high": -0.02,
        "p": 0.01,
        "p_adjusted": 0.01,
        "verdict": "worse",
    }
    rows = scores_table(scores)
    return {
        "scores": rows,
        "survey_responses": survey_rows(*survey),
        "drift_checks": drift_checks(rows, SUBJECT),
        "segment_gaps": pa.Table.from_pylist([gap], schema=SEGMENT_GAPS),
    }


def written(folder: Path, tables: dict[str, pa.Table]) -> Path:
    """The report of these tables as a file."""
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(f"_{name}", table)
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM _{name}")
        path = folder / "report.html"
        path.write_text(survey_report(connection), encoding="utf-8")
    return path
