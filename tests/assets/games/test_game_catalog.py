"""Files and what was made over HTTP are known together: the status that was said holds, and a version has one content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from assets.games.game_catalog import load_known_personas, load_known_scenarios, load_scenario_versions
from dtef_pipeline.cli import main
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.manifest import read_manifest
from resources.settings import Settings
from resources.votes.game_documents import GameDocumentStore
from tests.conftest import ROOT

CALM: dict[str, Any] = {"id": "calm", "version": 1, "status": "approved", "display_name": "Calm", "system_prompt": "Wait."}
KUHN = read_manifest(ROOT / "data" / "scenarios" / "poker" / "kuhn.yaml").model_dump(mode="json")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    folders = {"DTEF_PERSONAS": tmp_path / "personas", "DTEF_SCENARIOS": tmp_path / "scenarios"}
    for folder in folders.values():
        folder.mkdir()
    places = {"DTEF_RESPONSES": tmp_path / "responses.sqlite", **folders}
    return Settings.read_environment({name: str(place) for name, place in places.items()})


def write(settings: Settings, persona: dict[str, Any]) -> None:
    assert settings.personas is not None
    (settings.personas / f"{persona['id']}.yaml").write_text(yaml.safe_dump(persona), encoding="utf-8")


def test_a_status_that_was_stated_holds_over_that_of_a_file(settings: Settings) -> None:
    write(settings, CALM)
    with GameDocumentStore(settings.responses_url) as store:
        store.say("persona", {**CALM, "status": "retired"}, "alice", revision=0, before=CALM)
        store.say("persona", {"id": "gone", "version": 1, "status": "retired"}, "alice", revision=0, before={})
        store.say("scenario", {**KUHN, "status": "production"}, "alice", revision=0, before=KUHN)
    assert load_known_personas(settings)["calm"].status == "retired"
    assert "gone" not in load_known_personas(settings)
    assert load_known_scenarios(settings)["poker/kuhn"].status == "production"


def test_the_highest_version_is_the_latest_wherever_it_is(settings: Settings) -> None:
    write(settings, {**CALM, "version": 3})
    with GameDocumentStore(settings.responses_url) as store:
        store.add("persona", {**CALM, "version": 2}, "alice", revision=0)
        store.add("scenario", {**KUHN, "version": 7, "turn_limit": 9}, "alice", revision=0)
    found = load_known_personas(settings)
    assert [name for name in found if name.startswith("calm")] == ["calm", "calm:v2", "calm:v3"]
    assert found["calm"].version == 3
    assert load_known_scenarios(settings)["poker/kuhn"].turn_limit == 9
    assert [version for name, version in load_scenario_versions(settings) if name == "poker/kuhn"] == [KUHN["version"], 7]


def test_an_approved_persona_plays_on_while_its_next_version_is_a_draft(settings: Settings) -> None:
    write(settings, CALM)
    with GameDocumentStore(settings.responses_url) as store:
        draft = {**CALM, "version": 2, "status": "draft"}
        store.add("persona", draft, "alice", revision=0)
        assert load_known_personas(settings)["calm"].version == 1
        assert load_known_personas(settings)["calm:v2"].status == "draft"
        for status in ("approved", "retired"):
            revision = store.read_all().revision("persona", "calm")
            store.say("persona", {**draft, "status": status}, "alice", revision=revision, before=draft)
            assert load_known_personas(settings)["calm"].version == 2
    assert load_known_personas(settings)["calm"].status == "retired"


def test_a_version_that_is_reported_differently_is_refused_with_both_places(settings: Settings) -> None:
    write(settings, {**CALM, "system_prompt": "Hurry."})
    with GameDocumentStore(settings.responses_url) as store:
        store.add("persona", CALM, "alice", revision=0)
        store.add("scenario", {**KUHN, "turn_limit": 9}, "alice", revision=0)
    with pytest.raises(ConfigError, match=r"personas: version 1 of the persona calm .*responses\.sqlite, .*alice"):
        load_known_personas(settings)
    with pytest.raises(ConfigError, match=r"poker/kuhn\.yaml: version 1 of the scenario poker/kuhn .*responses\.sqlite"):
        load_known_scenarios(settings)


def test_a_file_with_the_same_content_is_the_same_version(settings: Settings) -> None:
    write(settings, CALM)
    with GameDocumentStore(settings.responses_url) as store:
        store.add("persona", {**CALM, "status": "draft"}, "alice", revision=0)
    assert load_known_personas(settings)["calm:v1"].status == "draft"


def test_what_this_version_of_the_software_cannot_read_is_named(settings: Settings) -> None:
    with GameDocumentStore(settings.responses_url) as store:
        store.add("persona", {**CALM, "mood": "x"}, "alice", revision=0)
    with pytest.raises(ConfigError, match=r"responses\.sqlite: persona calm, version 1: mood: unknown key"):
        load_known_personas(settings)


def test_commands_see_what_was_made_over_http(settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with GameDocumentStore(settings.responses_url) as store:
        store.add("persona", {**CALM, "status": "draft"}, "alice", revision=0)
        store.add("scenario", {**KUHN, "id": "poker/fast", "adapter": "poker/kuhn"}, "alice", revision=0)
    for name, place in settings.environment().items():
        monkeypatch.setenv(name, place)
    listed = CliRunner().invoke(main, ["games", "list", "--json"])
    told = json.loads(listed.stdout)
    assert ("calm:v1", "draft") in [(one["persona"], one["status"]) for one in told["personas"]]
    assert "poker/fast" in [one["scenario"] for one in told["scenarios"]]
    file = tmp_path / "personas.jsonl"
    assert CliRunner().invoke(main, ["export", "personas", str(file)]).exit_code == 0
    assert '"id":"calm"' in file.read_text(encoding="utf-8")
    played = CliRunner().invoke(main, ["games", "play", "poker/fast", "--players", "baseline/nash,baseline/random", "--json"])
    assert played.exit_code == 0, played.output
