"""Refused forms: each fault beside the field that was filled in wrongly, in the words of the page."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from dtef_pipeline.api.form_parts import FormFault, Refusal
from dtef_pipeline.api.manifest_faults import on_games_form
from tests.dtef_pipeline.api.browsed import OWN_ORIGIN, browsing
from tests.dtef_pipeline.api.made import settings_in

GAMES = {"persona_ids": "none", "scenario_ids": "poker/kuhn"}
UNPRICED = "models: {mine: {model: hosted_vllm/mine, api_base: 'http://127.0.0.1:9/v1'}}\n"


def faults_told(page: str) -> dict[str, str]:
    """By field, what stands beside it."""
    return {name: html.unescape(words) for name, words in re.findall(r'id="([\w-]+)-fault">(.*?)</p>', page)}


def refused_games(folder: Path, sent: Mapping[str, str | Sequence[str]]) -> dict[str, str]:
    with browsing(folder) as client:
        answer = client.post("/new", data={**GAMES, **sent}, headers=OWN_ORIGIN)
    assert answer.status_code in (404, 422)
    return faults_told(answer.text)


@pytest.fixture(autouse=True)
def all_local_models_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resources.gateway.local_model.LocalTransport.problem", lambda *_: None)


class TestModels:
    def test_a_model_that_was_typed_wrongly_is_told_beside_where_it_was_typed(self, tmp_path: Path) -> None:
        """The fault stood beside the boxes, none of which was wrong."""
        for ticked in ([], ["baselines"]):
            told = refused_games(tmp_path, {"models": ticked, "further_models": "local/smollm2-135m gpt-nobody-made"})
            assert list(told) == ["further_models"]
            assert "gpt-nobody-made" in told["further_models"]

    def test_a_fault_of_a_box_stays_beside_the_boxes(self, tmp_path: Path) -> None:
        assert list(refused_games(tmp_path, {"models": "nobody", "further_models": "local/smollm2-135m"})) == ["models"]
        assert refused_games(tmp_path, {}) == {"models": "choose at least one"}

    def test_a_model_that_is_ticked_and_typed_too_is_told_where_it_was_typed(self, tmp_path: Path) -> None:
        told = refused_games(tmp_path, {"models": "baselines", "further_models": "baselines"})
        assert told == {"further_models": "got 'baselines' more than once; allowed: each once"}

    @pytest.mark.parametrize(
        ("path", "message", "fields"),
        [
            ("models.0", "got 'x'; allowed: at most 200 characters", ["models"]),
            ("models.2", "got 'x'; allowed: at most 200 characters", ["further_models"]),
            ("models", "there is no model 'mine'; known: a, b", ["further_models"]),
            ("models", "there is no model 'mine/b'; known: a, b", ["further_models"]),
            ("models", "there is no model 'gone'; known: mine", ["further_models"]),
            ("models", "not every model can be: a: A_KEY is not set; mine: B_KEY is not set", ["models", "further_models"]),
            ("models", "not every model can be: of/a-collection: C_KEY is not set", ["further_models"]),
            ("opponents", "there is no player 'mine'", ["opponents"]),
        ],
    )
    def test_faults_of_a_manifest_find_their_fields(self, path: str, message: str, fields: list[str]) -> None:
        found = on_games_form(Refusal(422, [FormFault(path, message)]), ["a", "b"], ["mine@temperature=0.7", "frontier"])
        assert [one.path for one in found.faults] == fields
        assert {one.message for one in found.faults} == {message}


class TestBounds:
    @pytest.fixture(autouse=True)
    def models_without_a_price(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = tmp_path / "models.yaml"
        file.write_text(UNPRICED, encoding="utf-8")
        settings = settings_in(tmp_path, DTEF_MODELS=str(file))
        monkeypatch.setattr("tests.dtef_pipeline.api.made.settings_in", lambda _: settings)

    def test_a_bound_that_cannot_be_kept_is_told_beside_it_in_words_of_the_page(self, tmp_path: Path) -> None:
        """It stood beside the models, and told to give prices in a file, or a limit that the page has no field for."""
        told = refused_games(tmp_path, {"models": "mine", "max_cost_usd": "5"})
        assert told == {
            "max_cost_usd": "cannot be kept without a price of mine; allowed: nothing here, and 'At most, in calls' in its place"
        }

    def test_the_bound_of_a_new_form_can_be_kept_of_every_model_that_it_offers(self, tmp_path: Path) -> None:
        """It had 5 dollars, so that each model without a price was refused at first."""
        with browsing(tmp_path) as client:
            shown = client.get("/new").text
            assert re.search(r'name="max_cost_usd" value=""', shown)
            (calls,) = re.findall(r'name="max_calls" value="(\d+)"', shown)
            answer = client.post("/new", data={**GAMES, "models": "mine", "max_calls": calls}, headers=OWN_ORIGIN)
            assert answer.status_code == 303, answer.text

    def test_a_manifest_is_told_a_limit_that_it_can_have(self, tmp_path: Path) -> None:
        manifest = {"persona_ids": ["none"], "scenario_ids": ["poker/kuhn"], "models": ["mine"], "budget": {"max_cost_usd": 5}}
        with browsing(tmp_path) as client:
            answer = client.post("/new/manifest", data={"manifest": json.dumps(manifest)}, headers=OWN_ORIGIN)
        (told,) = faults_told(answer.text).values()
        assert told.endswith(
            "budget.max_cost_usd: cannot be kept without a price of mine; allowed: null, and max_calls in its place"
        )


@pytest.mark.parametrize("path", ["/scenarios", "/scenarios/poker/kuhn", "/new/manifest"])
@pytest.mark.parametrize("emptied", ["", " \r\n "])
def test_an_emptied_manifest_stays_empty_and_is_told_that_it_is_needed(path: str, emptied: str, tmp_path: Path) -> None:
    """It was filled with the template again, beside which stood that there is no JSON in line 1."""
    with browsing(tmp_path) as client:
        answer = client.post(path, data={"manifest": emptied, "seen": "x"}, headers=OWN_ORIGIN)
    assert answer.status_code == 422
    assert faults_told(answer.text) == {"manifest": "this is needed"}
    assert re.search(r'<textarea id="manifest"[^>]*>\n</textarea>', answer.text)


def test_each_of_several_faults_of_a_manifest_has_a_line_of_its_own(tmp_path: Path) -> None:
    """They were one paragraph, in which nobody saw where one ended."""
    sent = json.dumps({"family": "survey", "rounds": ["S9"], "models": ["nobody"], "draws": 0, "colour": 1})
    with browsing(tmp_path) as client:
        shown = client.post("/new/manifest", data={"manifest": sent}, headers=OWN_ORIGIN).text
    (told,) = re.findall(r'<ul class="fault" id="manifest-fault">(.*?)</ul>', shown)
    assert re.findall(r"<li>(\w+)", told) == ["draws", "colour", "models", "rounds"]


def test_a_refused_form_of_games_leaves_the_manifest_beneath_as_it_was(tmp_path: Path) -> None:
    with browsing(tmp_path) as client:
        refused = client.post("/new", data={"models": "baselines"}, headers=OWN_ORIGIN).text
    assert ">\n{\n  &quot;family&quot;: &quot;survey&quot;" in refused


def test_an_empty_id_is_told_as_every_empty_field_is(tmp_path: Path) -> None:
    """It was told which characters an id has."""
    with browsing(tmp_path) as client:
        sent = {"id": "", "display_name": "", "system_prompt": ""}
        told = faults_told(client.post("/personas", data=sent, headers=OWN_ORIGIN).text)
        within = faults_told(client.post("/new/manifest", data={"manifest": '{"family": ""}'}, headers=OWN_ORIGIN).text)
    assert told == dict.fromkeys(sent, "this is needed")
    assert within == {"manifest": "family: got ''; allowed: games, qa, rubric, survey"}


def test_a_name_that_turns_words_round_is_told_with_the_other_faults(tmp_path: Path) -> None:
    """It was told in the next round."""
    persona = {"id": "calm", "display_name": "Calm\u202e", "system_prompt": "Stay calm.", "traits": "patience"}
    for further, fields in (({}, ["display_name", "traits"]), ({"id": "Calm One", "traits": ""}, ["id", "display_name"])):
        with browsing(tmp_path) as client:
            told = faults_told(client.post("/personas", data={**persona, **further}, headers=OWN_ORIGIN).text)
        assert list(told) == fields
