"""Who made a model, whoever serves it."""

from __future__ import annotations

import pytest

from dtef_pipeline.asking.makers import KNOWN_MAKERS, SERVING, find_maker, get_known_maker


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


def test_on_a_server_of_ones_own_the_name_tells_and_the_provider_does_not() -> None:
    found = [find_maker(f"openai/{name}", own_server=True) for name in ("ours", "gpt-oss-20b", "Qwen/Qwen3-8B", "acme/zork")]
    assert found == [None, "OpenAI", "Alibaba", "acme"]
    assert find_maker("openai/ours") == "OpenAI"


def test_models_of_one_maker_are_of_one_maker_wherever_they_are_served() -> None:
    assert len({find_maker(f"{provider}/claude-3-5-sonnet") for provider in SERVING}) == 1


def test_no_folder_stands_for_two_makers() -> None:
    folders = [folder for maker in KNOWN_MAKERS for folder in maker.folders]
    assert len(folders) == len(set(folders))
    assert set(folders) & set(SERVING) == set()


def test_makers_are_found_by_their_names() -> None:
    assert [get_known_maker(maker.name) for maker in KNOWN_MAKERS] == list(KNOWN_MAKERS)
    assert get_known_maker("acme") is None
