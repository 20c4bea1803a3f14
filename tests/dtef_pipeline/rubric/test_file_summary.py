"""What is counted in a file, by hand for one and by an independent reader for the public blueprints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from dtef_pipeline.rubric.blueprint.blueprint_rows import summarise_file
from dtef_pipeline.rubric.blueprint.named_models import read_collections
from dtef_pipeline.rubric.blueprint.reading import make_blueprint_id, read_blueprint
from tests.conftest import SHARED

BY_HAND = """
title: Prices
tags: [Money]
models: [openai:a, openai:b, openai:c]
temperatures: [0, 0.5]
system: [null, Be kind.]
point_defs: {long: r.length > 9}
---
- {id: a, prompt: Combien coûte ça?, ideal: Five., should: [names it, {$icontains: "5", weight: 2}, "$contains: 'x'"]}
- {id: b, messages: [user: Hi, ai: null, user: да], ideal: Six., weight: 2, should: [[a, b], [c, {$ref: long}]], should_not: [d]}
- {id: b, prompt: z}
"""


def test_counts_of_a_small_file_by_hand() -> None:
    found = summarise_file("x/a.yml", "x__a", read_blueprint(BY_HAND, "x__a"))
    counts = """
        parses: true, prompts: 3, prompt_ids: 3, duplicate_ids: 1, prompts_with_ideal: 2, ideal_only: 0, prompts_without_criteria: 1,
        multi_turn: 1, prompts_with_null_turns: 1, systems: 2, null_system: true, prompts_with_system: 0, weighted_prompts: 1, models: 3,
        criteria: 8, should: 7, should_not: 1, text_criteria: 5, function_criteria: 3, weighted_criteria: 1, or_blocks: 1, or_paths: 2,
        path_criteria: 4, functions: {contains: 1, icontains: 1, js: 1}, repaired_strings: 1, refs: 1, function_only: false
    """
    planned = {
        "planned_responses": 3 * 3 * 4,
        "planned_candidate_calls": 4 * 3 * 4,
        "judge_pairs": 5 * 3 * 4,
        "judge_calls_default": 2 * 5 * 3 * 4,
        "embeddings_planned": 2 + 2 * 3 * 4,
    }
    found_in = {
        "dollar-string": {"level": "warning", "at": ["prompt 0 should[2]"]},
        "no-criteria": {"level": "warning", "at": ["prompt 2"]},
        "duplicate-prompt-id": {"level": "warning", "at": ["prompt 2"]},
    }
    assert found == {
        "path": "x/a.yml",
        "id": "x__a",
        "structure": "header+list",
        "title": "Prices",
        "tags": ["money"],
        **yaml.safe_load(f"{{{counts}}}"),
        **planned,
        "letters": len("Combiencoûteçanamesit" + "Hiдаabcd" + "z"),
        "accented_letters": 2,
        "non_latin_letters": 2,
        "temperatures": [0.0, 0.5],
        "findings": found_in,
        "errors": [],
    }


def test_file_that_cannot_be_parsed_has_its_line_in_place_of_counts() -> None:
    assert summarise_file("a.yml", "a", read_blueprint("title: a: b", "a")) == {
        "path": "a.yml",
        "id": "a",
        "parses": False,
        "line": 1,
        "findings": {"yaml": {"level": "error", "at": ["line 1"]}},
    }


def test_file_without_prompts_counts_nothing_and_names_its_errors() -> None:
    found = summarise_file("a.yml", "a", read_blueprint("title: b\nmodels: [openai:a]", "a"))
    assert (found["parses"], found["prompts"], found["planned_responses"], found["errors"]) == (True, 0, 0, ["no-prompts"])


@pytest.fixture(scope="module")
def public_blueprints() -> Path:
    if not (SHARED / "weval" / "expected.json").is_file():
        pytest.skip(f"no public blueprints at {SHARED / 'weval'}")
    return SHARED / "weval"


def test_public_blueprints_have_what_an_independent_reader_found(public_blueprints: Path) -> None:
    expected: list[dict[str, Any]] = json.loads((public_blueprints / "expected.json").read_text(encoding="utf-8"))["files"]
    collections = read_collections(public_blueprints / "models")
    assert len(expected) == 98
    for one in expected:
        identifier = make_blueprint_id(one["path"])
        read = read_blueprint(public_blueprints / "blueprints" / one["path"], identifier, collections)
        assert summarise_file(one["path"], identifier, read) == one
