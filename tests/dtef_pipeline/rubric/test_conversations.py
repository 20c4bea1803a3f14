"""Which models are candidates, judges and analysts; and what is judged of a response, without what its model thought."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.asking.models import ModelSpec, load_models
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.judging.judges import JudgeConfig
from dtef_pipeline.judging.prompts import Turn
from dtef_pipeline.rubric.analysts import choose_analysts
from dtef_pipeline.rubric.episodes import (
    Candidates,
    Conversation,
    Script,
    build_response_rows,
    choose_judges,
    count_judged_criteria,
    iterate_judgings,
    resolve_known_selector,
)
from dtef_pipeline.rubric.scoring import choose_embedder
from dtef_pipeline.rubric.tables import RUBRIC_CRITERIA, RUBRIC_PROMPTS, RUBRIC_RESPONSES
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


ADDRESS = "http://localhost:8000/v1"
MODELS = load_models(
    f"""
    models:
      mine: {{model: openai/gpt-x, api_base: "{ADDRESS}", max_tokens: 900}}
      small: {{model: openai/embed-x, api_base: "{ADDRESS}"}}
    collections:
      both: [mine, small]
    """
)


@pytest.mark.parametrize(
    ("selector", "known"),
    [
        ("openai/gpt-x", "mine"),
        ("openai/gpt-x@seed=1", "mine@seed=1"),
        ("mine@seed=1", "mine@seed=1"),
        ("both", "both"),
        ("both@temperature=1", "both@temperature=1"),
        ("openai/other@seed=1", "openai/other@seed=1"),
        ("vertex_ai/claude@20250101", "vertex_ai/claude@20250101"),
    ],
)
def test_a_litellm_string_is_the_model_of_the_models_file_that_has_it(selector: str, known: str) -> None:
    assert resolve_known_selector(selector, MODELS) == known


@pytest.mark.parametrize("settings", ["", "@seed=1"])
def test_candidates_judges_analysts_and_embedders_are_found_by_their_strings_alike(settings: str) -> None:
    """Analysts and embedders named by their strings were asked elsewhere than the models file says."""
    (candidate,) = Candidates(MODELS, [f"openai/gpt-x{settings}"]).resolve_at([0.0])
    (judge,) = choose_judges([f"standard=openai/gpt-x{settings}"], [], MODELS)
    (analyst,) = choose_analysts([f"openai/gpt-x{settings}"], MODELS)
    for spec in (candidate, judge.model, analyst):
        assert (spec.name, spec.api_base) == (f"mine{settings}", ADDRESS)
    embedder = choose_embedder("openai/embed-x", MODELS)
    assert (embedder.name, embedder.api_base) == ("small", ADDRESS)


def test_what_embeds_no_texts_is_refused_before_anything_is_asked() -> None:
    assert choose_embedder(None, MODELS).model == "local/minilm-l6-int8"
    with pytest.raises(ConfigError, match=r"'both' .*2 models; allowed: one model"):
        choose_embedder("both", MODELS)
    with pytest.raises(ConfigError, match=r"'local/smollm2-135m' embeds no texts; allowed: local/minilm"):
        choose_embedder("local/smollm2-135m", MODELS)
    with pytest.raises(ConfigError, match="analyst local/smollm2-135m: it writes no text"):
        choose_analysts(["local/smollm2-135m"], MODELS)


def test_the_local_model_answers_at_its_one_temperature_under_its_usual_variant() -> None:
    for temperatures in ([0.0], [0.0, 0.7], [1.0]):
        (spec,) = Candidates(MODELS, ["local/smollm2-135m"]).resolve_at(temperatures)
        assert (spec.variant, spec.name) == ("local/smollm2-135m[temperature=0]", "local/smollm2-135m")


def test_the_local_embedder_is_no_candidate() -> None:
    with pytest.raises(ConfigError, match="model local/minilm-l6-int8: it writes no text"):
        Candidates(MODELS, ["local/minilm-l6-int8"])


JUDGING = tuple(JudgeConfig(approach, ModelSpec(name="j", model="openai/j")) for approach in ("standard", "prompt-aware"))
NAMED = st.sampled_from("abcd")


def rows_of(schema: pa.Schema, rows: list[dict[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=schema)


@given(
    st.lists(st.tuples(NAMED, st.sampled_from(["ok", "empty", "error"])), max_size=12),
    st.lists(st.tuples(NAMED, st.sampled_from(["text", "function"])), max_size=12),
    st.integers(1, 3),
)
def test_as_many_judgements_are_counted_as_are_made(
    answered: list[tuple[str, str]], listed: list[tuple[str, str]], draws: int
) -> None:
    said = [{"role": "user", "text": "Say it."}]
    prompts = rows_of(RUBRIC_PROMPTS, [{"prompt": name, "messages": said} for name in "abcd"])
    responses = rows_of(RUBRIC_RESPONSES, [{"prompt": prompt, "status": status, "text": "x"} for prompt, status in answered])
    criteria = rows_of(RUBRIC_CRITERIA, [{"prompt": prompt, "kind": kind, "text": "c"} for prompt, kind in listed])
    each = count_judged_criteria(responses, criteria)
    assert each == sum(
        prompt == of and status == "ok" and kind == "text" for (prompt, status), (of, kind) in product(answered, listed)
    )
    assert len(list(iterate_judgings(responses, criteria, prompts, JUDGING, draws))) == each * len(JUDGING) * draws
