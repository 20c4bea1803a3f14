"""How models are named and listed: by which transport and at which address a model is asked, and nothing secret."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.cli.qa.qa_run import resolve_model_names
from resources.gateway.model_checks import resolve_route
from tests.dtef_pipeline.cli.commands import ok, refused
from tests.made.qa_items import write_sums
from tests.strict_json import strict

PLANTED = "planted-7f3a9c"
MODELS = f"""models:
  mine: {{model: openai/m, api_base: 'http://me:{PLANTED}@gpu-box:8000/v1?key={PLANTED}'}}
  in-path: {{model: openai/p, api_base: 'https://h.example/{PLANTED}/v1', api_key_env: MINE}}
  by-wish: {{model: openai/w, api_base: 'http://h.example/v1', transport: litellm}}
  translated: {{model: openai/gpt-5-mini, api_base: 'http://h.example/v1'}}
  elsewhere: {{model: hosted_vllm/v, api_base: 'http://h.example/v1'}}
  of-provider: {{model: openai/gpt-4o}}
"""


@pytest.fixture
def listed(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (state / "models.yaml").write_text(MODELS, encoding="utf-8")
    monkeypatch.setenv("DTEF_MODELS", str(state / "models.yaml"))
    monkeypatch.setenv("MINE", PLANTED)


@pytest.mark.usefixtures("listed")
def test_each_model_is_listed_with_its_transport_and_address() -> None:
    printed = ok("models", "--json")
    assert PLANTED not in printed
    ways = {row["model"]: (row["transport"], row["address"]) for row in strict(printed)}
    assert {name: ways[name] for name in ways if name.startswith(("mine", "in-", "by-", "tr", "else", "of-"))} == {
        "mine": ("direct", "http://[...]@gpu-box:8000/v1"),
        "in-path": ("direct", "https://h.example/[key]/v1"),
        "by-wish": ("litellm", "http://h.example/v1"),
        "translated": ("litellm", "http://h.example/v1"),
        "elsewhere": ("litellm", "http://h.example/v1"),
        "of-provider": ("litellm", ""),
    }
    assert ways["local/smollm2-135m"] == ("local", "")
    assert ways["baseline/uniform"] == ("", "")


def test_a_password_longer_than_any_message_is_not_shown_in_part() -> None:
    spec = ModelSpec(name="m", model="openai/m", api_base=f"http://me:{PLANTED}{'x' * 5_000}@gpu-box:8000/v1")
    assert resolve_route(spec, {})[1] == "http://[...]@gpu-box:8000/v1"


def test_provider_and_name_are_a_litellm_string_unless_a_model_has_it(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (state / "models.yaml").write_text(yaml.safe_dump({"models": {"own:mine": {"model": "openai/x"}}}), encoding="utf-8")
    monkeypatch.setenv("DTEF_MODELS", str(state / "models.yaml"))
    given = ["openai:gpt-4o-mini", "groq:meta-llama/llama-4@temperature=0.7", "own:mine", "own:mine@temperature=0.7", "a b:c"]
    assert resolve_model_names(given) == ("openai/gpt-4o-mini", "groq/meta-llama/llama-4@temperature=0.7", *given[2:])


def test_estimate_takes_it(state: Path) -> None:
    ok("qa", "add", "gsm8k", write_sums(state / "sums.jsonl"))
    assert "openai/gpt-4o-mini" in ok("qa", "run", "--estimate", "--model", "openai:gpt-4o-mini", "--judge", "none")
    assert "no model or collection 'a b:c'" in refused("qa", "run", "--estimate", "--model", "a b:c", "--judge", "none")
