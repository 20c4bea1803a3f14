"""`dtef rubric check`: a line per finding, a summary, an exit code, or the same as JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dtef_pipeline.cli.commands import dtef, refused
from tests.strict_json import strict

SOUND = "title: Sound\nmodels: [QUICK]\n---\n- {id: a, prompt: b, should: [c, d]}\n"
FAULTY = "title: Faulty\nmodels: [QUICK]\nid: x\n---\n- id: a\n  prompt: b\n  should:\n  - 5\n  - $contains: 5\n  - [c]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "QUICK.json").write_text('["openai:gpt-4o-mini"]')
    (tmp_path / "blueprints" / "safety").mkdir(parents=True)
    (tmp_path / "blueprints" / "sound.yml").write_text(SOUND)
    (tmp_path / "blueprints" / "safety" / "faulty.yml").write_text(FAULTY)
    (tmp_path / "blueprints" / "notes.md").write_text("no blueprint")
    return tmp_path


def test_finding_is_a_line_with_file_line_place_level_and_code(folder: Path) -> None:
    result = dtef("rubric", "check", folder / "blueprints", "--models-dir", folder / "models")
    assert result.exit_code == 1
    file = folder / "blueprints" / "safety" / "faulty.yml"
    lines = result.stdout.splitlines()
    assert [line.split(": ", 3)[:3] for line in lines[:4]] == [
        [f"{file}:3", "header", "info ignored-id"],
        [f"{file}:8", "prompt 0 should[0]", "error bad-point"],
        [f"{file}:9", "prompt 0 should[1]", "unscorable bad-arguments"],
        [f"{file}:10", "prompt 0 should[2]", "warning single-element-path"],
    ]
    assert "put quotes around it" in lines[1]
    assert lines[4:] == [
        "",
        "2 files, 2 prompts, 4 criteria",
        "found: 1 error, 1 unscorable, 1 warning, 1 info",
        "1 file cannot be run until the errors are corrected",
    ]


def test_json_has_each_file_with_its_path_below_the_root(folder: Path) -> None:
    result = dtef("rubric", "check", folder / "blueprints", "--models-dir", folder / "models", "--json")
    assert result.exit_code == 1
    files = strict(result.stdout)["files"]
    assert [(one["path"], one["id"], one["errors"]) for one in files] == [
        ("safety/faulty.yml", "safety__faulty", ["bad-point"]),
        ("sound.yml", "sound", []),
    ]
    assert files[0]["findings"]["bad-point"] == {"level": "error", "at": ["prompt 0 should[0]"]}


def test_root_says_where_ids_begin(folder: Path) -> None:
    file = folder / "blueprints" / "safety" / "faulty.yml"
    for arguments, name in ((), "faulty"), (("--root", folder / "blueprints"), "safety__faulty"):
        result = dtef("rubric", "check", file, "--models-dir", folder / "models", "--json", *arguments)
        assert strict(result.stdout)["files"][0]["id"] == name


def test_without_a_folder_of_collections_the_remedy_is_reported(folder: Path) -> None:
    result = dtef("rubric", "check", folder / "blueprints" / "sound.yml")
    assert result.exit_code == 0
    assert "sound.yml:2: header: warning no-collections: QUICK is a collection of models" in result.stdout
    assert "--models-dir" in result.stdout


def test_what_cannot_be_checked_is_refused(folder: Path) -> None:
    assert "does not exist" in refused("rubric", "check", folder / "nowhere.yml")
    (folder / "empty").mkdir()
    assert "has no blueprints, which are files that end in" in refused("rubric", "check", folder / "empty")
    assert "is not in" in refused("rubric", "check", folder / "blueprints", "--root", folder / "models")
    (folder / "models" / "BAD.json").write_text("5")
    assert "allowed: a list" in refused("rubric", "check", folder / "blueprints", "--models-dir", folder / "models")
