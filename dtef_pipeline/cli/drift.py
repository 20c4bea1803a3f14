"""`dtef drift`: whether models respond differently than before, for every family."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import click
import pandas as pd
import pyarrow as pa

from assets.stage.family_drift import list_family_judges, list_family_scored_models, panel_drift
from assets.survey.rounds import add_question_texts
from dtef_pipeline.asking.snapshot_order import snapshot_order
from dtef_pipeline.boards.named_boards import TableLayout
from dtef_pipeline.cli.families import CommandFamily, family_record, require_rolled_up
from dtef_pipeline.cli.options import USUAL_FAMILY
from dtef_pipeline.cli.read import list_scored_rounds
from dtef_pipeline.cli.terminal import COLUMNS_LINE, compute_terminal_fit, print_rows, say
from dtef_pipeline.cli.warehouse_access import NothingToShowError, query_rounds, reads_tables
from dtef_pipeline.drift.judge_verdicts import judge_drift
from dtef_pipeline.drift.models import compute_model_drift, drift_checks, list_needed_columns
from dtef_pipeline.drift.rule import MIN_HOURS, TOO_CLOSE
from dtef_pipeline.drift.settings import WatchOptions
from dtef_pipeline.drift.subject import Row, Subject
from dtef_pipeline.drift.verdict_text import (
    describe_too_early,
    format_series,
    is_at_least,
    list_moved_judges,
    sort_key_of_verdict,
)
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.report.drift_terminal import format_drift
from dtef_pipeline.report.terminal import render
from dtef_pipeline.survey.answer_scales.batteries import load_question_clusters
from dtef_pipeline.text.number_words import list_first_names
from resources.gateway.progress import waiting
from resources.settings import Settings
from resources.warehouse import Warehouse

NOTHING_COMPARED = 5
"""Exit code of `dtef drift --fail-on` if there is no series, or none could be compared."""
TOO_EARLY = 4
"""Exit code of `dtef drift --fail-on drift` if no series drifted and one has too few snapshots to tell."""
SERIES_NAMED = 10
"""Maximum number of series without a verdict that are listed by name."""
_RULE_LAYOUT = TableLayout(
    (
        *("partition", "model", "setting", "flagged", "is_largest_gap", "gap", "lowest", "lowest_snapshot"),
        *("highest", "highest_snapshot", "n_snapshots", "n_items"),
    ),
    ("partition", "model", "flagged", "gap"),
    ("n_items", "n_snapshots", "setting", "lowest", "highest"),
    name_columns=("partition", "model"),
)
"""The board of the documented drift rule, per partition."""
_ASK_AGAIN = (
    "Drift needs a second snapshot: repeat the same `{}` on another day, with that date as --snapshot (such as 2026-01-31). "
    "Only responses at temperature 0 are compared (--model NAME@temperature=0)."
)
_WAIT = (
    "The snapshots are less than {:.0f} hours apart, but drift compares days: repeat the run tomorrow, with another --snapshot."
)


def drift(name: str, rounds: Sequence[str], by: str, since: Sequence[str], fail_on: str | None, output: str) -> int:
    """Print drift, and return the exit code (see `exit_code`). `rounds`: of surveys; `by`: model or a level of the family."""
    family = family_record(name)
    space = family.record.space
    choices = ("model", space.first, space.second) if name == USUAL_FAMILY else ("model", space.last)
    if by not in choices:
        raise ConfigError(f"--by {by} does not work with --family {name}; choose from {', '.join(choices)}")
    if by == "model" or name == USUAL_FAMILY:
        return _show_verdicts(family, rounds, by, since, fail_on, output)
    if flag := "--fail-on" if fail_on else "--since" if since else "":
        raise ConfigError(f"{flag} works with --by model only, since one {by} may have too few items")
    _show_rule(family, output)
    return 0


@reads_tables
def _show_rule(warehouse: Warehouse, family: CommandFamily, output: str) -> None:
    """Print the documented rule's results, the largest gap first."""
    require_rolled_up(warehouse, family.name, "drift_rule", family.record.scores_table)
    frame: pd.DataFrame = warehouse.rows("drift_rule", family=family.name).to_pandas()
    if not len(frame):
        raise NothingToShowError("nothing to show: drift needs scores at temperature 0, and there are none")
    order = ["gap", "partition", "model"]
    frame = frame.sort_values(order, ascending=[False, True, True], na_position="last", kind="stable")
    if output == "table":
        frame = frame.assign(note=frame["reason"].where(frame["gap"].isna(), ""))
    print_rows(_RULE_LAYOUT, frame, output, (), "drift_rule")


@reads_tables
def _show_verdicts(
    warehouse: Warehouse,
    family: CommandFamily,
    rounds: Sequence[str],
    by: str,
    since: Sequence[str],
    fail_on: str | None,
    output: str,
) -> int:
    """Print the verdicts, or return NOTHING_COMPARED if `fail_on` is given without a series."""
    subject, options = family.subject, _drift_options(warehouse, family, since)
    try:
        scored_rounds = list_scored_rounds(warehouse, rounds) if rounds or by != "model" else ()
    except ConfigError as error:
        return _handle_no_series(str(error), fail_on)
    judgements = warehouse.rows("anchors", family=subject.family)
    if by == "model":
        checks = _model_checks(warehouse, subject, rounds, judgements, options)
    else:
        checks = _round_checks(warehouse, subject, rounds or scored_rounds, by, options)
    # Only the table of models has a row for a model without a counted snapshot.
    is_late = by == "model" and bool(options.since) and checks["latest_snapshot"].null_count == len(checks)
    if not len(checks) or is_late:
        return _handle_no_series(_explain_no_series(warehouse, family, options), fail_on)
    code = _print_verdicts(checks, family, fail_on, output)
    if output == "table" and by == "model":
        rows = checks.to_pylist()
        notes = [f"{format_series(row, subject.keys)}: {row['judges_note']}" for row in rows if row["judges_note"]]
        moved = list_moved_judges(judge_drift(subject, judgements, options).to_pylist()) if subject.anchors else ()
        for line in (*notes, *moved, *family.drift_lines(warehouse)):
            say(line)
    return code


def _explain_no_series(warehouse: Warehouse, family: CommandFamily, options: WatchOptions) -> str:
    if warehouse.skipped:
        return "no score of a language model in the files that can be read"
    if options.since:
        return f"no snapshot of a language model since {' or '.join(sorted(set(options.since.values())))}"
    return family.no_series_reason


def _model_checks(
    warehouse: Warehouse, subject: Subject, rounds: Sequence[str], judgements: pa.Table, options: WatchOptions
) -> pa.Table:
    with waiting("comparing snapshots"):
        result = query_rounds(
            warehouse, lambda connection: compute_model_drift(connection, subject, options, only=rounds), subject.reads, rounds
        )
        return result.subtract_judge_shifts(subject, judgements, options).checks.drop_columns(["family"])


def _round_checks(warehouse: Warehouse, subject: Subject, rounds: Sequence[str], by: str, options: WatchOptions) -> pa.Table:
    columns, levels = list_needed_columns(subject.keys), 1 if by == "round" else 2
    order = warehouse.query(snapshot_order, only=["scores"])
    clusters = warehouse.query(load_question_clusters, only=["survey_responses"])
    check = partial(drift_checks, subject=subject, levels=levels, options=options, order=order, clusters=clusters)
    checks = add_question_texts(
        warehouse, pa.concat_tables([check(warehouse.rows("scores", columns=columns, round=r)) for r in rounds])
    )
    return checks.drop_columns(["segment"]) if by == "round" else checks


def _handle_no_series(problem: str, fail_on: str | None) -> int:
    """Return the exit code if there is nothing to compare. Raises NothingToShowError without `fail_on`."""
    if not fail_on:
        raise NothingToShowError(problem)
    say(f"error: {problem}", err=True)
    return NOTHING_COMPARED


def _print_verdicts(checks: pa.Table, family: CommandFamily, fail_on: str | None, output: str) -> int:
    """Print the verdicts, worst first. Returns `exit_code`."""
    rows = sorted(checks.to_pylist(), key=sort_key_of_verdict)
    is_compared = any(row["verdict"] is not None for row in rows)
    if output == "table":
        text = format_drift(checks, family.subject, compute_terminal_fit())
        click.echo(f"{text}\n{COLUMNS_LINE} drift" if is_compared else text)
    else:
        click.echo(_verdicts_as_data(rows, checks.schema, output))
    if not is_compared:
        is_close = any(row["reason"].startswith(TOO_CLOSE) for row in rows)
        say(
            f"\n{_WAIT.format(MIN_HOURS) + family.wait_hint if is_close else _ASK_AGAIN.format(family.run)}",
            err=output != "table",
        )
    return exit_code(rows, fail_on, family.subject)


def _verdicts_as_data(rows: Sequence[Row], schema: pa.Schema, output: str) -> str:
    """Return the verdicts for other programs. In CSV, lists are JSON."""
    frame = pd.DataFrame(rows, columns=schema.names)
    for column in schema if output == "csv" else ():
        if pa.types.is_list(column.type):
            frame[column.name] = frame[column.name].map(json.dumps)
    return render(frame, output)


def _drift_options(warehouse: Warehouse, family: CommandFamily, since: Sequence[str]) -> WatchOptions:
    """Return the panel's settings, with the dates of a command, `[MODEL=]DATE` each, in place of the panel's.

    Raises ConfigError if a date is invalid, or a model neither has scores nor judged anchors.
    """
    record = family.record
    if not warehouse.values(record.scores_table, record.space.first):
        raise WarehouseError(
            f"no {record.scores_table} in {warehouse.root} yet: `{family.run} --snapshot NAME` asks and scores"
        )
    options: WatchOptions = panel_drift(Settings.read_environment(), warehouse)
    if not since:
        return options
    if nameless := [entry for entry in since if entry.startswith("=")]:
        raise ConfigError(f"--since {nameless[0]!r} names no model; write MODEL=DATE, or DATE for all models")
    options = options.replace_dates({model: day for model, _, day in (entry.rpartition("=") for entry in since)})
    options.require_known(list_family_scored_models(warehouse, record), list_family_judges(warehouse, record))
    return options


def exit_code(rows: Sequence[Mapping[str, Any]], fail_on: str | None, subject: Subject) -> int:
    """Return the exit code of the verdicts, 0 without `fail_on`.

    3 if a series has the verdict `fail_on` or a worse one; else TOO_EARLY if `fail_on` is drift and a series is too short to show it; else
    NOTHING_COMPARED if no series was compared; else 0. Warns of series that were not compared or are too short. `watch` is possible from
    two snapshots on.
    """
    if not fail_on:
        return 0
    named = [(format_series(row, subject.keys), row) for row in rows]
    series = {name for name, row in named if row["verdict"] is not None}
    if missing := [
        f"{name} (other prompts of it are compared)" if name in series else name
        for name, row in named
        if row["verdict"] is None
    ]:
        share = f"{len(missing)} of {len(rows)} series, which could not be compared"
        say(f"warning: --fail-on {fail_on} does not cover {share}: {list_first_names(missing, SERIES_NAMED)}", err=True)
    early = [f"{name} ({words})" for name, row in named if fail_on == "drift" and (words := describe_too_early(row))]
    if early:
        share = f"{len(early)} of {len(rows)} series"
        say(f"warning: it is too early for --fail-on drift to judge {share}: {list_first_names(early, SERIES_NAMED)}", err=True)
    return 3 if is_at_least(rows, fail_on) else TOO_EARLY if early else 0 if series else NOTHING_COMPARED
