"""Writes docs/reference.md and docs/openapi.json from the code: commands, keys of the panel file, assets, checks, tables, HTTP endpoints.

Neither file is committed."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import dagster as dg
import pyarrow as pa

from assets.definitions import defs
from docs.panel import reference_tables
from dtef_pipeline.api.app import make_app, operations, read_role
from dtef_pipeline.api.services import Services
from dtef_pipeline.api.tokens import Tokens
from dtef_pipeline.asking.call_plan import PLANNED
from dtef_pipeline.cli import main
from dtef_pipeline.cli.families import family_record
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.survey.boards.schemas import BOARD_COLUMNS, CONSISTENCY, MEANINGS, METRIC_RANKS
from dtef_pipeline.tables import description
from resources.settings import Settings
from resources.warehouse import TABLES

PAGE = Path(__file__).with_name("reference.md")
OPENAPI = Path(__file__).with_name("openapi.json")


def openapi() -> dict[str, Any]:
    """The OpenAPI document of the application."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings.read_environment({"DTEF_RESPONSES": f"{folder}/responses.sqlite"})
        services = Services.open_services(settings, Tokens(None))
        document: dict[str, Any] = make_app(services).openapi()
        services.close()
    return document


def reference(api: dict[str, Any]) -> str:
    """The page in Markdown. `api`: the OpenAPI document."""
    return "\n".join(
        [
            "# Reference",
            "",
            "`make docs` writes this page from the code.",
            "",
            "## Commands",
            "",
            *_commands(),
            "",
            "## The panel file",
            "",
            *reference_tables(),
            "",
            "## Assets",
            "",
            *_assets(),
            "",
            "## Asset checks",
            "",
            *_checks(),
            "",
            "## Tables",
            "",
            *_tables(),
            *_boards(),
            "",
            "## HTTP endpoints",
            "",
            *_endpoints(api),
            "",
        ]
    )


def choices(option: click.Option) -> str:
    """What the option may be, where that is a list."""
    metavar = option.metavar or ""
    # NAME|FILE stands for what the user fills in.
    listed = option.type.choices if isinstance(option.type, click.Choice) else [] if metavar.isupper() else metavar.split("|")
    return f" One of {', '.join(f'`{choice}`' for choice in listed)}." if len(listed) > 1 else ""


def _commands() -> list[str]:
    lines = []
    for name, command in sorted(_named_commands(main)):
        lines += [f"### dtef {name}", "", _first_paragraph(command.help or ""), ""]
        options = [o for o in command.params if isinstance(o, click.Option) and o.help]
        if options:
            lines += [
                "| option | meaning |",
                "| --- | --- |",
                *(f"| `{o.opts[0]}` | {o.help}{choices(o)} |" for o in options),
                "",
            ]
        family, _, verb = name.partition(" ")
        if verb == "run" and family == "survey":
            lines += ["| column of --estimate | meaning |", "| --- | --- |"]
            lines += [*(f"| {shown} | {text} |" for shown, text in PLANNED.items()), ""]
        if verb == "board" and family in FAMILY_BY_NAME and (boards := family_record(family).boards):
            lines += ["| `--by` | shows | table |", "| --- | --- | --- |"]
            lines += [
                *(f"| `{board.name}` | {board.shows} | {f'`{board.table}`' if board.table else '-'} |" for board in boards),
                "",
            ]
    return lines


def _named_commands(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        yield before + name, command
        if isinstance(command, click.Group):
            yield from _named_commands(command, f"{before}{name} ")


def _assets() -> list[str]:
    lines = ["| asset | group | after | what a row or file is |", "| --- | --- | --- | --- |"]
    graph = defs.resolve_asset_graph()
    for key in graph.toposorted_asset_keys:
        node = graph.get(key)
        parents = ", ".join(sorted(parent.to_user_string() for parent in node.parent_keys)) or "-"
        lines.append(
            f"| `{key.to_user_string()}` | {node.group_name} | {parents} | {_first_paragraph(node.description or '')} |"
        )
    return lines


def _checks() -> list[str]:
    lines = ["| check | of | blocks | what it says |", "| --- | --- | --- | --- |"]
    graph = defs.resolve_asset_graph()
    for key in sorted(graph.asset_check_keys, key=lambda key: (graph.toposorted_asset_keys.index(key.asset_key), key.name)):
        node: dg.AssetCheckSpec = graph.get_check_spec(key)
        blocks = "yes" if node.blocking else "no"
        lines.append(
            f"| `{key.name}` | {key.asset_key.to_user_string()} | {blocks} | {_first_paragraph(node.description or '')} |"
        )
    return lines


def _tables() -> list[str]:
    lines = []
    for name, spec in TABLES.items():
        if spec.schema is not None:
            lines += [f"### {name}", "", _files(spec.levels), ""]
            lines += ["| column | type | meaning |", "| --- | --- | --- |"]
            lines += [f"| `{field.name}` | {_type(field.type)} | {description(field)} |" for field in spec.schema] + [""]
    return lines


def _boards() -> list[str]:
    """The tables whose columns depend on what was computed; those of equal columns together."""
    lines = []
    for columns in (BOARD_COLUMNS, CONSISTENCY, METRIC_RANKS):
        tables = [name for name, described in MEANINGS.items() if described is columns]
        lines += [f"### {', '.join(tables)}", "", "One file each." if len(tables) > 1 else _files(()), ""]
        if columns is BOARD_COLUMNS:
            lines += [
                "Each breakdown has the columns of what it is by besides those of `leaderboard`; ranges of ranks are of `leaderboard` alone.",
                "",
            ]
        lines += ["| column | meaning |", "| --- | --- |", *(f"| `{name}` | {text} |" for name, text in columns.items()), ""]
    return lines


def _endpoints(api: dict[str, Any]) -> list[str]:
    lines = ["| request | role | answers | what it does |", "| --- | --- | --- | --- |"]
    for method, path, operation in operations(api):
        meaning = _first_paragraph(operation.get("description") or operation.get("summary") or "").replace("|", "\\|")
        statuses = ", ".join(sorted(status for status in operation["responses"] if status[0] != "4"))
        lines.append(f"| `{method} {path}` | {read_role(operation) or '-'} | {statuses} | {meaning} |")
    return lines


def _files(levels: Sequence[str]) -> str:
    if not levels:
        return "One file."
    return f"One file per {', '.join(levels[:-1])} and {levels[-1]}." if len(levels) > 1 else f"One file per {levels[0]}."


def _type(of: pa.DataType) -> str:
    return str(of).replace("item: ", "")


def _first_paragraph(text: str) -> str:
    return " ".join(text.replace("\b", "").split("\n\n")[0].split())


if __name__ == "__main__":
    document = openapi()
    OPENAPI.write_text(json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(reference(document), encoding="utf-8")
