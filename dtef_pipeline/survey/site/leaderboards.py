"""The leaderboards of surveys: models ranked among models, one board for each setting, and the verdict on the first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from dtef_pipeline.boards import families
from dtef_pipeline.boards.comparisons import rank_ranges
from dtef_pipeline.site.content import Column, Estimate, convert_to_rows, is_unknown
from dtef_pipeline.site.family_content import BoardRow, RankedBoard, Reference
from dtef_pipeline.site.leaderboard import describe_best_of_models
from dtef_pipeline.site.sentences import write_sentence
from dtef_pipeline.statistics.ranks import rank_numbers
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT
from dtef_pipeline.survey.boards.schemas import BOARD_COLUMNS
from dtef_pipeline.survey.boards.survey_subject import SCORED
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.site.contents import GUIDES, SENTENCES, SurveyContents
from dtef_pipeline.survey.site.survey_labels import A_PERFECT_MODEL, describe_baseline

PERFECT_LINE = f"A {A_PERFECT_MODEL}"
SURVEY_MEASURE = "Similarity of predicted and observed answers, 0-1, higher is better"
_COLUMNS = (
    Column("skill", "Skill", "number", BOARD_COLUMNS["skill"]),
    Column("adjusted_score", "Ranked by", "score", BOARD_COLUMNS["adjusted_score"], more=True),
    Column("worth", "Worth", "number", BOARD_COLUMNS["worth"], more=True),
    Column("n_pairs", "Pairs", "count", BOARD_COLUMNS["n_pairs"], more=True),
    Column("parse_rate", "Read", "percent", BOARD_COLUMNS["parse_rate"], more=True),
)


def build_ranked_boards(contents: SurveyContents) -> Iterator[RankedBoard]:
    """Yield a board for each setting, first that of the front page."""
    guide = write_sentence(GUIDES, "board", ranked_from=SCORED.ranked_from)
    for index, setting in enumerate(contents.settings):
        rows = _add_ranks(setting.select_rows(contents.board("overall")), setting.select_rows(contents.board("comparisons")))
        ceiling = rows["ceiling"].median() if "ceiling" in rows else np.nan
        lines = [] if is_unknown(ceiling) else [Reference(PERFECT_LINE, float(ceiling))]
        marginals = rows.loc[(rows["model"] == LEAVE_ONE_OUT) & rows["score"].notna(), ["name", "score"]]
        lines += [Reference(name, float(score)) for name, score in marginals.itertuples(index=False, name=None)]
        title = contents.title(setting) if len(contents.settings) > 1 else ""
        board = []
        for row in convert_to_rows(rows):
            note = row.get("note") or describe_baseline(row["model"])
            values = {**row, "skill": Estimate.from_row(row, "skill"), "note": note}
            board.append(BoardRow.from_row(values, Estimate.from_row(row, "score"), _COLUMNS, "name"))
        yield RankedBoard(str(index) if index else "", title, SURVEY_MEASURE, board, lines, _COLUMNS, guide)


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


def verdict(contents: SurveyContents, board: RankedBoard) -> str:
    """Return whether models beat the leave-one-out marginal, by the tested comparisons of the first board.

    `No model beats the leave-one-out marginal (the average answer of the other groups): the best of 3 models, gpt-4.1, scores 0.768
    against 0.821 on the pairs that both have; a perfect model would score 0.867 on all pairs.`
    """
    models, tests = [row.model for row in board.models], _compare_with_marginal(contents)
    if not models or models[0] not in tests:
        return describe_best_of_models(board)
    return write_sentence(
        SENTENCES,
        "verdict",
        best=models[0],
        n_models=len(models),
        n_beating=sum(tests[model]["verdict"] == families.BETTER for model in models if model in tests),
        test=tests[models[0]],
        ceiling=next((line.value for line in board.references if line.label == PERFECT_LINE), None),
    )


def _compare_with_marginal(contents: SurveyContents) -> dict[str, dict[str, Any]]:
    """Return each model's test in the setting of the first leaderboard, by name: `verdict`, and `score` and `marginal` on shared pairs."""
    rows = contents.settings[0].select_rows(contents.board("comparisons"))
    tests: dict[str, dict[str, Any]] = {}
    for row in convert_to_rows(rows[rows["adjusted_over"] == families.OF_REFERENCE]) if len(rows) else []:
        if row["model_variant"] != LEAVE_ONE_OUT:
            tests[row["name"]] = {"verdict": row["verdict"], "score": row["score"], "marginal": row["other_score"]}
        else:
            words = families.WORSE if row["verdict"] == families.BETTER else row["verdict"]
            name = contents.names.get(row["other_variant"], row["other_model"])
            tests[name] = {"verdict": words, "score": row["other_score"], "marginal": row["score"]}
    return tests
