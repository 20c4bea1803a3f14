"""Prompts: their four parts, their context questions, and the token budget they keep."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.asking.tokens import estimate_tokens
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.adapters import read_survey
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.blueprint.prompts import build_blueprints
from dtef_pipeline.survey.observations import observe
from tests.made.scores import survey_rows

PLAIN = survey_rows(*({} for _ in range(8)))


def prompts(table: Any = PLAIN, **options: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = build_blueprints(table, BlueprintOptions(**options)).to_pylist()
    return rows


def test_context_shrinks_until_the_prompt_fits_the_budget() -> None:
    whole = prompts(context_levels=("all",))[0]
    tight = prompts(context_levels=("all",), token_budget=whole["tokens"] + 99, answer_reserve=100)[0]
    assert tight["context_included"] == whole["context_included"] - 1
    assert tight["tokens"] <= whole["tokens"] - 1


def test_levels_made_in_different_ways_stand_side_by_side_and_can_be_made_again() -> None:
    plain, shown = BlueprintOptions(("0",)), BlueprintOptions(("2",), show_n=True, selection="random")
    rows = build_blueprints(PLAIN, plain, shown).to_pylist()
    assert [row["context_level"] for row in rows[:4]] == ["0", "2", "0", "2"]
    again = BlueprintOptions.parse_recipe(rows[1]["recipe"], ["2"])
    assert again == shown
    assert {row["prompt_id"] for row in rows if row["context_level"] == "2"} == {
        row["prompt_id"] for row in build_blueprints(PLAIN, again).to_pylist()
    }


def test_random_selection_is_seeded_and_the_same_for_every_segment() -> None:
    other = survey_rows(*({"segment": "country:chile", "value": "Chile"} for _ in range(8)))
    chosen = [row["context_question_ids"] for row in prompts(context_levels=("3",), selection="random")]
    assert chosen == [row["context_question_ids"] for row in prompts(other, context_levels=("3",), selection="random")]
    assert chosen != [row["context_question_ids"] for row in prompts(context_levels=("3",), selection="random", seed=1)]
    assert chosen != [row["context_question_ids"] for row in prompts(context_levels=("3",))]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"context_levels": ("05",)}, "'05' is not a context level"),
        ({"context_levels": ()}, "no context level is given"),
        ({"selection": "nearest"}, "context selection 'nearest'; allowed: survey-order, random"),
        ({"token_budget": 100, "answer_reserve": 100}, "token budget 100 .*100 .*: allowed"),
    ],
)
def test_unusable_options_say_what_is_allowed(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        BlueprintOptions(**options)


@given(st.text(max_size=300), st.text(max_size=300))
def test_token_estimate_never_shrinks_when_text_is_added(one: str, other: str) -> None:
    assert estimate_tokens(one + "\n" + other) >= max(estimate_tokens(one), estimate_tokens(other))


@pytest.mark.thorough
def test_token_estimate_errs_on_the_high_side_of_a_real_tokenizer(real_surveys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.find_spec("litellm")
    assert spec is not None
    assert spec.origin is not None
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"))
    import tiktoken

    encoding = tiktoken.get_encoding("cl100k_base")
    survey = observe(read_survey(real_surveys / "surveys" / "gd4.json")).responses.slice(0, 116)
    plain = BlueprintOptions(context_levels=("0", "10", "all"))
    others = [
        BlueprintOptions.parse_condition(text, ("10",)) for text in ("batch=5/narrative+cot", "shift/distribution-context")
    ]
    rows = build_blueprints(survey, plain, *others).to_pylist()
    ratios = [row["tokens"] / len(encoding.encode(row["system"] + "\n" + row["user"])) for row in rows]
    assert min(ratios) >= 1.0
    assert max(ratios) < 1.35
