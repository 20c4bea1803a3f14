"""What `dtef qa run --estimate` does: the run is counted and priced. Asks no model and writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click
import pandas as pd

from dtef_pipeline.asking.models import Budget, Models
from dtef_pipeline.cli.budget_lines import budget_lines
from dtef_pipeline.cli.estimate import stored_responses
from dtef_pipeline.cli.opened_warehouse import reads_tables
from dtef_pipeline.cli.planned_table import (
    lines_of_run_budgets,
    lines_of_sent,
    mean_call_tokens,
    mean_tokens,
    planned_frame,
    planned_usage,
    print_planned,
    stored_in,
)
from dtef_pipeline.cli.qa_filter import refuse_empty_filter
from dtef_pipeline.cli.qa_made_prompts import made_prompts
from dtef_pipeline.cli.qa_others_judged import say_others_judged
from dtef_pipeline.cli.qa_run import QaOptions, arbiter_given, chosen_parts
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.judging.call_ledger import CallLedger, UsualLengths
from dtef_pipeline.judging.judgement import JUDGE_ROLE
from dtef_pipeline.qa.answering import prompts_of, with_messages
from dtef_pipeline.qa.arbiter import Arbiter, judge_snapshot
from dtef_pipeline.qa.call_plan import AskedPart, plan_part
from dtef_pipeline.qa.space import QA_SPACE
from dtef_pipeline.report.terminal import render
from dtef_pipeline.text.counted import counted
from resources.known_models import known_models
from resources.settings import Settings
from resources.warehouse import Warehouse


@reads_tables
def estimate(warehouse: Warehouse, options: QaOptions, output: str) -> None:
    settings = Settings.from_environment()
    keys = chosen_parts(warehouse, options.suites, options.parts)
    models = known_models(settings, COMPUTED_MODELS)
    arbiter = arbiter_given(options, models)
    refuse_empty_filter(warehouse, keys, options.how)
    with stored_responses(settings) as store:
        ledger = CallLedger(stored_in(store), _usual_lengths(warehouse))
        responses = waiting = 0
        for asked in _asked(warehouse, options, models, arbiter, keys):
            responses += plan_part(asked, ledger)
            waiting += len(asked.prompts) - len(with_messages(asked.prompts))
    if waiting:
        told = f"{counted(waiting, 'question')} for which nothing was looked up yet"
        click.echo(f"not counted: {told}; `dtef qa run --retriever remote` without --model asks the server", err=True)
    say_others_judged(warehouse.rows, keys, models.resolve(options.models), options.snapshot, arbiter, options.rejudge)
    rows = [row for row in ledger.sorted_rows() if row.planned]
    frame = planned_frame(rows)
    if output != "table":
        click.echo(render(frame, output))
        return
    click.echo(f"{counted(len(keys), 'part')}, {counted(responses, 'response')}, snapshot {options.snapshot}\n")
    print_planned(frame, [*_lines_of_budgets(options.config()["qa_responses"], arbiter, frame), *lines_of_sent(rows)])


def _asked(
    warehouse: Warehouse, options: QaOptions, models: Models, arbiter: Arbiter | None, keys: Sequence[str]
) -> Iterator[AskedPart]:
    specs = models.resolve(options.models)
    how = options.how
    for key in keys:
        items = warehouse.rows("qa_items", **QA_SPACE.levels(key))
        prompts = made_prompts(warehouse, how, key, items)
        stored = warehouse.rows("qa_responses", **QA_SPACE.levels(key), snapshot=options.snapshot)
        for condition in prompts["condition"].unique().to_pylist():
            chosen = prompts_of(prompts, condition, options.limit)
            yield AskedPart(
                chosen, items, specs, options.draws, options.snapshot, arbiter, judge_snapshot(options.rejudge or None), stored
            )


def _usual_lengths(warehouse: Warehouse) -> UsualLengths:
    """Mean tokens of what models wrote before, whatever the part and snapshot."""
    return UsualLengths(
        mean_call_tokens(warehouse, ["qa_responses"]),
        mean_tokens(warehouse, "qa_judgements", "judge_variant", "len(raw)"),
    )


def _lines_of_budgets(config: dict[str, Any], arbiter: Arbiter | None, frame: pd.DataFrame) -> Iterator[str]:
    """How the budgets of the run, of its roles and of the judges' day compare with the estimate."""
    yield from lines_of_run_budgets(config, frame)
    for name, limits in config["budgets"].items():
        yield from budget_lines(f"{name}: ", Budget.model_validate(limits), planned_usage(frame[frame["model"] == name]))
    judged = frame[frame["role"] == JUDGE_ROLE]
    if arbiter is not None and arbiter.daily_budget is not None and len(judged):
        daily = Budget(max_cost_usd=arbiter.daily_budget)
        for line in budget_lines("", daily, planned_usage(judged)):
            yield line.replace("max_cost_usd", "daily_budget of judges", 1)
