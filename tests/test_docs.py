"""The reference lists what there is, and links between pages lead somewhere."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from benchmarks import figures
from docs import panel
from dtef_pipeline.documents import read_document
from dtef_pipeline.drift.settings import load_drift_settings
from dtef_pipeline.families import FAMILY_BY_NAME, PANEL_KEYS
from dtef_pipeline.family.run_settings import load_panel_settings
from dtef_pipeline.preference.vote_fit import load_vote_settings
from dtef_pipeline.survey.settings import load_panel

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def reference() -> str:
    """The page that docs/reference.py writes from the code."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return str(module.reference(module.openapi()))


def test_the_reference_lists_commands_keys_of_the_panel_assets_tables_and_endpoints(reference: str) -> None:
    rows = (
        "### dtef survey board",
        "| `--by` |",
        "| `drift.control` | all others |",
        "| `qa.sample_rate` |",
        "| `predictions` | ",
        "| `segment_has_no_drift` | ",
        "### scores",
        "| `GET /api/health` | operator |",
    )
    assert [row for row in rows if row not in reference] == []


def test_the_example_of_a_panel_file_is_written_from_the_settings() -> None:
    assert panel.PANEL.read_text(encoding="utf-8") == panel.panel_file(), "stale: run `make docs`"


def test_every_key_of_the_example_can_be_used(tmp_path: Path) -> None:
    every_key = {
        section: {key.name: yaml.safe_load(key.example) for key in panel.list_keys(section)} for section in panel.SECTIONS
    }
    path = tmp_path / "panel.yaml"
    path.write_text(yaml.safe_dump(every_key.pop("") | every_key), encoding="utf-8")
    read = read_document(path, "panel file", PANEL_KEYS).mapping((), PANEL_KEYS)
    assert {*read} == {*PANEL_KEYS}
    assert load_panel(path).sample_segments == 2
    assert load_drift_settings(path).control == ["gpt-4.1-mini"]
    assert load_vote_settings(path) is not None
    for family in ("rubric", "qa", "games"):
        assert load_panel_settings(path, family, FAMILY_BY_NAME[family].settings) is not None


def test_the_documentation_site_has_every_page_and_can_be_searched(reference: str, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    shutil.copytree(ROOT / "docs", docs, ignore=shutil.ignore_patterns("__pycache__", "reference.md", "openapi.json"))
    (docs / "reference.md").write_text(reference, encoding="utf-8")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"})
    assert built.returncode == 0, built.stderr
    assert "not included in the" not in built.stderr, "mkdocs.yml lists every page"
    found = json.loads((tmp_path / "site" / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    assert any(entry["location"].startswith("explanation/drift/") for entry in found)


def test_every_figure_of_a_page_is_the_one_that_was_measured() -> None:
    results = json.loads(figures.RESULTS.read_text(encoding="utf-8"))
    quoted = [(page.name, name, text) for page in figures.pages() for name, text in figures.read_quoted_figures(page).items()]
    assert {name for _, name, _ in quoted} == set(figures.FIGURES)
    assert [(page, name) for page, name, text in quoted if text != results[name]] == [], "stale: run `make figures`"


def test_every_picture_of_a_page_was_taken_by_the_script() -> None:
    shown = {
        Path(link).name
        for page in figures.pages()
        for link in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
    }
    results = json.loads(figures.RESULTS.read_text(encoding="utf-8"))
    assert shown == set(figures.PICTURES)
    taken = [name for name in shown if name.endswith(".png")]  # `make figures` draws the other one again
    assert [name for name in taken if figures.picture_hash(name) != results[name]] == [], "stale: run `make figures`"


def test_links_between_pages_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    links = [(page, to) for page in pages for to in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))]
    assert [(page.name, to) for page, to in links if "://" not in to and not (page.parent / to).exists()] == []


def test_what_the_guide_for_adapters_imports_is_there() -> None:
    guide = (ROOT / "docs" / "how-to" / "add-a-survey.md").read_text(encoding="utf-8")
    lines = re.findall(r"^from (dtef_pipeline\.[\w.]+) import (.+)$", guide, re.MULTILINE)
    assert lines
    for module, names in lines:
        assert [name for name in names.split(", ") if not hasattr(importlib.import_module(module), name)] == []


def names_in(source: Path) -> set[str]:
    """The tests of a file: `test_name` of a function, `TestName` of a class, `TestName::test_name` of its methods."""
    names = set()
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
            names |= {f"{node.name}::{method.name}" for method in node.body if isinstance(method, ast.FunctionDef)}
    return names


def test_the_page_of_promises_names_tests_that_exist() -> None:
    page = (ROOT / "docs" / "explanation" / "promises.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+\.py)?(?:::([\w:]+))?`", page)
    absent, source = [], ""
    for file, test in named:
        source = file or source  # `::test_name` is in the file before it
        path = ROOT / "tests" / source
        if not path.is_file() or (test and test not in names_in(path)):
            absent.append((source, test))
    assert len(named) > 60
    assert absent == []
