"""A prompt's points with their judgements, and criteria in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from dtef_pipeline.report.row_reader import StoredRow
from dtef_pipeline.rubric.blueprint.model import TEXT_KIND
from dtef_pipeline.rubric.results.blueprint_run import ResponseKey, make_criterion_key, make_response_key
from dtef_pipeline.site.content import is_unknown
from dtef_pipeline.text.quantity_words import format_count


class JudgedPoints(NamedTuple):
    """A prompt's points and judgements, by response and criterion."""

    points: Mapping[tuple[ResponseKey, tuple[Any, ...]], StoredRow]
    judgements: Mapping[tuple[ResponseKey, tuple[Any, ...]], Sequence[StoredRow]]


def group_judgements(points: Sequence[StoredRow], judgements: Sequence[StoredRow]) -> JudgedPoints:
    by_point: dict[tuple[ResponseKey, tuple[Any, ...]], list[StoredRow]] = {}
    for row in judgements:
        by_point.setdefault((make_response_key(row), make_criterion_key(row)), []).append(row)
    return JudgedPoints({(make_response_key(row), make_criterion_key(row)): row for row in points}, by_point)


def describe_criterion(row: Mapping[str, Any]) -> str:
    """Return a criterion as text: as shown to judges, or the function with its argument."""
    if row["kind"] == TEXT_KIND or is_unknown(row["fn"]):
        return str(row["text"] or "")
    return f"${row['fn']}" + ("" if is_unknown(row["args"]) else f"({row['args']})")


def format_criteria_count(number: int) -> str:
    """Return `1 criterion`, `2 criteria`."""
    return "1 criterion" if number == 1 else f"{number:,} criteria"


def describe_judges_answered(point: Mapping[str, Any], judgements: Iterable[Mapping[str, Any]]) -> str:
    """Return `1 of 2 judges`; `2 of 2 judges, 1 draw missing` if a judge answered only some of its draws."""
    judgement_list = list(judgements)
    judges = {row["judge"] for row in judgement_list if not is_unknown(row["class"])}
    missing = sum(row["judge"] in judges and is_unknown(row["class"]) for row in judgement_list)
    answered_text = f"{point['n_answered']} of {format_count(int(point['n_judges'] or 0), 'judge')}"
    return answered_text + (f", {format_count(missing, 'draw')} missing" if missing else "")
