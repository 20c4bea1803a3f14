"""Output after a run: boards, costs and warnings; `dtef board --experiment`. Loads no Dagster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click
import duckdb
import pandas as pd

from dtef_pipeline.asking.models import COMPUTED_SQL, Models, strip_settings
from dtef_pipeline.asking.snapshot_label import parse_label_time
from dtef_pipeline.asking.snapshot_order import FIRST_LABEL, among, snapshot_order
from dtef_pipeline.boards.costs import load_costs
from dtef_pipeline.boards.mixed_models import list_mixed_served
from dtef_pipeline.cli.survey.boards import (
    describe_board_columns,
    describe_board_scope,
    describe_non_answers,
    describe_unranked,
    find_reasons_without_score,
    format_design_effect_lines,
    render_board,
)
from dtef_pipeline.cli.survey.selection import find_experiment, set_context_levels
from dtef_pipeline.cli.terminal import COLUMNS_LINE, compute_terminal_fit, say
from dtef_pipeline.cli.warehouse_access import query_rounds, reads_tables
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.report.terminal import intervals, render
from dtef_pipeline.statistics.differences import MARGIN
from dtef_pipeline.survey.baselines.names import BASELINES
from dtef_pipeline.survey.boards.board_rows import HELD, compute_board
from dtef_pipeline.survey.boards.experiments import compare_conditions
from dtef_pipeline.survey.boards.meanings import ENDS
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.experiments import ConditionModel, Experiment, list_each_asked_once, resolve_asked_models
from dtef_pipeline.survey.table_folders import SURVEY_CALL_TABLES
from dtef_pipeline.tables import ANSWERED, READ_ENOUGH
from dtef_pipeline.text.quantity_words import format_count
from dtef_pipeline.text.unknown_cost import format_cost, format_row_cost
from resources.gateway.progress import waiting
from resources.model_catalog import load_known_models
from resources.settings import Settings
from resources.warehouse import Warehouse

if TYPE_CHECKING:
    from dtef_pipeline.cli.family_run import RunContextOfCommand
    from resources.gateway import Gateway


_SAME_RESPONSE = ("prompt_id", "question_id", "context_level", "model_variant", "snapshot", "draw")
"""Columns that identify a response in `scores` and `predictions`."""
_OF_MODELS = f"NOT {COMPUTED_SQL} AND list_contains($1, round) AND list_contains($2, model_variant)"


def run_warnings(
    connection: duckdb.DuckDBPyConnection, snapshot: str, rounds: Sequence[str], variants: Sequence[str]
) -> Iterator[str]:
    """Yield the warnings after a run. `connection` has `scores`, in the order of all snapshots (see `snapshot_order`)."""
    parameters = [list(rounds), list(variants)]
    yield from _describe_unread(connection, snapshot, parameters)
    yield from list_mixed_served(connection, "predictions", snapshot)
    yield from _describe_order_problem(connection, snapshot, parameters)


def _describe_unread(connection: duckdb.DuckDBPyConnection, snapshot: str, parameters: list[list[str]]) -> Iterator[str]:
    """Yield a line per model with less than READ_ENOUGH of its responses readable."""
    rows = connection.execute(
        "SELECT model, count(*) AS answered, count(*) FILTER (status <> 'ok') AS unread, mode(reason) FILTER (status <> 'ok') "
        f"FROM scores WHERE {_OF_MODELS} AND snapshot = $3 AND list_contains($4, status) "
        "GROUP BY model ORDER BY model",
        [*parameters, snapshot, list(ANSWERED)],
    ).fetchall()
    for model, n_answered, unread, reason in rows:
        if n_answered - unread >= READ_ENOUGH * n_answered:
            continue
        quoted = model.replace("'", "''")
        share, little = (
            ("none", ", so its scores are unreliable") if unread == n_answered else (f"only {n_answered - unread:,}", "")
        )
        texts = (
            f"SELECT DISTINCT reason, response FROM scores JOIN predictions USING ({', '.join(_SAME_RESPONSE)}) "
            f"WHERE scores.model = '{quoted}' AND snapshot = '{snapshot}' AND status <> 'ok' LIMIT 20"
        )
        yield (
            f"{model}: {share} of {format_count(n_answered, 'response')} could be read ({unread / n_answered:.1%} unread){little}; "
            f'most often: {reason}; see what it wrote: dtef sql "{texts}"'
        )


def _describe_order_problem(connection: duckdb.DuckDBPyConnection, snapshot: str, parameters: list[list[str]]) -> Iterator[str]:
    """Yield a warning if another snapshot of these models counts as later, so that boards over all snapshots do not show this one."""
    rows = connection.execute(
        f"SELECT DISTINCT snapshot::VARCHAR FROM scores WHERE {_OF_MODELS} AND list_contains($3, status)",
        [*parameters, list(ANSWERED)],
    ).fetchall()
    order = among(snapshot_order(connection), [label for (label,) in rows])
    if snapshot not in order or order[-1] == snapshot:
        return
    counts_as = "the date that it begins with" if parse_label_time(snapshot) else "the time of its first response"
    yield (
        f"snapshot {snapshot} counts as {counts_as}, which is before {order[-1]}: where both have a response, `dtef board` and the "
        f"report show the later one; `dtef board --snapshot {snapshot}` shows this one"
    )


_COMPARED = [
    "model",
    "condition",
    "context_level",
    "n_pairs",
    "score",
    "difference",
    "interval",
    "p_adjusted",
    "decision",
    "parsed_decision",
    "parse_rate",
    "tokens",
    "cost",
]
_HOW_AFTER_RUN = "`dtef board --wide` shows them"


def report_after_run(context: RunContextOfCommand) -> bool:
    """Print counts by status, the models' costs so far, the snapshot's boards by context level, and the comparison of an experiment."""
    warehouse, settings, metric = context.warehouse, context.options, context.options.metric
    if not warehouse.values("scores", "round"):
        return True
    rounds, variants = settings.rounds, [model.variant for model in context.models.resolve(settings.models)]

    def run_report(connection: duckdb.DuckDBPyConnection) -> tuple[list[str], list[pd.DataFrame], pd.DataFrame, list[str]]:
        rows = connection.execute(
            "SELECT status, count(*) FROM scores WHERE snapshot = $1 AND list_contains($2, round) AND list_contains($3, model_variant) "
            "GROUP BY 1 ORDER BY 1",
            [settings.snapshot, rounds, variants],
        ).fetchall()
        counts = ", ".join(f"{count:,} {status}" for status, count in rows)
        by = ["model", "model_variant", *(["purpose"] if len(settings.conditions) > 1 else [])]
        costs = load_costs(connection, SURVEY_CALL_TABLES, by, only=rounds, snapshot=settings.snapshot, variants=variants)
        report_lines = [
            f"predictions of these models in snapshot {settings.snapshot}, {', '.join(rounds)}, all runs so far: {counts}",
            *_format_costs(costs),
        ]
        # One query for all levels, since single boards would repeat shared work.
        options = SurveyBoardOptions(
            metric=metric,
            rounds=tuple(rounds),
            context_levels=tuple(settings.context_levels),
            snapshot=settings.snapshot,
            segments=tuple(settings.segments),
            questions=settings.questions,
            sample_segments=settings.sample_segments,
        )
        frame, reasons = compute_board(connection, "overall", options), find_reasons_without_score(connection, options)
        boards = [frame[frame["context_level"] == level].reset_index(drop=True) for level in settings.context_levels]
        for level, board in zip(settings.context_levels, boards, strict=True):
            table = render_board("overall", board, _HOW_AFTER_RUN)
            report_lines.append(f"\n{describe_board_scope(connection, options, level)}:\n{table}")
            report_lines += filter(None, [describe_unranked(board, reasons)])
        report_lines.append(describe_non_answers(connection, options))
        warnings = list(run_warnings(connection, settings.snapshot, rounds, variants))
        return report_lines, boards, costs, warnings

    with waiting("adding up the boards of this run"):
        lines, boards, costs, warnings = query_rounds(warehouse, run_report, [*HELD, "predictions"], rounds)
    lines.append(format_design_effect_lines(warehouse, boards[0], rounds))
    for line in filter(None, [*lines, describe_board_columns("overall", *boards) + "\n"]):
        say(line)
    if experiment := settings.experiment:
        options = SurveyBoardOptions(metric=metric, rounds=tuple(rounds), snapshot=settings.snapshot)
        say(_format_headline(experiment, MARGIN))
        ways = resolve_asked_models(experiment, context.models, experiment.models)
        _print_comparison(experiment, _compute_comparison(warehouse, ways, options, MARGIN, settings.segments))
    for warning in warnings:
        say(f"warning: {warning}", err=True)
    silent = costs.groupby("model")[["answered", "failed"]].sum()
    return not len(silent[(silent["answered"] == 0) & (silent["failed"] > 0)])


def describe_calls(gateway: Gateway | None) -> Iterator[str]:
    """Yield this command's own calls by model, without responses stored before."""
    for model in gateway.models if gateway else ():
        cost = format_cost(model.spent.known_usd, model.spent.unpriced, model.spent.most_usd)
        yield f"  {model.spec.name}: {format_count(model.answered, 'new response')}, {cost}"


def _format_costs(frame: pd.DataFrame) -> Iterator[str]:
    """Yield per language model its responses, tokens, cost, and failed or skipped calls with the first reason."""
    for row in frame.sort_values(["model", *(["purpose"] if "purpose" in frame else [])]).to_dict("records"):
        who = f"  {row['model']}, {row['purpose']}" if "purpose" in row else f"  {row['model']}"
        tokens = row["prompt_tokens"] + row["completion_tokens"]
        counts = f"{format_count(row['answered'], 'response')}, {format_count(tokens, 'token')}"
        yield f"{who}: {counts}, {format_row_cost(row)}"
        if row["failed"]:
            yield f"{who}: {format_count(row['failed'], 'call')} failed (the same command sends them again): {row['reason']}"
        if row["budget_stopped"]:
            yield f"{who}: a budget was reached, {format_count(row['budget_stopped'], 'call')} not made: {row['stop_reason']}"


@reads_tables
def compare_ways(
    warehouse: Warehouse,
    name: str,
    output: str,
    *,
    rounds: tuple[str, ...],
    models: tuple[str, ...],
    context_levels: tuple[str, ...],
    snapshot: str | None,
    metric: str,
    targets: str,
    margin: float,
) -> None:
    snapshot = snapshot or FIRST_LABEL
    options = SurveyBoardOptions(metric=metric, rounds=rounds, snapshot=snapshot, targets=targets)
    experiment = set_context_levels(find_experiment(name), context_levels)
    if not warehouse.values("scores", "round"):
        raise WarehouseError(
            f"no scores in {warehouse.root} yet: `{_format_ask_command(experiment, name, snapshot)}` asks and scores"
        )
    catalog = load_known_models(Settings.read_environment(), BASELINES)
    ways = (
        resolve_asked_models(experiment, catalog, models)
        if models
        else _find_scored_models(experiment, catalog, warehouse, options)
    )
    frame = _compute_comparison(warehouse, ways, options, margin)
    if not len(frame):
        raise ConfigError(
            f"nothing is scored for the experiment {name} in snapshot {snapshot}; it is asked by "
            f"`{_format_ask_command(experiment, name, snapshot)}`; "
            f"snapshots: {', '.join(_list_snapshots(warehouse))}"
        )
    if output == "table":
        say(_format_headline(experiment, margin))
        _print_comparison(experiment, frame)
    else:
        click.echo(render(frame, output))


def _format_ask_command(experiment: Experiment, name: str, snapshot: str) -> str:
    """Return the command that runs an experiment, with capitals for what its file does not set."""
    parts = ["dtef run --experiment", name, *([] if experiment.rounds else ["--round ROUND"])]
    parts += [
        *([] if experiment.models else ["--model MODEL"]),
        *([] if snapshot == FIRST_LABEL else [f"--snapshot {snapshot}"]),
    ]
    return " ".join(parts)


def _find_scored_models(
    experiment: Experiment, catalog: Models, warehouse: Warehouse, options: SurveyBoardOptions
) -> tuple[ConditionModel, ...]:
    """Return the language models with scores in the snapshot, in every condition; each model once, under its shortest name."""
    query = f"SELECT DISTINCT model FROM scores WHERE snapshot = $1 AND NOT {COMPUTED_SQL}"
    rows = warehouse.query(
        lambda connection: connection.execute(query, [options.snapshot]).fetchall(), only=["scores"], first=options.rounds
    )
    names = {name for (stored_name,) in rows for name in (stored_name, strip_settings(stored_name))}
    shortest_first = sorted(names, key=lambda name: ("@" in name, name))
    return tuple(
        way for model in list_each_asked_once(experiment, ((catalog, name) for name in shortest_first)) for way in model
    )


def _compute_comparison(
    warehouse: Warehouse,
    ways: tuple[ConditionModel, ...],
    options: SurveyBoardOptions,
    margin: float,
    segments: Sequence[str] = (),
) -> pd.DataFrame:
    """Return the comparison, limited to the segments if any are given."""
    return warehouse.query(
        lambda connection: compare_conditions(connection, ways, options, margin=margin, segments=segments),
        only=["scores", "predictions", "survey_responses", "reference_scores"],
        first=options.rounds,
    )


def _format_headline(experiment: Experiment, margin: float) -> str:
    first = experiment.conditions[0].name
    return (
        f"experiment {experiment.name}: {experiment.hypothesis.strip()}\n"
        f"mean over the pairs of segment and question shared with {first!r}; difference to it, its 95 % interval, and the decision "
        f"(equivalent: within ±{margin:g}):"
    )


def _print_comparison(experiment: Experiment, frame: pd.DataFrame) -> None:
    """Print a table for each context level, under a heading with its name."""
    apart = bool((frame["parsed_note"].fillna("") != "").any())
    needless = {*(() if experiment.compares_contexts else ("context_level",)), *(() if apart else ("parsed_decision",))}
    columns = [name for name in _COMPARED if name not in needless]
    fit = compute_terminal_fit(["model", "condition", "difference", "decision"], ["tokens", "parse_rate"])
    for levels, rows in _split_by_level(experiment, frame):
        table = _format_comparison(rows)
        click.echo(f"\ncontext {levels}:\n{render(table, 'table', columns=columns, ends=ENDS, fit=fit)}")
    say(f"{COLUMNS_LINE} survey/experiment")


def _split_by_level(experiment: Experiment, frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the rows compared with each other, with their context level, or levels if conditions differ in it."""
    levels = {condition.name: experiment.options(condition).context_levels for condition in experiment.conditions}
    places = [levels[name].index(level) for name, level in zip(frame["condition"], frame["context_level"], strict=True)]
    for place in sorted(set(places)):
        rows = frame[[at == place for at in places]]
        yield ", ".join(dict.fromkeys(rows["context_level"])), rows


def _format_comparison(frame: pd.DataFrame) -> pd.DataFrame:
    tokens = frame["prompt_tokens"].fillna(0) + frame["completion_tokens"].fillna(0)
    cost = [format_cost(cost, int(calls)) for cost, calls in zip(frame["cost_usd"], frame["unpriced"].fillna(0), strict=True)]
    decision = [
        f"{decision} ({note})" if isinstance(note, str) and note else decision
        for decision, note in zip(frame["decision"], frame["note"], strict=True)
    ]
    return frame.assign(tokens=tokens.astype(int), cost=cost, interval=intervals(frame), decision=decision)


def _list_snapshots(warehouse: Warehouse) -> list[str]:
    sql = "SELECT DISTINCT snapshot FROM predictions"
    labels = [name for (name,) in warehouse.query(lambda connection: connection.execute(sql).fetchall(), only=["predictions"])]
    return among(warehouse.query(snapshot_order, only=["scores"]), labels)
