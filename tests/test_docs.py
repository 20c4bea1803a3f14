"""The reference lists what there is, and links between pages lead somewhere."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_reference_lists_commands_assets_tables_and_endpoints() -> None:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = module.reference(module.openapi())
    rows = (
        "### dtef survey board",
        "| `--by` |",
        "| `predictions` | ",
        "| `no_drift` | ",
        "### scores",
        "| `GET /api/health` | operator |",
    )
    assert [row for row in rows if row not in page] == []


def test_links_between_pages_lead_somewhere() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    links = [(page, to) for page in pages for to in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))]
    assert [(page.name, to) for page, to in links if "://" not in to and not (page.parent / to).exists()] == []


def test_no_text_says_to_install_the_project_by_its_name() -> None:
    """It is on no package index: `pip install dtef-pipeline[local]` found nothing."""
    folders = ("docs", "deploy", "dtef_pipeline", "resources", "assets", "data")
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "Makefile"]
    files += [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in {".md", ".py", ".yaml"}]
    wrong = re.compile(r"pip install ['\"]?dtef-pipeline\b")
    assert [str(path) for path in files if wrong.search(path.read_text(encoding="utf-8"))] == []
