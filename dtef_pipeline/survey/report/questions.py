"""One row per question: how hard it is, who does best and worst, and where groups differ."""

from __future__ import annotations

import duckdb
import pandas as pd

from dtef_pipeline.asking.models import is_computed
from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.report.markup import (
    Column,
    as_is,
    fold,
    four,
    long_text,
    paragraph,
    section,
    signed,
    table,
    text,
    three,
    whole,
)
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT
from dtef_pipeline.survey.report.groups import asked_alike, asked_like
from dtef_pipeline.text.counted import counted

_HOW_TO_READ_QUESTIONS = (
    "Mean scores over the segments that answered, at the highest context level. Mean, best, worst and the largest excess gap leave baselines "
    "out where there are language models. Room is what the ceiling leaves above the leave-one-out marginal: where it is small no model can show "
    "much. The largest excess gap is that of the model and attribute where the gap between the best and the worst segment passes the gap "
    "expected from sample size by most: the largest of many lies above 0 by chance alone, so it is a place to look, not a finding. Search for "
    "words of the question; press a heading to sort."
)
_HOW_TO_READ_EXCESS = (
    "Gap less expected gap, of the model and attribute where that is largest; the largest of many lies above 0 by chance alone"
)
_QUESTION_COLUMNS = [
    Column("round", "Round", text),
    Column("question", "Question", long_text),
    Column("segments", "Segments", whole),
    Column("mean", "Mean", four, "Mean score over the models that are no baselines (over all where there are only baselines)"),
    Column("best", "Best", as_is),
    Column("worst", "Worst", as_is),
    Column("others", "Leave-one-out", three, "Score of the leave-one-out marginal"),
    Column("ceiling", "Ceiling", three, "Expected score of a perfect predictor"),
    Column("room", "Room", three, "Ceiling less leave-one-out"),
    Column("excess", "Largest excess gap", as_is, _HOW_TO_READ_EXCESS),
]
_QUESTION_KEY = ["round", "question_id"]


def questions(connection: duckdb.DuckDBPyConnection, frame: pd.DataFrame, gaps: pd.DataFrame) -> str:
    """The section, from rows of the board by question and of `question_gaps` (empty: there is no such table)."""
    groups = [
        fold(title, _question_table(connection, rows, gaps, at), is_open=at == 0)
        for at, (title, rows) in enumerate(asked_alike(frame, richest=True))
    ]
    return section("questions", "Questions", _HOW_TO_READ_QUESTIONS, "".join(groups) or paragraph("No scores yet."))


def _question_table(connection: duckdb.DuckDBPyConnection, rows: pd.DataFrame, gaps: pd.DataFrame, at: int) -> str:
    wide = _spread(rows).join(_texts(connection), on=_QUESTION_KEY).join(_largest_excess(gaps, rows), on=_QUESTION_KEY)
    if "place" in wide:
        wide = wide.sort_values(["round", "place", "question_id"], kind="stable")
    wide["question"] = wide.get("question_text", pd.Series(dtype=object)).fillna(wide["question_id"])
    anchor = f"question-table-{at}"
    box = (
        f'<label class="search">Search questions<input type="search" data-filters="{anchor}" placeholder="words of the question">'
        f'</label><p class="count" role="status" data-counts="{anchor}">{counted(len(wide), "question")}</p>'
    )
    return box + table(wide, _QUESTION_COLUMNS, caption="Scores by question", row_head="question", anchor=anchor)


def _spread(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per question: mean, best and worst score, and the reference scores where they are known."""
    scored = rows[rows["score"].notna()]
    shown = _language_models(scored)
    ordered = shown.sort_values([*_QUESTION_KEY, "score", "model"], ascending=[True, True, False, True], kind="stable")
    by = ordered.groupby(_QUESTION_KEY, observed=True)
    spread = pd.DataFrame({"mean": by["score"].mean(), "best": by["score"].first(), "best_model": by["model"].first()})
    spread["worst"], spread["worst_model"] = by["score"].last(), by["model"].last()
    for end in ("best", "worst"):
        scores = zip(spread[end], spread[f"{end}_model"], strict=True)
        spread[end] = [f'{four(score)}<span class="ci wrapped">{text(model)}</span>' for score, model in scores]
    marginal = scored[scored["model"] == LEAVE_ONE_OUT].set_index(_QUESTION_KEY)["score"]
    spread = spread.join(marginal.rename("others"))
    if "ceiling" in scored:
        spread["ceiling"] = scored.groupby(_QUESTION_KEY, observed=True)["ceiling"].median()
        spread["room"] = spread["ceiling"] - spread["others"]
    return spread.reset_index()


def _language_models(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of models that are no baselines; all rows where there are only baselines."""
    asked = rows[~rows["model_variant"].map(is_computed).astype(bool)]
    return asked if len(asked) else rows


def _texts(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    if not has_table(connection, "survey_responses"):
        return pd.DataFrame({"segments": []}, index=pd.MultiIndex.from_arrays([[], []], names=_QUESTION_KEY))
    found = connection.execute(
        "SELECT round, question_id, any_value(question_text) AS question_text, count(*) AS segments, min(question_order) AS place "
        "FROM survey_responses GROUP BY ALL ORDER BY ALL"
    ).df()
    return found.set_index(_QUESTION_KEY)


def _largest_excess(gaps: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    if not len(gaps):
        return pd.DataFrame({}, index=pd.MultiIndex.from_arrays([[], []], names=_QUESTION_KEY))
    own = asked_like(rows, gaps)
    own = _language_models(own[own["excess"].notna()])
    own = own.sort_values(
        [*_QUESTION_KEY, "excess", "model", "attribute"], ascending=[True, True, False, True, True], kind="stable"
    )
    first = own.drop_duplicates(_QUESTION_KEY).set_index(_QUESTION_KEY)
    cells = [
        f'{signed(row["excess"])}<span class="ci wrapped">'
        f"gap {three(row['gap'])}, expected {three(row['expected_gap'])}: {text(row['model'])}, "
        f"{text(row['best_segment'])} over {text(row['worst_segment'])}</span>"
        for row in first.to_dict("records")
    ]
    return pd.DataFrame({"excess": cells}, index=first.index)
