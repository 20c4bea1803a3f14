"""What judges are shown: three prompts that differ, none of which says what is wanted."""

from __future__ import annotations

import re

import pytest

from dtef_pipeline.asking.request import Message
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.judging.classes import FIVE_CLASSES, TEN_CLASSES, class_scale
from dtef_pipeline.judging.prompts import (
    APPROACHES,
    NOTHING_WAS_WRITTEN,
    WRITTEN_BY_THE_MODEL,
    Case,
    build_correction,
    judge_messages,
    list_order,
)
from dtef_pipeline.rubric.blueprint.model import Turn
from tests.dtef_pipeline.judging.cases import ASKED, CASE, CRITERIA, blocks_of


def shown(approach: str, case: Case = CASE) -> str:
    return "\n".join(message.text for message in judge_messages(approach, case))


def test_a_standard_judge_sees_neither_the_prompt_nor_another_criterion() -> None:
    text = shown("standard")
    assert CASE.text in text
    assert CRITERIA[0] in text
    assert [part for part in (ASKED, *CRITERIA[1:]) if part in text] == []


def test_a_prompt_aware_judge_sees_the_prompt_and_no_other_criterion() -> None:
    text = shown("prompt-aware")
    assert ASKED in text
    assert [part for part in CRITERIA[1:] if part in text] == []


def test_a_holistic_judge_sees_all_criteria() -> None:
    text = shown("holistic")
    assert [part for part in (ASKED, *CRITERIA) if part not in text] == []
    (listed,) = blocks_of("CRITERIA_LIST", text)
    assert sorted(listed.splitlines()) == sorted(f"- {criterion}" for criterion in CRITERIA)


def test_system_prompts_are_shown_to_no_judge() -> None:
    assert [approach for approach in APPROACHES if "Be brief." in shown(approach)] == []


@pytest.mark.parametrize("approach", APPROACHES)
@pytest.mark.parametrize("scale", [FIVE_CLASSES, TEN_CLASSES])
def test_judges_see_all_names_and_no_number(approach: str, scale: object) -> None:
    system = judge_messages(approach, CASE, scale)[0]  # type: ignore[arg-type]
    assert system.role == "system"
    assert "expert evaluator and examiner" in system.text
    assert set(re.findall(r"CLASS_\w+", system.text)) == set(scale.numbers)  # type: ignore[attr-defined]
    assert not re.search(r"\d", system.text)


@pytest.mark.parametrize("approach", APPROACHES)
def test_the_words_around_the_blocks_do_not_say_what_is_wanted(approach: str) -> None:
    said = re.sub(r"<(TEXT|CRITERION|PROMPT|CRITERIA_LIST)>.*?</\1>", "", shown(approach), flags=re.DOTALL)
    assert not re.search(r"should|wanted|desired|weight|penal", said)


def test_a_conversation_is_shown_with_roles_and_gaps() -> None:
    turns = (
        Turn("system", "S"),
        Turn("user", "a"),
        Turn("assistant", None),
        Turn("user", "b"),
        Turn("assistant", "c"),
        Turn("user", "d"),
    )
    (block,) = blocks_of("PROMPT", shown("prompt-aware", Case("t", "c", turns)))
    gap = WRITTEN_BY_THE_MODEL
    assert block == f"[user]\na\n\n[assistant]\n{gap}\n\n[user]\nb\n\n[assistant]\nc\n\n[user]\nd\n\n[assistant]\n{gap}"


def test_a_conversation_that_ends_with_the_model_has_no_gap_behind_it() -> None:
    (block,) = blocks_of("PROMPT", shown("prompt-aware", Case("t", "c", (Turn("user", "a"), Turn("assistant", None)))))
    assert block == f"[user]\na\n\n[assistant]\n{WRITTEN_BY_THE_MODEL}"


def test_the_order_of_the_list_is_seeded_by_the_criterion_alone() -> None:
    orders = {criterion: list_order(criterion, CRITERIA) for criterion in CRITERIA}
    assert all(sorted(order) == [0, 1, 2] for order in orders.values())
    turned = CRITERIA[::-1]
    for criterion, order in orders.items():
        assert [turned[place] for place in list_order(criterion, turned)] == [CRITERIA[place] for place in order]
    many = tuple(f"criterion {number}" for number in range(12))
    assert len({list_order(criterion, many) for criterion in many}) > 8


def test_the_list_is_shown_in_its_recorded_order() -> None:
    (listed,) = blocks_of("CRITERIA_LIST", shown("holistic"))
    assert listed.splitlines() == [f"- {CRITERIA[place]}" for place in list_order(CASE.criterion, CRITERIA)]


def test_a_correction_shows_the_reply_and_the_names() -> None:
    messages = judge_messages("standard", CASE)
    said = build_correction(messages, "Rather good. </TEXT>")
    assert said[:2] == messages
    assert [message.role for message in said[2:]] == ["assistant", "user"]
    assert said[2].text == "Rather good. &lt;/TEXT>"
    assert set(re.findall(r"CLASS_\w+", said[3].text)) == set(FIVE_CLASSES.numbers)


def test_an_empty_reply_is_no_empty_message() -> None:
    assert build_correction(judge_messages("standard", CASE), " \n")[2].text == NOTHING_WAS_WRITTEN


def test_cases_that_lack_what_is_shown_are_refused() -> None:
    with pytest.raises(ValueError, match="only system prompts"):
        judge_messages("prompt-aware", Case("t", "c", (Message("system", "s"),)))
    with pytest.raises(ValueError, match="not among the 1"):
        judge_messages("holistic", Case("t", "c", CASE.turns, ("d",)))
    with pytest.raises(ValueError, match="allowed: standard, prompt-aware, holistic"):
        judge_messages("plain", CASE)


def test_the_numbers_of_the_classes() -> None:
    assert list(class_scale(5).numbers.values()) == [0, 0.25, 0.5, 0.75, 1]
    assert list(class_scale(10).numbers.values()) == [0, 0.001, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1]
    with pytest.raises(ConfigError, match="got 7; allowed: 5, 10"):
        class_scale(7)
