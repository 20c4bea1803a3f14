"""Which models a manifest may name: those of the server's models files alone, unless the server is open to any; never an address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dtef_pipeline.api.plans.manifests import read_manifest
from dtef_pipeline.api.plans.plan import PlannedEvaluation, UnfitManifest, load_named_models
from resources.settings import Settings
from tests.dtef_pipeline.api.made import add_partitions, settings_in

MODEL = "gpt-4.1-mini"
ADDRESS = "oobabooga/http://127.0.0.1:9"
BY_FIELD = [
    ("survey", "models", "{}"),
    ("qa", "models", "{}"),
    ("qa", "judge", "{}"),
    ("rubric", "models", "{}"),
    ("rubric", "judges", "standard={}"),
    ("rubric", "analysts", "{}"),
    ("games", "models", "{}"),
    ("games", "models", "cautious@{}"),
    ("games", "opponents", "{}"),
    ("games", "opponents", "cautious@{}"),
]


GIVEN: dict[str, dict[str, Any]] = {
    "survey": {"family": "survey", "rounds": ["GD4"], "models": [MODEL]},
    "qa": {"family": "qa", "suites": ["mmlu"], "models": [MODEL]},
    "rubric": {"family": "rubric", "blueprints": ["safety"], "models": [MODEL]},
    "games": {"persona_ids": ["none"], "scenario_ids": ["poker/kuhn"], "models": ["baseline/random"]},
}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Of a server where these partitions were added, and any model may be named."""
    found = settings_in(tmp_path_factory.mktemp("server"))
    add_partitions(found, {"round_segment": ["GD4/O1:All"], "rubric_blueprint": ["safety"], "dataset_part": ["mmlu/law"]})
    return found


def planned_with(settings: Settings, family: str, field: str, name: str) -> PlannedEvaluation:
    return read_manifest(GIVEN[family] | {field: name if field == "judge" else [name]}, settings).plan(settings)


@pytest.mark.parametrize(("family", "field", "form"), BY_FIELD)
@pytest.mark.parametrize("model", [ADDRESS, f"{ADDRESS}@temperature=1", "openai/made-up"])
def test_only_models_of_the_files_are_named_over_http(
    settings: Settings, family: str, field: str, form: str, model: str
) -> None:
    """A model string says where the prompt goes and whose credentials are used: `oobabooga/http://...` was accepted."""
    closed = settings.model_copy(update={"api_any_model": False})
    with pytest.raises(UnfitManifest) as refusal:
        planned_with(closed, family, field, form.format(model))
    assert refusal.value.faults[0].path == field
    assert "allowed: " in refusal.value.message
    if "://" not in model:
        assert "DTEF_API_ANY_MODEL" in refusal.value.message


@pytest.mark.parametrize(("family", "field", "form"), BY_FIELD)
def test_an_address_is_no_model_even_where_any_may_be_named(settings: Settings, family: str, field: str, form: str) -> None:
    assert settings.api_any_model
    with pytest.raises(UnfitManifest, match="an address"):
        planned_with(settings, family, field, form.format(ADDRESS))


def test_what_the_files_hold_and_what_asks_no_server_may_be_named(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "models.yaml").write_text(
        "models: {mine: {model: openai/of-mine}}\ncollections: {two: [mine]}\n", encoding="utf-8"
    )
    closed = settings.model_copy(update={"api_any_model": False, "models": tmp_path / "models.yaml"})
    names = [MODEL, f"{MODEL}@temperature=0.5", "openai/gpt-4.1-mini", "core", "mine", "two", "openai/of-mine"]
    for name in [*names, "baselines", "baseline/uniform", "local/smollm2-135m", "stored/amber"]:
        assert load_named_models(closed, "models", [name]).specs
