"""Manifests of surveys, rubrics and questions, and the runs that they come to."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from dtef_pipeline.api.plans.manifests import (
    QA_PLANS,
    RUBRIC_PLANS,
    SURVEY_PLANS,
    QaEvaluation,
    RubricEvaluation,
    SurveyEvaluation,
    read_manifest,
)
from dtef_pipeline.api.plans.plan import PlannedEvaluation, UnfitManifest, UnknownName, load_named_models
from dtef_pipeline.qa.tables import QA_EXAMPLES, QA_ITEMS
from resources.settings import Settings
from resources.warehouse import Warehouse
from tests.dtef_pipeline.api.asked_runs import rows_in
from tests.dtef_pipeline.api.made import add_partitions, settings_in
from tests.made.shared_cases import cases_beside

PARTITIONS = {
    "round_segment": ["GD4/O1:All", "GD4/O7:Kenya", "GD3/O1:All"],
    "rubric_blueprint": ["compass__introverted", "compass__open", "safety"],
    "dataset_part": ["mmlu/physics", "mmlu/law", "gsm8k/all"],
}
MODEL = "gpt-4.1-mini"
CASES = cases_beside(__file__)
Planned = Callable[..., PlannedEvaluation]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Of a server where these partitions were added, and any model may be named."""
    found = settings_in(tmp_path_factory.mktemp("server"))
    add_partitions(found, PARTITIONS)
    return found


def survey(settings: Settings, **given: Any) -> PlannedEvaluation:
    manifest = SurveyEvaluation(**{"family": "survey", "rounds": ["GD4"], "models": [MODEL], **given})
    return SURVEY_PLANS.plan(manifest, settings)


def rubric(settings: Settings, **given: Any) -> PlannedEvaluation:
    manifest = RubricEvaluation(**{"family": "rubric", "blueprints": ["compass__*"], "models": [MODEL], **given})
    return RUBRIC_PLANS.plan(manifest, settings)


def qa(settings: Settings, **given: Any) -> PlannedEvaluation:
    return QA_PLANS.plan(QaEvaluation(**{"family": "qa", "suites": ["mmlu"], "models": [MODEL], **given}), settings)


def keep_items(settings: Settings, number: int, type: str = "choice", **at: str) -> None:
    rows = [{**at, "item_id": f"item {position}", "type": type} for position in range(number)]
    Warehouse(settings.warehouse).write("qa_items", rows_in(QA_ITEMS, rows), **at)


FAMILIES: dict[str, Planned] = {"survey": survey, "rubric": rubric, "qa": qa}


def test_a_run_stands_for_each_partition(settings: Settings) -> None:
    expected = {
        "survey": ["GD4/O1:All", "GD4/O7:Kenya"],
        "rubric": ["compass__introverted", "compass__open"],
        "qa": ["mmlu/physics", "mmlu/law"],
    }
    for family, planned in FAMILIES.items():
        plan = planned(settings)
        assert list(plan.keys) == expected[family]
        assert [one.asks for one in plan.runs] == [{"partition": key} for key in expected[family]]
        assert not plan.new_keys


def test_stages_are_those_of_the_job_and_take_their_settings(settings: Settings) -> None:
    import dagster as dg

    from assets.definitions import defs

    repository = defs.get_repository_def()
    for planned in FAMILIES.values():
        plan = planned(settings, budget={"max_cost_usd": 2.5, "max_calls": 40}, snapshot="mine")
        job = repository.get_job(plan.job)
        assert {node.name for node in job.nodes} >= set(plan.config)
        ops = {stage: {"config": dict(given)} for stage, given in plan.config.items()}
        assert dg.validate_run_config(job, {"ops": ops})
        asking = [given for given in plan.config.values() if "max_cost_usd" in given]
        assert asking
        assert {(one["max_cost_usd"], one["max_calls"], one["snapshot"]) for one in asking} == {(2.5, 40, "mine")}


def test_prompts_of_a_survey_are_made_as_they_will_be_asked(settings: Settings) -> None:
    plan = survey(settings, context_levels=["5", "all"], conditions=["shift+cot"], segments=["O1:All"])
    made, asked = plan.config["blueprints"], plan.config["predictions"]
    assert list(plan.config)[:2] == ["blueprints", "predictions"]
    assert made == {name: asked[name] for name in ("conditions", "context_levels")}
    assert list(plan.keys) == ["GD4/O1:All"]


def test_what_was_added_and_never_made_is_made_first(settings: Settings) -> None:
    assert next(iter(rubric(settings).config)) == "rubric_blueprints"
    assert next(iter(qa(settings).config)) == "qa_items"


@pytest.mark.parametrize(
    ("family", "given", "told"),
    CASES["unknown"],
)
def test_an_unknown_name_is_reported_with_those_that_are_known(
    settings: Settings, family: str, given: dict[str, Any], told: str
) -> None:
    with pytest.raises(UnknownName, match=told):
        FAMILIES[family](settings, **given)


@pytest.mark.parametrize(
    ("family", "given"),
    CASES["refused"],
)
def test_settings_of_a_family_that_cannot_be_are_refused(settings: Settings, family: str, given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        FAMILIES[family](settings, **given)


@pytest.mark.parametrize(
    ("family", "given", "field"),
    CASES["unfit"],
)
def test_what_does_not_go_with_the_models_is_reported_with_its_field(
    settings: Settings, family: str, given: dict[str, Any], field: str
) -> None:
    with pytest.raises(UnfitManifest) as told:
        FAMILIES[family](settings, **given)
    assert [one.path for one in told.value.faults] == [field]
    assert "dtef " not in told.value.message
    assert "--" not in told.value.message


@pytest.mark.parametrize("family", ["survey", "qa"])
def test_a_model_without_its_key_is_refused_as_the_commands_refuse_it(
    settings: Settings, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    said = f"models: .*{MODEL}: environment variable OPENAI_API_KEY is not set; allowed: .*local/"
    with pytest.raises(UnfitManifest, match=said):
        FAMILIES[family](settings)


def test_items_of_another_home_of_dagster_are_reported(tmp_path: Path) -> None:
    """It was said that none were ever added."""
    place = settings_in(tmp_path)
    with pytest.raises(UnknownName, match="suites: no suite "):
        qa(place)
    keep_items(place, 1, suite="mmlu", part="law")
    with pytest.raises(UnknownName, match="suites: the warehouse of this server has mmlu/law"):
        qa(place)


@pytest.mark.parametrize(
    ("given", "field", "told"),
    [
        ({"few_shot": 3}, "few_shot", "gsm8k/all: few-shot 3: allowed: 0 to 0"),
        ({"order": "rotated-1"}, "order", "gsm8k/all: order rotated-1"),
        ({"few_shot": 3, "order": "rotated-1"}, "order", "gsm8k/all: order"),
    ],
)
def test_a_part_that_cannot_be_asked_so_is_reported_though_others_can(
    tmp_path: Path, given: dict[str, Any], field: str, told: str
) -> None:
    """The run was taken, and failed in all parts but one."""
    place = settings_in(tmp_path)
    add_partitions(place, PARTITIONS)
    keep_items(place, 2, suite="mmlu", part="law")
    examples = [{"suite": "mmlu", "part": "law", "position": position} for position in range(5)]
    Warehouse(place.warehouse).write("qa_examples", rows_in(QA_EXAMPLES, examples), suite="mmlu", part="law")
    keep_items(place, 2, "number", suite="gsm8k", part="all")
    assert qa(place, suites=[], parts=["mmlu/law"], **given).keys
    with pytest.raises(UnfitManifest) as refused:
        qa(place, suites=["*"], **given)
    assert [one.path for one in refused.value.faults] == [field]
    assert refused.value.message.startswith(told)


def test_a_snapshot_that_differs_in_capitals_alone_is_refused(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resources.warehouse.Warehouse.values", lambda *_, **__: ["mine"])
    with pytest.raises(UnfitManifest) as told:
        survey(settings, snapshot="Mine")
    assert [one.path for one in told.value.faults] == ["snapshot"]


@pytest.mark.parametrize("family", FAMILIES)
def test_more_partitions_than_one_evaluation_may_have_are_refused(
    settings: Settings, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dtef_pipeline.api.plans.plan.MAX_PARTITIONS", 1)
    with pytest.raises(UnfitManifest, match="2 partitions; allowed: at most 1"):
        FAMILIES[family](settings)


@pytest.mark.parametrize("family", FAMILIES)
def test_where_dagster_has_no_home_nothing_was_added_and_none_is_made(tmp_path: Path, family: str) -> None:
    elsewhere = settings_in(tmp_path)
    with pytest.raises(UnknownName, match="yet"):
        FAMILIES[family](elsewhere)
    assert not elsewhere.dagster_home.exists()


def test_the_manifests_are_known_without_what_is_slow_to_load() -> None:
    code = """
import sys
import dtef_pipeline.api.plans.manifests
print(*(name for name in ("dagster", "litellm", "pandas") if name in sys.modules))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


@pytest.mark.parametrize("family", ["survey", "qa"])
def test_settings_that_are_not_sent_are_reported_and_two_models_of_one_request_refused(settings: Settings, family: str) -> None:
    """Both were paid for and ranked, without a word."""
    low, high = (f"{MODEL}@reasoning_effort={one}" for one in ("low", "high"))
    plan = FAMILIES[family](settings, models=[low])
    assert [line.partition(",")[0] for line in plan.warnings] == [f"{low}: the provider takes no reasoning_effort"]
    assert plan.build_plan_json()["warnings"] == list(plan.warnings)
    with pytest.raises(UnfitManifest, match=r"send the provider the same request.*reasoning_effort"):
        FAMILIES[family](settings, models=[low, high])


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
