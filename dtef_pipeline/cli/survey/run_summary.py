"""Output after a run: boards, costs and warnings. Loads no Dagster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import duckdb
import pandas as pd

from dtef_pipeline.asking.models import COMPUTED_SQL
from dtef_pipeline.asking.snapshot_order import among, parse_name_time, snapshot_order
from dtef_pipeline.boards.costs import load_costs
from dtef_pipeline.boards.item_board import list_mixed_served
from dtef_pipeline.cli.survey.boards import (
    describe_board_columns,
    describe_board_scope,
    describe_non_answers,
    describe_unranked,
    find_reasons_without_score,
    format_design_effect_lines,
    render_board,
)
from dtef_pipeline.cli.terminal import say
from dtef_pipeline.cli.warehouse_access import query_rounds
from dtef_pipeline.survey.boards.board_rows import BOARD_SOURCES, compute_board
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.stages import SURVEY_CALL_TABLES
from dtef_pipeline.tables import ANSWERED, READ_ENOUGH
from dtef_pipeline.text.number_words import format_count
from resources.gateway.progress import waiting

if TYPE_CHECKING:
    from dtef_pipeline.cli.family_run import RunContextOfCommand


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
            f'most often: {reason}; its responses: dtef sql "{texts}"'
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
    counts_as = "the date that it begins with" if parse_name_time(snapshot) else "the time of its first response"
    yield (
        f"snapshot {snapshot} counts as {counts_as}, which is before {order[-1]}: where both have a response, `dtef board` and the "
        f"report show the later one; `dtef board --snapshot {snapshot}` shows this one"
    )


_HOW_AFTER_RUN = "`dtef board --wide` shows them"


def report_after_run(context: RunContextOfCommand) -> bool:
    """Print counts by status, the models' costs so far and the snapshot's boards by context level."""
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
        columns = ["model", "model_variant", *(["purpose"] if len(settings.conditions) > 1 else [])]
        costs = load_costs(connection, SURVEY_CALL_TABLES, columns, only=rounds, snapshot=settings.snapshot, variants=variants)
        report_lines = [
            f"predictions of these models in snapshot {settings.snapshot}, {', '.join(rounds)}, all runs so far: {counts}",
            *_describe_failed_calls(costs),
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
        lines, boards, costs, warnings = query_rounds(warehouse, run_report, [*BOARD_SOURCES, "predictions"], rounds)
    lines.append(format_design_effect_lines(warehouse, boards[0], rounds))
    for line in filter(None, [*lines, describe_board_columns("overall", *boards) + "\n"]):
        say(line)
    for warning in warnings:
        say(f"warning: {warning}", err=True)
    silent = costs.groupby("model")[["answered", "failed"]].sum()
    return not len(silent[(silent["answered"] == 0) & (silent["failed"] > 0)])


def _describe_failed_calls(frame: pd.DataFrame) -> Iterator[str]:
    """Yield a line per language model with failed calls, and with calls ended by a budget, each with the first reason."""
    for row in frame.sort_values(["model", *(["purpose"] if "purpose" in frame else [])]).to_dict("records"):
        who = f"  {row['model']}, {row['purpose']}" if "purpose" in row else f"  {row['model']}"
        if row["failed"]:
            yield f"{who}: {format_count(row['failed'], 'call')} failed (the same command sends them again): {row['reason']}"
        if row["budget_stopped"]:
            yield f"{who}: a budget was reached, {format_count(row['budget_stopped'], 'call')} not made: {row['stop_reason']}"
