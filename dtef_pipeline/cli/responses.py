"""What `dtef responses` does: look into the response store, and move raw responses between machines. No Dagster is loaded for it."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import click
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.cli.opened_warehouse import open_warehouse
from dtef_pipeline.cli.terminal_width import terminal_fit
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import FAMILIES, TABLES
from dtef_pipeline.report.column_lines import column_lines
from dtef_pipeline.report.fitting import shown_columns
from dtef_pipeline.report.terminal import render
from dtef_pipeline.text.counted import counted
from resources.responses.files import export_responses, import_responses
from resources.responses.forgotten import ChosenResponses, chosen_keys, forget, forgotten_cost
from resources.responses.store import ResponseStore
from resources.settings import Settings

STORED = {
    "snapshot": "Pass over the prompts, by the label of `dtef run --snapshot`",
    "role": "What the model was asked as: candidate (to be evaluated), judge, analyst or embedder",
    "answers": "Responses in the store: one per request that was answered",
    "prompt_tokens": "Tokens of their prompts; - means the provider said none",
    "completion_tokens": "Tokens of the responses themselves; - means the provider said none",
    "cost_usd": "US dollars of all that have a known price; - means none has",
    "unpriced": "Responses without a known price, which are not in cost usd",
    "last_answered": "When the last of them arrived, UTC",
}
"""By name, the columns that `dtef responses show` shows."""


def _store() -> ResponseStore:
    return ResponseStore(Settings.from_environment().responses_url)


def export_file(path: Path, models: Sequence[str], snapshots: Sequence[str]) -> None:
    with _store() as store:
        if (models or snapshots) and next(store.pages(models=models, snapshots=snapshots), None) is None:
            raise ConfigError(f"{store.name} has no such responses; it has {_contents(store)}")
        written = export_responses(store, path, models=models, snapshots=snapshots)
        click.echo(f"{path}: {counted(written, 'response')} of {store.name}")


def import_file(path: Path) -> None:
    with _store() as store:
        done = import_responses(store, path)
        click.echo(f"{store.name}: {counted(done.added, 'response')} added from {path}, {done.known:,} there already")


def show(output: str, family: str | None) -> None:
    with _store() as store:
        summary = store.summary() if family is None else store.summary_of(_keys_of_family(store, family))
        size = store.database.size()
        gone = forgotten_cost(store.database)
        name = store.name
    lines = [f"{counted(pc.sum(summary['answers']).as_py() or 0, 'response')}, {size / 1e6:,.1f} MB: {name}"]
    if gone.calls and family is None:
        lines.append(f"{counted(gone.calls, 'response')} forgotten before, at a known cost of ${gone.cost_usd:,.4f}")
    _print_summary(summary, output, lines)


def _print_summary(summary: pa.Table, output: str, lines: Sequence[str] = ()) -> None:
    """The rows, then `lines` on them and what the columns mean where people read it."""
    # Whole numbers stay whole beside unknown ones.
    frame, fit = summary.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get), terminal_fit(["model", "snapshot", "role"])
    click.echo(render(frame, output, fit=fit))
    if output == "table":
        for line in lines:
            click.echo(line)
        click.echo(column_lines(shown_columns([*map(str, frame)], fit), STORED, fit.width))


def forget_responses(which: ChosenResponses, family: str | None, *, confirmed: bool) -> None:
    """List the responses that are meant; with `confirmed`, forget them."""
    if not any(which) and family is None:
        raise ConfigError(
            "forget which responses? allowed: --empty, --truncated, --model, --snapshot, --since, --before and --family"
        )
    with _store() as store:
        keys = chosen_keys(store.database, which)
        if family is not None:
            keys = sorted(_keys_of_family(store, family).intersection(keys))
        if not keys:
            click.echo(f"no such responses in {store.name}; it has {_contents(store)}")
            return
        _print_summary(store.summary_of(keys), "table")
        if not confirmed:
            click.echo(
                f"{counted(len(keys), 'response')} would be forgotten, and asked again by the next run; --yes forgets them"
            )
            return
        click.echo(
            f"{counted(forget(store.database, keys), 'response')} forgotten: the next run of the same snapshot asks them again. What they cost "
            "stays in costs"
        )


def _keys_of_family(store: ResponseStore, name: str) -> set[str]:
    """Of what the family asked: the request keys in its tables, and what was asked in its roles and stands in no other family's table."""
    family = next(one for one in FAMILIES if one.name == name)
    own = _keys_in(family.asked)
    if family.roles:
        others = _keys_in(table for other in FAMILIES if other is not family for table in other.asked)
        own |= store.keys_asked_as(family.roles) - others
    return own


def _keys_in(tables: Iterable[str]) -> set[str]:
    """The request keys that stand in those of the tables that there are."""
    warehouse = open_warehouse()
    there = [table for table in tables if table in warehouse.tables()]
    union = " UNION ".join(f"SELECT {_key_column(table)} AS key FROM {table}" for table in there)
    found = warehouse.query(lambda connection: connection.execute(union).fetchall(), only=there) if there else []
    return {key for (key,) in found}


def _key_column(table: str) -> str:
    schema = TABLES[table].schema
    return "request_key" if schema is not None and "request_key" in schema.names else "unnest(request_keys)"


def _contents(store: ResponseStore) -> str:
    rows = store.summary().to_pylist()
    return ", ".join(f"{row['model']} in {row['snapshot']}" for row in rows) or "none at all"
