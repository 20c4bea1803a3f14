"""What the commands that take `--family` do for a family other than surveys. A family brings one record, in `NAME_board.py`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import click
import pandas as pd
import pyarrow as pa

from assets.stage.panel_drift import judges_in, panel_drift, scored_in
from dtef_pipeline.cli.opened_warehouse import NothingToShowError, reads_tables, say_stale
from dtef_pipeline.cli.survey.boards import render_drift
from dtef_pipeline.cli.terminal import TableView, print_rows, say
from dtef_pipeline.drift.anchored import judge_drift
from dtef_pipeline.drift.models import model_drift
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.drift.rule import MIN_HOURS, TOO_CLOSE
from dtef_pipeline.drift.subject import Row, Subject
from dtef_pipeline.drift.verdict_text import by_verdict, moved_judges, reaches, series_words, too_early
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.families import FAMILY_BY_NAME, TABLES
from dtef_pipeline.family.record import Family
from dtef_pipeline.report.terminal import render
from dtef_pipeline.tables import description
from dtef_pipeline.text.counted import and_more
from dtef_pipeline.text.nearest import fitting as fitting
from resources.gateway.progress import waiting
from resources.settings import Settings
from resources.warehouse import Warehouse

NOTHING_COMPARED = 5
"""Exit code of `dtef drift --fail-on` where there is no series, or none could be compared."""
TOO_EARLY = 4
"""Exit code of `dtef drift --fail-on drift` where no series drifted, and one has too few snapshots for anybody to tell."""
SERIES_NAMED = 10
"""Series without a verdict that are named."""
_SENT = ["family", "sent", "night_sent"]
"""Columns that only the stored table needs: of whom it is, and what was sent."""
_RULE_VIEW = TableView(
    (
        *("partition", "model", "way", "flagged", "investigate", "gap", "lowest", "lowest_snapshot"),
        *("highest", "highest_snapshot", "n_snapshots", "n_items"),
    ),
    ("partition", "model", "flagged", "gap"),
    ("n_items", "n_snapshots", "way", "lowest", "highest"),
    who=("partition", "model"),
)
"""How the documented rule on drift is shown of each partition."""
_PAGES_NAMED = 5
_ASK_AGAIN = (
    "To have something to compare, ask the same again: the same `{}` on another day, with that day as --snapshot (such as 2026-01-31) and the "
    "same choice of what is asked. Only responses at temperature 0 are compared (--model NAME@temperature=0)."
)
_WAIT = (
    "Snapshots that asked the same lie less than {:.0f} hours apart, and drift is judged from night to night: ask the same again tomorrow, "
    "with another --snapshot."
)
_ROLLED_UP_BY = "`dtef {0} run` makes it, and `dtef {0} board --refresh`"


@dataclass(frozen=True, slots=True)
class CommandFamily:
    """What a family brings to the commands that take `--family`."""

    name: str
    part: str
    """What a partition is called, as in `dtef drift --by part`."""
    asks: str
    """The command that has models asked."""
    subject: Subject
    """What is watched for drift."""
    drift_lines: Callable[[Warehouse], Iterable[str]] = lambda _: ()
    """Lines that stand below the verdicts on drift."""

    @property
    def stored(self) -> Family:
        """The family as shared rooms know it."""
        return FAMILY_BY_NAME[self.name]

    @property
    def run(self) -> str:
        """The command that runs its stages."""
        return f"dtef {self.name} run"


def family_record(name: str) -> CommandFamily:
    found: CommandFamily = family_commands(name, "board", "COMMANDS")
    return found


def of_models(frame: pd.DataFrame, patterns: Sequence[str], by: str) -> pd.DataFrame:
    """The rows of the models that fit any of the patterns; all without one. Raises ConfigError where rows are about no model."""
    if not patterns:
        return frame
    if "model" not in frame:
        raise ConfigError(f"--model with --by {by}: allowed where rows are about models")
    return frame[frame["model"].isin(fitting(sorted(frame["model"].dropna().unique()), patterns, "--model"))].reset_index(
        drop=True
    )


def meanings_of(table: str) -> dict[str, str]:
    """What each column of a table means."""
    return {column.name: description(column) for column in TABLES[table].schema or ()}


def require_table(warehouse: Warehouse, table: str, made_by: str) -> None:
    """Raises WarehouseError where there are no files of a table. `made_by`: the commands that make it."""
    if not warehouse.tables([table]):
        raise WarehouseError(f"no {table} in {warehouse.root} yet: {made_by}")


def require_rolled_up(warehouse: Warehouse, family: str, table: str, scores: str) -> None:
    """Raises WarehouseError where no roll-up has made a table of `scores`. Says so where scores are newer."""
    part = {"family": family} if TABLES[table].levels == ("family",) else {}
    if part and family not in warehouse.values(table, "family"):
        raise WarehouseError(f"no {table} of {family} in {warehouse.root} yet: {_ROLLED_UP_BY.format(family)}")
    require_table(warehouse, table, _ROLLED_UP_BY.format(family))
    say_stale(warehouse, table, scores, f"dtef {family} board --refresh", **part)


def drift(name: str, by: str, since: Sequence[str], fail_on: str | None, output: str) -> int:
    family = family_record(name)
    if by == "model":
        return _drift_of_models(family, since, fail_on, output)
    if given := "--fail-on" if fail_on else "--since" if since else "":
        raise ConfigError(f"{given} with --by {by}: allowed with --by model; a {by} alone may have too few items")
    _drift_of_parts(family, output)
    return 0


@reads_tables
def _drift_of_parts(warehouse: Warehouse, family: CommandFamily, output: str) -> None:
    """What the documented rule says of each partition, the largest gap first."""
    require_rolled_up(warehouse, family.name, "drift_rule", family.stored.scored)
    frame: pd.DataFrame = warehouse.rows("drift_rule", family=family.name).to_pandas()
    if not len(frame):
        raise NothingToShowError("nothing to show: drift is looked for at temperature 0, and nothing is scored at it")
    order = ["gap", "partition", "model"]
    frame = frame.sort_values(order, ascending=[False, True, True], na_position="last", kind="stable")
    if output == "table":
        frame = frame.assign(note=frame["reason"].where(frame["gap"].isna(), ""))
    print_rows(_RULE_VIEW, frame, output, (), meanings_of("drift_rule"))


@reads_tables
def _drift_of_models(
    warehouse: Warehouse, family: CommandFamily, since: Sequence[str], fail_on: str | None, output: str
) -> int:
    """As `exit_code`; NOTHING_COMPARED when `fail_on` is asked for and there is no series."""
    subject = family.subject
    options = _drift_options(warehouse, family, since)
    shown = warehouse.rows(subject.judged_again.table) if subject.judged_again else pa.table({})
    with waiting("comparing snapshots"):
        found = warehouse.query(lambda connection: model_drift(connection, subject, options), only=subject.reads)
        checks = found.net_of_judges(subject, shown, options).checks.drop_columns(_SENT)
    rows = checks.to_pylist()
    if not rows or (options.since and all(row["latest_snapshot"] is None for row in rows)):
        dates = f" since {' or '.join(sorted(set(options.since.values())))}" if options.since else ""
        return without_series(f"no snapshot of a language model{dates}", fail_on)
    code = show_drift(checks, subject, family.run, fail_on, output)
    if output == "table":
        for line in (*_judges_lines(subject, shown, options, rows), *family.drift_lines(warehouse)):
            say(line)
    return code


def without_series(problem: str, fail_on: str | None) -> int:
    """The exit code where there is nothing to compare. Raises NothingToShowError unless `fail_on` asks for a code."""
    if not fail_on:
        raise NothingToShowError(problem)
    say(f"error: {problem}", err=True)
    return NOTHING_COMPARED


def show_drift(checks: pa.Table, subject: Subject, run: str, fail_on: str | None, output: str, until_then: str = "") -> int:
    """Print verdicts, the worst first. Returns as `exit_code`. `run`: the command that makes another snapshot.

    `until_then`: what shows the scores where snapshots lie too close together to be compared.
    """
    rows = sorted(checks.to_pylist(), key=by_verdict)
    click.echo(render_drift(checks, subject) if output == "table" else _verdicts_as_data(rows, checks.schema, output))
    if all(row["verdict"] is None for row in rows):
        is_close = any(row["reason"].startswith(TOO_CLOSE) for row in rows)
        say(f"\n{_WAIT.format(MIN_HOURS) + until_then if is_close else _ASK_AGAIN.format(run)}", err=output != "table")
    return exit_code(rows, fail_on, subject)


def _verdicts_as_data(rows: Sequence[Row], schema: pa.Schema, output: str) -> str:
    """For other programs; in CSV, which has no lists, those are JSON."""
    frame = pd.DataFrame(rows, columns=schema.names)
    for column in schema if output == "csv" else ():
        if pa.types.is_list(column.type):
            frame[column.name] = frame[column.name].map(json.dumps)
    return render(frame, output)


def _judges_lines(subject: Subject, shown: pa.Table, options: WatchOptions, rows: Sequence[Row]) -> Iterator[str]:
    """What the judges' drift has to do with that of models, and the judges that moved."""
    yield from (f"{series_words(row, subject.keys)}: {row['judges_note']}" for row in rows if row["judges_note"])
    yield from moved_judges(judge_drift(subject, shown, options).to_pylist())


def _drift_options(warehouse: Warehouse, family: CommandFamily, since: Sequence[str]) -> WatchOptions:
    """Raises WarehouseError where nothing is scored."""
    stored = family.stored
    if not warehouse.values(stored.scored, stored.space.first):
        raise WarehouseError(f"no {stored.scored} in {warehouse.root} yet: `{family.run} --snapshot LABEL` asks and scores")
    options = panel_drift(Settings.from_environment(), warehouse)
    return options_since(options, since, partial(scored_in, warehouse, stored), partial(judges_in, warehouse, stored))


def options_since(
    options: WatchOptions,
    since: Sequence[str],
    scored: Callable[[], Iterable[tuple[str, str]]],
    judges: Callable[[], Iterable[tuple[str, str]]] = tuple,
) -> WatchOptions:
    """The settings with the dates that a command gives, `[MODEL=]DATE` each, in place of the panel's; as they are without one.

    `scored`: finds names and variants of the models with scores; `judges`: of those that were shown stored answers again. Raises ConfigError
    for what is no date, and for a model that is neither.
    """
    if not since:
        return options
    if nameless := [given for given in since if given.startswith("=")]:
        raise ConfigError(f"since {nameless[0]!r}: allowed: MODEL=DATE, or DATE for all models")
    options = options.with_dates({model: day for model, _, day in (given.rpartition("=") for given in since)})
    options.require_known(scored(), judges())
    return options


def exit_code(rows: Sequence[Mapping[str, Any]], fail_on: str | None, subject: Subject) -> int:
    """3 when a series has the verdict `fail_on` or a worse one; else, when it is asked for, TOO_EARLY when a drift cannot be told yet of a
    series, and NOTHING_COMPARED when none was compared.

    Says on standard error which series were not compared, and of which it is too early to tell. `watch` can be told from two snapshots on.
    """
    if not fail_on:
        return 0
    named = [(series_words(row, subject.keys), row) for row in rows]
    compared = {who for who, row in named if row["verdict"] is not None}
    if without := [
        f"{who} (other prompts of it are compared)" if who in compared else who for who, row in named if row["verdict"] is None
    ]:
        share = f"{len(without)} of {len(rows)} series, which could not be compared"
        say(f"warning: --fail-on {fail_on} says nothing about {share}: {and_more(without, SERIES_NAMED)}", err=True)
    early = [f"{who} ({words})" for who, row in named if fail_on == "drift" and (words := too_early(row))]
    if early:
        share = f"{len(early)} of {len(rows)} series"
        say(f"warning: --fail-on drift cannot tell yet of {share}: {and_more(early, SERIES_NAMED)}", err=True)
    return 3 if reaches(rows, fail_on) else TOO_EARLY if early else 0 if compared else NOTHING_COMPARED


def family_commands(name: str, module: str, what: str) -> Any:
    """The record `NAME_WHAT` in the file `NAME/NAME_module.py`; of a family that is one record, what `plugin_what` makes of it."""
    family = FAMILY_BY_NAME[name]
    if family.is_assembled:
        return getattr(import_module(f"dtef_pipeline.cli.plugin.plugin_{module}"), f"plugin_{what.lower()}")(family)
    return getattr(import_module(f"dtef_pipeline.cli.{name}.{name}_{module}"), f"{name.upper()}_{what}")
