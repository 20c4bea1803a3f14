"""The sensor `new_blueprint`: what it adds and runs, what it waits for, and what it names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.definitions import defs
from assets.rubric.blueprint_sensor import new_blueprint
from assets.stage.file_notes import list_partitions
from assets.stage.resources import Store
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.rubric.tables import RUBRIC_SPACE
from resources.notes import BLUEPRINT_NOTES
from resources.warehouse import Warehouse

GOOD = "title: A\nmodels: ['openai:one']\n---\n- prompt: Hi?\n  should: [{$contains: x}]\n"
BROKEN = "title: [unclosed\n"


class Folder:
    """The watched folder, and the sensor looking at it again and again."""

    def __init__(self, instance: dg.DagsterInstance, path: Path, house: Warehouse, patch: pytest.MonkeyPatch) -> None:
        self.instance, self.path, self.house, self.patch = instance, path, house, patch
        self.cursor: str | None = None
        self.reason = ""
        self.at = 0

    def write(self, name: str, text: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        self.at += 1
        os.utime(path, (self.at, self.at))

    def write_panel(self, rubric: str) -> None:
        panel = self.path.parent / "panel.yaml"
        panel.write_text(f"models: [baselines]\nrubric: {{{rubric}}}\n", encoding="utf-8")
        self.patch.setenv("DTEF_PANEL", str(panel))

    def look(self) -> list[dg.RunRequest]:
        context = dg.build_sensor_context(instance=self.instance, cursor=self.cursor, definitions=defs)
        result: Any = new_blueprint(context, store=Store())
        self.cursor = result.cursor
        self.reason = result.skip_reason.skip_message if result.skip_reason else ""
        return list(result.run_requests or [])


@pytest.fixture
def folder(state: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (state / "blueprints").mkdir()
    monkeypatch.setenv("DTEF_BLUEPRINTS", str(state / "blueprints"))
    with dg.DagsterInstance.ephemeral(tempdir=str(state)) as instance:
        yield Folder(instance, state / "blueprints", Warehouse(state / "warehouse"), monkeypatch)


def keys_of(request: dg.RunRequest) -> tuple[str, str]:
    return request.tags["dagster/asset_partition_range_start"], request.tags["dagster/asset_partition_range_end"]


def test_a_file_that_is_the_same_at_two_looks_is_added_and_run_once(folder: Folder) -> None:
    folder.write("compass/a.yml", GOOD)
    assert folder.look() == []
    assert "waiting until it stops changing: compass/a.yml" in folder.reason
    (request,) = folder.look()
    assert keys_of(request) == ("compass__a", "compass__a")
    assert list_partitions(folder.instance, RUBRIC_SPACE) == ["compass__a"]
    assert folder.look() == []
    assert folder.look() == []


def test_files_that_are_new_together_are_one_run(folder: Folder) -> None:
    for name in ("a.yml", "b.json", ".hidden.yml", "notes.txt"):
        folder.write(
            name, GOOD if name != "b.json" else '{"models": ["openai:one"], "prompts": [{"prompt": "Hi?", "should": ["x"]}]}'
        )
    folder.look()
    (request,) = folder.look()
    assert keys_of(request) == ("a", "b")
    assert list_partitions(folder.instance, RUBRIC_SPACE) == ["a", "b"]


def test_a_changed_file_is_run_again_under_another_key_and_a_touched_one_is_not(folder: Folder) -> None:
    """A file that was changed back had the key of its first run, so that Dagster never started it."""
    keys = set()
    for text in (GOOD, GOOD + "- prompt: And?\n  should: [y]\n", GOOD):
        folder.write("a.yml", text)
        assert folder.look() == []
        (request,) = folder.look()
        keys.add(request.run_key)
        folder.write("a.yml", text)
        assert [folder.look(), folder.look()] == [[], []]
    assert len(keys) == 3


def test_a_broken_file_is_named_at_each_look_and_holds_up_no_other(folder: Folder) -> None:
    folder.write("a.yml", BROKEN)
    folder.write("b.yml", GOOD)
    folder.look()
    (request,) = folder.look()
    assert keys_of(request) == ("b", "b")
    assert list_partitions(folder.instance, RUBRIC_SPACE) == ["b"]
    assert folder.look() == []
    assert f"cannot be run: {folder.path}/a.yml:2: yaml: " in folder.reason
    folder.write("a.yml", GOOD)
    folder.look()
    (mended,) = folder.look()
    assert keys_of(mended) == ("a", "a")


def test_of_two_files_with_one_id_the_second_is_refused(folder: Folder) -> None:
    folder.write("a.json", '{"models": ["openai:one"], "prompts": [{"prompt": "Hi?", "should": ["x"]}]}')
    folder.write("a.yml", GOOD)
    folder.look()
    assert len(folder.look()) == 1
    folder.look()
    assert "a.yml: a.json has the same id a" in folder.reason


def test_collections_in_the_folder_models_are_known_and_their_change_is_a_change(folder: Folder) -> None:
    folder.write("a.yml", GOOD.replace("'openai:one'", "SMALL"))
    folder.write("models/SMALL.json", '["openai:one"]')
    folder.look()
    assert len(folder.look()) == 1
    note = BLUEPRINT_NOTES.read(folder.house, "a")
    assert note is not None
    assert note.models_dir == str(folder.path / "models")
    folder.write("models/SMALL.json", '["openai:two"]')
    assert folder.look() == []
    assert len(folder.look()) == 1


def test_the_panel_says_by_whom_and_for_how_much(folder: Folder) -> None:
    folder.write_panel("models: [one], judges: [standard=two], max_cost_usd: 3")
    folder.write("a.yml", GOOD)
    folder.look()
    (request,) = folder.look()
    told = {name: given["config"] for name, given in request.run_config["ops"].items()}
    assert told["rubric_responses"] == {"snapshot": "base", "max_cost_usd": 3.0, "models": ["one"]}
    assert told["rubric_judgements"]["judges"] == ["standard=two"]
    dg.validate_run_config(defs.resolve_job_def("rubric_pipeline"), request.run_config)


def test_a_panel_with_a_fault_fails_the_tick_and_nothing_is_added(folder: Folder) -> None:
    folder.write_panel("draws: 0")
    folder.write("a.yml", GOOD)
    with pytest.raises(ConfigError, match=r"panel.yaml:2: rubric.draws: got 0; allowed: 1 to 1,000"):
        folder.look()
    assert list_partitions(folder.instance, RUBRIC_SPACE) == []


def test_a_file_of_unknown_models_waits_for_them(folder: Folder) -> None:
    folder.write("a.yml", GOOD.replace("'openai:one'", "SMALL"))
    folder.look()
    assert folder.look() == []
    assert "cannot be run: " in folder.reason
    assert "a.yml: its models are unknown: SMALL is a collection of models" in folder.reason
    folder.write_panel("models: [one]")
    folder.write("a.yml", GOOD.replace("'openai:one'", "SMALL"))
    folder.look()
    assert len(folder.look()) == 1


def test_without_a_folder_the_tick_says_so(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for value, words in (("", "not set"), (str(state / "gone"), "does not exist")):
        monkeypatch.setenv("DTEF_BLUEPRINTS", value)
        with dg.DagsterInstance.ephemeral() as instance:
            result = new_blueprint(dg.build_sensor_context(instance=instance, definitions=defs), store=Store())
        assert isinstance(result, dg.SkipReason)
        assert words in (result.skip_message or "")
