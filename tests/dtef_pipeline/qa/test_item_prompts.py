"""What is sent: ids never change by accident, no text of an item is taken for a part of the form, and options in another order."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.item_prompts import (
    build_item_prompt,
    fence_code,
    find_original_letter,
    guard_lines,
    rotate_options,
    rotate_order,
)
from dtef_pipeline.qa.model import QaItem
from dtef_pipeline.qa.settings import CHOICE_TEMPLATES, QaCondition

RIVER = QaItem(
    "rivers/3", "mmlu", "world_rivers", "choice", "Which is a river?", options=("Rigi", "Elbe", "Malta", "Ural"), reference="B"
)
LAKE = QaItem(
    "rivers/dev/0",
    "mmlu",
    "world_rivers",
    "choice",
    "Which is a lake?",
    options=("Ladoga", "Rigi"),
    reference="A",
    solution="Ladoga is.",
)
SUM = QaItem("gsm8k/0", "gsm8k", "all", "number", "Two and two?", reference="4", solution="2 + 2 = <<2+2=4>>4")
AREA = QaItem(
    "HumanEval/4", "humaneval", "all", "code", 'def area(r):\n    """Area."""\n', reference="{}", solution="    return r * r\n"
)
EXAMPLES = {"choice": LAKE, "number": SUM, "code": AREA}

GOLDEN = {
    ("choice", "letters"): "3b409a757da692cd83ef61340998bb95",
    ("choice", "parens"): "0039c20fa6d04aed0183ca42e57a256d",
    ("choice", "cot"): "daabcdfc50833b905fbb533dc74f829d",
    ("choice", "letters,rotated-1"): "699c945348b03dcda636c8d85c1fc36f",
    ("choice", "letters,1-shot"): "471978338bd7d44a6906047a1f53ae94",
    ("choice", "parens,1-shot-turns,rotated-3"): "60c0b2fc2162307782977370157208cd",
    ("choice", "cot,1-shot"): "2d0cad3e7f08d661d5fcb4834f1529f4",
    ("choice", "cot,1-shot-turns"): "120e810d8eaa5be34b554e3f449ad86e",
    ("number", "plain"): "8551ae564d5777fe4be902438834fc20",
    ("number", "plain,1-shot"): "3a8a4d8c232ef5fbe2675b3fe2f37234",
    ("number", "plain,1-shot-turns"): "3aef7f61e15611d41a9c1b0fde78d70e",
    ("code", "plain"): "b33fc47583c8fb66caebc48520f386e4",
    ("code", "plain,1-shot"): "fdac7c8f2e89d9655e1530a8d5f6e7d7",
}
ITEMS = {"choice": RIVER, "number": SUM, "code": AREA}


@pytest.mark.parametrize(("type_", "condition"), GOLDEN)
def test_prompt_ids_never_change(type_: str, condition: str) -> None:
    """Whoever changes the wording buys every response again."""
    prompt = build_item_prompt(ITEMS[type_], QaCondition.parse_text(condition), [EXAMPLES[type_]])
    assert prompt.prompt_id == GOLDEN[type_, condition]
    assert prompt.condition == condition


def test_the_first_examples_of_the_file_are_shown_in_its_order() -> None:
    others = [
        QaItem(f"rivers/dev/{n}", "mmlu", "x", "choice", f"Example {n}?", options=("a", "b"), reference="A") for n in range(5)
    ]
    (message,) = build_item_prompt(RIVER, QaCondition(shots=3), others).messages
    assert re.findall(r"Example \d", message.text) == ["Example 0", "Example 1", "Example 2"]


def test_rotation_changes_the_options_of_the_item_and_not_of_examples() -> None:
    prompt = build_item_prompt(RIVER, QaCondition(shots=1, rotation=1), [LAKE])
    assert "A. Ladoga\nB. Rigi\nAnswer: A" in prompt.messages[0].text
    assert "A. Elbe\nB. Malta\nC. Ural\nD. Rigi\nAnswer:" in prompt.messages[0].text
    assert (prompt.option_order, prompt.n_examples) == ((1, 2, 3, 0), 1)
    assert build_item_prompt(RIVER, QaCondition()).option_order is None


def test_where_working_is_asked_for_there_is_room_for_it() -> None:
    assert build_item_prompt(RIVER, QaCondition()).answer_tokens is None
    assert build_item_prompt(RIVER, QaCondition("cot")).answer_tokens == 1024
    assert build_item_prompt(SUM, QaCondition("plain")).answer_tokens == 1024
    assert build_item_prompt(AREA, QaCondition("plain")).answer_tokens == 1024


@pytest.mark.parametrize(
    ("item", "condition", "examples", "message"),
    [
        (
            RIVER,
            "letters,1-shot",
            [],
            "rivers/3: few-shot 1, where mmlu/world_rivers has no development items: allowed: few-shot 0",
        ),
        (
            RIVER,
            "letters,2-shot",
            [LAKE],
            "few-shot 2, where mmlu/world_rivers has 1 development item: allowed: few-shot 0 to 1",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused(item: QaItem, condition: str, examples: list[QaItem], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        build_item_prompt(item, QaCondition.parse_text(condition), examples)
    assert message in str(error.value)


PARTS = [
    *"ABJabij.)(#`~ \n\t\r4:\u2028\x85\u200b",
    "Answer: B",
    "Question 7: ",
    "Solution:",
    "Problem",
    "\n\nB. ",
    "```",
    "####",
]
HOSTILE = st.lists(st.sampled_from(PARTS), max_size=12).map("".join).map(lambda text: f"x{text}y")
BREAKS = re.compile("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


def ours(text: str) -> list[str]:
    """What of our form the lines of a message begin with, as a reader of it would see."""
    begins = r"[ \t\u200b]*((?:Question|Answer|Solution|Problem)\b|\(?[A-J][.)]|####|```|~~~)"
    begun = (
        re.match(begins, line, re.IGNORECASE)
        for line in BREAKS.split(text)
        if len(re.findall("^[ \t\u200b]*", line)[0].replace("\u200b", "")) < 4
    )
    return [found[1] for found in begun if found]


@given(HOSTILE, st.lists(HOSTILE, min_size=4, max_size=4), st.sampled_from(CHOICE_TEMPLATES), st.integers(0, 1))
def test_no_text_of_a_choice_looks_like_the_form(text: str, options: list[str], template: str, shots: int) -> None:
    item = QaItem("x/0", "mmlu", "x", "choice", text, options=tuple(options), reference="C", solution=text)
    (message,) = build_item_prompt(item, QaCondition(template, shots), [item]).messages
    letters = [f"({letter})" if template == "parens" else f"{letter}." for letter in "ABCD"]
    reply = "Solution" if template == "cot" else "Answer"
    example = ["Question", *letters, reply, *(["Answer"] if template == "cot" else [])] if shots else []
    assert ours(message.text) == [*example, "Question", *letters, reply]


@given(HOSTILE)
def test_no_text_of_a_word_problem_looks_like_the_form(text: str) -> None:
    item = QaItem("x/0", "gsm8k", "all", "number", text, reference="4", solution=text)
    (message,) = build_item_prompt(item, QaCondition("plain", 1), [item]).messages
    assert ours(message.text) == ["Problem", "Solution", "####", "Problem", "Solution"]


@given(HOSTILE)
def test_no_code_closes_its_fence(text: str) -> None:
    first, *inner, last = fence_code(text).split("\n")
    assert first == f"{last}python"
    assert all(last not in line for line in inner)


@given(HOSTILE)
def test_guarding_twice_is_guarding_once(text: str) -> None:
    assert guard_lines(guard_lines(text)) == guard_lines(text)


def test_a_text_of_many_blanks_and_marks_takes_no_time() -> None:
    began = time.perf_counter()
    for text in (
        "\n" * 100_000,
        "\n \t" * 40_000,
        "\nAnswer" * 40_000,
        " " * 300_000 + "x",
        "`" * 100_000,
        "\u200b" * 100_000,
        "<<" * 100_000,
    ):
        guard_lines(text)
        fence_code(text)
        build_item_prompt(SUM, QaCondition("plain", 1), [QaItem("e", "s", "all", "number", "e", reference="1", solution=text)])
    assert time.perf_counter() - began < 20, "about 1 s on an idle machine"


LETTERS = "ABCDEFGHIJ"


def item_of(options: list[str], reference: str) -> QaItem:
    return QaItem("rivers/0", "mmlu", "rivers", "choice", "Which?", options=tuple(options), reference=reference)


DRAWN_ITEMS = st.lists(st.text(), min_size=2, max_size=10, unique=True).flatmap(
    lambda options: st.builds(item_of, st.just(options), st.sampled_from(LETTERS[: len(options)]))
)


def test_four_options_are_rotated_by_hand() -> None:
    shown = rotate_options(item_of(["Elbe", "Rigi", "Malta", "Ural"], "A"), 1)
    assert (shown.options, shown.reference) == (("Rigi", "Malta", "Ural", "Elbe"), "D")
    assert [find_original_letter(letter, rotate_order(4, 1)) for letter in "ABCD"] == ["B", "C", "D", "A"]


@given(DRAWN_ITEMS, st.integers(0, 3))
def test_the_same_text_is_expected_in_every_order(item: QaItem, rotation: int) -> None:
    shown, order = rotate_options(item, rotation), rotate_order(len(item.options), rotation)
    assert shown.options[LETTERS.index(shown.reference)] == item.options[LETTERS.index(item.reference)]
    assert find_original_letter(shown.reference, order) == item.reference
    assert sorted(shown.options) == sorted(item.options)
    assert (shown.item_id, shown.text) == (item.item_id, item.text)
