"""A litellm string means the model of the models file that has it, whatever that model is asked as."""

from __future__ import annotations

import pytest

from dtef_pipeline.asking.models import load_models
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.rubric.conversations import Candidates, resolve_known_selector
from dtef_pipeline.rubric.judge_requests import choose_judges
from dtef_pipeline.rubric.score_rows import choose_embedder
from dtef_pipeline.rubric.summaries.summary import choose_analysts

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
