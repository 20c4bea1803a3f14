"""A condition spells the options of a blueprint, one spelling per way of asking, and is read back."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.blueprint.options import (
    BATCH_SIZES,
    FORMATS,
    MAX_INDIVIDUALS,
    PROFILES,
    REASONINGS,
    SHIPPED,
    TASKS,
    BlueprintOptions,
    ContextLevel,
)

OWN = {"plain": "In plain words.", "a-2": "Answer."}
ORDERS = st.sampled_from(["given", "reversed"]) | st.integers(1, 99).map("rotated-{}".format)


@st.composite
def choices(draw: st.DrawFn) -> BlueprintOptions:
    """Any options; what has no meaning for the task or the selection stays as usual, for a condition does not spell it."""
    task, selection = draw(st.sampled_from(TASKS)), draw(st.sampled_from(["survey-order", "random"]))
    system = draw(st.sampled_from([*SHIPPED, *OWN]))
    chosen: dict[str, Any] = {
        "task": task,
        "selection": selection,
        "format": draw(st.sampled_from(FORMATS)),
        "profile": draw(st.sampled_from(PROFILES)) if task != "shift" else "segment",
        "reasoning": draw(st.sampled_from(REASONINGS)),
        "structured": draw(st.booleans()),
        "show_n": draw(st.booleans()),
        "option_order": draw(ORDERS),
        "system": system,
        "system_text": OWN.get(system, ""),
        "token_budget": draw(st.sampled_from([4096, 6000, 128_000])),
    }
    if task == "batch":
        chosen["batch_size"] = draw(st.sampled_from(BATCH_SIZES))
    if task == "synthetic-individuals":
        chosen["individuals"] = draw(st.integers(1, MAX_INDIVIDUALS))
    if selection == "random":
        chosen["seed"] = draw(st.integers(0, 2**40))
    drawn = {*chosen, "batch_size", "individuals", "seed", "answer_reserve", "context_levels"}
    assert drawn == {field.name for field in fields(BlueprintOptions)}, "a condition would mix what it leaves out in one mean"
    usual = BlueprintOptions(**chosen)
    reserve = draw(st.none() | st.integers(0, 4095).filter(lambda tokens: tokens != usual.reserve))
    return BlueprintOptions(**chosen, answer_reserve=reserve)


@given(choices())
def test_a_condition_spells_the_options_and_is_read_back(options: BlueprintOptions) -> None:
    assert BlueprintOptions.parse_condition(options.condition, system_prompts=OWN) == options
    assert BlueprintOptions.parse_recipe(options.recipe, options.context_levels) == options


@pytest.mark.parametrize(
    ("spelled", "condition"),
    [
        ("distribution", "distribution/attribute-label"),
        ("batch", "batch=3/attribute-label"),
        ("synthetic-individuals+cot", "synthetic-individuals=20/attribute-label+cot"),
        ("shift/narrative+reversed+structured+cot", "shift/narrative+cot+structured+reversed"),
        ("distribution+seed=5", "distribution/attribute-label"),
    ],
)
def test_a_condition_may_be_spelled_in_short(spelled: str, condition: str) -> None:
    assert BlueprintOptions.parse_condition(spelled).condition == condition


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("guess", "unknown task 'guess'; allowed: distribution, shift, synthetic-individuals, batch"),
        ("shift/table", "unknown format 'table'; allowed: attribute-label, distribution-context, narrative"),
        ("shift+loud", r"condition 'shift\+loud': .*'loud'; allowed .*: cot, structured"),
        ("shift+rotated-0", "option order 'rotated-0': allowed: given, reversed, rotated-1"),
        ("shift+reversed+rotated-2", "'rotated-2' .*option order"),
        ("shift+cot+cot", "'cot' .*reasoning"),
        ("shift=", "the task shift takes no number"),
        ("batch=two", "'batch=two' needs a whole number"),
        ("batch=6", "batch of 6 questions: allowed: 2, 3, 4, 5"),
        ("synthetic-individuals=0", "0 individuals: allowed: 1 to 500"),
        ("shift+seed=-1", "'seed=-1' needs a whole number"),
        ("shift+tokens=200", "token budget 200 .*256 .*: allowed: a reserve from 0"),
        ("shift+system=mine", "unknown system prompt 'mine': allowed: default, brief, persona, none, or an id of your own"),
        (
            "shift+population",
            "profile 'population' with the task shift, .* allowed: distribution, synthetic-individuals, batch, or",
        ),
        ("shift+system=My One", "system prompt id 'My One': allowed: lower-case letters, digits and hyphens"),
    ],
)
def test_a_condition_that_cannot_be_says_what_is_allowed(condition: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        BlueprintOptions.parse_condition(condition)


def test_a_profile_that_is_none_says_what_is_allowed() -> None:
    with pytest.raises(ConfigError, match="profile 'everyone'; allowed: segment, population"):
        BlueprintOptions(profile="everyone")


def test_a_recipe_from_before_there_were_profiles_is_about_the_segment() -> None:
    recipe = {name: value for name, value in json.loads(BlueprintOptions().recipe).items() if name != "profile"}
    assert BlueprintOptions.parse_recipe(json.dumps(recipe), ["0"]) == BlueprintOptions()


@pytest.mark.parametrize(
    ("condition", "reserve", "answer_tokens"),
    [
        ("distribution", 256, None),
        ("distribution+cot", 1024, 1024),
        ("synthetic-individuals=100", 600, 600),
        ("synthetic-individuals=20", 256, None),
        ("batch=4", 384, 384),
        ("batch=2+cot", 1024, 1024),
        ("distribution+cot+reserve=100", 100, None),
    ],
)
def test_room_for_the_answer_grows_with_what_is_asked(condition: str, reserve: int, answer_tokens: int | None) -> None:
    options = BlueprintOptions.parse_condition(condition)
    assert (options.reserve, options.answer_tokens) == (reserve, answer_tokens)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("given", [0, 1, 2, 3]),
        ("reversed", [3, 2, 1, 0]),
        ("rotated-2", [2, 3, 0, 1]),
        ("rotated-5", [1, 2, 3, 0]),
        ("rotated-4", [0, 1, 2, 3]),
    ],
)
def test_options_are_listed_in_the_chosen_order(order: str, expected: list[int]) -> None:
    assert BlueprintOptions(option_order=order).order_of(4) == expected


class TestContextLevel:
    LEVELS = ("all", "10", "0", "5", "100")

    def test_levels_are_sorted_by_number_and_all_is_last_in_python_and_in_sql_alike(self) -> None:
        by_order = sorted(self.LEVELS, key=lambda level: ContextLevel(level).order)
        assert by_order == ["0", "5", "10", "100", "all"]
        sql = f"SELECT context_level FROM (SELECT unnest($1) AS context_level) ORDER BY {ContextLevel.ORDER_SQL}"
        assert [level for (level,) in duckdb.connect().execute(sql, [list(self.LEVELS)]).fetchall()] == by_order

    @pytest.mark.parametrize("level", ["", "-1", "05", "1.5", "some", "1e3", "1000000", "٣"])
    def test_what_is_no_level_is_refused(self, level: str) -> None:
        with pytest.raises(ConfigError, match="is not a context level"):
            ContextLevel(level)
