"""Exported blueprints hold prompts and expected percentages, and say what they leave out."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from dtef_pipeline.errors import DtefError
from dtef_pipeline.survey.blueprint.export import list_not_for_weval, write_weval_yaml
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.blueprint.prompts import build_blueprints
from tests.made.scores import survey_rows

SURVEY = survey_rows({}, {"observed": [1 / 3, 1 / 3, 1 / 3]})


def exported(*conditions: str) -> dict[str, Any]:
    blueprints = build_blueprints(SURVEY, *map(BlueprintOptions.parse_condition, conditions))
    document: dict[str, Any] = yaml.safe_load(write_weval_yaml(blueprints, SURVEY))
    return document


def expected(prompt: dict[str, Any]) -> list[float]:
    (point,) = prompt["points"]
    assert (point["fn"], point["fnArgs"]["metric"]) == ("distribution_metric", "js-divergence")
    shares: list[float] = point["fnArgs"]["expected"]
    return shares


def test_the_document_holds_prompts_and_expected_percentages() -> None:
    document = exported("distribution")
    assert document["title"] == "S1: country Kenya"
    assert document["description"] == "Predict how Kenya (country) answered survey round S1."
    assert document["system"].startswith("You are")
    first, second = document["prompts"]
    assert first["id"] == "q0-context-0"
    assert expected(first) == pytest.approx([50, 30, 20])
    assert sum(expected(second)) == pytest.approx(100, abs=1e-4)


@pytest.mark.parametrize(
    ("condition", "listed"),
    [
        ("distribution+reversed", [20.0, 30.0, 50.0]),
        ("shift+rotated-1", [30.0, 20.0, 50.0]),
        ("distribution+rotated-3", [50.0, 30.0, 20.0]),
        ("shift/narrative+cot+structured", [50.0, 30.0, 20.0]),
    ],
)
def test_expected_percentages_are_in_the_order_of_the_prompt(condition: str, listed: list[float]) -> None:
    first = exported(condition)["prompts"][0]
    assert expected(first) == pytest.approx(listed)
    assert first["id"] == f"q0-context-0-{BlueprintOptions.parse_condition(condition).condition}"


def test_prompts_of_several_conditions_have_ids_and_system_prompts_of_their_own() -> None:
    document = exported("distribution", "shift+cot", "shift+system=none")
    assert "system" not in document
    ids = [prompt["id"] for prompt in document["prompts"]]
    assert len(ids) == len(set(ids)) == 6
    by_id = {prompt["id"]: prompt for prompt in document["prompts"]}
    assert by_id["q0-context-0"]["system"].startswith("You are")
    assert "DISTRIBUTION:" in by_id["q0-context-0-shift/attribute-label+cot"]["system"]
    assert "system" not in by_id["q0-context-0-shift/attribute-label+system=none"]


def test_tasks_whose_answer_is_more_than_a_distribution_are_left_out_and_named() -> None:
    conditions = ["distribution", "batch=2+cot", "synthetic-individuals=9"]
    document = exported(*conditions)
    assert [prompt["id"] for prompt in document["prompts"]] == ["q0-context-0", "q1-context-0"]
    absent = ["batch=2/attribute-label+cot", "synthetic-individuals=9/attribute-label"]
    assert document["description"].endswith(f"Left out, because an answer is more than one distribution: {', '.join(absent)}.")
    assert list_not_for_weval(build_blueprints(SURVEY, *map(BlueprintOptions.parse_condition, conditions))) == absent


def test_nothing_to_export_says_why() -> None:
    with pytest.raises(DtefError, match=r"S1/country:kenya: .* batch=3/"):
        exported("batch")
