"""The models file: what it may say, how selectors choose from it, how a fault is named; and who made a model."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from dtef_pipeline.asking.makers import KNOWN_MAKERS, SERVING, find_maker, get_known_maker
from dtef_pipeline.asking.models import LOCAL_EMBEDDER, LOCAL_MODELS, Budget, ModelSpec, load_models, redact_address
from dtef_pipeline.asking.request import parse_variant
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.baselines.names import BASELINES
from tests.conftest import ROOT

SHIPPED = ROOT / "data" / "models.yaml"


def spec(**settings: object) -> ModelSpec:
    return ModelSpec.model_validate({"name": "m", "model": "openai/gpt-4.1-mini", **settings})


def one(selector: str) -> ModelSpec:
    (found,) = load_models("", computed=BASELINES).resolve([selector])
    return found


class TestVariant:
    @pytest.mark.parametrize(
        "setting",
        [
            {"name": "other"},
            {"api_base": "http://h/v1"},
            {"api_key_env": "K"},
            {"timeout": 1},
            {"retries": 0},
            {"max_concurrency": 1},
            {"input_price": 1, "output_price": 2},
        ],
    )
    def test_does_not_depend_on_how_the_model_is_reached(self, setting: dict[str, object]) -> None:
        assert spec(**setting).variant == spec().variant

    def test_of_baselines_and_local_models_holds_what_they_take(self) -> None:
        assert ModelSpec(name="u", model="baseline/uniform").variant == "baseline/uniform"
        assert one("baseline/dirichlet").variant == "baseline/dirichlet[seed=0]"
        assert one("baseline/dirichlet@seed=3").variant == "baseline/dirichlet[seed=3]"
        assert ModelSpec(name="l", model=LOCAL_MODELS[0]).variant == "local/smollm2-135m[temperature=0]"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": -1}, "greater than or equal to 0"),
        ({"input_price": 1}, r"together or not at all \(an embedder has output_price: 0\)"),
        ({"model": "baseline/uniform", "temperature": 0}, "takes no temperature"),
        ({"model": "local/llama"}, "known: local/smollm2-135m"),
        ({"model": "local/smollm2-135m", "temperature": 1}, "does not sample"),
        ({"temprature": 1}, "Extra inputs"),
    ],
)
def test_a_setting_out_of_range_is_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        spec(**settings)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1:8000/v1", "localhost/v1", "ftp://h/v1", "http:///v1", "http://:8000/v1", "http://h:0/v1"),
        *("http://h:28999999/v1", "http://h:port/v1", "http://ho st/v1", "http://[::1/v1", "h", "//h/v1"),
    ],
)
def test_an_address_of_no_server_is_refused_where_the_file_is_read(address: str) -> None:
    """Such a model was asked for a minute, and then "Connection error." was told."""
    with pytest.raises(ConfigError) as caught:
        load_models(f"models:\n  mini:\n    model: openai/x\n    api_base: '{address}'\n")
    said = f"text 1:4: model 'mini': api_base: got {address}; allowed: an address such as http://127.0.0.1:8000/v1"
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:8000/v1", "https://x.openai.azure.com", "http://[::1]:1/v1", "http://gpu_box/"]
)
def test_an_address_of_a_server_is_kept_as_it_is(address: str) -> None:
    assert spec(api_base=address).api_base == address


class TestLoading:
    def test_an_unknown_key_is_an_error_with_the_file_the_model_and_the_known_keys(self, tmp_path: Path) -> None:
        file = tmp_path / "mine.yaml"
        file.write_text("models: {mini: {model: openai/x, api_key: sk-planted}}")
        with pytest.raises(ConfigError, match=r"mine.yaml:1: model 'mini': api_key: unknown key; known: model, temp") as caught:
            load_models(file)
        assert "api_base" in str(caught.value)
        assert "sk-planted" not in str(caught.value)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("modles: {}", "text 1:1: modles: unknown key; known: collections, models"),
            ("models: [a]", "text 1:1: models: got \\['a'\\]; allowed: a mapping"),
            ("models: {a: 3}", "model 'a': got 3; allowed: a mapping"),
            ("models: {a: {}}", "model 'a': model: is missing"),
            ("models: {a: {model: openai/x, top_p: 2}}", "top_p: got 2; allowed: at most 1"),
            ("models: {a: {model: x/y, temperature: false}}", "model 'a': temperature: true and false are not values"),
            (
                "models: {a: {model: x/y, budget: {max_calls: -1}}}",
                "text 1:1: model 'a': budget.max_calls: got -1; allowed: 0 or",
            ),
            ("models: {a: {model: x/y, budget: {max_tokens: 1.5}}}", "budget.max_tokens: got 1.5; allowed: a whole number"),
            ("models: {a: {model: x/y, budget: {max_dollars: 5}}}", "budget.max_dollars: unknown key; known: max_cost_usd"),
            (
                "models: {a: {model: x/y},\n  a: {model: x/z}}",
                "text 1:2: not a readable model file: the key 'a' is given twice",
            ),
            ("models: {a: {model: x/y}}\ncollections: {c: [b]}", "text 1:2: collection 'c': no model 'b'; known: a"),
            ("collections: {c: gpt}", "collection 'c': got 'gpt'; allowed: a list of model names"),
            ("models: {c: {model: x/y}}\ncollections: {c: [c]}", "a model has this name too"),
            (
                "models: {baseline/unifrom: }",
                "model 'baseline/unifrom': there is no 'baseline/unifrom'; known: baseline/uniform",
            ),
            ("models: {baseline/uniform: {seed: 1}}", "model 'baseline/uniform': baseline/uniform has no randomness"),
            ("models.yaml", "not a readable model file: got 'models.yaml'; allowed: a mapping with collections, models"),
        ],
    )
    def test_a_malformed_file_is_one_clear_error(self, text: str, message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            load_models(text, computed=BASELINES)

    def test_no_model_is_computed_unless_it_is_reported(self) -> None:
        with pytest.raises(ConfigError, match=r"there is no 'baseline/uniform'; known: none"):
            load_models("models: {baseline/uniform: }")
        with pytest.raises(ConfigError, match="no model or collection 'baseline/uniform'"):
            load_models("").resolve(["baseline/uniform"])

    def test_a_later_file_adds_and_replaces(self) -> None:
        first = "models: {a: {model: x/a}, b: {model: x/b}}\ncollections: {c: [a], d: [a, b]}"
        later = "models: {a: {model: x/A}, e: {model: x/e}}\ncollections: {c: [e, b]}"
        models = load_models(first, later)
        assert [models.specs[name].model for name in "abe"] == ["x/A", "x/b", "x/e"]
        assert models.collections == {"c": ("e", "b"), "d": ("a", "b")}

    def test_one_variant_at_two_addresses_is_refused_with_the_ways_out(self) -> None:
        text = "models: {a: {model: openai/x}, b: {model: openai/x, api_base: 'http://h/v1'}}"
        with pytest.raises(ConfigError, match=r"'a' and 'b' are both openai/x.*served-model-name"):
            load_models(text)
        load_models(text.replace("b: {model: openai/x", "b: {model: hosted_vllm/x"))
        load_models(text.replace("a: {model: openai/x", "a: {model: openai/x, api_base: 'http://h/v1/'"))


class TestSelecting:
    models = load_models(
        "models: {mini: {model: openai/gpt-4.1-mini}, haiku: {model: anthropic/claude}, baseline/uniform: }\n"
        "collections: {core: [mini, haiku]}",
        computed=BASELINES,
    )

    def test_names_collections_and_litellm_strings(self) -> None:
        chosen = self.models.resolve(["haiku", "core", "groq/llama/x", "baseline/dirichlet", "local/smollm2-135m"])
        assert [one.name for one in chosen] == ["haiku", "mini", "groq/llama/x", "baseline/dirichlet", "local/smollm2-135m"]
        assert chosen[2].variant == "groq/llama/x[max_tokens=256,temperature=0]"

    def test_a_variant_is_chosen_once_whatever_it_is_called(self) -> None:
        assert [one.name for one in self.models.resolve(["mini", "openai/gpt-4.1-mini", "core"])] == ["mini", "haiku"]

    @pytest.mark.parametrize(
        ("selector", "message"),
        [
            ("minni", "'minni'. Did you mean mini"),
            ("baseline/unifrom", "Did you mean baseline/uniform"),
            ("xyz", r"'xyz'. Allowed: "),
            ("", "no model or collection ''. Allowed: "),
        ],
    )
    def test_an_unknown_word_is_answered_with_the_nearest_names(self, selector: str, message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            self.models.resolve([selector])

    def test_a_litellm_string_does_not_answer_for_a_server_of_the_same_variant(self) -> None:
        models = load_models("models: {mine: {model: openai/x, api_base: 'http://h/v1'}}")
        with pytest.raises(ConfigError, match=r"'mine' and 'openai/x' are both"):
            models.resolve(["openai/x"])


class TestShipped:
    models = load_models(SHIPPED, computed=BASELINES)

    def test_baselines_and_local_models_are_the_known_ones(self) -> None:
        assert self.models.collections["baselines"] == tuple(BASELINES), (
            "collection `baselines` of data/models.yaml and BASELINES of dtef_pipeline/survey/baselines/names.py differ, maybe in order"
        )
        assert (*self.models.collections["local"], LOCAL_EMBEDDER) == LOCAL_MODELS
        assert set(LOCAL_MODELS) <= set(self.models.specs)

    def test_core_is_a_dozen_models_of_several_providers_with_their_keys(self) -> None:
        core = self.models.resolve(["core"])
        assert len(core) >= 12
        assert len({one.model.split("/")[0] for one in core}) >= 5
        assert all(one.api_key_env for one in core)


class TestSettingsOfASelector:
    models = load_models(
        "models:\n"
        "  mini: {model: openai/gpt-4.1-mini, api_base: 'http://h/v1', budget: {max_calls: 7}}\n"
        "  deep: {model: openai/deep, temperature: null}\n"
        "  baseline/uniform:\n"
        "collections: {core: [mini, deep], all: [mini, baseline/uniform]}",
        computed=BASELINES,
    )

    def one(self, selector: str) -> ModelSpec:
        (found,) = self.models.resolve([selector])
        return found

    @pytest.mark.parametrize(
        "selector",
        [
            "mini@max_tokens=512,temperature=0.7",
            "mini@temperature=0.70,max_tokens=512",
            "mini@ max_tokens = 512 , temperature=.7",
        ],
    )
    def test_however_written_the_name_is_one_and_resolves_to_itself(self, selector: str) -> None:
        found = self.one(selector)
        assert found.name == "mini@max_tokens=512,temperature=0.7"
        assert found.variant == "openai/gpt-4.1-mini[max_tokens=512,temperature=0.7]"
        assert self.one(found.name) == found

    def test_only_what_is_asked_changes_and_not_how_the_model_is_reached(self) -> None:
        found, mini = self.one("mini@seed=3"), self.one("mini")
        assert (found.api_base, found.budget) == (mini.api_base, mini.budget)
        assert found.sampling == {**mini.sampling, "seed": 3}

    def test_a_setting_the_model_has_anyway_makes_no_other_model(self) -> None:
        assert self.one("mini@temperature=0") == self.one("mini")
        assert self.one("mini@max_tokens=256,top_p=1").name == "mini@top_p=1"

    def test_they_hold_for_every_member_of_a_collection_and_for_litellm_strings(self) -> None:
        assert [one.name for one in self.models.resolve(["core@temperature=0.7"])] == [
            "mini@temperature=0.7",
            "deep@temperature=0.7",
        ]
        assert self.one("openai/x@seed=1").variant == "openai/x[max_tokens=256,seed=1,temperature=0]"
        assert self.one("baseline/dirichlet@seed=3").variant == "baseline/dirichlet[seed=3]"

    def test_an_at_sign_of_the_model_string_stays_its_own(self) -> None:
        assert self.one("vertex_ai/claude@20250101").model == "vertex_ai/claude@20250101"
        assert self.one("vertex_ai/claude@20250101@seed=1").model == "vertex_ai/claude@20250101"

    def test_settings_given_apart_hold_for_all_but_baselines_and_over_the_selectors_own(self) -> None:
        found = self.models.resolve(["all", "deep@temperature=1,seed=2"], {"temperature": 0.7})
        assert [one.name for one in found] == ["mini@temperature=0.7", "baseline/uniform", "deep@seed=2,temperature=0.7"]

    @pytest.mark.parametrize(
        ("selector", "message"),
        [
            ("mini@temp=1", r"'mini@temp=1': setting 'temp=1'; allowed, each once: temperature=\.\.\., max_tokens"),
            ("mini@api_base=http://x", "setting 'api_base=http://x'; allowed"),
            ("mini@seed=1,seed=2", "setting 'seed=2'; allowed, each once"),
            ("mini@seed=1,", "setting ''; allowed"),
            ("mini@temperature=hot", "model 'mini' with temperature=hot: temperature: got 'hot'; allowed: a number"),
            ("mini@temperature=true", "model 'mini' with temperature=true: temperature: "),
            ("mini@top_p=2", "top_p: got '2'; allowed: at most 1"),
            ("mini@temperature", "'mini@temperature'. Did you mean mini.*settings follow an @"),
            ("all@temperature=0.5", "baseline/uniform is computed, not asked, so it takes no temperature"),
            ("local/smollm2-135m@temperature=1", "does not sample"),
        ],
    )
    def test_what_is_no_setting_is_refused_with_what_is(self, selector: str, message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            self.models.resolve([selector])


def test_a_budget_is_read_from_the_file_and_is_no_part_of_the_variant() -> None:
    text = "models: {a: {model: x/y, budget: {max_cost_usd: 5, max_calls: 10}}, b: {model: x/y}}"
    a, b = load_models(text).specs.values()
    assert (a.budget.max_cost_usd, a.budget.max_calls, a.budget.max_tokens) == (5, 10, None)
    assert b.budget == Budget()
    assert a.variant == b.variant


@pytest.mark.parametrize(
    "variant", ["openai/gpt[max_tokens=256,temperature=0]", "openai/x", "local/smollm2-135m[temperature=0]"]
)
def test_a_variant_is_read_as_the_model_it_stands_for(variant: str) -> None:
    spec = parse_variant("name", variant)
    assert spec is not None
    assert spec.variant == variant
    assert parse_variant("name", "strange[x]") is None


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("http://gpu:8000/v1", "http://gpu:8000/v1"),
        ("http://gpu:port/v1", "http://gpu:port/v1"),
        ("http://[::1]:8000/v1?key=hush@home#hush", "http://[::1]:8000/v1"),
        ("http://gpu?hush", "http://gpu"),
        ("http://user:hush@gpu:8000/v1?key=hush#hush", "http://[...]@gpu:8000/v1"),
        ("http://user:pa@hush@gpu:8000/v1", "http://[...]@gpu:8000/v1"),
        ("http://user:12/hush@gpu:8000/v1", "http://[...]@gpu:8000/v1"),
        ("http://user:hu/sh@gpu:8000/v1", "http://[...]@gpu:8000/v1"),
        ("http://hu/sh@gpu:8000/v1", "http://[...]@gpu:8000/v1"),
        ("http://user:hu?sh@gpu:8000/v1?key=hush", "http://[...]@gpu:8000/v1"),
        ("http://user:hu#sh@gpu:8000/v1", "http://[...]@gpu:8000/v1"),
        ("user:hush@gpu:8000/v1", "[...]@gpu:8000/v1"),
        ("//user:hush@gpu/v1", "//[...]@gpu/v1"),
        ("http:/user:hush@gpu/v1", "http:/[...]@gpu/v1"),
    ],
)
def test_an_address_is_shown_without_name_password_and_parameters(address: str, told: str) -> None:
    assert redact_address(address) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "models: {a: {model: openai/x, api_base: 'http://user:a/PLANTED@gpu:8000/v1'}}",
            "got http://[...]@gpu:8000/v1; allowed",
        ),
        (
            "models:\n  one: {model: openai/x, api_base: 'http://user:PLANTED@gpu:8000/v1'}\n"
            "  two: {model: openai/x, api_base: 'http://user:PLANTED@gpu:8001/v1'}\n",
            "(http://[...]@gpu:8000/v1 and http://[...]@gpu:8001/v1)",
        ),
    ],
)
def test_addresses_are_refused_without_their_passwords(text: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_models(text)
    assert told in str(caught.value)
    assert "PLANTED" not in str(caught.value)


@pytest.mark.parametrize(
    ("model", "maker"),
    [
        ("openai/gpt-4o", "OpenAI"),
        ("azure/gpt-4o[max_tokens=256,temperature=0]", "OpenAI"),
        ("openai/ft:gpt-4o-mini:acme", "OpenAI"),
        ("openrouter/openai/gpt-oss-120b", "OpenAI"),
        ("anthropic/claude-3-7-sonnet-20250219", "Anthropic"),
        ("vertex_ai/claude-sonnet@20250101", "Anthropic"),
        ("bedrock/us.anthropic.claude-3-haiku-20240307-v1:0", "Anthropic"),
        ("gemini/gemini-2.5-flash", "Google"),
        ("openrouter/google/gemma-3n-e4b-it", "Google"),
        ("hosted_vllm/meta-llama/Llama-3.1-8B-Instruct", "Meta"),
        ("openrouter/nvidia/llama-3.1-nemotron-70b-instruct", "NVIDIA"),
        ("openrouter/mistralai/magistral-medium-2506", "Mistral AI"),
        ("openrouter/deepseek/deepseek-r1-distill-llama-70b", "DeepSeek"),
        ("fireworks_ai/accounts/fireworks/models/deepseek-v3", "DeepSeek"),
        ("xai/grok-4.20-0309-non-reasoning", "xAI"),
        ("together_ai/Qwen/Qwen2.5-7B", "Alibaba"),
        ("openrouter/acme/zork-7b", "acme"),
        ("ollama/zork", None),
        ("baseline/uniform", None),
        ("nonsense", None),
    ],
)
def test_the_maker_is_reported_by_the_string_and_not_by_the_provider(model: str, maker: str | None) -> None:
    assert find_maker(model) == maker


def test_on_a_server_of_ones_own_the_name_tells_and_elsewhere_no_provider() -> None:
    found = [find_maker(f"openai/{name}", own_server=True) for name in ("ours", "gpt-oss-20b", "Qwen/Qwen3-8B", "acme/zork")]
    assert found == [None, "OpenAI", "Alibaba", "acme"]
    assert find_maker("openai/ours") == "OpenAI"
    assert len({find_maker(f"{provider}/claude-3-5-sonnet") for provider in SERVING}) == 1


def test_makers_are_found_by_their_names_and_no_folder_stands_for_two() -> None:
    folders = [folder for maker in KNOWN_MAKERS for folder in maker.folders]
    assert len(folders) == len(set(folders))
    assert set(folders) & set(SERVING) == set()
    assert [get_known_maker(maker.name) for maker in KNOWN_MAKERS] == list(KNOWN_MAKERS)
    assert get_known_maker("acme") is None
