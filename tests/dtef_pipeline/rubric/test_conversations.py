"""What is judged of a response is what its model wrote, without what it thought before that."""

from __future__ import annotations

import pytest

from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.rubric.blueprint.model import Turn
from dtef_pipeline.rubric.conversations import Conversation, Script, build_response_rows
from tests.made.responses import response

TWO_TURNS = Script("p", 0, None, (Turn("user", "Why?"), Turn("assistant", None), Turn("user", "Sure?")))
MINI = ModelSpec(name="mini", model="openai/mini")


@pytest.mark.parametrize(
    ("written", "status", "text"),
    [
        (["<think>a</think>\nBecause.", "Yes."], "ok", "Because.\n\nYes."),
        (["Well.\n<think>a</think>\nBecause.", "drafts</think>Yes."], "ok", "Well.\n\n\nBecause.\n\nYes."),
        (["Because.", "<reasoning>a"], "empty", "Because."),
        (["<think>a"], "empty", None),
        (["Write `<think>` first.", "Yes."], "ok", "Write `<think>` first.\n\nYes."),
    ],
)
def test_thinking_is_not_judged_and_stays_in_the_transcript(written: list[str], status: str, text: str | None) -> None:
    """Only one leading closed `<think>` was left out; the rest of the thinking was judged, searched and embedded."""
    played = EpisodeResult([response(number, text=one) for number, one in enumerate(written)])
    (row,) = build_response_rows("b", [Conversation(TWO_TURNS, MINI, 0, "base")], [played]).to_pylist()
    assert (row["status"], row["text"]) == (status, text)
    assert [turn["text"] for turn in row["transcript"] if turn["role"] == "assistant"] == written


def test_a_turn_of_thinking_alone_ends_the_conversation() -> None:
    talk = Conversation(TWO_TURNS, MINI, 0, "base")
    assert talk.next([response(1, text="<think>a</think>Because.")]) is not None
    assert talk.next([response(1, text="<think>a")]) is None
