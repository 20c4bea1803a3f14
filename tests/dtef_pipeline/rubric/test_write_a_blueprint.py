"""The page for authors says what the code does: its blueprints, its commands and its tables."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.dtef_pipeline.cli.commands import dtef
from tests.strict_json import strict

PAGE = (ROOT / "docs" / "how-to" / "write-a-blueprint.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_commands_of_the_page_do_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("blueprints", "models"):
        (tmp_path / folder).mkdir()
    (tmp_path / "blueprints" / "travel.yml").write_text(blocks("yaml")[0])
    (tmp_path / "models" / "QUICK.json").write_text(blocks("json")[0])
    monkeypatch.chdir(tmp_path)
    commands = [shlex.split(line)[1:] for block in blocks("sh") for line in block.splitlines()]
    first, *others = [dtef(*command) for command in commands]
    assert [first.exit_code, *(other.exit_code for other in others)] == [0, 0, 0]
    assert first.stdout == blocks("text")[0]
    assert strict(others[-1].stdout)["files"][0]["criteria"] == 6
    quick = blocks("yaml")[0].replace("[openai:gpt-4o-mini]", "[QUICK]")
    (tmp_path / "blueprints" / "travel.yml").write_text(quick)
    assert strict(dtef(*commands[-1]).stdout)["files"][0]["models"] == 2
