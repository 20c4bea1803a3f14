"""Who judges: what users name, what blueprints and models files say, and the hash of all of it."""

from __future__ import annotations

import pytest

from dtef_pipeline.asking.models import load_models
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.judging.consensus import FIVE_CLASSES, TEN_CLASSES
from dtef_pipeline.judging.judges import configure_judges, consensus_id, default_judges, judge_hash, parse_judges
from tests.dtef_pipeline.judging.cases import MODELS


def test_a_point_is_of_the_judges_that_gave_a_class() -> None:
    assert consensus_id(["standard(a)", "prompt-aware(b)", "standard(a)"]) == "consensus(standard(a), prompt-aware(b))"
    assert consensus_id(["standard(a)", "standard(a)"]) == "standard(a)"
    assert consensus_id([]) is None


@pytest.mark.parametrize(
    "text", ["models: {mini: {model: openai/mini}}", "collections: {judges: []}\nmodels: {mini: {model: openai/mini}}"]
)
def test_without_a_collection_of_judges_the_error_says_what_to_write(text: str) -> None:
    with pytest.raises(ConfigError, match=r"collections: \{judges: \[gpt-4.1-mini\]\}.*--judge standard=gpt-4.1-mini"):
        default_judges(load_models(text))


def test_judges_are_named_by_approach_and_model_each_once() -> None:
    judges = parse_judges(["standard=big", "holistic=judges", "standard=openai/big", "standard=mini@max_tokens=4096"], MODELS)
    assert [judge.name for judge in judges] == ["standard(big)", "holistic(mini)", "standard(mini@max_tokens=4096)"]
    assert judges[2].model.variant == "openai/mini[max_tokens=4096,temperature=0]"


@pytest.mark.parametrize("option", ["mini", "=mini", "plain=mini", "standard=", "Standard=mini"])
def test_another_form_of_the_option_is_refused(option: str) -> None:
    with pytest.raises(ConfigError, match=f"judge '{option}': allowed: APPROACH=MODEL, .* standard, prompt-aware, holistic"):
        parse_judges([option], MODELS)


@pytest.mark.parametrize("model", ["local/smollm2-135m", "baseline/uniform"])
def test_models_that_do_not_write_are_no_judges(model: str) -> None:
    with pytest.raises(ConfigError, match=f"judge '{model}': got a model without a server"):
        configure_judges("standard", model, load_models(computed={"baseline/uniform": None}))


def test_settings_of_the_entry_are_kept_but_for_temperature_and_tokens() -> None:
    models = load_models(
        "models: {m: {model: openai/m, temperature: 0.7, max_tokens: 99, seed: 3, api_base: 'http://127.0.0.1:1/v1'}}"
    )
    (judge,) = configure_judges("standard", "m", models)
    assert judge.model.variant == "openai/m[max_tokens=2048,seed=3,temperature=0]"
    assert (judge.model.name, judge.model.api_base) == ("m", "http://127.0.0.1:1/v1")
    (warm,) = configure_judges("standard", "m@temperature=0.7", models)
    assert warm.model.variant == "openai/m[max_tokens=2048,seed=3,temperature=0.7]"


def test_a_model_that_refuses_a_temperature_judges_without_one() -> None:
    (judge,) = configure_judges("standard", "m", load_models("models: {m: {model: openai/o3, temperature: null}}"))
    assert judge.model.variant == "openai/o3[max_tokens=2048]"


def test_two_servers_of_one_variant_do_not_share_their_judgements() -> None:
    """As candidates they differ by their tokens; as judges both have 2,048."""
    at = "model: openai/m, api_base: 'http://127.0.0.1:{}/v1'"
    models = load_models(f"models:\n  a: {{{at.format(1)}}}\n  b: {{{at.format(2)}, max_tokens: 512}}")
    with pytest.raises(ConfigError, match=r"judges 'a' and 'b' are both openai/m\[max_tokens=2048,temperature=0\]"):
        parse_judges(["standard=a", "holistic=b"], models)
    assert len(parse_judges(["standard=a", "holistic=b@seed=1"], models)) == 2


def test_the_hash_of_judges_is_of_what_decides_and_of_nothing_else() -> None:
    judges = [("standard", "openai/mini"), ("prompt-aware", "openai/mini")]
    known = judge_hash(judges, FIVE_CLASSES)
    assert judge_hash(judges[::-1], FIVE_CLASSES) == known
    others = [
        judge_hash(judges[:1], FIVE_CLASSES),
        judge_hash(judges, TEN_CLASSES),
        judge_hash([("standard", "openai/mini"), ("holistic", "openai/mini")], FIVE_CLASSES),
        judge_hash([("standard", "openai/mini"), ("prompt-aware", "openai/mini[max_tokens=4096]")], FIVE_CLASSES),
    ]
    assert len({known, *others}) == 5
