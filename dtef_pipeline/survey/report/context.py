"""What context does: the score over the context levels, and the verdicts on whether a model uses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from dtef_pipeline.asking.models import is_computed
from dtef_pipeline.report.charts import FACET_HEIGHT, Mark, facet, line_key, score_domain
from dtef_pipeline.report.markup import (
    DASH,
    Column,
    as_is,
    estimate,
    note,
    only_varying,
    p_value,
    paragraph,
    section,
    table,
    text,
    whole,
    with_intervals,
)
from dtef_pipeline.report.svg import drawing
from dtef_pipeline.statistics.differences import MARGIN
from dtef_pipeline.survey.blueprint.options import ContextLevel
from dtef_pipeline.survey.report.charts import moving, references
from dtef_pipeline.survey.report.terms import NAMES
from dtef_pipeline.text.counted import counted

_HOW_TO_READ_CONTEXT = (
    "Mean score over the number of context questions shown, over the pairs that have a score at every level of the model: levels that were "
    "asked of different pairs are never compared. The lines across are the ceiling and the marginals, over all pairs of the board. "
    "A model that uses the group's other answers rises from left to right; a flat line says that it answers from what it believes about the "
    "group. The verdicts are about language models: a baseline has none. "
    + "p is adjusted over the language models of one condition (Holm)."
)
_CONTEXT_COLUMNS = [
    Column("model", "Model", text),
    Column("condition", "Asked as", text),
    Column("levels", "Levels", text),
    Column("least_score", "Least context", as_is),
    Column("most_score", "Most context", as_is),
    Column("difference", "Difference", as_is, "Score at the highest level less that at the lowest, within (segment, question)"),
    Column("slope", "Per question", as_is, "Change of score per context question"),
    Column("p", "p", p_value),
    Column("p_adjusted", "p (adjusted)", p_value, "Over the language models of one condition"),
    Column("n_questions", "Questions", as_is, "Beneath: the (segment, question) pairs with a score at two levels or more"),
    Column(
        "verdict", "Verdict", text, f"stereotype-holding: the 90 % interval of the difference lies within {MARGIN:g} of none"
    ),
    Column("parsed_note", "Read alone", note, "What readable responses alone say, where it is something else"),
    Column("note", "Note", note),
]


def context(board: pd.DataFrame, verdicts: pd.DataFrame, shown: pd.DataFrame | None = None) -> str:
    """The section, from the overall board as of `on_shared_pairs`, the rows of `responsiveness` (empty: there is no such table) and those
    of `context_shown`.
    """
    several = len(set(board["condition"])) > 1
    parts = [
        _curves(rows, several, _questions_shown(shown, str(condition)))
        for condition, rows in board.groupby("condition", sort=True, observed=True)
    ]
    return section("context", "Context", _HOW_TO_READ_CONTEXT, "".join(parts) + _verdicts(verdicts))


def _questions_shown(shown: pd.DataFrame | None, condition: str) -> dict[str, float]:
    """Mean number of context questions that the prompts of each level really show; nothing where it is not known."""
    if shown is None or not len(shown):
        return {}
    own = shown[shown["condition"] == condition].groupby("context_level", observed=True)["context_included"].mean()
    return {str(level): float(mean) for level, mean in own.dropna().items()}


def _curves(board: pd.DataFrame, titled: bool, questions: Mapping[str, float]) -> str:
    rows = board[board["score"].notna()]
    levels = sorted(rows["context_level"].astype(str).unique(), key=lambda level: ContextLevel(level).order)
    if len(levels) < 2:
        asked = f"Asked as {board['condition'].iloc[0]}: one" if titled else "One"
        return paragraph(f"{asked} context level, there is nothing to compare.")
    curved = moving(rows)
    marks = references(rows)
    bounds = score_domain(curved, [mark.value for mark in marks])
    sizes = [questions[level] for level in levels] if set(levels) <= set(questions) else None
    facets = "".join(
        _facet(str(own["model"].iloc[0]), levels, own, bounds, marks, sizes)
        for _, own in curved.groupby("model_variant", sort=True, observed=True)
    )
    condition = paragraph(f"Asked as {board['condition'].iloc[0]}.") if titled else ""
    words = paragraph(_spacing(levels, sizes))
    remarks = _pairs_of_curves(board, curved) + _without_a_curve(rows, curved, levels)
    return f'{condition}{words}{line_key(marks)}<div class="panels">{facets}</div>{remarks}'


def _pairs_of_curves(board: pd.DataFrame, curved: pd.DataFrame) -> str:
    """How many pairs each curve is over, and which models have none: their levels were asked of different pairs."""
    if not {"n_pairs", "rank"} <= set(board):
        return ""
    counts = {str(model): int(n) for model, n in zip(curved["model"], curved["n_pairs"], strict=True)}
    none = board[(board["n_pairs"] == 0) & ~board["model"].isin(board.loc[board["score"].notna(), "model"])]
    lacking = sorted(set(none.loc[none["rank"].notna(), "model"].astype(str)))
    drawn = ", ".join(f"{model} {n:,}" for model, n in sorted(counts.items()))
    return (paragraph(f"Pairs that each curve is over: {drawn}.") if counts else "") + (
        paragraph(f"No curve, since no pair has a score at every level: {', '.join(lacking)}.") if lacking else ""
    )


def _spacing(levels: Sequence[str], sizes: Sequence[float] | None) -> str:
    if sizes is None:
        return "Levels are spaced evenly; how many questions each really shows is not known."
    counts = ", ".join(f"{level} ({size:.1f})" for level, size in zip(levels, sizes, strict=True))
    return f"Levels stand where the mean number of context questions that prompts really show puts them: {counts}."


def _without_a_curve(rows: pd.DataFrame, curved: pd.DataFrame, levels: Sequence[str]) -> str:
    """Who scores the same at every level, and who has no score at some: a level without a score is not the same."""
    held: dict[str, set[str]] = {}
    for model, level in zip(rows["model"].astype(str), rows["context_level"].astype(str), strict=True):
        held.setdefault(model, set()).add(level)
    moves = set(curved["model"].astype(str))
    same = sorted(model for model, own in held.items() if model not in moves and own == set(levels))
    partly = {
        model: [level for level in levels if level not in own] for model, own in sorted(held.items()) if own != set(levels)
    }
    missing = "; ".join(f"{model} at {', '.join(without)}" for model, without in partly.items())
    return (paragraph(f"The same at every level: {', '.join(same)}.") if same else "") + (
        paragraph(f"Without a score: {missing}.") if partly else ""
    )


def _facet(
    title: str,
    levels: Sequence[str],
    own: pd.DataFrame,
    bounds: tuple[float, float],
    marks: Sequence[Mark],
    sizes: Sequence[float] | None,
) -> str:
    by_level = {str(row["context_level"]): row for row in own.to_dict("records")}
    scores = ", ".join(f"{level}: {by_level[level]['score']:.3f}" for level in levels if level in by_level)
    drawn = facet(title, levels, by_level, bounds, marks, sizes=sizes)
    return drawing([drawn], FACET_HEIGHT, f"{title} by context level: {scores}", standalone=False)


def _verdicts(frame: pd.DataFrame) -> str:
    if not len(frame):
        return paragraph("No test of responsiveness yet.")
    shown = with_intervals(frame, [("slope", "slope_low", "slope_high"), ("difference", "low", "high")], sign="+")
    shown["verdict"] = shown["verdict"].mask(shown["model_variant"].map(is_computed).astype(bool))
    for score, asked in (("least_score", "least_context"), ("most_score", "most_context")):
        shown[score] = [
            f'{estimate(value)}<span class="ci">{count:.1f} questions</span>' if pd.notna(value) else DASH
            for value, count in zip(frame[score], frame[asked], strict=True)
        ]
    if {"n_questions", "n_pairs"} <= set(frame.columns):
        shown["n_questions"] = [
            f'{whole(count)}<span class="ci">{counted(int(among), "pair")}</span>'
            for count, among in zip(frame["n_questions"], frame["n_pairs"], strict=True)
        ]
    columns = only_varying(frame, _CONTEXT_COLUMNS, NAMES.usual)
    return table(shown, columns, caption="Responsiveness to context", row_head="model", data=frame)
