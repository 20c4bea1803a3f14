"""One row per question: how hard it is, who does best and worst, and where groups differ."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pandas as pd

from dtef_pipeline.asking.models import is_computed
from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.report.markup import (
    Column,
    Group,
    as_is,
    fold,
    four,
    is_unknown,
    long_text,
    paragraph,
    section,
    signed,
    table,
    text,
    three,
    whole,
    with_name,
)
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT
from dtef_pipeline.survey.report.groups import asked_alike, asked_like
from dtef_pipeline.text.counted import counted

_HOW_TO_READ_QUESTIONS = (
    "Every question that anything predicted: mean scores over the segments that were asked, at the question's highest context level. Mean, "
    "best, worst and the largest excess gap are of the language models that were asked it; where none was, of the baselines. It "
    "stands beneath the mean which. Of a single model there is no best and no worst. Room is what the ceiling leaves above the leave-one-out "
    "marginal: where it is small no model can show "
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
    Column(
        "asked", "Segments", as_is, "Segments with a score of one of these models; beneath it how many answered the question"
    ),
    Column("mean_cell", "Mean", as_is, "Mean score; beneath it whose: of the models that mean, best and worst are of"),
    Column("best_cell", "Best", as_is),
    Column("worst_cell", "Worst", as_is),
    Column("others", "Leave-one-out", three, "Score of the leave-one-out marginal"),
    Column("ceiling", "Ceiling", three, "Expected score of a perfect predictor"),
    Column("room", "Room", three, "Ceiling less leave-one-out"),
    Column("excess_cell", "Largest excess gap", as_is, _HOW_TO_READ_EXCESS),
]
_QUESTION_KEY = ["round", "question_id"]
_OF_EXCESS = {
    "excess": "largest_excess",
    "model": "excess_model",
    "attribute": "excess_attribute",
    "best_segment": "excess_best_segment",
    "worst_segment": "excess_worst_segment",
}
_QUESTION_DATA = (
    *_QUESTION_KEY,
    "question_text",
    "scores_of",
    "n_models",
    "asked_segments",
    "segments",
    *("mean", "best", "best_model", "worst", "worst_model", "others", "ceiling", "room"),
    *_OF_EXCESS.values(),
)


def questions(connection: duckdb.DuckDBPyConnection, frame: pd.DataFrame, gaps: pd.DataFrame) -> str:
    """The section, from rows of the board by question and of `question_gaps` (empty: there is no such table)."""
    texts = _texts(connection)
    groups = [
        fold(title, _question_table(texts, rows, gaps, at), is_open=at == 0) for at, (title, rows) in enumerate(_once(frame))
    ]
    body = "".join(groups) or paragraph("No scores yet.")
    return section("questions", "Questions", _HOW_TO_READ_QUESTIONS, body + _without_scores(texts, frame))


def _once(frame: pd.DataFrame) -> Iterator[Group]:
    """The rows of each way of asking, of each condition a question only at its level of most context; ways without any are left out."""
    shown: set[tuple[str, ...]] = set()
    for title, rows in asked_alike(frame[frame["score"].notna()] if len(frame) else frame):
        keys = list(zip(rows["condition"].astype(str), rows["round"].astype(str), rows["question_id"].astype(str), strict=True))
        own = rows[[key not in shown for key in keys]]
        shown.update(keys)
        if len(own):
            yield Group(title, own)


def _without_scores(texts: pd.DataFrame, frame: pd.DataFrame) -> str:
    """How many questions of these rounds nothing has a score on."""
    scored = frame[frame["score"].notna()] if len(frame) else frame
    known = set(zip(scored["round"], scored["question_id"], strict=True)) if len(scored) else set()
    rounds = {name for name, _ in known}
    left = sum(1 for key in texts.index if key[0] in rounds and tuple(key) not in known)
    return paragraph(f"Questions of these rounds that nothing has a score on: {left:,}.") if left else ""


def _question_table(texts: pd.DataFrame, rows: pd.DataFrame, gaps: pd.DataFrame, at: int) -> str:
    wide = _spread(rows).join(texts, on=_QUESTION_KEY).join(_largest_excess(gaps, rows), on=_QUESTION_KEY)
    if "place" in wide:
        wide = wide.sort_values(["round", "place", "question_id"], kind="stable")
    wide["question"] = wide.get("question_text", pd.Series(dtype=object)).fillna(wide["question_id"])
    wide["asked"] = [
        whole(asked) + ("" if is_unknown(there) else f'<span class="ci">of {whole(there)}</span>')
        for asked, there in zip(wide["asked_segments"], wide["segments"], strict=True)
    ]
    anchor = f"question-table-{at}"
    box = (
        f'<label class="search">Search questions<input type="search" data-filters="{anchor}" placeholder="words of the question">'
        f'</label><p class="count" role="status" data-counts="{anchor}">{counted(len(wide), "question")}</p>'
    )
    data = wide[[name for name in _QUESTION_DATA if name in wide]]
    return box + table(wide, _QUESTION_COLUMNS, caption="Scores by question", row_head="question", anchor=anchor, data=data)


def _spread(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per question: whose scores there are, their mean, best and worst, and the reference scores where they are known."""
    scored = rows[rows["score"].notna()]
    ordered = _language_models(scored).sort_values(
        [*_QUESTION_KEY, "score", "model"], ascending=[True, True, False, True], kind="stable"
    )
    by = ordered.groupby(_QUESTION_KEY, observed=True)
    spread = pd.DataFrame({"mean": by["score"].mean(), "n_models": by.size(), "asked_segments": by["n_pairs"].max()})
    first, last = by[["score", "model", "model_variant"]].first(), by[["score", "model"]].last()
    spread["scores_of"] = [_whose(*row) for row in zip(spread["n_models"], first["model_variant"], first["model"], strict=True)]
    spread["mean_cell"] = with_name(spread, "mean", "scores_of", shown=four)
    several = spread["n_models"] > 1
    for end, found in (("best", first), ("worst", last)):
        spread[end], spread[f"{end}_model"] = found["score"].where(several), found["model"].where(several)
        spread[f"{end}_cell"] = with_name(spread, end, f"{end}_model", shown=four)
    marginal = scored[scored["model"] == LEAVE_ONE_OUT].set_index(_QUESTION_KEY)["score"]
    spread = spread.join(marginal.rename("others"))
    if "ceiling" in scored:
        spread["ceiling"] = scored.groupby(_QUESTION_KEY, observed=True)["ceiling"].median()
        spread["room"] = spread["ceiling"] - spread["others"]
    return spread.reset_index()


def _whose(models: int, variant: str, model: str) -> str:
    if models == 1:
        return model
    return counted(models, "baseline" if is_computed(variant) else "model")


def _language_models(rows: pd.DataFrame) -> pd.DataFrame:
    """Of each question the rows of models that are no baselines; all of its rows where there are only baselines."""
    asked = ~rows["model_variant"].map(is_computed).astype(bool)
    by_model = asked.groupby([rows[name].astype(str) for name in _QUESTION_KEY]).transform("any")
    return rows[asked | ~by_model.astype(bool)]


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
    shown = _language_models(rows[rows["score"].notna()])[[*_QUESTION_KEY, "model_variant"]].astype(str)
    own = own[own["excess"].notna()].merge(shown, on=[*_QUESTION_KEY, "model_variant"])
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
    return first[list(_OF_EXCESS)].rename(columns=_OF_EXCESS).assign(excess_cell=cells)
