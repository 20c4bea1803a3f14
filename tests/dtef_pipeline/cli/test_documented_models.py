"""`--model openai:gpt-4o-mini`, as Socioscope spells models."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from dtef_pipeline.cli.models import resolve_model_names
from tests.dtef_pipeline.cli.commands import ok, refused
from tests.made.qa_files import write_sums


def test_a_provider_and_a_name_are_a_litellm_string_unless_a_model_is_called_that(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (state / "models.yaml").write_text(yaml.safe_dump({"models": {"own:mine": {"model": "openai/x"}}}), encoding="utf-8")
    monkeypatch.setenv("DTEF_MODELS", str(state / "models.yaml"))
    given = ["openai:gpt-4o-mini", "groq:meta-llama/llama-4@temperature=0.7", "own:mine", "own:mine@temperature=0.7", "a b:c"]
    assert resolve_model_names(given) == ("openai/gpt-4o-mini", "groq/meta-llama/llama-4@temperature=0.7", *given[2:])


def test_estimate_takes_it(state: Path) -> None:
    ok("qa", "add", "gsm8k", write_sums(state / "sums.jsonl"))
    assert "openai/gpt-4o-mini" in ok("qa", "run", "--estimate", "--model", "openai:gpt-4o-mini", "--judge", "none")
    assert "no model or collection 'a b:c'" in refused("qa", "run", "--estimate", "--model", "a b:c", "--judge", "none")
