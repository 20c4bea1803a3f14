"""The files that README and docs show can be read by what reads such files."""

from __future__ import annotations

import json
import re
import textwrap
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from dtef_pipeline.asking.models import load_models
from dtef_pipeline.families import COMPUTED_MODELS, FAMILY_BY_NAME
from dtef_pipeline.family.run_settings import load_panel_settings
from dtef_pipeline.games.personas import read_persona_versions
from dtef_pipeline.preference.vote_fit import load_vote_settings
from dtef_pipeline.qa.suites import load_suites
from dtef_pipeline.rubric.blueprint.reading import read_blueprint
from tests.conftest import ROOT
from tests.dtef_pipeline.cli.commands import ok

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(language: str) -> list[tuple[str, str]]:
    """Page and text of each block in this language."""
    fenced = re.compile(rf"^ *```{language}\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
    return [(page.stem, textwrap.dedent(text)) for page in PAGES for text in fenced.findall(page.read_text(encoding="utf-8"))]


def require_run_config(path: Path) -> object:
    """The configuration of a run that has these steps."""
    import dagster as dg

    from assets.definitions import defs

    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    job = "qa_pipeline" if "qa_responses" in config["ops"] else "survey_pipeline"
    return dg.validate_run_config(defs.resolve_job_def(job), config)


def require_blueprint(path: Path) -> object:
    read = read_blueprint(path.read_text(encoding="utf-8"), path.stem)
    assert read.findings == ()
    return read.blueprint


READERS: dict[str, Callable[[Path], object]] = {
    r"^---$": require_blueprint,
    r"^ops:": require_run_config,
    r"^suites:": load_suites,
    r"^system_prompt:": lambda path: read_persona_versions(path.parent),
    r"^preference:": load_vote_settings,
    **{
        rf"^{family}:": lambda path, family=family: load_panel_settings(path, family, FAMILY_BY_NAME[family].settings)  # type: ignore[misc]
        for family in ("rubric", "qa", "games")
    },
    r"^(models|collections):": lambda path: load_models(ROOT / "data" / "models.yaml", path, computed=COMPUTED_MODELS),
}
"""By a line that only such a file has: its reader, which raises for a fault. The first that fits reads the file."""


@pytest.mark.parametrize(("page", "text"), blocks("yaml"))
def test_a_file_in_yaml_can_be_read(page: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(text, encoding="utf-8")
    read = next(reader for line, reader in READERS.items() if re.search(line, text, re.MULTILINE))
    assert read(path), page


def test_files_in_json_and_toml_can_be_read() -> None:
    assert len([json.loads(text) for _, text in blocks("json")]) >= 3
    assert len([tomllib.loads(text) for _, text in blocks("toml")]) >= 2


def test_the_table_of_the_page_on_surveys_is_added_as_the_page_shows(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ((_, text),) = blocks("csv")
    (shown,) = (text for page, text in blocks("text") if page == "add-a-survey")
    monkeypatch.chdir(state)
    rows = text.splitlines()[1:]
    brazil = [row.replace("Kenya", "Brazil") for row in rows]
    Path("wave1.csv").write_text("\n".join([text.splitlines()[0], *rows, *brazil]) + "\n", encoding="utf-8")
    command, *lines = shown.splitlines()
    printed = ok(*command.removeprefix("$ dtef ").split())
    without_time = re.compile(r" \(\d+\.\d s\)$")
    assert {without_time.sub("", line) for line in lines} <= {without_time.sub("", line) for line in printed.splitlines()}
