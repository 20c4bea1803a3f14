"""The profile `population`: everyone is asked about, so nothing of the segment may be in the prompt, nor anything that differs by segment."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dtef_pipeline.survey.blueprint.options import FORMATS, BlueprintOptions
from dtef_pipeline.survey.blueprint.prompts import build_blueprints
from tests.dtef_pipeline.survey.blueprint.test_options import OWN
from tests.made.scores import survey_rows

SEGMENTS: tuple[dict[str, Any], ...] = (
    {"segment": "country:kenya", "attribute": "country", "value": "Kenya", "observed": [0.61, 0.28, 0.11], "n": 41, "segment_n": 43},
    {"segment": "gender:female", "attribute": "gender", "value": "Female", "observed": [0.07, 0.17, 0.76], "n": 59, "segment_n": 67},
)  # fmt: skip
TASKS_OF_EVERYONE = ("distribution", "synthetic-individuals=10", "batch=3")
CONDITIONS = [
    f"{task}/{form}+population{flags}"
    for task in TASKS_OF_EVERYONE
    for form in FORMATS
    for flags in ("", "+cot+structured+reversed", "+random+show-n", "+system=persona", "+system=brief")
]


def asked(condition: str, levels: tuple[str, ...] = ("0", "2", "all"), **changed: Any) -> list[list[dict[str, Any]]]:
    """The blueprints of each of the two segments."""
    options = BlueprintOptions.parse_condition(condition, levels, OWN)
    tables = [survey_rows(*({**segment, **changed} for _ in range(6))) for segment in SEGMENTS]
    return [build_blueprints(table, options).to_pylist() for table in tables]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_prompts_are_the_same_for_all_segments_and_hold_nothing_of_one(condition: str) -> None:
    kenya, women = asked(condition)
    assert [row["prompt_id"] for row in kenya] == [row["prompt_id"] for row in women]
    assert [(row["system"], row["user"]) for row in kenya] == [(row["system"], row["user"]) for row in women]
    assert [row["segment"] for row in kenya] != [row["segment"] for row in women]
    for rows, segment in zip((kenya, women), SEGMENTS, strict=True):
        for row in rows:
            text = f"{row['system']}\n{row['user']}"
            assert not re.search("country|gender|kenya|female|group", text, re.IGNORECASE)
            own = [f"{100 * share:.1f}%" for share in segment["observed"]]
            assert not any(figure in text for figure in own)
            assert not re.search(rf"\b({segment['n']}|{segment['segment_n']}|300) ", text)


def test_a_question_that_everyones_answer_is_unknown_of_is_asked_but_never_shown() -> None:
    kenya, _ = asked("distribution+population", ("0", "all"), population=None, population_n=None)
    assert [row["context_included"] for row in kenya] == [0] * 12
    one_known = survey_rows({}, {"population": None, "population_n": None}, {})
    rows = build_blueprints(one_known, BlueprintOptions(("all",), profile="population")).to_pylist()
    assert [row["context_question_ids"] for row in rows] == [["q2"], ["q0", "q2"], ["q0"]]
