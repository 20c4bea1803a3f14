"""What follows a run: its boards, costs and warnings; `dtef board --experiment`. Loads no Dagster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click
import duckdb
import pandas as pd

from dtef_pipeline.asking.models import COMPUTED_SQL, Models, base_selector
from dtef_pipeline.asking.snapshot_label import label_time
from dtef_pipeline.asking.snapshot_order import FIRST_LABEL, among, snapshot_order
from dtef_pipeline.boards.costs import costs_with_reasons
from dtef_pipeline.boards.served import mixed_served
from dtef_pipeline.cli.opened_warehouse import query_rounds, reads_tables
from dtef_pipeline.cli.survey.boards import (
    board_scope,
    line_of_non_answers,
    lines_of_design_effects,
    lines_of_unranked,
    lines_of_view,
    reasons_without_score,
    render_view,
)
from dtef_pipeline.cli.survey.selection import find_experiment, with_contexts
from dtef_pipeline.cli.terminal import say, terminal_fit
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.report.terminal import column_lines, intervals, render, shown_columns
from dtef_pipeline.statistics.differences import MARGIN
from dtef_pipeline.survey.baselines.names import BASELINES
from dtef_pipeline.survey.boards.experiments import compared
from dtef_pipeline.survey.boards.meanings import ENDS, EXPERIMENT
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
from dtef_pipeline.survey.boards.views import HELD, view
from dtef_pipeline.survey.experiments import Asked, Experiment, asked_models, each_asked_once
from dtef_pipeline.survey.stored_tables import SURVEY_CALL_TABLES
from dtef_pipeline.tables import ANSWERED, READ_ENOUGH
from dtef_pipeline.text.counted import counted
from dtef_pipeline.text.unknown_cost import cost_in_words, row_cost_in_words
from resources.gateway.progress import waiting
from resources.known_models import known_models
from resources.settings import Settings
from resources.warehouse import Warehouse

if TYPE_CHECKING:
    from dtef_pipeline.cli.family_run import GivenRun
    from resources.gateway import Gateway


SAME_RESPONSE = ("prompt_id", "question_id", "context_level", "model_variant", "snapshot", "draw")
"""Columns by which rows of `scores` and `predictions` are of one response."""
_OF_MODELS = f"NOT {COMPUTED_SQL} AND list_contains($1, round) AND list_contains($2, model_variant)"


def run_warnings(
    connection: duckdb.DuckDBPyConnection, snapshot: str, rounds: Sequence[str], variants: Sequence[str]
) -> Iterator[str]:
    """A line for each thing to warn of; `connection` has `scores`, in the order of all snapshots (see `snapshot_order`)."""
    given = [list(rounds), list(variants)]
    yield from _unread(connection, snapshot, given)
    yield from mixed_served(connection, "predictions", snapshot)
    yield from _counts_as_earlier(connection, snapshot, given)


def _unread(connection: duckdb.DuckDBPyConnection, snapshot: str, given: list[list[str]]) -> Iterator[str]:
    """Models of which fewer than READ_ENOUGH of the responses could be read."""
    rows = connection.execute(
        "SELECT model, count(*) AS answered, count(*) FILTER (status <> 'ok') AS unread, mode(reason) FILTER (status <> 'ok') "
        f"FROM scores WHERE {_OF_MODELS} AND snapshot = $3 AND list_contains($4, status) "
        "GROUP BY model ORDER BY model",
        [*given, snapshot, list(ANSWERED)],
    ).fetchall()
    for model, answered, unread, reason in rows:
        if answered - unread >= READ_ENOUGH * answered:
            continue
        quoted = model.replace("'", "''")
        share, little = (
            ("none", ", so that its scores say little") if unread == answered else (f"only {answered - unread:,}", "")
        )
        texts = (
            f"SELECT DISTINCT reason, response FROM scores JOIN predictions USING ({', '.join(SAME_RESPONSE)}) "
            f"WHERE scores.model = '{quoted}' AND snapshot = '{snapshot}' AND status <> 'ok' LIMIT 20"
        )
        yield (
            f"{model}: {share} of {counted(answered, 'response')} could be read ({unread / answered:.1%} unread){little}; "
            f'most often: {reason}; see what it wrote: dtef sql "{texts}"'
        )


def _counts_as_earlier(connection: duckdb.DuckDBPyConnection, snapshot: str, given: list[list[str]]) -> Iterator[str]:
    """That another snapshot of these models counts as the later one, so that boards over all snapshots do not show this one."""
    answered = connection.execute(
        f"SELECT DISTINCT snapshot::VARCHAR FROM scores WHERE {_OF_MODELS} AND list_contains($3, status)",
        [*given, list(ANSWERED)],
    ).fetchall()
    order = among(snapshot_order(connection), [label for (label,) in answered])
    if snapshot not in order or order[-1] == snapshot:
        return
    counts_as = "the date that it begins with" if label_time(snapshot) else "the time of its first response"
    yield (
        f"snapshot {snapshot} counts as {counts_as}, which is before {order[-1]}: where both have a response, `dtef board` and the "
        f"report go on showing the later one; this one: `dtef board --snapshot {snapshot}`"
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


def after_run(given: GivenRun) -> bool:
    """Counts by status, what the run's models cost so far, the snapshot's board for each context level; of an experiment, its comparison.

    True: every language model of the run has answered something.
    """
    warehouse, asked, metric = given.warehouse, given.options, given.options.metric
    if not warehouse.values("scores", "round"):
        return True
    rounds, variants = asked.rounds, [model.variant for model in given.models.resolve(asked.models)]

    def told(connection: duckdb.DuckDBPyConnection) -> tuple[list[str], list[pd.DataFrame], pd.DataFrame, list[str]]:
        rows = connection.execute(
            "SELECT status, count(*) FROM scores WHERE snapshot = $1 AND list_contains($2, round) AND list_contains($3, model_variant) "
            "GROUP BY 1 ORDER BY 1",
            [asked.snapshot, rounds, variants],
        ).fetchall()
        counts = ", ".join(f"{count:,} {status}" for status, count in rows)
        by = ["model", "model_variant", *(["purpose"] if len(asked.conditions) > 1 else [])]
        used = costs_with_reasons(connection, SURVEY_CALL_TABLES, by, only=rounds, snapshot=asked.snapshot, variants=variants)
        said = [
            f"snapshot {asked.snapshot}, {', '.join(rounds)}, these models: {counts}, over all runs and segments so far",
            *_cost_lines(used),
        ]
        # One look at all levels: each board by itself would look up and draw anew what they share.
        options = SurveyBoardOptions(
            metric=metric,
            rounds=tuple(rounds),
            context_levels=tuple(asked.context_levels),
            snapshot=asked.snapshot,
            segments=tuple(asked.segments),
            questions=asked.questions,
            sample_segments=asked.sample_segments,
        )
        whole, reasons = view(connection, "overall", options), reasons_without_score(connection, options)
        boards = [whole[whole["context_level"] == level].reset_index(drop=True) for level in asked.context_levels]
        for level, board in zip(asked.context_levels, boards, strict=True):
            table = render_view("overall", board, _HOW_AFTER_RUN)
            said.append(f"\n{board_scope(connection, options, level)}:\n{table}")
            said += filter(None, [lines_of_unranked(board, reasons)])
        said.append(line_of_non_answers(connection, options))
        warnings = list(run_warnings(connection, asked.snapshot, rounds, variants))
        return said, boards, used, warnings

    with waiting("adding up the boards of this run"):
        lines, boards, used, warnings = query_rounds(warehouse, told, [*HELD, "predictions"], rounds)
    lines.append(lines_of_design_effects(warehouse, boards[0], rounds))
    for line in filter(None, [*lines, lines_of_view("overall", *boards) + "\n"]):
        say(line)
    if experiment := asked.experiment:
        options = SurveyBoardOptions(metric=metric, rounds=tuple(rounds), snapshot=asked.snapshot)
        say(_headline(experiment, MARGIN))
        ways = asked_models(experiment, given.models, experiment.models)
        _echo_comparison(experiment, _comparison(warehouse, ways, options, MARGIN, asked.segments))
    for warning in warnings:
        say(f"warning: {warning}", err=True)
    silent = used.groupby("model")[["answered", "failed"]].sum()
    return not len(silent[(silent["answered"] == 0) & (silent["failed"] > 0)])


def now_asked(gateway: Gateway | None) -> Iterator[str]:
    """What this command itself asked, apart from the responses that were stored before."""
    for model in gateway.models if gateway else ():
        cost = cost_in_words(model.spent.known_usd, model.spent.unpriced, model.spent.most_usd)
        yield f"  asked now: {model.spec.name}: {counted(model.answered, 'response')}, {cost}"


def _cost_lines(frame: pd.DataFrame) -> Iterator[str]:
    """Of each language model: responses, tokens, cost, and what failed or was not asked, with the first reason."""
    for row in frame.sort_values(["model", *(["purpose"] if "purpose" in frame else [])]).to_dict("records"):
        who = f"  {row['model']}, {row['purpose']}" if "purpose" in row else f"  {row['model']}"
        tokens = row["prompt_tokens"] + row["completion_tokens"]
        said = f"{counted(row['answered'], 'response')}, {counted(tokens, 'token')}"
        yield f"{who}: {said}, {row_cost_in_words(row)}"
        if row["failed"]:
            yield f"{who}: {counted(row['failed'], 'call')} failed (the same command asks again): {row['reason']}"
        if row["budget_stopped"]:
            yield f"{who}: a budget was reached, {counted(row['budget_stopped'], 'call')} not made: {row['stop_reason']}"


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
    chosen = with_contexts(find_experiment(name), context_levels)
    if not warehouse.values("scores", "round"):
        raise WarehouseError(f"no scores in {warehouse.root} yet: `{_how_to_ask(chosen, name, snapshot)}` asks and scores")
    known = known_models(Settings.from_environment(), BASELINES)
    asked = asked_models(chosen, known, models) if models else _seen(chosen, known, warehouse, options)
    frame = _comparison(warehouse, asked, options, margin)
    if not len(frame):
        raise ConfigError(
            f"nothing is scored for the experiment {name} in snapshot {snapshot}; it is asked by `{_how_to_ask(chosen, name, snapshot)}`; "
            f"snapshots: {', '.join(_snapshots(warehouse))}"
        )
    if output == "table":
        say(_headline(chosen, margin))
        _echo_comparison(chosen, frame)
    else:
        click.echo(render(frame, output))


def _how_to_ask(chosen: Experiment, name: str, snapshot: str) -> str:
    """The command that asks an experiment; capitals stand for what its file does not say."""
    parts = ["dtef run --experiment", name, *([] if chosen.rounds else ["--round ROUND"])]
    parts += [*([] if chosen.models else ["--model MODEL"]), *([] if snapshot == FIRST_LABEL else [f"--snapshot {snapshot}"])]
    return " ".join(parts)


def _seen(chosen: Experiment, known: Models, warehouse: Warehouse, options: SurveyBoardOptions) -> tuple[Asked, ...]:
    """The language models with scores in the snapshot, in every condition; a model once, under its shortest name."""
    seen = f"SELECT DISTINCT model FROM scores WHERE snapshot = $1 AND NOT {COMPUTED_SQL}"
    rows = warehouse.query(
        lambda connection: connection.execute(seen, [options.snapshot]).fetchall(), only=["scores"], first=options.rounds
    )
    names = {name for (found,) in rows for name in (found, base_selector(found))}
    shortest_first = sorted(names, key=lambda name: ("@" in name, name))
    return tuple(one for model in each_asked_once(chosen, ((known, name) for name in shortest_first)) for one in model)


def _comparison(
    warehouse: Warehouse, asked: tuple[Asked, ...], options: SurveyBoardOptions, margin: float, segments: Sequence[str] = ()
) -> pd.DataFrame:
    """The comparison; of these segments only, if any are named."""
    return warehouse.query(
        lambda connection: compared(connection, asked, options, margin=margin, segments=segments),
        only=["scores", "predictions", "survey_responses", "reference_scores"],
        first=options.rounds,
    )


def _headline(chosen: Experiment, margin: float) -> str:
    first = chosen.conditions[0].name
    return (
        f"experiment {chosen.name}: {chosen.hypothesis.strip()}\n"
        f"mean over the pairs of segment and question shared with {first!r}; difference to it, its 95 % interval, and the decision "
        f"(equivalent: within ±{margin:g}):"
    )


def _echo_comparison(chosen: Experiment, frame: pd.DataFrame) -> None:
    """A table for each context level, under a heading that names it; the columns are explained once."""
    apart = bool((frame["parsed_note"].fillna("") != "").any())
    needless = {*(() if chosen.compares_contexts else ("context_level",)), *(() if apart else ("parsed_decision",))}
    columns = [name for name in _COMPARED if name not in needless]
    fit = terminal_fit(["model", "condition", "difference", "decision"], ["tokens", "parse_rate"])
    told: dict[str, None] = {}
    for levels, rows in _by_level(chosen, frame):
        shown = _for_people(rows)
        click.echo(f"\ncontext {levels}:\n{render(shown, 'table', columns=columns, ends=ENDS, fit=fit)}")
        told |= dict.fromkeys(shown_columns(columns, fit))
    click.echo(column_lines([name for name in columns if name in told], EXPERIMENT, fit.width))


def _by_level(chosen: Experiment, frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows that were compared with each other, and their context level; levels, where the conditions differ in it."""
    levels = {condition.name: chosen.options(condition).context_levels for condition in chosen.conditions}
    places = [levels[name].index(level) for name, level in zip(frame["condition"], frame["context_level"], strict=True)]
    for place in sorted(set(places)):
        rows = frame[[at == place for at in places]]
        yield ", ".join(dict.fromkeys(rows["context_level"])), rows


def _for_people(frame: pd.DataFrame) -> pd.DataFrame:
    tokens = frame["prompt_tokens"].fillna(0) + frame["completion_tokens"].fillna(0)
    cost = [
        cost_in_words(cost, int(unpriced))
        for cost, unpriced in zip(frame["cost_usd"], frame["unpriced"].fillna(0), strict=True)
    ]
    decision = [
        f"{decision} ({note})" if isinstance(note, str) and note else decision
        for decision, note in zip(frame["decision"], frame["note"], strict=True)
    ]
    return frame.assign(tokens=tokens.astype(int), cost=cost, interval=intervals(frame), decision=decision)


def _snapshots(warehouse: Warehouse) -> list[str]:
    seen = "SELECT DISTINCT snapshot FROM predictions"
    made = [name for (name,) in warehouse.query(lambda connection: connection.execute(seen).fetchall(), only=["predictions"])]
    return among(warehouse.query(snapshot_order, only=["scores"]), made)
