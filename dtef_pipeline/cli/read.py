"""What the `dtef` commands that only read do: leaderboards, drift, queries, exports. No Dagster is loaded for them."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import click
import duckdb
import pandas as pd
import pyarrow as pa

from assets.survey.moved_questions import named
from assets.survey.panel_file import known_panel
from dtef_pipeline.boards.boards import BY_METRIC
from dtef_pipeline.drift.checks import columns_needed, drift_checks
from dtef_pipeline.drift.models import model_drift
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.drift.verdict_text import by_verdict, reaches
from dtef_pipeline.errors import ConfigError, DtefError, WarehouseError
from dtef_pipeline.keys import MODEL
from dtef_pipeline.report.drift_terminal import drift_text
from dtef_pipeline.report.terminal import intervals, named_apart, render, with_ranks
from dtef_pipeline.survey.baselines.names import BASELINES
from dtef_pipeline.survey.blueprint.export import weval_yaml
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.boards.published import BY_NAME, GROUPED
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
from dtef_pipeline.survey.boards.views import HELD, view
from dtef_pipeline.survey.drift_subject import SUBJECT
from dtef_pipeline.survey.report.terms import NAMES
from dtef_pipeline.survey.tables import METRICS
from resources.known_models import known_models
from resources.settings import Settings, shipped
from resources.warehouse import TABLES, Warehouse

EVERY_VIEW = (*MODEL, "condition")
"""Columns without which no view can be shown."""
COMMON_COLUMNS = [
    *("rank", "tier", "model", "context_level", "score", "interval", "parsed_score", "adjusted_score"),
    *("skill", "worth", "vs_marginal", "n_pairs", "coverage", "parse_rate"),
]
MOST_ROWS = 60
"""Rows of a view of questions as a table, unless one asks for more."""


def open_warehouse() -> Warehouse:
    return Warehouse(Settings.from_environment().warehouse)


def leaderboard(by: str, output: str, top: int | None, **options: Any) -> None:
    warehouse = open_warehouse()
    chosen = SurveyBoardOptions(**{name: value for name, value in options.items() if value is not None})
    _require(warehouse, "scores", "predictions are scored by `dtef run --round ROUND`")
    _scored_rounds(warehouse, chosen.rounds)
    with warehouse.connect(only=HELD, first=chosen.rounds) as connection:
        frame = view(connection, by, chosen)
        if not len(frame):
            raise ConfigError(_why_empty(connection, by, chosen))
        if "question_id" in frame:
            texts = connection.execute(
                "SELECT round, question_id, any_value(question_text) AS question FROM survey_responses GROUP BY ALL"
            ).df()
            frame = frame.merge(texts, on=["round", "question_id"], how="left")
    if "excess" in frame:
        tested = {"p_holm": True} if "p_holm" in frame else {}
        order = {**tested, "excess": False}
        frame = frame.sort_values(list(order), ascending=list(order.values()), kind="stable")
    if output == "table" and top is None and "question_id" in frame:
        top = MOST_ROWS
    click.echo(
        render_view(by, frame.head(top or len(frame))) if output == "table" else render(frame.head(top or len(frame)), output)
    )
    if output == "table" and top and len(frame) > top:
        click.echo(f"{len(frame) - top:,} more rows: --top 0 shows all, --format csv writes them for other programs")


def render_view(by: str, frame: pd.DataFrame) -> str:
    """A view as a table for people: each model under a name of its own, intervals in one column, without columns that show nothing.

    Raises ConfigError when the view lacks a column that every view has.
    """
    if missing := [name for name in EVERY_VIEW if name not in frame]:
        raise ConfigError(f"--by {by}: its rows lack {', '.join(missing)}; every view has {', '.join(EVERY_VIEW)}")
    shown = named_apart(with_ranks(frame, METRICS) if by == BY_METRIC else frame).assign(interval=intervals(frame))
    columns = [name for name in view_columns(by, frame) if name in shown]
    return render(shown, "table", columns=[name for name in columns if _says_something(name, shown)])


def _says_something(name: str, shown: pd.DataFrame) -> bool:
    if name in ("parsed_score", "adjusted_score"):  # beside the score, only where it is another number
        return bool((shown[name] - shown["score"]).abs().gt(5e-5).any())
    if name in ("interval", "note", "consistency_note"):
        return bool(shown[name].fillna("").ne("").any())
    return True


def view_columns(by: str, frame: pd.DataFrame) -> list[str]:
    """Columns of a view as a table; with `condition` when it is not the usual one throughout."""
    columns = [*BY_NAME[by].columns, *(COMMON_COLUMNS if by in GROUPED else METRICS if by == BY_METRIC else ())]
    if set(frame["condition"]) <= {BlueprintOptions().condition}:
        return columns
    after = columns.index("context_level" if "context_level" in columns else "model") + 1
    return [*columns[:after], "condition", *columns[after:]]


def _scored_rounds(warehouse: Warehouse, asked: tuple[str, ...]) -> list[str]:
    """All rounds with scores. Raises ConfigError when one that was asked for is not among them."""
    scored = warehouse.values("scores", "round")
    if absent := [r for r in asked if r not in scored]:
        raise ConfigError(f"no scores of round {', '.join(absent)}; scored so far: {', '.join(scored)}")
    return scored


def _why_empty(connection: duckdb.DuckDBPyConnection, by: str, chosen: SurveyBoardOptions) -> str:
    if needed := BY_NAME[by].needs:
        return f"nothing to show by {by}: it needs {needed}"
    return _what_there_is(connection, chosen)


def _what_there_is(connection: duckdb.DuckDBPyConnection, chosen: SurveyBoardOptions) -> str:
    listed = [
        f"{name}: {', '.join(str(value) for (value,) in connection.execute(f'SELECT DISTINCT {name} FROM scores ORDER BY 1').fetchall())}"
        for name in ("round", "context_level", "condition", "snapshot")
    ]
    asked = {
        "rounds": chosen.rounds,
        "context": chosen.context_level,
        "condition": chosen.condition,
        "snapshot": chosen.snapshot,
    }
    given = ", ".join(f"{name} {value}" for name, value in asked.items() if value)
    return f"nothing is scored for {given or 'these options'}; scored so far: {'; '.join(listed)}"


def drift(rounds: tuple[str, ...], by: str, since: tuple[str, ...], fail_on: str | None, output: str) -> int:
    """Exit code 3 when a series has the verdict `fail_on` or a worse one."""
    warehouse = open_warehouse()
    _require(warehouse, "scores", "snapshots are made by `dtef run --snapshot LABEL`")
    scored = _scored_rounds(warehouse, rounds)
    options = known_panel(Settings.from_environment()).drift.options
    if since:
        if nameless := [given for given in since if given.startswith("=")]:
            raise ConfigError(f"since {nameless[0]!r}: allowed: MODEL=DATE, or DATE for all models")
        options = replace(options, since={model: day for model, _, day in (given.rpartition("=") for given in since)})
        with warehouse.connect(only=["scores"]) as connection:
            options.require_known(connection.execute("SELECT DISTINCT model, model_variant FROM scores").fetchall())
    checks = (
        _model_checks(warehouse, rounds, options) if by == "model" else _round_checks(warehouse, rounds or scored, by, options)
    )
    checks = named(warehouse, checks)
    click.echo(drift_text(checks, NAMES) if output == "table" else _drift_rows(checks, by, output))
    return 3 if fail_on and reaches(checks.to_pylist(), fail_on) else 0


def _model_checks(warehouse: Warehouse, rounds: Sequence[str], options: WatchOptions) -> pa.Table:
    with warehouse.connect(only=("scores", "predictions"), first=rounds) as connection:
        checks = model_drift(connection, SUBJECT, options, only=rounds).checks
    if len(checks) and options.since and checks["latest_snapshot"].null_count == len(checks):
        raise ConfigError(f"no snapshot of a language model since {' or '.join(sorted(set(options.since.values())))}")
    if not len(checks):
        raise ConfigError("only baselines are scored, and they do not drift")
    return checks


def _round_checks(warehouse: Warehouse, rounds: Sequence[str], by: str, options: WatchOptions) -> pa.Table:
    columns, levels = columns_needed(SUBJECT.keys), 1 if by == "round" else 2
    scores = (warehouse.read("scores", columns=columns, round=r) for r in rounds)
    return pa.concat_tables([drift_checks(rows, SUBJECT, levels=levels, options=options) for rows in scores])


def _drift_rows(checks: pa.Table, by: str, output: str) -> str:
    """For other programs; in CSV, which has no lists, those are JSON."""
    rows = sorted(checks.to_pylist(), key=by_verdict(SUBJECT.keys))
    left_out = {"round": ["segment"], "model": ["told"]}.get(by, [])
    frame = pd.DataFrame(rows, columns=checks.column_names).drop(columns=left_out)
    for field in checks.schema if output == "csv" else ():
        if pa.types.is_list(field.type) and field.name in frame:
            frame[field.name] = frame[field.name].map(json.dumps)
    return render(frame, output)


def score(file: TextIO) -> int:
    from dtef_pipeline.survey.scoring.json_lines import score_lines

    malformed = 0
    for line in score_lines(file):
        click.echo(line.text)
        malformed += line.malformed
    return 1 if malformed else 0


def export_blueprints(round_id: str, out: Path, contexts: tuple[str, ...], conditions: tuple[str, ...]) -> None:
    from dtef_pipeline.survey.predictions import select_prompts

    warehouse = open_warehouse()
    segments = warehouse.values("blueprints", "segment", round=round_id)
    if not segments:
        made = ", ".join(warehouse.values("blueprints", "round")) or "none"
        raise ConfigError(
            f"round {round_id} has no blueprints; rounds with blueprints: {made}; make them with `dtef run --round {round_id}`"
        )
    out.mkdir(parents=True, exist_ok=True)
    for segment in segments:
        at = {"round": round_id, "segment": segment}
        survey = warehouse.read("survey_responses", **at)
        prompts = select_prompts(warehouse.read("blueprints", **at), survey, context_levels=contexts, conditions=conditions)
        (out / f"{round_id}__{segment.replace(':', '_')}.yml").write_text(weval_yaml(prompts, survey), encoding="utf-8")
    click.echo(f"{len(segments)} files in {out}")


def sql(query: str, output: str) -> None:
    warehouse = open_warehouse()
    with warehouse.connect(only=warehouse.tables_in(query)) as connection:
        try:
            found = connection.sql(query)
            frame = pd.DataFrame() if found is None else _named_once(found.to_arrow_table()).to_pandas()
        except duckdb.CatalogException as error:
            there = warehouse.tables()
            later = ", ".join(name for name in TABLES if name not in there) or "none"
            raise DtefError(f"{error}\ntables: {', '.join(there) or 'none yet'}; made by later stages: {later}") from error
        except duckdb.Error as error:
            raise DtefError(str(error)) from error
    click.echo(render(frame, output, as_named=True))


def _named_once(rows: pa.Table) -> pa.Table:
    """The table with repeated column names told apart: a, a_1."""
    seen: dict[str, int] = {}
    names = []
    for name in rows.column_names:
        names.append(f"{name}_{seen[name]}" if name in seen else name)
        seen[name] = seen.get(name, 0) + 1
    return rows.rename_columns(names)


def report(out: Path) -> None:
    from dtef_pipeline.survey.experiments import load_experiments
    from dtef_pipeline.survey.report.chapters import survey_report

    warehouse = open_warehouse()
    _require(warehouse, "scores", "predictions are scored by `dtef run --round ROUND`")
    with warehouse.connect() as connection:
        page = survey_report(connection, load_experiments(shipped("experiments")))
        out.write_text(page, encoding="utf-8")
    click.echo(f"report: {out}")


def models() -> None:
    known = known_models(Settings.from_environment(), BASELINES)
    rows = [
        {
            "model": spec.name,
            "variant": spec.variant,
            "collections": ", ".join(name for name, members in known.collections.items() if spec.name in members),
            "key": spec.api_key_env or "",
        }
        for spec in known.specs.values()
    ]
    click.echo(render(pd.DataFrame(rows), "table"))


def _require(warehouse: Warehouse, table: str, how: str) -> None:
    if not warehouse.values(table, "round"):
        raise WarehouseError(f"no {table} in {warehouse.root} yet: {how}")
