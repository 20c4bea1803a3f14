"""How blueprints come in, change and leave: what is said of files whose models nobody knows."""

from __future__ import annotations

from pathlib import Path

from tests.dtef_pipeline.cli.commands import dtef, ok, refused
from tests.dtef_pipeline.cli.test_rubric_run import blueprints as blueprints
from tests.fake_llm_server import FakeLLM

NOBODY = "title: Nobody\n---\n- {id: hello, prompt: Say hello., should: [$icontains: hello]}\n"


def test_a_file_that_names_no_models_is_added_and_its_run_has_to_name_some(blueprints: tuple[Path, FakeLLM]) -> None:
    """Such a file could not be added without a folder of collections, although --model comes later."""
    folder, server = blueprints
    (folder / "nobody.yml").write_text(NOBODY, encoding="utf-8")
    assert "1 blueprint added" in ok("rubric", "add", folder / "nobody.yml")
    for command in ("run", "estimate"):
        told = refused("rubric", command)
        assert "nobody names a collection of models" in told
        assert "name models with --model, or add it again with --models-dir" in told
    assert server.answered == 0
    assert "as candidate: 1 call," in ok("rubric", "run", "--model", "openai/cand-a", "--no-roll-ups")

    (folder / "models").mkdir()
    (folder / "models" / "CORE.json").write_text('["openai:cand-b"]', encoding="utf-8")
    assert "1 new or changed" in ok("rubric", "add", folder / "nobody.yml", "--models-dir", folder / "models")
    assert "as candidate: 1 call," in ok("rubric", "run", "--no-roll-ups")


def test_a_file_whose_collections_are_empty_is_added_and_its_run_has_to_name_models(blueprints: tuple[Path, FakeLLM]) -> None:
    folder, _ = blueprints
    (folder / "models").mkdir()
    (folder / "models" / "CORE.json").write_text("[]", encoding="utf-8")
    (folder / "nobody.yml").write_text(NOBODY, encoding="utf-8")
    checked = dtef("rubric", "check", folder / "nobody.yml", "--models-dir", folder / "models")
    assert checked.exit_code == 1
    assert "error no-models-left" in checked.stdout
    added = dtef("rubric", "add", folder / "nobody.yml", "--models-dir", folder / "models")
    assert (added.exit_code, "left out" in added.stderr) == (0, False)
    assert "nobody names no model that can be asked: name models with --model" in refused("rubric", "run")
