"""What a model thought before it wrote is no part of its answer, however its server marks it; a tag that is quoted marks nothing."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.text.plain import strip_thinking

FENCE = "```"
CHANNELS = "<|channel|>analysis<|message|>We think.<|end|><|start|>assistant<|channel|>final<|message|>Yes.<|return|>"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>a</think>Yes.", "Yes."),
        ("Sure!\n<think>a</think>Yes.", "Sure!\n\nYes."),
        ("Yes. <think>a", "Yes."),
        ("a</think>Yes.", "Yes."),
        ("<reasoning>a</reasoning>Yes.", "Yes."),
        ("<think time=3>a</think>Yes.", "Yes."),
        ("<seed:think>a</seed:think>Yes.", "Yes."),
        ("[THINK]a[/THINK]Yes.", "Yes."),
        ("◁think▷a◁/think▷Yes.", "Yes."),
        ("<|begin_of_thought|>a<|end_of_thought|>Yes.", "Yes."),
        ("<think>a `b</think>Yes `c`.", "Yes `c`."),
        (f"<think>{FENCE}py\nx = 1\n</think>Yes.", "Yes."),
        (CHANNELS, "Yes."),
        (CHANNELS + CHANNELS.replace("Yes", "No"), "No."),
        ("<|channel|>analysis<|message|>We think", ""),
        ("analysisWe think.assistantfinalYes.", "Yes."),
        ("<think>a", ""),
    ],
)
def test_thinking_is_left_out(text: str, answer: str) -> None:
    assert strip_thinking(text).strip() == answer


@pytest.mark.parametrize(
    "text",
    [
        "Write `<think>` before you think, and `</think>` behind it.",
        "A call such as `<think>steps</think>` is left out.",
        f"A template:\n{FENCE}xml\n<thinking>steps</thinking>\n{FENCE}\nThat is all.",
        "analysis of the data shows no difference",
        "[think] of it, a < b, <thinker>, <|user|>",
    ],
)
def test_a_quoted_tag_hides_nothing(text: str) -> None:
    assert strip_thinking(text) == text


@given(
    st.lists(
        st.sampled_from(["<think>", "</think>", "`", FENCE, "\n", "a ", "<|channel|>final<|message|>", "[THINK]"]), max_size=20
    )
)
def test_what_is_left_is_part_of_the_text(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert all(line in text for line in strip_thinking(text).split("\n"))


@pytest.mark.parametrize("piece", ["<think>", "` </think>\n", "`<think>`", "\n```x</think>", "analysis "])
def test_the_time_is_linear(piece: str) -> None:
    """Twenty times the text takes no four hundred times the time."""
    seconds = []
    for times in (1_000, 20_000):
        began = time.process_time()
        strip_thinking(piece * times + "<think>")
        seconds.append(time.process_time() - began)
    assert seconds[1] < 100 * max(seconds[0], 0.002)
