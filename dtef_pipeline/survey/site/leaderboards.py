"""The leaderboards of surveys: models ranked among models, one board for each setting, and the verdict on the first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from dtef_pipeline.boards import families
from dtef_pipeline.boards.comparisons import rank_ranges
from dtef_pipeline.site.content import Column, Estimate, convert_to_rows, is_unknown
from dtef_pipeline.site.family_content import BoardRow, RankedBoard, Reference
from dtef_pipeline.site.leaderboard import describe_best_of_models
from dtef_pipeline.site.number_text import show
from dtef_pipeline.statistics.ranks import rank_numbers
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT
from dtef_pipeline.survey.boards.asking_settings import Setting
from dtef_pipeline.survey.boards.survey_subject import SCORED
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.site.contents import SurveyContents
from dtef_pipeline.survey.site.survey_labels import A_PERFECT_MODEL, MARGINAL, MARGINAL_MEANING, describe_baseline
from dtef_pipeline.text.number_words import format_count

SURVEY_MEASURE = "Similarity of predicted and observed answers, 0-1, higher is better"
RANKS_GUIDE = (
    "The score is a mean over pairs of segment and question, with its 95% interval. A model that scores below the leave-one-out "
    "marginal does worse than giving every segment the same answer; the perfect model's score is the most that samples of these sizes "
    "allow. Some pairs are easier than others, and not every model has all of them, so ranks use the score that each model would have on the "
    f"same pairs. A model needs scores in {SCORED.ranked_from} segments (or in all, if there are fewer) to be ranked."
)
_BOARD_MORE = (
    Column("skill", "Skill", "number", f"0: the {MARGINAL}, 1: a {A_PERFECT_MODEL}, below 0: worse than the {MARGINAL}"),
    Column("adjusted_score", "Ranked by", "score", "Score if every model had the same pairs", more=True),
    Column("parsed_score", "Score of readable answers", "score", "Without unreadable answers, which score 0 or 0.1", more=True),
    Column("worth", "Worth", "number", "Size of a real sample that predicts as well as its readable answers", more=True),
    Column("n_pairs", "Pairs", "count", "Pairs of segment and question with a score", more=True),
    Column("n_questions", "Questions", "count", more=True),
    Column("parse_rate", "Read", "percent", "Share of its answers that could be read", more=True),
)


def build_ranked_boards(contents: SurveyContents) -> Iterator[RankedBoard]:
    """Yield a board for each setting, first that of the front page."""
    for index, setting in enumerate(contents.settings):
        rows = setting.select_rows(contents.overall)
        ranked_rows = _add_ranks(rows, setting.select_rows(contents.boards["comparisons"]))
        ceiling = rows["ceiling"].median() if "ceiling" in rows else np.nan
        lines = [] if is_unknown(ceiling) else [Reference(f"A {A_PERFECT_MODEL}", float(ceiling))]
        marginals = rows.loc[(rows["model"] == LEAVE_ONE_OUT) & rows["score"].notna(), ["name", "score"]]
        lines += [Reference(name, float(score)) for name, score in marginals.itertuples(index=False, name=None)]
        title = contents.title(setting) if len(contents.settings) > 1 else ""
        board = [_build_row(row) for row in convert_to_rows(ranked_rows)]
        yield RankedBoard(str(index) if index else "", title, SURVEY_MEASURE, board, lines, _BOARD_MORE, RANKS_GUIDE)


def _add_ranks(rows: pd.DataFrame, comparisons: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with `rank`, `rank_low` and `rank_high` among models only, best first; baselines have none."""
    models = rows[~rows["is_reference"] & rows["rank"].notna()]
    values = models["adjusted_score"] if "adjusted_score" in models else models["score"]
    models = models.assign(rank=rank_numbers(values))
    ranks = models[["rank"]].copy()
    if len(comparisons):
        tests = comparisons[comparisons["adjusted_over"] == families.AMONG_MODELS]
        ranks = ranks.join(rank_ranges(models, tests, KEYS))
    ranked_rows = rows.drop(columns=["rank", "rank_low", "rank_high"], errors="ignore").join(ranks)
    by_score = ranked_rows["rank"].fillna(np.inf) if len(models) else -ranked_rows["score"]
    order = np.lexsort((ranked_rows["name"].astype(str), -ranked_rows["score"].fillna(-1), by_score))
    return ranked_rows.iloc[order]


def _build_row(row: Mapping[str, Any]) -> BoardRow:
    note = row.get("note") or describe_baseline(row["model"])
    values = {**row, "skill": Estimate.from_row(row, "skill"), "note": note}
    return BoardRow.from_row(values, Estimate.from_row(row, "score"), _BOARD_MORE, "name")


def verdict(contents: SurveyContents, board: RankedBoard) -> str:
    """Return whether models beat the leave-one-out marginal, by the tested comparisons of the first board.

    `No model beats the leave-one-out marginal (the average answer of the other groups): the best of 3, gpt-4.1, scores 0.768 against
    0.821; a perfect model would score 0.867.`
    """
    models = board.models
    tests = _compare_with_reference(contents, contents.main)
    result = tests.get(models[0].model) if models else None
    if result is None:
        return describe_best_of_models(board)
    best = models[0].model
    subject = f"the best of {format_count(len(models), 'model')}, {best}," if len(models) > 1 else best
    numbers = f"{show(result['of_model'], 'score')} against {show(result['of_reference'], 'score')}"
    ceiling = next((reference.value for reference in board.references if reference.label.endswith(A_PERFECT_MODEL)), None)
    perfect = f"; a {A_PERFECT_MODEL} would score {show(ceiling, 'score')}" if ceiling is not None else ""
    # The reference's score on the compared pairs may differ from that on all of its pairs.
    marginals = [row.score.value for row in board.rows if row.model.lower() == MARGINAL.lower()]
    compared_score = show(result["of_reference"], "score")
    differs = any(value is not None and show(value, "score") != compared_score for value in marginals)
    shared = " on the pairs that both have" if differs else ""
    perfect = f"{perfect} on all pairs" if perfect and shared else perfect
    marginal = f"the {MARGINAL} ({MARGINAL_MEANING})"
    beating = sum(1 for model in models if tests.get(model.model, {}).get("verdict") == families.BETTER)
    if beating and len(models) > 1:
        beat = f"{beating} of {len(models)} models {'beat' if beating > 1 else 'beats'}"
        return f"{beat} {marginal}: the best, {best}, scores {numbers}{shared}{perfect}."
    words = {
        families.BETTER: f"{best} beats {marginal}: it scores {numbers}",
        families.WORSE: f"No model beats {marginal}: {subject} scores {numbers}",
        families.ALIKE: f"No model clearly differs from {marginal}: {subject} scores {numbers}",
        families.UNTESTED: f"No test was possible: {subject} scores {numbers} of {marginal}",
    }
    return f"{words[result['verdict']]}{shared}{perfect}."


def _compare_with_reference(contents: SurveyContents, setting: Setting) -> dict[str, dict[str, Any]]:
    """Return each model's comparison with the leave-one-out marginal, by name: `verdict`, `of_model`, `of_reference`, on the pairs of
    both.
    """
    rows = setting.select_rows(contents.boards["comparisons"])
    comparisons: dict[str, dict[str, Any]] = {}
    for row in convert_to_rows(rows[rows["adjusted_over"] == families.OF_REFERENCE]) if len(rows) else []:
        leads = row["model_variant"] != LEAVE_ONE_OUT
        name = row["name"] if leads else contents.names.get(row["other_variant"], row["other_model"])
        scores = (row["score"], row["other_score"]) if leads else (row["other_score"], row["score"])
        words = row["verdict"] if leads or row["verdict"] != families.BETTER else families.WORSE
        comparisons[name] = {"verdict": words, "of_model": scores[0], "of_reference": scores[1]}
    return comparisons
