"""`dtef responses`: inspect the response store, and move responses between machines. Loads no Dagster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.request import Response
from dtef_pipeline.asking.snapshot_label import require_safe
from dtef_pipeline.cli.qa.qa_run import chosen_parts
from dtef_pipeline.cli.terminal import print_table, say, whole_frame
from dtef_pipeline.cli.warehouse_access import list_stored_keys, open_warehouse
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import FAMILIES, FAMILY_BY_NAME
from dtef_pipeline.family.record import Family
from dtef_pipeline.qa.answering import filter_with_messages
from dtef_pipeline.qa.item_files.answer_import import (
    ImportedFile,
    ImportRules,
    build_imported_responses,
    read_imported,
    read_numbers,
)
from dtef_pipeline.qa.prompt_rows import AskSettings, build_part_prompts
from dtef_pipeline.qa.tables import QA_SPACE
from dtef_pipeline.qa.transcripts.remote import NOT_LOOKED_UP
from dtef_pipeline.report.terminal import render
from dtef_pipeline.text.name_matching import list_nearest
from dtef_pipeline.text.quantity_words import format_count, list_first_names
from resources.evaluations.run_manifests import describe_this_run
from resources.responses.files import export_responses, import_responses
from resources.responses.response_removal import (
    ResponseSelection,
    remove_responses_by_key,
    select_response_keys,
    sum_removed_cost,
)
from resources.responses.store import ResponseStore
from resources.settings import Settings
from resources.warehouse import Warehouse

_ANSWERERS_NAMED = 8


def import_file(path: Path, suite: str | None, **how: Any) -> None:
    """Add the responses of an export, or answers to the questions of a suite: all of the file, or none."""
    if suite is not None:
        _import_answers(path, suite, **how)
        return
    with _store() as store:
        result = import_responses(store, path)
        click.echo(f"{store.name}: {format_count(result.added, 'response')} added from {path}, {result.known:,} stored before")


def _import_answers(
    path: Path,
    suite: str,
    *,
    parts: Sequence[str],
    condition: str | None,
    snapshot: str | None,
    model: str | None,
    key: str | None,
    items: Path | None,
    repeats_are_draws: bool,
    skip_unknown: bool,
) -> None:
    """Add all answers of a file, or none, and print a summary."""
    rules = ImportRules(key, model, read_numbers(items) if items else None, repeats_are_draws, skip_unknown)
    snapshot = require_safe(snapshot or "base")
    warehouse = open_warehouse()
    known_suites = list(dict.fromkeys(QA_SPACE.split(key)[0] for key in list_stored_keys(warehouse, FAMILY_BY_NAME["qa"])))
    if known_suites and suite not in known_suites:
        raise ConfigError(f"--suite {suite!r}: no questions of it were added; known: {list_nearest(suite, known_suites)}")
    keys = chosen_parts(warehouse, [suite], parts)
    ways = {key: _resolve_how(warehouse, key, condition) for key in keys}
    rows = {key: warehouse.rows("qa_items", **QA_SPACE.levels(key)) for key in keys}
    ids = {item: key for key in keys for item in rows[key]["item_id"].to_pylist()}
    texts = dict(
        pair for key in keys for pair in zip(rows[key]["item_id"].to_pylist(), rows[key]["text"].to_pylist(), strict=True)
    )
    file = read_imported(path, suite, list(ids), rules, texts)
    used_keys = {ids[answer.item_id] for answer in file.answers}
    prompts: dict[str, str] = {}
    for key in (key for key in keys if key in used_keys):
        prompt_rows = filter_with_messages(_build_prompts(warehouse, ways[key], key, rows[key]))
        prompts |= dict(zip(prompt_rows["item_id"].to_pylist(), prompt_rows["prompt_id"].to_pylist(), strict=True))
    if waiting := {answer.item_id for answer in file.answers} - set(prompts):
        raise ConfigError(
            f"{format_count(len(waiting), 'question')} of {path} have no prompt, the first {min(waiting)}: {NOT_LOOKED_UP}"
        )
    batch = build_imported_responses(file.answers, prompts, snapshot, datetime.now(UTC))
    with ResponseStore(Settings.read_environment().responses_url, describe_this_run) as store:
        n_conflicts = _count_conflicting(store, batch.responses)
        n_added = store.add(batch.responses)
        n_present = len(batch.responses) - n_added
        click.echo(f"{store.name}: {format_count(n_added, 'response')} added from {path}, {n_present:,} stored before")
    for line in (
        *_describe_left_out_answers(file, batch.n_conflicting, n_conflicts),
        *_describe_models(batch.responses, suite),
    ):
        say(line, err=line.startswith("warning"))


def _resolve_how(warehouse: Warehouse, key: str, condition: str | None) -> AskSettings:
    """Return how a part's items are presented. Raises ConfigError for a condition that does not apply to them."""
    how = AskSettings() if condition is None else AskSettings.parse_spelling(condition)
    at = QA_SPACE.levels(key)
    types = warehouse.rows("qa_items", columns=["type"], **at)["type"].unique().to_pylist()
    usual = how.condition(types, about_documents=bool(len(warehouse.rows("qa_documents", columns=["doc_id"], **at))))
    if condition not in (None, usual):
        raise ConfigError(f"{key} is not asked under the condition {condition!r}, but for example under {usual!r}")
    return how


def _build_prompts(warehouse: Warehouse, how: AskSettings, key: str, rows: pa.Table) -> pa.Table:
    """Return the rows of `qa_prompts` for these rows of `qa_items`. Stored prompts are ignored, since they may be of other items.

    Prompts that wait for a server's look-up have no messages.
    """
    from assets.qa.lookups import LookUpCache
    from assets.qa.vectors import VectorCache

    at = QA_SPACE.levels(key)
    examples, documents = (warehouse.rows(name, **at) for name in ("qa_examples", "qa_documents"))
    vectors, look_ups = VectorCache(warehouse, key), LookUpCache(warehouse, key)
    return build_part_prompts(
        rows, examples, documents, how, vectors, partial(look_ups.list_expected, Settings.read_environment())
    ).qa_prompts


def _count_conflicting(store: ResponseStore, responses: Sequence[Response]) -> int:
    """Return how many responses are stored with another text, which stays."""
    texts: Mapping[str, str] = {response.request_key: response.text for response in responses}
    rows = store.responses(list(texts))
    pairs = zip(rows["request_key"].to_pylist(), rows["text"].to_pylist(), strict=True)
    return sum(texts[key] != text for key, text in pairs)


def _describe_left_out_answers(file: ImportedFile, n_outvoted: int, n_conflicts: int) -> Iterator[str]:
    if file.skipped:
        yield f"warning: {format_count(file.skipped, 'line')} skipped, because their questions were not added"
    if file.n_foreign_prompts:
        skipped_text = f"{format_count(file.n_foreign_prompts, 'line')} name a prompt that words the question differently"
        yield f"warning: {skipped_text}; the text of the question is used, also before an answer that completes a program"
    if n_outvoted:
        yield (
            f"warning: {format_count(n_outvoted, 'answer')} left out: another question has the same text, and "
            "its answer, which comes first, is kept"
        )
    if n_conflicts:
        yield f"warning: {n_conflicts:,} of the responses stored before had another text, which stays; --snapshot LABEL keeps both"


def _describe_models(responses: Sequence[Response], suite: str) -> Iterator[str]:
    """Yield the number of answers per model, and the next step."""
    counts = Counter(response.model for response in responses)
    draws = 1 + max((response.draw for response in responses), default=0)
    if counts:
        yield list_first_names([f"{model} ({number:,})" for model, number in counts.items()], _ANSWERERS_NAMED)
        more = f" --draws {draws}" if draws > 1 else ""
        yield f"`dtef qa run --suite {suite} --model {next(iter(counts))}{more}` scores them"


STORED = {
    "snapshot": "Snapshot: the label of `dtef run --snapshot`",
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


def show(which: ResponseSelection, family: str | None, output: str) -> None:
    with _store() as store:
        keys = _choose_keys(store, which, family)
        if keys is not None and not keys and output == "table":
            click.echo(f"no such responses in {store.name}; it has {_describe_contents(store)}")
            return
        summary = store.summary() if keys is None else store.summarize_keys(keys)
        size = store.database.size()
        removal = sum_removed_cost(store.database)
        name = store.name
    lines = [f"{format_count(pc.sum(summary['responses']).as_py() or 0, 'response')}, {size / 1e6:,.1f} MB: {name}"]
    if removal.calls and keys is None:
        lines.append(f"{format_count(removal.calls, 'response')} removed before, at a known cost of ${removal.cost_usd:,.4f}")
    _print_summary(summary, output, lines)


def _choose_keys(store: ResponseStore, which: ResponseSelection, family: str | None) -> Collection[str] | None:
    """Return the keys of the selected responses, or None for all."""
    of_family = None if family is None else _collect_family_keys(store, family)
    if not any(which):
        return of_family
    keys = select_response_keys(store.database, which)
    return keys if of_family is None else sorted(of_family.intersection(keys))


def _print_summary(summary: pa.Table, output: str, lines: Sequence[str] = ()) -> None:
    """Print the rows; for people also `lines` and a reference to the columns' meaning."""
    frame = whole_frame(summary)
    if output == "table":
        print_table(frame, "responses", kept=["model", "snapshot", "role"], lines=lines)
    else:
        click.echo(render(frame, output))


def remove_responses(which: ResponseSelection, family: str | None, output: str) -> None:
    """List the selected responses, and remove them."""
    with _store() as store:
        keys = _choose_keys(store, which, family)
        if keys is None:
            raise ConfigError(
                "--forget needs a selection: --empty, --truncated, --model, --snapshot, --since, --before or --family"
            )
        if not keys:
            click.echo(f"no such responses in {store.name}; it has {_describe_contents(store)}", err=output != "table")
            return
        _print_summary(store.summarize_keys(keys), output)
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
    keys = {call.table: "request_key" if call.keys == "request_key" else f"unnest({call.keys})" for call in family.calls.tables}
    tables = warehouse.tables(keys)
    union = " UNION ".join(f"SELECT {keys[table]} AS key FROM {table}" for table in tables)
    rows = warehouse.query(lambda connection: connection.execute(union).fetchall(), only=tables) if tables else []
    return {key for (key,) in rows}


def _describe_contents(store: ResponseStore) -> str:
    rows = store.summary().to_pylist()
    return ", ".join(f"{row['model']} in {row['snapshot']}" for row in rows) or "none at all"
