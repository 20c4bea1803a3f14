"""The page for authors says what the code does: its blueprints, its commands and its tables."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from dtef_pipeline.rubric.blueprint.function_names import POINT_FUNCTIONS
from dtef_pipeline.rubric.blueprint.prompt_items import IDEAL_KEYS, IMPORTANCE_KEYS, PROMPT_TEXT_KEYS, SHOULD_KEYS
from dtef_pipeline.rubric.blueprint.reading import read_blueprint
from tests.conftest import ROOT
from tests.dtef_pipeline.cli.commands import dtef
from tests.strict_json import strict

PAGE = (ROOT / "docs" / "how-to" / "write-a-blueprint.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


@pytest.mark.parametrize("text", blocks("yaml"), ids=["first", "prompts", "criteria"])
def test_blueprints_of_the_page_have_no_findings(text: str) -> None:
    read = read_blueprint(text, "a")
    assert read.findings == ()
    assert read.blueprint is not None


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


def test_table_of_functions_has_every_function_and_its_argument() -> None:
    named = set()
    for function, forms, argument, score in rows("Functions"):
        name = function.strip("`")
        prefixes = re.findall(r"`(\w+)`", forms)
        assert argument == POINT_FUNCTIONS[name].argument
        assert score
        positive = {name, f"i{name}"} if "i" in prefixes else {name}
        named |= positive | ({f"not_{one}" for one in positive} if "not_" in prefixes else set())
    assert named == set(POINT_FUNCTIONS)


def test_other_names_of_keys_are_those_of_the_code() -> None:
    other = {cells[0].strip("`"): re.findall(r"`(\w+)`", cells[2]) for cells in rows("Prompts") if len(cells) == 3}
    for first, *names in (PROMPT_TEXT_KEYS, IDEAL_KEYS, SHOULD_KEYS, IMPORTANCE_KEYS):
        assert other[first] == names
