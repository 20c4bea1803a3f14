"""Refused forms: each fault beside the field that was filled in wrongly, as the API tells it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.dtef_pipeline.api.browsed import OWN_ORIGIN, browsing, faults_beside
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
