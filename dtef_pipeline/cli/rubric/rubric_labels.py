"""Labels of rubrics: draws prompts for people to label, reads their sheets, and compares judges with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pandas as pd

from dtef_pipeline.boards.named_boards import TableLayout
from dtef_pipeline.cli.families import filter_by_patterns, require_table
from dtef_pipeline.cli.terminal import print_rows, say
from dtef_pipeline.cli.warehouse_access import open_warehouse, reads_tables
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.identity import digest
from dtef_pipeline.judging.consensus import FIVE_CLASSES
from dtef_pipeline.report.terminal import render
from dtef_pipeline.rubric.tables import RUBRIC_KNOWN_CLASSES
from dtef_pipeline.text.number_words import format_count
from resources.settings import Settings
from resources.warehouse import Warehouse

if TYPE_CHECKING:
    import duckdb

_LABEL_DRAWS, _LABEL_ITEMS, _LABELS = "rubric_label_draws", "rubric_label_items", "rubric_labels"
_SAMPLE_READS = ("rubric_responses", "rubric_criteria", "rubric_prompts", "rubric_scores", "rubric_runs", "rubric_blueprints")
_CAN_BE_LABELLED = "that judges decide on"
"""Appended to a number of prompts: a board also has prompts with only functions or an ideal answer, or without a response."""


_CLASSES_LAYOUT = TableLayout(
    tuple(RUBRIC_KNOWN_CLASSES.names), ("judge", "human_class", "n", "same_class"), ("note",), notes=""
)


def sample(
    out: Path,
    blueprints: Sequence[str],
    snapshots: Sequence[str],
    n_prompts: int,
    seed: int,
    per_model: int | None,
    show_names: bool,
) -> None:
    """Draw prompts and write a sheet. Raises ConfigError if it exists or nothing can be labelled."""
    if out.exists():
        raise ConfigError(f"{out} exists already and may be filled in; name a new file")
    if len(snapshots) > 1:
        raise ConfigError(f"--snapshot {', '.join(snapshots)}: labels need one snapshot; give --snapshot once")
    from dtef_pipeline.rubric.label_sheet import add_draw, draw_id, sample_labels, write_sheet_csv

    warehouse = open_warehouse()
    require_table(warehouse, "rubric_scores", "`dtef rubric run` makes them")
    material = warehouse.query(
        lambda connection: _load_material(connection, blueprints, next(iter(snapshots), None)), only=_SAMPLE_READS
    )
    with _lock_labels():
        items_drawn = warehouse.rows(_LABEL_ITEMS)
        # Items whose file was lost are drawn again, even if labelled.
        drawn_items = set(items_drawn["item"].to_pylist())
        labelled_items = drawn_items.intersection(warehouse.read_or_empty(_LABELS, columns=["item"])["item"].to_pylist())
        draw = sample_labels(
            **material,
            n_prompts=n_prompts,
            seed=seed,
            per_model=per_model,
            known_items=sorted(labelled_items),
            show_names=show_names,
        )
        if draw.sheet.empty:
            raise ConfigError(f"--seed {seed}: all prompts of this draw have labels; choose another seed, or more --prompts")
        name = draw_id(draw)
        before = warehouse.read_or_empty(_LABEL_DRAWS)
        draws, items = add_draw(before, items_drawn, draw, datetime.now(UTC))
        # The sheet first: a draw without a sheet would never be labelled.
        out.write_text(write_sheet_csv(draw.sheet.assign(draw=name)), encoding="utf-8", newline="")
        warehouse.write(_LABEL_ITEMS, items)
        warehouse.write(_LABEL_DRAWS, draws)
    warehouse.refresh_database()
    suffix = ", as drawn before" if len(draws) == len(before) else ""
    n_drawn, size = int(draw.draws["drawn"].sum()), len(draw.draws)
    click.echo(
        f"{out}: {format_count(len(draw.sheet), 'row')} of {n_drawn:,} of {format_count(size, 'prompt')} {_CAN_BE_LABELLED}, draw {name}{suffix}"
    )
    if n_hidden := int((draw.sheet["hidden"] > 0).sum()):
        say(
            f"names that would reveal an author are hidden in {format_count(n_hidden, 'row')}, as [model], [company] or [provider]"
        )
    classes = ", ".join(name.removeprefix("CLASS_") for name in FIVE_CLASSES.numbers)
    say(f"fill in class ({classes}) and author, reason if you like; then `dtef import labels {out}`")


def import_sheet(sheet: Path, author: str | None) -> None:
    """Store a sheet's labels. Raises SourceError for a faulty row; then none is stored."""
    from dtef_pipeline.rubric.label_sheet import (
        find_draws,
        list_named_draws,
        mark_imported,
        merge_label_rows,
        read_labels,
    )

    warehouse = open_warehouse()
    try:
        text = sheet.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{sheet} is not UTF-8; save the sheet as CSV in UTF-8") from None
    with _lock_labels():
        items = warehouse.read_or_empty(_LABEL_ITEMS, columns=["draw_id", "item"])
        if not len(items):
            raise WarehouseError(f"no draw in {warehouse.root} yet: `dtef export labels` draws prompts and writes a sheet")
        labels = read_labels(
            text,
            file=str(sheet),
            scale=FIVE_CLASSES.numbers,
            imported_at=datetime.now(UTC),
            author=author,
            items=set(items["item"].to_pylist()),
        )
        before = warehouse.read_or_empty(_LABELS)
        rows = merge_label_rows(before, labels)
        draws = warehouse.read_or_empty(_LABEL_DRAWS)
        named = list_named_draws(text, file=str(sheet)) & set(draws["draw_id"].to_pylist())
        counting = mark_imported(draws, named or find_draws(items, labels["item"].tolist()))
        if len(rows) > len(before):
            warehouse.write(_LABELS, rows)
        if counting != draws:
            warehouse.write(_LABEL_DRAWS, counting)
    warehouse.refresh_database()
    new = len(rows) - len(before)
    click.echo(
        f"{sheet}: {format_count(len(labels), 'label')}, {new:,} new or changed; {format_count(len(rows), 'label')} in all"
    )
    if new:
        say(
            "`dtef rubric board --refresh` corrects the boards by them; `with_labels: true` in the section `rubric` of the panel file "
            "uses them instead of judges"
        )


@reads_tables
def show(warehouse: Warehouse, output: str) -> None:
    labels, draws, items = (warehouse.read_or_empty(name).to_pandas() for name in (_LABELS, _LABEL_DRAWS, _LABEL_ITEMS))
    if draws.empty:
        raise WarehouseError(f"no draw in {warehouse.root} yet: `dtef export labels` draws prompts and writes a sheet")
    classes = warehouse.rows("rubric_known_classes").to_pandas()
    if len(labels) and classes.empty:
        say("the judges' agreement with these is shown after `dtef rubric board --refresh`")
    if output != "table":
        click.echo(render(classes, output))
        return
    for line in _draw_lines(draws, items, labels):
        click.echo(line)
    if len(classes):
        click.echo("\njudges against people:")
        print_rows(_CLASSES_LAYOUT, classes, "table", (), "rubric_known_classes")
    for line in _describe_needed_labels(warehouse.rows("rubric_corrected").to_pandas()):
        say(line)


def _load_material(
    connection: duckdb.DuckDBPyConnection, blueprints: Sequence[str], snapshot: str | None
) -> dict[str, pd.DataFrame]:
    from dtef_pipeline.rubric.board import list_test_blueprints
    from dtef_pipeline.rubric.label_corrections import load_board_runs, load_label_material

    if snapshot is None:
        runs = load_board_runs(connection)
    else:
        runs = connection.execute(
            "SELECT DISTINCT blueprint::VARCHAR AS blueprint, snapshot::VARCHAR AS snapshot FROM rubric_runs WHERE snapshot::VARCHAR = ?",
            [snapshot],
        ).df()
    names = runs["blueprint"].tolist()
    if not names:
        where = f" in snapshot {snapshot}" if snapshot else ""
        raise WarehouseError(f"nothing is scored{where}: `dtef rubric run` asks, judges and scores")
    mask = runs["blueprint"].isin(filter_by_patterns(names, blueprints, "--blueprint"))
    if not blueprints:
        mask &= ~runs["blueprint"].isin(list_test_blueprints(connection))
    return dict(load_label_material(connection, runs[mask]))


def _draw_lines(draws: pd.DataFrame, items: pd.DataFrame, labels: pd.DataFrame) -> Iterator[str]:
    labelled_items = set(labels["item"])
    drawn_items = items.drop_duplicates(["draw_id", "item"]).assign(has=lambda rows: rows["item"].isin(labelled_items))
    sizes, counts = drawn_items.groupby("draw_id")["has"].size(), drawn_items.groupby("draw_id")["has"].sum()
    for name, group in draws.groupby("draw_id", sort=False):
        n_items, n_has = int(sizes[name]), int(counts[name])
        state = "" if group["imported"].iloc[0] else "; not counted, because no label of it was imported"
        yield (
            f"draw {name}: {int(group['drawn'].sum()):,} of {format_count(len(group), 'prompt')} {_CAN_BE_LABELLED}, "
            f"{n_has:,} of {format_count(n_items, 'item')} labelled{state}"
        )
    for author, group in labels.groupby("author", sort=True):
        yield (
            f"{author}: {format_count(group['item'].nunique(), 'item')} labelled, {format_count(len(group), 'label')} with "
            "those that were overruled"
        )


def _describe_needed_labels(corrected: pd.DataFrame) -> Iterator[str]:
    """Yield how many labels give every model an interval of +-.03."""
    rows = corrected[corrected["blueprint"].isna()]
    counts = rows["labels_needed"].dropna()
    if len(counts):
        prompts = int(rows["prompts_needed"].max())
        yield (
            f"for +-0.03 on these prompts and every model: about {int(counts.max()):,} labels "
            f"({format_count(prompts, 'prompt')} {_CAN_BE_LABELLED})"
        )
    elif len(rows):
        yield f"how many labels are needed for +-0.03 is not known yet: {rows['reason'].iloc[0]}"


@contextmanager
def _lock_labels() -> Iterator[None]:
    """Lock draws and labels against other commands."""
    from resources.responses.claims import Claims
    from resources.responses.store import ResponseStore

    with Claims(ResponseStore(Settings.read_environment().responses_url)) as claims, claims.hold_all([digest(_LABELS)]):
        yield
