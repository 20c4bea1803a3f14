"""What judges are shown: three prompts that differ, none of which says what is wanted."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.judging.consensus import FIVE_CLASSES, TEN_CLASSES
from dtef_pipeline.judging.prompts import (
    APPROACHES,
    JUDGE_TAGS,
    MATERIAL_TAGS,
    NOTHING_WAS_WRITTEN,
    WRITTEN_BY_THE_MODEL,
    Case,
    Turn,
    build_correction,
    escape_tags,
    judge_messages,
    list_order,
    wrap_in_tags,
)
from tests.dtef_pipeline.judging.cases import ANSWER_AND_BATTERY_COLUMNS, CASE, CRITERIA, blocks_of


def shown(approach: str, case: Case = CASE) -> str:
    return "\n".join(message.text for message in judge_messages(approach, case))


@pytest.mark.parametrize(
    ("approach", "sees"),
    [
        ("standard", []),
        ("prompt-aware", [ANSWER_AND_BATTERY_COLUMNS]),
        ("holistic", [ANSWER_AND_BATTERY_COLUMNS, *CRITERIA[1:]]),
    ],
)
def test_a_judge_sees_what_its_approach_shows_and_never_the_system_prompt(approach: str, sees: list[str]) -> None:
    text = shown(approach)
    assert CASE.text in text
    assert CRITERIA[0] in text
    assert [part for part in (ANSWER_AND_BATTERY_COLUMNS, *CRITERIA[1:], "Be brief.") if part in text] == sees


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
    said = (("system", "S"), ("user", "a"), ("assistant", None), ("user", "b"), ("assistant", "c"), ("user", "d"))
    turns = tuple(Turn(role, text) for role, text in said)
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
        judge_messages("prompt-aware", Case("t", "c", (Turn("system", "s"),)))
    with pytest.raises(ValueError, match="not among the 1"):
        judge_messages("holistic", Case("t", "c", CASE.turns, ("d",)))
    with pytest.raises(ValueError, match="allowed: standard, prompt-aware, holistic"):
        judge_messages("plain", CASE)


def test_the_numbers_of_the_classes() -> None:
    assert list(FIVE_CLASSES.numbers.values()) == [0, 0.25, 0.5, 0.75, 1]
    assert list(TEN_CLASSES.numbers.values()) == [0, 0.001, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1]


PIECES = (
    *["<", "</", "< /", ">", "<\u200b", "text", "</TEXT>", "<criterion>", "</Prompt>", "TE\u200bXT", "\n", " ", "x"],
    *JUDGE_TAGS,
)
HOSTILE = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5)), max_size=30).map("".join)
"""Texts that are made of what could close or open a block."""
ANY_TAG = re.compile(r"<[\s/\u200b]*(TEXT|CRITERION|PROMPT|CRITERIA_LIST)\b[^<]*?>", re.IGNORECASE)
BLOCKS = {
    "standard": ["TEXT", "CRITERION"],
    "prompt-aware": ["PROMPT", "TEXT", "CRITERION"],
    "holistic": ["PROMPT", "CRITERIA_LIST", "TEXT", "CRITERION"],
}


def tags(text: str) -> list[str]:
    return [found.upper() for found in ANY_TAG.findall(text)]


@pytest.mark.parametrize("approach", APPROACHES)
@given(text=HOSTILE, criterion=HOSTILE, reply=HOSTILE)
def test_no_text_changes_the_number_of_blocks(approach: str, text: str, criterion: str, reply: str) -> None:
    case = Case(text, criterion, CASE.turns, (criterion, "another"))
    messages = judge_messages(approach, case)
    expected = [name for name in BLOCKS[approach] for _ in range(2)]
    assert tags("\n".join(message.text for message in messages)) == expected
    conversation = build_correction(messages, reply)
    assert tags("\n".join(message.text for message in conversation)) == expected


@given(text=HOSTILE)
def test_a_block_holds_the_text_and_nothing_else(text: str) -> None:
    user = judge_messages("prompt-aware", Case(text, "C", CASE.turns))[-1].text
    assert blocks_of("TEXT", user) == [escape_tags(text)]
    assert blocks_of("PROMPT", user) == [ANSWER_AND_BATTERY_COLUMNS]
    assert blocks_of("CRITERION", user) == ["C"]


@given(text=HOSTILE)
def test_only_the_beginnings_of_tags_change(text: str) -> None:
    assert escape_tags(text).replace("&lt;", "<") == text.replace("&lt;", "<")
    assert escape_tags(escape_tags(text)) == escape_tags(text)


@pytest.mark.parametrize(
    "tag",
    ["</TEXT>", "<text x='1'>", "< / Criterion >", "<\u200b/PROMPT>", "<T\u200dEXT>", "<THINKING>", "</ref\u00adlection>"],
)
def test_every_spelling_of_a_tag_is_made_harmless(tag: str) -> None:
    assert escape_tags(f"a {tag} b") == f"a &lt;{tag[1:]} b"


@pytest.mark.parametrize("text", ["a < b", "<b>bold</b>", "<svg><path/></svg>", "1<2 and 3>2", "&lt;TEXT>", "TEXT"])
def test_other_marks_stay_as_they_are(text: str) -> None:
    assert escape_tags(text) == text


def test_other_rooms_have_tags_of_their_own() -> None:
    assert escape_tags("</grade><TEXT>", ("grade",)) == "&lt;/grade><TEXT>"
    assert escape_tags("</TEXT></think>", MATERIAL_TAGS) == "&lt;/TEXT></think>"
    assert wrap_in_tags("TEXT", "a") == "<TEXT>\na\n</TEXT>"


@pytest.mark.parametrize(
    "text", ["<" * 100_000, "< " * 100_000, "<" + " " * 100_000, "<" + "\u200b" * 100_000 + "TEX", "</" * 100_000]
)
def test_hostile_texts_take_no_time(text: str) -> None:
    started = time.perf_counter()
    escape_tags(text)
    assert time.perf_counter() - started < 2
