"""Two questions of a round with the same text and options make prompts that read the same: one of them is asked for both."""

from __future__ import annotations

from collections.abc import Collection

from dtef_pipeline.asking.request_list import SharedResponse, count_distinct_requests, same_texts, sources
from dtef_pipeline.identity import request_key
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.blueprint.prompts import build_blueprints
from dtef_pipeline.survey.predictions import has_duplicates, list_options_in_prompt_order
from tests.made.scores import survey_rows

VARIANT = "openai/m"
AGAIN = {"question_text": "How is it?", "duplicate_of": "q0"}
SURVEY = survey_rows({"question_text": "How is it?"}, {}, AGAIN, AGAIN, {**AGAIN, "options": ["Good", "So-so", "Bad"]})
PROMPTS = build_blueprints(SURVEY, BlueprintOptions())
FIRST, OTHER, SECOND, THIRD, DIFFERENT = PROMPTS["prompt_id"].to_pylist()
SAME = same_texts(PROMPTS, list_options_in_prompt_order)


def key(prompt: str, draw: int = 0) -> str:
    return request_key(prompt, VARIANT, draw, "base")


def served(*prompts: str, stored: Collection[str] = (), draws: int = 1) -> dict[str, SharedResponse]:
    return sources(prompts, SAME, VARIANT, draws, "base", lambda keys: set(keys) & set(stored))


def test_prompts_of_the_same_text_and_options_are_found() -> None:
    found, members = same_texts(PROMPTS, list_options_in_prompt_order), (FIRST, SECOND, THIRD)
    assert found == dict.fromkeys(members, members)
    assert len({FIRST, OTHER, SECOND, THIRD, DIFFERENT}) == 5


def test_a_batch_is_no_duplicate_of_itself() -> None:
    """Its questions share one prompt id."""
    assert (
        same_texts(
            build_blueprints(survey_rows({}, {}, {}), BlueprintOptions(task="batch", batch_size=3)),
            list_options_in_prompt_order,
        )
        == {}
    )


def test_a_survey_without_a_question_that_stands_twice_is_known_at_once() -> None:
    assert has_duplicates(SURVEY)
    assert not has_duplicates(survey_rows({}, {}))
    assert not has_duplicates(SURVEY.slice(0, 0))


def test_the_first_serves_all_where_nothing_is_stored() -> None:
    source = SharedResponse(FIRST, key(FIRST))
    assert served(FIRST, OTHER, SECOND, THIRD, DIFFERENT) == {key(SECOND): source, key(THIRD): source}


def test_the_first_serves_also_where_it_is_not_asked_for() -> None:
    """Of two runs at the same time over other questions, both then ask the same request, and so buy it once."""
    assert served(THIRD) == {key(THIRD): SharedResponse(FIRST, key(FIRST))}


def test_what_is_stored_serves_all_others() -> None:
    source = SharedResponse(THIRD, key(THIRD))
    assert served(FIRST, SECOND, THIRD, stored=[key(THIRD)]) == {key(FIRST): source, key(SECOND): source}


def test_an_answer_of_ones_own_stays() -> None:
    """Answers that were bought before each text was asked once."""
    assert served(FIRST, SECOND, THIRD, stored=[key(FIRST), key(SECOND), key(THIRD)]) == {}
    assert served(FIRST, SECOND, THIRD, stored=[key(SECOND), key(THIRD)]) == {key(FIRST): SharedResponse(SECOND, key(SECOND))}


def test_each_draw_has_its_own_answer() -> None:
    found = served(FIRST, SECOND, stored=[key(SECOND, 1)], draws=2)
    assert found == {key(SECOND): SharedResponse(FIRST, key(FIRST)), key(FIRST, 1): SharedResponse(SECOND, key(SECOND, 1))}


def test_requests_are_counted_as_they_are_sent() -> None:
    everything = {FIRST, OTHER, SECOND, THIRD, DIFFERENT}
    assert count_distinct_requests(everything, 2, served(*everything, draws=2)) == 6
    assert count_distinct_requests({SECOND, THIRD}, 1, served(SECOND, THIRD)) == 1
    assert count_distinct_requests({FIRST, SECOND}, 1, served(FIRST, SECOND, stored=[key(FIRST), key(SECOND)])) == 2


def test_without_a_question_that_stands_twice_the_store_is_not_asked() -> None:
    def fail(_: object) -> set[str]:
        raise AssertionError

    assert sources([OTHER, DIFFERENT], SAME, VARIANT, 3, "base", fail) == {}
