"""How blueprints come in, change and leave: files whose models nobody knows, broken files, deleted and renamed ones."""

from __future__ import annotations

import json
from pathlib import Path

from resources.blueprint_files import BLUEPRINT_NOTES
from resources.warehouse import Warehouse
from tests.dtef_pipeline.cli.commands import dtef, ok, refused
from tests.dtef_pipeline.cli.test_rubric_run import blueprints as blueprints
from tests.fake_llm_server import FakeLLM

NOBODY = "title: Nobody\n---\n- {id: hello, prompt: Say hello., should: [$icontains: hello]}\n"


def test_a_file_that_names_no_models_is_added_and_its_run_has_to_name_some(blueprints: tuple[Path, FakeLLM]) -> None:
    """Such a file could not be added without a folder of collections, although --model comes later."""
    folder, server = blueprints
    (folder / "nobody.yml").write_text(NOBODY, encoding="utf-8")
    added = dtef("rubric", "add", folder / "nobody.yml")
    assert (added.exit_code, "1 blueprint added" in added.stdout) == (0, True)
    assert "these blueprints name no known models: nobody; give the folder of collections with --models-dir" in added.stderr
    for more in ([], ["--estimate"]):
        told = refused("rubric", "run", *more)
        assert "nobody names a collection of models" in told
        assert "give --model, or add it again with --models-dir" in told
    assert server.answered == 0
    assert "as candidate: 1 call," in ok("rubric", "run", "--model", "openai/cand-a", "--no-roll-ups")

    (folder / "models").mkdir()
    (folder / "models" / "CORE.json").write_text('["openai:cand-b"]', encoding="utf-8")
    assert "1 new or changed" in ok("rubric", "add", folder / "nobody.yml", "--models-dir", folder / "models")
    assert "openai/cand-b" in ok("rubric", "run", "--estimate")


def test_a_file_whose_name_comes_first_and_that_is_added_later_is_known_like_all_others(state: Path) -> None:
    """Dagster has them in the order in which they were added, the folder by their names: nothing was made of either, and nobody was told."""
    for name, there in (("b", ["b"]), ("a", ["a", "b"])):
        (state / f"{name}.yml").write_text(NOBODY, encoding="utf-8")
        ok("rubric", "add", *(state / f"{one}.yml" for one in there), "--root", state)
        rows = json.loads(ok("sql", "SELECT blueprint FROM rubric_blueprints ORDER BY 1", "--json"))
        assert [row["blueprint"] for row in rows] == there


def test_broken_files_are_a_line_each_and_good_ones_are_added(blueprints: tuple[Path, FakeLLM]) -> None:
    """All errors stood in one line of 4,000 characters."""
    folder, _ = blueprints
    files = folder / "files"
    for number in range(3):
        (files / f"bad-{number}.yml").write_text(f"title: a\ndescription: b: {number}\n", encoding="utf-8")
    (files / "two.yml").write_text(NOBODY, encoding="utf-8")
    (files / "two.json").write_text('{"prompts": [{"prompt": "Hi?"}]}', encoding="utf-8")
    added = dtef("rubric", "add", files)
    assert added.exit_code == 1
    assert "1 blueprint added, 1 new or changed" in added.stdout
    lines = [line for line in added.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 6
    assert f"error: {files}/bad-0.yml:2: yaml: mapping values are not allowed" in lines[2]
    assert sum("reserved-id: the id two also belongs to" in line for line in lines) == 2
    assert "6 files with errors were not added" in added.stderr
    assert json.loads(ok("sql", "SELECT blueprint FROM rubric_blueprints", "--json")) == [{"blueprint": "greetings"}]


def test_a_file_that_breaks_stays_as_it_was_added_and_that_is_stated(blueprints: tuple[Path, FakeLLM]) -> None:
    folder, _ = blueprints
    file = folder / "files" / "greetings.yml"
    ok("rubric", "add", file)
    before = BLUEPRINT_NOTES.read(Warehouse(folder / "warehouse"), "greetings")
    file.write_text("title: a: b", encoding="utf-8")
    told = dtef("rubric", "add", file)
    assert (told.exit_code, "0 blueprints added" in told.stdout) == (1, True)
    assert "their earlier versions stay: greetings" in told.stderr
    assert BLUEPRINT_NOTES.read(Warehouse(folder / "warehouse"), "greetings") == before


def test_a_removed_blueprint_leaves_tables_and_boards_and_comes_back_for_nothing(
    blueprints: tuple[Path, FakeLLM],
) -> None:
    """A deleted file stayed a partition, was planned, and stood on boards."""
    folder, server = blueprints
    files = folder / "files"
    (files / "more" / "broken.yml").write_text((files / "greetings.yml").read_text(encoding="utf-8"), encoding="utf-8")
    ok("rubric", "add", files)
    ok("rubric", "run", "--no-roll-ups")
    asked = server.answered

    removed = ok("rubric", "remove", "more__*")
    assert "removed more__broken: 4 responses, " in removed
    assert "stored responses stay" in removed
    assert f"adding their folder adds them again: {files}/more/broken.yml" in removed
    assert "boards and pages change with the next `dtef rubric board --refresh`" in removed
    for table in (
        "rubric_blueprints",
        "rubric_prompts",
        "rubric_responses",
        "rubric_judgements",
        "rubric_points",
        "rubric_scores",
    ):
        assert Warehouse(folder / "warehouse").values(table, "blueprint") == ["greetings"]
    ok("rubric", "board", "--refresh")
    shown = ok("rubric", "board", "--by", "blueprint", "--json")
    assert {row["blueprint"] for row in json.loads(shown)} == {"greetings"}
    assert "'more__broken' matches none; known: greetings" in refused("rubric", "remove", "more__broken")

    assert "2 blueprints added, 1 new or changed" in ok("rubric", "add", files)
    assert "1 blueprint, snapshot base" in ok("rubric", "run", "--blueprint", "more__*", "--no-roll-ups")
    assert server.answered == asked, "what was paid for is found again"


def test_files_that_are_gone_are_reported_and_a_renamed_one_is_known_again(blueprints: tuple[Path, FakeLLM]) -> None:
    folder, server = blueprints
    files = folder / "files"
    (files / "more" / "broken.yml").write_text(NOBODY, encoding="utf-8")
    ok("rubric", "add", files)
    ok("rubric", "run", "--blueprint", "greetings", "--no-roll-ups")
    asked = server.answered
    (files / "greetings.yml").rename(files / "hello.yml")
    (files / "more" / "broken.yml").unlink()
    checked = dtef("rubric", "check", files)
    assert f"warning: greetings: its file {files}/greetings.yml no longer exists; its results stay" in checked.stderr
    assert "its results stay until `dtef rubric remove more__broken`" in checked.stderr
    assert "is gone" not in dtef("rubric", "check", files / "hello.yml").stderr
    added = dtef("rubric", "add", files)
    assert added.exit_code == 0
    assert "is gone, and hello has the same content: a run of hello finds the stored responses" in added.stderr
    ok("rubric", "run", "--blueprint", "hello", "--no-roll-ups")
    assert server.answered == asked
    ok("rubric", "remove", "greetings", "more__broken")
    assert "is gone" not in dtef("rubric", "check", files).stderr
