"""Prompt ids and request keys depend on everything that reaches a model, and never change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.identity import partition_key, prompt_id, request_key, request_keys
from dtef_pipeline.keys import Keys, Space
from dtef_pipeline.survey.identity import SPACE, make_question_key
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.tables import DRIFT_CHECKS, REFERENCE_SCORES, SCORES

TEXT = st.text()


@given(st.lists(TEXT), TEXT, st.integers(0, 99), TEXT)
def test_many_request_keys_at_once_are_those_of_each(prompts: list[str], variant: str, draw: int, snapshot: str) -> None:
    assert request_keys(prompts, variant, draw, snapshot) == [request_key(p, variant, draw, snapshot) for p in prompts]


def test_a_request_key_depends_on_every_part() -> None:
    parts = [("p", "v", 0, "base"), ("q", "v", 0, "base"), ("p", "w", 0, "base"), ("p", "v", 1, "base"), ("p", "v", 0, "b")]
    assert len({request_key(*part) for part in parts}) == len(parts)


def test_a_prompt_id_depends_on_everything_that_reaches_the_model() -> None:
    plain = prompt_id("system", "user", "q1", ["Yes", "No"])
    others = {
        prompt_id("system ", "user", "q1", ["Yes", "No"]),
        prompt_id("system", "user", "q2", ["Yes", "No"]),
        prompt_id("system", "user", "q1", ["No", "Yes"]),
        prompt_id("system", "user", ["q1"], [["Yes", "No"]]),
        prompt_id("system", "user", "q1", ["Yes", "No"], response_schema="{}"),
        prompt_id("system", "user", "q1", ["Yes", "No"], answer_tokens=1024),
    }
    assert len(others) == 6
    assert plain not in others


def test_a_plain_prompt_keeps_the_id_it_had_in_the_first_release() -> None:
    assert prompt_id("s", "u", "q", ["a", "b"]) == "58c98187b6c76a02051540e1c5c3550f"


def test_a_question_is_the_same_whatever_mark_stands_at_its_end() -> None:
    """GD5 asks one question before and after its deliberation, with a question mark and with a colon: context gave it away."""
    options = ["Good", "Bad"]
    assert make_question_key("Which best reflects your view?", options) == make_question_key(
        "Which best reflects  your view:", options
    )
    assert make_question_key("Why?", options) != make_question_key("Why not?", options)
    assert make_question_key("?", options) != make_question_key("…", ["Good"])


def test_a_partition_has_one_spelling_however_it_is_given() -> None:
    key = SPACE.key("GD4", "country:a/b")
    assert key == partition_key("GD4", "country:a/b") == "GD4/country:a/b"
    assert SPACE.split(key) == ("GD4", "country:a/b")
    assert SPACE.levels(key) == {"round": "GD4", "segment": "country:a/b"}
    assert SPACE.name == "round_segment"
    assert sorted(["GD10", "GD6UK", "GD2", "GD6"], key=SPACE.order) == ["GD2", "GD6", "GD6UK", "GD10"]


GAMES = Keys(
    ("league", "scenario"), "seed", "deal", ("adapter", "opponent"), "seed", groups={"league": ("league",), "kind": ("kind",)}
)


@pytest.mark.parametrize(
    ("derived", "columns"),
    [
        (GAMES.pair, "league scenario seed"),
        (GAMES.cell, "league scenario seed adapter opponent"),
        (GAMES.row, "league scenario seed adapter opponent model model_variant snapshot"),
        (GAMES.series, "model model_variant adapter opponent"),
        (GAMES.shared_item, "league seed"),
        (GAMES.tested_columns, "league scenario seed prompt_id truth_id metric"),
        (GAMES.described, "kind"),
        (KEYS.described, "attribute value"),
    ],
)
def test_what_is_derived_is_made_of_the_familys_own_columns(derived: tuple[str, ...], columns: str) -> None:
    assert derived == tuple(columns.split())


def test_tables_of_surveys_have_the_key_columns() -> None:
    assert {*KEYS.row, *KEYS.tested_columns, *KEYS.described, KEYS.left_out} <= set(SCORES.names)
    assert {*KEYS.pair, KEYS.cluster} <= set(REFERENCE_SCORES.names)
    assert DRIFT_CHECKS.names[:2] == [*KEYS.space]


def test_the_key_of_partitions_with_one_level_is_its_value() -> None:
    space = Space("topics", first="topic", second="", order=str)
    assert space.levels("a/b") == {"topic": "a/b"}
    assert space.last == "topic"
    assert Space("parts", first="suite", second="task", order=str).last == "task"
