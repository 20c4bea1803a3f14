"""Refused forms: each fault beside the field that was filled in wrongly, as the API tells it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.dtef_pipeline.api.browsed import OWN_ORIGIN, browsing, faults_beside, typed_in
from tests.dtef_pipeline.api.made import settings_in

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
        assert re.search(r'name="max_cost_usd" value=""', shown)
        (calls,) = re.findall(r'name="max_calls" value="(\d+)"', shown)
        answer = client.post("/new", data={**GAMES, "models": "mine", "max_calls": calls}, headers=OWN_ORIGIN)
        assert answer.status_code == 303, answer.text
        wrong = {**GAMES, "models": "mine", "further_models": "gpt-nobody-made", "max_cost_usd": "5"}
        told = faults_beside(client.post("/new", data=wrong, headers=OWN_ORIGIN).text)
        assert list(told) == ["models"]
        told = faults_beside(
            client.post("/new", data={**GAMES, "models": "mine", "max_cost_usd": "5"}, headers=OWN_ORIGIN).text
        )
        assert list(told) == ["max_cost_usd"]


@pytest.mark.parametrize("path", ["/scenarios", "/scenarios/poker/kuhn", "/new/manifest"])
@pytest.mark.parametrize("emptied", ["", " \r\n "])
def test_an_emptied_manifest_stays_empty_and_is_reported_that_it_is_needed(path: str, emptied: str, tmp_path: Path) -> None:
    """It was filled with the template again, beside which stood that there is no JSON in line 1."""
    with browsing(tmp_path) as client:
        answer = client.post(path, data={"manifest": emptied, "seen": "x"}, headers=OWN_ORIGIN)
    assert answer.status_code == 422
    assert faults_beside(answer.text) == {"manifest": ["this is needed"]}
    assert typed_in(answer.text, "manifest") == ""


def test_each_of_several_faults_of_a_manifest_has_a_line_of_its_own(tmp_path: Path) -> None:
    """They were one paragraph, in which nobody saw where one ended."""
    sent = json.dumps({"family": "survey", "rounds": ["S9"], "models": ["nobody"], "draws": 0, "colour": 1})
    with browsing(tmp_path) as client:
        shown = client.post("/new/manifest", data={"manifest": sent}, headers=OWN_ORIGIN).text
    told = faults_beside(shown)["manifest"]
    assert [re.findall(r"\w+", one)[0] for one in told] == ["draws", "colour", "models", "rounds"]


def test_a_refused_form_of_games_leaves_the_manifest_below_as_it_was(tmp_path: Path) -> None:
    with browsing(tmp_path) as client:
        refused = client.post("/new", data={"models": "baselines"}, headers=OWN_ORIGIN).text
    assert json.loads(typed_in(refused, "manifest"))["family"] == "games"
    assert "persona_ids" in faults_beside(refused)


def test_a_name_that_turns_words_round_is_reported_with_the_other_faults(tmp_path: Path) -> None:
    """It was told in the next round."""
    persona = {"id": "calm", "display_name": "Calm\u202e", "system_prompt": "Stay calm.", "traits": "patience"}
    for further, fields in (({}, ["display_name", "traits"]), ({"id": "Calm One", "traits": ""}, ["id", "display_name"])):
        with browsing(tmp_path) as client:
            told = faults_beside(client.post("/personas", data={**persona, **further}, headers=OWN_ORIGIN).text)
        assert list(told) == fields
