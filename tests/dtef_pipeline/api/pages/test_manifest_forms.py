"""The forms of New evaluation: one for each family, made of the declaration of its settings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dtef_pipeline.api.pages.new_evaluation_page import list_form_fields, read_manifest_form
from dtef_pipeline.api.plans.manifests import FamilyPlans, load_all_plans
from tests.dtef_pipeline.api.browsed import OWN_ORIGIN, browsing, faults_beside, tags_of
from tests.dtef_pipeline.api.made import add_partitions, settings_in

PARTITIONS = {
    "survey_segment": ["S1/country:kenya", "S1/country:india", "S2/country:kenya"],
    "rubric_blueprint": ["demo-facts", "demo-letters"],
    "dataset_part": ["demo-mmlu/law", "demo-gsm8k/all"],
}


def spaces() -> dict[str, Any]:
    """By family, the space of its partitions."""
    return {name: plans.space for name, plans in load_all_plans().items() if isinstance(plans, FamilyPlans)}


@pytest.fixture
def added(tmp_path: Path) -> Path:
    """A folder whose Dagster knows partitions of each family."""
    keys = dict(zip(("survey", "rubric", "qa"), PARTITIONS.values(), strict=True))
    add_partitions(settings_in(tmp_path), {space.name: keys[family] for family, space in spaces().items() if family in keys})
    return tmp_path


def boxes(markup: str) -> dict[str, list[str]]:
    """The values that can be ticked, by field."""
    found: dict[str, list[str]] = {}
    for tag, one in tags_of(markup):
        if tag == "input" and one.get("type") == "checkbox":
            found.setdefault(str(one["name"]), []).append(str(one["value"]))
    return found


def test_each_family_has_its_form_with_what_was_added_to_tick(added: Path) -> None:
    with browsing(added) as client:
        shown = {family: boxes(client.get(f"/new?family={family}").text) for family in ("survey", "rubric", "qa", "games")}
        assert client.get("/new?family=chess").status_code == 404
    assert shown["survey"]["rounds"] == ["S1", "S2"]
    assert "baselines" in shown["survey"]["models"]
    assert shown["rubric"]["blueprints"] == ["demo-facts", "demo-letters"]
    assert "baselines" not in shown["rubric"]["models"]
    assert shown["qa"]["suites"] == ["demo-mmlu", "demo-gsm8k"]
    assert "strict" in shown["qa"]
    assert {"persona_ids", "scenario_ids", "models"} <= set(shown["games"])


@pytest.mark.parametrize("family", ["survey", "rubric", "qa", "games"])
def test_every_member_of_a_manifest_has_a_field_but_bounds_by_model_or_role(family: str, added: Path) -> None:
    plans = load_all_plans()[family]
    fields = {one.name for one in list_form_fields(family, plans, settings_in(added), {})}
    members = set(plans.form.model_fields) - {"family", "budget", "budgets", "role_budgets"}
    assert members <= fields
    assert {"budget.max_cost_usd", "budget.max_calls"} <= fields


@pytest.mark.parametrize("family", ["survey", "rubric", "qa", "games"])
def test_a_form_that_is_sent_as_it_is_shown_stands_for_the_defaults(family: str, added: Path) -> None:
    plans = load_all_plans()[family]
    shown = {one.name: list(one.values) for one in list_form_fields(family, plans, settings_in(added), {})}
    needed = {"survey": "rounds", "rubric": "blueprints", "qa": "suites", "games": "scenario_ids"}[family]
    sent = {**shown, needed: ["x"], "models": ["m"], "persona_ids": ["none"]}
    given = {
        needed: ["x"],
        "models": ["m"],
        "budget": {"max_cost_usd": 5},
        **({"persona_ids": ["none"]} if family == "games" else {}),
    }
    assert plans.form.model_validate(read_manifest_form(family, plans, sent)) == plans.form.model_validate(
        {"family": family, **given}
    )


def test_a_survey_is_started_by_its_form(added: Path) -> None:
    fields = {
        "family": "survey",
        "rounds": ["S1"],
        "models": ["baselines"],
        "further_models": "",
        "segments": "country:kenya\r\n country:india ",
        "context_levels": "0",
        "conditions": "distribution/attribute-label",
        "draws": "1",
        "temperature": "",
        "budget.max_cost_usd": "2.5",
    }
    with browsing(added) as client:
        answer = client.post("/new", data=fields, headers=OWN_ORIGIN)
        assert answer.status_code == 303, faults_beside(answer.text)
        (found,) = client.app.state.services.evaluations.latest()  # type: ignore[attr-defined]
    assert found.family == "survey"
    assert sorted(found.plan["keys"]) == ["S1/country:india", "S1/country:kenya"]
    assert found.manifest["temperature"] is None
    assert found.manifest["budget"]["max_cost_usd"] == pytest.approx(2.5)


def test_faults_of_a_survey_stand_beside_its_fields_and_folded_settings_open(added: Path) -> None:
    fields = {"family": "survey", "rounds": "S9", "models": "nobody", "questions": "many"}
    with browsing(added) as client:
        answer = client.post("/new", data=fields, headers=OWN_ORIGIN)
    assert answer.status_code == 422
    faults = faults_beside(answer.text)
    assert {"rounds", "models", "questions"} <= set(faults)
    assert faults["questions"][0].startswith("got 'many'")
    opened = [one for tag, one in tags_of(answer.text) if tag == "details" and "open" in one]
    assert len(opened) == 1


GAMES = {"persona_ids": "none", "scenario_ids": "poker/kuhn"}
UNPRICED = "models: {mine: {model: hosted_vllm/mine, api_base: 'http://127.0.0.1:9/v1'}}\n"


@pytest.fixture(autouse=True)
def all_local_models_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resources.gateway.local_model.LocalTransport.problem", lambda *_: None)


def test_the_bound_of_a_new_form_can_be_kept_of_every_model_that_it_offers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had 5 dollars, so that each model without a price was refused at first."""
    file = tmp_path / "models.yaml"
    file.write_text(UNPRICED, encoding="utf-8")
    settings = settings_in(tmp_path, DTEF_MODELS=str(file))
    monkeypatch.setattr("tests.dtef_pipeline.api.made.settings_in", lambda _: settings)
    with browsing(tmp_path) as client:
        shown = client.get("/new").text
        assert re.search(r'name="budget.max_cost_usd" value=""', shown)
        (calls,) = re.findall(r'name="budget.max_calls" value="(\d+)"', shown)
        answer = client.post("/new", data={**GAMES, "models": "mine", "budget.max_calls": calls}, headers=OWN_ORIGIN)
        assert answer.status_code == 303, answer.text
        wrong = {**GAMES, "models": "mine", "further_models": "gpt-nobody-made", "budget.max_cost_usd": "5"}
        told = faults_beside(client.post("/new", data=wrong, headers=OWN_ORIGIN).text)
        assert list(told) == ["models"]
        told = faults_beside(
            client.post("/new", data={**GAMES, "models": "mine", "budget.max_cost_usd": "5"}, headers=OWN_ORIGIN).text
        )
        assert list(told) == ["budget.max_cost_usd"]
