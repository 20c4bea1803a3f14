"""Writes docs/openapi.json and the table of endpoints in docs/api.md from the application. A test fails when either is stale."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from dtef_pipeline.api.app import make_app
from dtef_pipeline.api.description import ROLE_MEMBER, operations
from dtef_pipeline.api.services import Services
from dtef_pipeline.api.tokens import Tokens
from resources.settings import Settings

DESCRIPTION = Path(__file__).with_name("openapi.json")
GUIDE = Path(__file__).with_name("api.md")
TABLE_BEGINS, TABLE_ENDS = "<!-- endpoints: written by `make docs` -->\n", "<!-- end of endpoints -->"


def described() -> dict[str, Any]:
    """The OpenAPI document of the application."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings.from_environment({"DTEF_RESPONSES": f"{folder}/responses.sqlite"})
        services = Services.opened(settings, Tokens(None))
        document: dict[str, Any] = make_app(services).openapi()
        services.close()
    return document


def as_text(document: dict[str, Any]) -> str:
    """The file of a description."""
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def endpoints(document: dict[str, Any]) -> str:
    """The table: a line per operation."""
    lines = ["| request | role | answers | what it does |", "| --- | --- | --- | --- |"]
    for method, path, operation in operations(document):
        said = operation.get("description") or operation.get("summary") or ""
        statuses = ", ".join(sorted(status for status in operation["responses"] if status[0] != "4"))
        lines.append(f"| `{method} {path}` | {operation.get(ROLE_MEMBER, '-')} | {statuses} | {_first_sentences(said)} |")
    return "\n".join(lines) + "\n"


def with_table(page: str, table: str) -> str:
    """The page with this table between its marks."""
    before, _, rest = page.partition(TABLE_BEGINS)
    return f"{before}{TABLE_BEGINS}\n{table}\n{TABLE_ENDS}{rest.partition(TABLE_ENDS)[2]}"


def _first_sentences(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


if __name__ == "__main__":
    found = described()
    DESCRIPTION.write_text(as_text(found), encoding="utf-8")
    GUIDE.write_text(with_table(GUIDE.read_text(encoding="utf-8"), endpoints(found)), encoding="utf-8")
