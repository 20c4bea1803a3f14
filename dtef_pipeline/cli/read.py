"""What the `dtef` commands that only read do: leaderboards, drift, queries, exports. No Dagster is loaded for them."""

import difflib
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import click
import duckdb
import pandas as pd
import pyarrow as pa

from assets.stage.panel_drift import panel_drift, scored_in
from assets.survey.moved_questions import named
from dtef_pipeline.asking.snapshot_order import among, snapshot_order
from dtef_pipeline.boards.cells import load_cells
from dtef_pipeline.boards.families import COMPARED_FAMILIES
from dtef_pipeline.boards.served import split_served
from dtef_pipeline.cli.after_run import SAME_RESPONSE
from dtef_pipeline.cli.boards import (
    line_of_non_answers,
    lines_of_design_effects,
    lines_of_samples,
    lines_of_unranked,
    lines_of_view,
    reasons_without_score,
    render_view,
)
from dtef_pipeline.cli.families import options_since, show_drift, stored_family, without_series
from dtef_pipeline.cli.opened_warehouse import SERVED_REMEDY, NothingToShowError, query_rounds, reads_tables, say_mixed
from dtef_pipeline.cli.terminal import say, terminal_fit
from dtef_pipeline.drift.checks import columns_needed, drift_checks
from dtef_pipeline.drift.models import model_drift
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.errors import ConfigError, DtefError, WarehouseError
from dtef_pipeline.report.terminal import render
from dtef_pipeline.survey.blueprint.export import weval_yaml
from dtef_pipeline.survey.boards.published import BY_NAME
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
from dtef_pipeline.survey.boards.views import HELD, view
from dtef_pipeline.survey.drift_subject import SUBJECT
from dtef_pipeline.survey.report.gap_chapter import by_significance
from dtef_pipeline.text.counted import counted
from resources.file_systems import write_text
from resources.settings import Settings, shipped
from resources.warehouse import TABLES, Warehouse

_UNTIL_THEN = " `dtef leaderboard --snapshot LABEL` shows the scores of each of them now."
MOST_ROWS = 60
"""Rows of a view of questions or of gaps as a table, unless one asks for more."""


@reads_tables
def leaderboard(warehouse: Warehouse, /, by: str, output: str, top: int | None, served: bool, **options: Any) -> None:
    chosen = SurveyBoardOptions(**{name: value for name, value in options.items() if value is not None})
    _require(warehouse, "scores", "predictions are scored by `dtef run --round ROUND`")
    _scored_rounds(warehouse, chosen.rounds)
    held = [*HELD, *(["predictions"] if served else [])]
    frame = query_rounds(
        warehouse, lambda connection: _shown_view(connection, by, chosen, warehouse, served), held, chosen.rounds
    )
    if "deviation" in frame:
        frame = by_significance(frame)
    if "among" in frame:
        frame = frame.sort_values("among", key=lambda among: among.map(COMPARED_FAMILIES.index), kind="stable")
    if output == "table" and top is None and {"question_id", "deviation"} & {*frame}:
        top = MOST_ROWS
    shown = frame.head(top or len(frame))
    if output != "table":
        click.echo(render(shown, output))
        return
    for line in warehouse.query(lambda connection: [*lines_of_samples(connection, chosen)], only=HELD, first=chosen.rounds):
        say(line)
    click.echo(render_view(by, shown))
    if left := len(frame) - len(shown):
        say(f"{counted(left, 'more row')}: --top 0 shows all, --format csv writes them for other programs")
    if by == "overall" and shown["rank"].isna().any():
        why = warehouse.query(
            lambda connection: reasons_without_score(connection, chosen), only=["scores"], first=chosen.rounds
        )
        click.echo(lines_of_unranked(shown, why))
    if not served:
        say_mixed(warehouse, "predictions", chosen.rounds, chosen.snapshot, SERVED_REMEDY)
    if silent := warehouse.query(
        lambda connection: line_of_non_answers(connection, chosen), only=["scores"], first=chosen.rounds
    ):
        click.echo(silent)
    click.echo("\n".join(filter(None, [lines_of_design_effects(warehouse, shown, chosen.rounds), lines_of_view(by, shown)])))


def _shown_view(
    connection: duckdb.DuckDBPyConnection, by: str, chosen: SurveyBoardOptions, warehouse: Warehouse, served: bool
) -> pd.DataFrame:
    """The rows of a view, with the words of its questions. `served`: whether models that one name stands for have rows of their own."""
    if served:
        split_served(connection, "scores", "predictions", SAME_RESPONSE)
    frame = view(connection, by, chosen)
    if not len(frame):
        raise NothingToShowError(_why_empty(connection, by, chosen))
    if "question_id" in frame:
        texts = connection.execute(
            "SELECT round, question_id, any_value(question_text) AS question FROM survey_responses GROUP BY ALL"
        ).df()
        return frame.merge(texts, on=["round", "question_id"], how="left")
    return frame


def _scored_rounds(warehouse: Warehouse, asked: tuple[str, ...]) -> list[str]:
    """All rounds with scores. Raises ConfigError when one that was asked for is not among them."""
    scored = warehouse.values("scores", "round")
    if absent := [r for r in asked if r not in scored]:
        raise ConfigError(f"no scores of round {', '.join(absent)}; scored so far: {', '.join(scored)}")
    return scored


def _why_empty(connection: duckdb.DuckDBPyConnection, by: str, chosen: SurveyBoardOptions) -> str:
    """What a view without rows lacks, and which of the options may have left it out."""
    asked = {
        "--round": ", ".join(chosen.rounds),
        "--context": ", ".join(chosen.context_levels),
        "--condition": chosen.condition,
        "--snapshot": chosen.snapshot,
    }
    given = ", ".join(f"{option} {value}" for option, value in asked.items() if value)
    needed = BY_NAME[by].needs
    if not needed or not len(load_cells(connection, chosen)):
        return _what_there_is(connection, given)
    if by == "context" and len(chosen.context_levels) == 1:
        (only,) = chosen.context_levels
        return f"--by context compares context levels, and --context {only} leaves only one: leave --context out"
    filtered = f" (only {given} was looked at: other scores may have it)" if given else ""
    return f"nothing to show by {by}: it needs {needed}{filtered}"


def _what_there_is(connection: duckdb.DuckDBPyConnection, given: str) -> str:
    there = {
        name: [value for (value,) in connection.execute(f"SELECT DISTINCT {name} FROM scores ORDER BY 1").fetchall()]
        for name in ("round", "context_level", "condition", "snapshot")
    }
    there["snapshot"] = among(snapshot_order(connection), there["snapshot"])
    listed = [f"{name}: {', '.join(values)}" for name, values in there.items()]
    return f"nothing is scored for {given or 'these options'}; scored so far: {'; '.join(listed)}"


@reads_tables
def drift(
    warehouse: Warehouse, rounds: tuple[str, ...], by: str, since: tuple[str, ...], fail_on: str | None, output: str
) -> int:
    """As `exit_code`; NOTHING_COMPARED when `fail_on` is asked for and there is no series."""
    _require(warehouse, "scores", "snapshots are made by `dtef run --snapshot LABEL`")
    panel = panel_drift(Settings.from_environment(), warehouse)
    options = options_since(panel, since, partial(scored_in, warehouse, stored_family("survey")))
    try:
        scored = _scored_rounds(warehouse, rounds)
    except ConfigError as error:
        return without_series(str(error), fail_on)
    checks = (
        _model_checks(warehouse, rounds, options) if by == "model" else _round_checks(warehouse, rounds or scored, by, options)
    )
    # Of models alone, there is a row of each that has no snapshot that counts.
    is_late = by == "model" and bool(options.since) and checks["latest_snapshot"].null_count == len(checks)
    if not len(checks) or is_late:
        return without_series(_why_no_series(warehouse, options), fail_on)
    return show_drift(checks, SUBJECT, "dtef run", fail_on, output, _UNTIL_THEN)


def _why_no_series(warehouse: Warehouse, options: WatchOptions) -> str:
    if warehouse.skipped:
        return "no score of a language model in the files that can be read"
    if options.since:
        return f"no snapshot of a language model since {' or '.join(sorted(set(options.since.values())))}"
    return "only baselines are scored, and they do not drift; segments of people who gave no answer are not looked at"


def _model_checks(warehouse: Warehouse, rounds: Sequence[str], options: WatchOptions) -> pa.Table:
    def made(connection: duckdb.DuckDBPyConnection) -> pa.Table:
        return model_drift(connection, SUBJECT, options, only=rounds).checks

    return query_rounds(warehouse, made, SUBJECT.reads, rounds).drop_columns(["family", "sent", "night_sent"])


def _round_checks(warehouse: Warehouse, rounds: Sequence[str], by: str, options: WatchOptions) -> pa.Table:
    columns, levels = columns_needed(SUBJECT.keys), 1 if by == "round" else 2
    order = warehouse.query(snapshot_order, only=["scores"])
    clusters = warehouse.query(SUBJECT.linked, only=["survey_responses"])
    check = partial(drift_checks, subject=SUBJECT, levels=levels, options=options, order=order, clusters=clusters)
    checks = named(warehouse, pa.concat_tables([check(warehouse.rows("scores", columns=columns, round=r)) for r in rounds]))
    return checks.drop_columns(["segment"]) if by == "round" else checks


def score(file: TextIO) -> int:
    from dtef_pipeline.survey.scoring.json_lines import score_lines

    malformed = 0
    for line in score_lines(file):
        click.echo(line.text)
        malformed += line.malformed
    return 1 if malformed else 0


@reads_tables
def export_blueprints(
    warehouse: Warehouse, round_id: str, out: Path, contexts: tuple[str, ...], conditions: tuple[str, ...]
) -> None:
    from dtef_pipeline.survey.predictions import select_prompts

    written = 0
    segments = warehouse.values("blueprints", "segment", round=round_id)
    if not segments:
        made = ", ".join(warehouse.values("blueprints", "round")) or "none"
        raise ConfigError(
            f"round {round_id} has no blueprints; rounds with blueprints: {made}; make them with `dtef run --round {round_id}`"
        )
    out.mkdir(parents=True, exist_ok=True)
    for segment in segments:
        at = {"round": round_id, "segment": segment}
        survey, made = warehouse.rows("survey_responses", **at), warehouse.rows("blueprints", **at)
        if not len(survey) or not len(made):
            continue
        prompts = select_prompts(made, survey, context_levels=contexts, conditions=conditions)
        written += 1
        write_text(out / f"{round_id}__{segment.replace(':', '_')}.yml", weval_yaml(prompts, survey))
    click.echo(f"{counted(written, 'file')} in {out}")


@reads_tables
def sql(warehouse: Warehouse, query: str, output: str) -> None:
    def answer(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
        found = connection.sql(query)
        frame: pd.DataFrame = pd.DataFrame() if found is None else _named_once(found.to_arrow_table()).to_pandas()
        return frame

    try:
        frame = warehouse.query(answer, only=warehouse.tables_in(query))
    except duckdb.CatalogException as error:
        raise DtefError(_no_table(str(error), warehouse.tables())) from error
    except duckdb.Error as error:
        raise DtefError(str(error)) from error
    click.echo(render(frame, output, as_named=True, fit=terminal_fit()))


def _no_table(said: str, there: Sequence[str]) -> str:
    """What DuckDB says of a table or function that it does not have, without the names that it guesses from its own."""
    later = ", ".join(name for name in TABLES if name not in there) or "none"
    tables = f"tables: {', '.join(there) or 'none yet'}; made by later stages: {later}"
    if (found := re.match(r"Catalog Error: Table with name (\w+) does not exist", said)) is None:
        return f"{said}\n{tables}"
    name = found[1].lower()
    if name in TABLES:
        return f"the table {name} is not there yet; {tables}"
    near = difflib.get_close_matches(name, there, n=1)
    return f"there is no table {name}{f' (did you mean {near[0]}?)' if near else ''}; {tables}"


def _named_once(rows: pa.Table) -> pa.Table:
    """The table with repeated column names told apart: a, a_1."""
    seen: dict[str, int] = {}
    names = []
    for name in rows.column_names:
        names.append(f"{name}_{seen[name]}" if name in seen else name)
        seen[name] = seen.get(name, 0) + 1
    return rows.rename_columns(names)


@reads_tables
def report(warehouse: Warehouse, out: Path) -> None:
    from dtef_pipeline.survey.experiments import load_experiments
    from dtef_pipeline.survey.report.chapters import survey_report

    _require(warehouse, "scores", "predictions are scored by `dtef run --round ROUND`")
    known = load_experiments(shipped("experiments"))
    page = warehouse.query(lambda connection: survey_report(connection, known))
    write_text(out, page)
    click.echo(f"report: {out}")


def _require(warehouse: Warehouse, table: str, how: str) -> None:
    if not warehouse.values(table, "round"):
        raise WarehouseError(f"no {table} in {warehouse.root} yet: {how}")
