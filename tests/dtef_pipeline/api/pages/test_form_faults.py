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


@pytest.mark.parametrize("path", ["/scenarios", "/scenarios/poker/kuhn"])
@pytest.mark.parametrize("emptied", ["", " \r\n "])
def test_an_emptied_manifest_stays_empty_and_is_reported_that_it_is_needed(path: str, emptied: str, tmp_path: Path) -> None:
    """It was filled with the template again, beside which stood that there is no JSON in line 1."""
    with browsing(tmp_path) as client:
        answer = client.post(path, data={"document": emptied, "seen": "x"}, headers=OWN_ORIGIN)
    assert answer.status_code == 422
    assert faults_beside(answer.text) == {"document": ["this is needed"]}
    assert typed_in(answer.text, "document") == ""


def test_each_of_several_faults_of_a_document_has_a_line_of_its_own(tmp_path: Path) -> None:
    """They were one paragraph, in which nobody saw where one ended."""
    sent = json.dumps({"id": "calm", "display_name": "Calm", "system_prompt": "", "traits": [], "colour": 1})
    with browsing(tmp_path) as client:
        shown = client.post("/personas", data={"document": sent}, headers=OWN_ORIGIN).text
    assert [fault.partition(":")[0] for fault in faults_beside(shown)["document"]] == ["colour", "system_prompt", "traits"]
