"""`dtef responses`: inspect the response store, and move responses between machines. Loads no Dagster."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.boards.named_boards import TableLayout
from dtef_pipeline.cli.terminal import print_rows, say, whole_frame
from dtef_pipeline.cli.warehouse_access import open_warehouse
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import FAMILIES, FAMILY_BY_NAME
from dtef_pipeline.family.record import Family
from dtef_pipeline.text.number_words import format_count
from resources.responses.files import export_responses, import_responses
from resources.responses.store import (
    ResponseSelection,
    ResponseStore,
    remove_responses_by_key,
    select_response_keys,
    sum_removed_cost,
)
from resources.settings import Settings


def import_file(path: Path) -> None:
    """Add the responses of an export: all of the file, or none."""
    with _store() as store:
        result = import_responses(store, path)
        click.echo(f"{store.name}: {format_count(result.added, 'response')} added from {path}, {result.known:,} stored before")


STORED = {
    "snapshot": "Snapshot that the responses were stored in: `dtef run --snapshot`",
    "role": "Role of the model: candidate (to be evaluated), judge, analyst or embedder",
    "responses": "Responses in the store: one per request that was answered",
    "prompt_tokens": "Tokens of their prompts; - means not reported",
    "completion_tokens": "Tokens of the responses; - means not reported",
    "cost_usd": "US dollars of responses with a known price; - means none has one",
    "unpriced": "Responses without a known price, which are not in cost usd",
    "last_answered": "Time when the last response arrived, UTC",
}
"""Columns of `dtef responses`, by name."""


def _store() -> ResponseStore:
    return ResponseStore(Settings.read_environment().responses_url)


def export_file(path: Path, models: Sequence[str], snapshots: Sequence[str]) -> None:
    with _store() as store:
        if (models or snapshots) and next(store.pages(models=models, snapshots=snapshots), None) is None:
            raise ConfigError(f"{store.name} has no responses that match; it has {_describe_contents(store)}")
        count = export_responses(store, path, models=models, snapshots=snapshots)
        click.echo(f"{path}: {format_count(count, 'response')} of {store.name}")


def show(selection: ResponseSelection, family: str | None, output: str) -> None:
    with _store() as store:
        keys = _choose_keys(store, selection, family)
        if keys is not None and not keys and output == "table":
            click.echo(f"no such responses in {store.name}; it has {_describe_contents(store)}")
            return
        summary = store.summary(keys)
        size = store.database.size()
        removal = sum_removed_cost(store.database)
        name = store.name
    lines = [f"{format_count(pc.sum(summary['responses']).as_py() or 0, 'response')}, {size / 1e6:,.1f} MB: {name}"]
    if removal.calls and keys is None:
        lines.append(f"{format_count(removal.calls, 'response')} removed before, at a known cost of ${removal.cost_usd:,.4f}")
    _print_summary(summary, output, lines)


def _choose_keys(store: ResponseStore, selection: ResponseSelection, family: str | None) -> Collection[str] | None:
    """Return the keys of the selected responses, or None for all."""
    family_keys = None if family is None else _collect_family_keys(store, family)
    if not any(selection):
        return family_keys
    keys = select_response_keys(store.database, selection)
    return keys if family_keys is None else sorted(family_keys.intersection(keys))


def _print_summary(summary: pa.Table, output: str, lines: Sequence[str] = ()) -> None:
    layout = TableLayout(always_shown=("model", "snapshot", "role"))
    print_rows(layout, whole_frame(summary), output, lines, "responses")


def remove_responses(selection: ResponseSelection, family: str | None, output: str) -> None:
    """List the selected responses, and remove them."""
    with _store() as store:
        keys = _choose_keys(store, selection, family)
        if keys is None:
            raise ConfigError(
                "--forget needs a selection: --empty, --truncated, --model, --snapshot, --since, --before or --family"
            )
        if not keys:
            click.echo(f"no such responses in {store.name}; it has {_describe_contents(store)}", err=output != "table")
            return
        _print_summary(store.summary(keys), output)
        say(
            f"{format_count(remove_responses_by_key(store.database, keys), 'response')} removed; the next run of the same "
            "snapshot requests them again. Their cost stays in `dtef costs`.",
            err=output != "table",
        )


def _collect_family_keys(store: ResponseStore, name: str) -> set[str]:
    """Return the request keys in the family's tables, and those sent in its roles that are in no other family's tables."""
    family = FAMILY_BY_NAME[name]
    keys = _read_table_keys(family)
    if family.roles:
        foreign_keys = set[str]().union(*(_read_table_keys(record) for record in FAMILIES if record is not family))
        keys |= store.list_keys_of_roles(family.roles) - foreign_keys
    return keys


def _read_table_keys(family: Family) -> set[str]:
    warehouse = open_warehouse()
    calls = {call.table: call for call in family.calls.tables}
    tables = warehouse.tables(calls)
    keys = {table: "request_key" if calls[table].keys == "request_key" else f"unnest({calls[table].keys})" for table in tables}
    union = " UNION ".join(f"SELECT {keys[table]} AS key FROM {table} WHERE {calls[table].only}" for table in tables)
    rows = warehouse.query(lambda connection: connection.execute(union).fetchall(), only=tables) if tables else []
    return {key for (key,) in rows}


def _describe_contents(store: ResponseStore) -> str:
    rows = store.summary().to_pylist()
    return ", ".join(f"{row['model']} in {row['snapshot']}" for row in rows) or "none at all"
