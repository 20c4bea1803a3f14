"""Surveys on the site: who predicts the answers of groups, of which segments and questions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pandas as pd

from dtef_pipeline.site.content import Column, Estimate, table_rows
from dtef_pipeline.site.contents import is_reference
from dtef_pipeline.site.family_view import BoardRow, FamilySite, FamilyView, RankedBoard, Reference
from dtef_pipeline.site.verdict_sentences import against_reference
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT
from dtef_pipeline.survey.drift_subject import SUBJECT
from dtef_pipeline.survey.report.attributes import boards
from dtef_pipeline.survey.report.groups import asked_alike
from dtef_pipeline.survey.stored_tables import SURVEY_TABLES
from dtef_pipeline.survey.survey_paired import SURVEY_PAIRED

_SIMILARITY = "Similarity of predicted and observed answers, 0-1, higher is better"
_SURVEY_COLUMNS = (
    Column("skill", "Skill", "number", "0: the answer of everybody, 1: a perfect model"),
    Column("n_pairs", "Pairs", "count", more=True),
    Column("parse_rate", "Read", "percent", more=True),
)


def read(connection: duckdb.DuckDBPyConnection) -> FamilyView:
    """What surveys show."""
    overall = boards(connection)["overall"]
    ranked = list(_boards(overall))
    verdict = against_reference(ranked[0], LEAVE_ONE_OUT, "the answer of everybody", False, _ceiling(ranked[0]))
    return FamilyView(verdict, ranked, variants=dict(zip(overall["model"], overall["model_variant"], strict=True)))


def _ceiling(board: RankedBoard) -> float | None:
    return next((one.value for one in board.references), None)


def _boards(overall: pd.DataFrame) -> Iterator[RankedBoard]:
    for at, (title, own) in enumerate(asked_alike(overall)):
        rows = own.sort_values(["rank", "model"])
        models = rows[~rows["model_variant"].map(is_reference)]
        place = {variant: at + 1 for at, variant in enumerate(models.loc[models["rank"].notna(), "model_variant"])}
        lines = [Reference("a perfect model", float(rows["ceiling"].median()))]
        yield RankedBoard(
            str(at) if at else "", title, _SIMILARITY, [_row(one, place) for one in table_rows(rows)], lines, _SURVEY_COLUMNS
        )


def _row(one: dict[Any, Any], place: dict[str, int]) -> BoardRow:
    score = Estimate(one["score"], one["score_low"], one["score_high"])
    more = {
        "skill": Estimate(one["skill"], one["skill_low"], one["skill_high"]),
        "n_pairs": one["n_pairs"],
        "parse_rate": one["parse_rate"],
    }
    return BoardRow(
        one["model"],
        score,
        place.get(one["model_variant"]),
        is_reference=is_reference(one["model_variant"]),
        note=one["note"] or "",
        more=more,
    )


SURVEY_SITE = FamilySite("survey", "Surveys", "segment", tuple(SURVEY_TABLES), "scores", read, SUBJECT, SURVEY_PAIRED.metrics)
