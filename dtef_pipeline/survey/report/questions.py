"""One row per question: how hard it is, who does best and worst, and where groups differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd

from dtef_pipeline.asking.models import is_computed
from dtef_pipeline.boards.cells import has_table, load_cells
from dtef_pipeline.report.markup import (
    Column,
    as_is,
    estimate,
    fold,
    is_unknown,
    long_text,
    paragraph,
    section,
    table,
    text,
    whole,
    with_name,
)
from dtef_pipeline.report.terminal import named_apart
from dtef_pipeline.statistics.ranks import ranks
from dtef_pipeline.survey.blueprint.options import ContextLevel
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
from dtef_pipeline.survey.report.groups import asked_alike
from dtef_pipeline.text.counted import counted

_HOW_TO_READ_QUESTIONS = (
    "Every question that anything predicted, at the highest context level that a language model was asked with. Mean, best and worst are of "
    "the language models that were asked it; where none was, of the baselines. Beneath the mean stands which. All numbers of a row "
    "are over the same segments: those that all these models have a score on. A model that shares less than half of the segments with the "
    "others is left out of the row. Of a single model there is no best and no worst. Room is what the ceiling leaves above the leave-one-out "
    "marginal: where it is small no model can show much. Search for words of the question; press a heading to sort."
)
_QUESTION_COLUMNS = [
    Column("question", "Question", long_text),
    Column("round", "Round", text),
    Column(
        "asked",
        "Segments",
        as_is,
        "Segments that all models of the row have a score on: what its means are over; beneath it how many answered the question",
    ),
    Column("mean_cell", "Mean", as_is, "Mean score; beneath it whose: of the models that mean, best and worst are of"),
    Column("best_cell", "Best", as_is),
    Column("worst_cell", "Worst", as_is),
    Column("others", "Leave-one-out", estimate, "Score of the leave-one-out marginal in the same segments"),
    Column("ceiling", "Ceiling", estimate, "Expected score of a perfect predictor in the same segments"),
    Column("room", "Room", estimate, "Ceiling less leave-one-out"),
]
_ALL_EQUAL = "all equal"
_QUESTION_KEY = ["round", "question_id"]
_ROW_KEY = ("context_level", "condition", *_QUESTION_KEY)
_QUESTION_DATA = (
    *_QUESTION_KEY,
    "question_text",
    "scores_of",
    "n_models",
    "models_left_out",
    "asked_segments",
    "segments",
    *("mean", "best", "best_model", "worst", "worst_model", "others", "ceiling", "room"),
)


class _Scores(NamedTuple):
    """The scores on one question, asked in one way."""

    of: dict[str, dict[str, float]]  # by model variant, then by segment
    others: dict[str, float]  # of the leave-one-out marginal, by segment
    ceiling: dict[str, float]


def questions(connection: duckdb.DuckDBPyConnection, metric: str = "js") -> str:
    """The section, from the scores under a metric."""
    texts = _texts(connection)
    scored = load_cells(connection, SurveyBoardOptions(metric=metric))
    scored = scored[scored["score"].notna()]
    spread = _spread(_shown(scored), _names(scored))
    groups = [
        fold(title, _question_table(texts, rows, at), is_open=at == 0) for at, (title, rows) in enumerate(asked_alike(spread))
    ]
    body = "".join(groups) or paragraph("No scores yet.")
    return section("questions", "Questions", _HOW_TO_READ_QUESTIONS, body + _without_scores(texts, spread))


def _names(cells: pd.DataFrame) -> dict[str, str]:
    """What each variant is called."""
    models = named_apart(cells[["model", "model_variant"]].drop_duplicates().astype(str))
    return dict(zip(models["model_variant"], models["model"], strict=True))


def _shown(cells: pd.DataFrame) -> pd.DataFrame:
    """Of each condition and question the language models, or the baselines where none was asked, at the level of most context."""
    is_asked = ~cells["model_variant"].map(is_computed).astype(bool)
    by = [cells[name] for name in ("condition", *_QUESTION_KEY)]
    own = cells[is_asked | ~is_asked.groupby(by, observed=True).transform("any")]
    size = own["context_level"].map(lambda level: ContextLevel(level).order).astype(float)
    most = size.groupby([own[name] for name in ("condition", *_QUESTION_KEY)], observed=True).transform("max")
    return own[size == most]


def _spread(cells: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """One row per way of asking and question: whose scores there are, and their mean, best and worst beside the references.

    All of a row is over the same segments: those that all models of the row have a score on.
    """
    rows = []
    for key, own in cells.groupby(list(_ROW_KEY), observed=True, sort=True):
        scores = _Scores({}, {}, {})
        columns = (own[name] for name in ("model_variant", "segment", "score", "others", "ceiling"))
        for variant, segment, score, others, ceiling in zip(*columns, strict=True):
            scores.of.setdefault(variant, {})[segment] = score
            scores.others[segment], scores.ceiling[segment] = others, ceiling
        rows.append(dict(zip(_ROW_KEY, key, strict=True)) | _of_question(scores, names))
    return pd.DataFrame(rows, columns=None if rows else list(_ROW_KEY))


def _of_question(scores: _Scores, names: Mapping[str, str]) -> dict[str, Any]:
    kept, common = _compared(scores.of)
    means = [float(np.mean([scores.of[variant][segment] for segment in common])) for variant in kept]
    others, ceiling = (float(np.mean([known[segment] for segment in common])) for known in (scores.others, scores.ceiling))
    left_out = len(scores.of) - len(kept)
    found: dict[str, Any] = {
        "variants": kept,
        "scores_of": _whose([names[variant] for variant in kept], "baseline" if is_computed(kept[0]) else "model", left_out),
        "n_models": len(kept),
        "models_left_out": left_out,
        "asked_segments": len(common),
        "mean": float(np.mean(means)),
        "others": others,
        "ceiling": ceiling,
        "room": ceiling - others,
    }
    for end, is_best in (("best", True), ("worst", False)):
        first = ranks(means, highest_first=is_best) == 1
        own = sorted(names[variant] for variant, is_end in zip(kept, first, strict=True) if is_end)
        found[end] = (max(means) if is_best else min(means)) if len(kept) > 1 else None
        found[f"{end}_model"] = (_ALL_EQUAL if len(own) == len(kept) else all_of(own)) if len(kept) > 1 else None
    return found


def _compared(scores: Mapping[str, Mapping[str, float]]) -> tuple[list[str], list[str]]:
    """The models of a row and the segments that they all have: at least half of those that most segments were asked of."""
    order = sorted(scores, key=lambda variant: (-len(scores[variant]), variant))
    most = len(scores[order[0]])
    kept, common = order[:1], set(scores[order[0]])
    for variant in order[1:]:
        both = common & scores[variant].keys()
        if 2 * len(both) >= most:
            kept, common = [*kept, variant], both
    return kept, sorted(common)


def _whose(models: Sequence[str], noun: str, left_out: int) -> str:
    whose = models[0] if len(models) == 1 else counted(len(models), noun)
    return f"{whose}; {left_out} with fewer segments left out" if left_out else whose


def _without_scores(texts: pd.DataFrame, spread: pd.DataFrame) -> str:
    """How many questions of these rounds nothing has a score on."""
    known = set(zip(spread["round"], spread["question_id"], strict=True)) if len(spread) else set()
    rounds = {name for name, _ in known}
    left = sum(1 for key in texts.index if key[0] in rounds and tuple(key) not in known)
    return paragraph(f"Questions of these rounds that nothing has a score on: {left:,}.") if left else ""


def _question_table(texts: pd.DataFrame, rows: pd.DataFrame, at: int) -> str:
    wide = rows.join(texts, on=_QUESTION_KEY)
    if "place" in wide:
        wide = wide.sort_values(["round", "place", "question_id"], kind="stable")
    wide["question"] = wide.get("question_text", pd.Series(dtype=object)).fillna(wide["question_id"])
    wide["asked"] = [
        whole(asked) + ("" if is_unknown(there) else f'<span class="ci">of {whole(there)}</span>')
        for asked, there in zip(wide["asked_segments"], wide["segments"], strict=True)
    ]
    for cell, value, name in (
        ("mean_cell", "mean", "scores_of"),
        ("best_cell", "best", "best_model"),
        ("worst_cell", "worst", "worst_model"),
    ):
        wide[cell] = with_name(wide, value, name)
    anchor = f"question-table-{at}"
    box = (
        f'<label class="search">Search questions<input type="search" data-filters="{anchor}" placeholder="words of the question">'
        f'</label><p class="count" role="status" data-counts="{anchor}">{counted(len(wide), "question")}</p>'
    )
    data = wide[[name for name in _QUESTION_DATA if name in wide]]
    return box + table(wide, _QUESTION_COLUMNS, caption="Scores by question", row_head="question", anchor=anchor, data=data)


def _texts(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    if not has_table(connection, "survey_responses"):
        return pd.DataFrame({"segments": []}, index=pd.MultiIndex.from_arrays([[], []], names=_QUESTION_KEY))
    found = connection.execute(
        "SELECT round, question_id, any_value(question_text) AS question_text, count(*) AS segments, min(question_order) AS place "
        "FROM survey_responses GROUP BY ALL ORDER BY ALL"
    ).df()
    return found.set_index(_QUESTION_KEY)


_MOST_NAMED = 3


def all_of(names: Sequence[str]) -> str:
    """One name, a few that tie, or how many do."""
    if len(names) == 1:
        return names[0]
    return f"{len(names)} tied" + (f": {', '.join(names)}" if len(names) <= _MOST_NAMED else "")
