"""What `dtef games decisions` does; the words are in `dtef_pipeline/cli/games_decisions_group.py`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import click

from assets.games.known_games import known_personas, known_scenarios
from dtef_pipeline.asking.models import Budget, Models
from dtef_pipeline.asking.request import CANDIDATE
from dtef_pipeline.asking.snapshot_label import require_safe
from dtef_pipeline.cli.estimate import stored_responses
from dtef_pipeline.cli.games_decisions_shown import show
from dtef_pipeline.cli.games_run import OR_UNAPPROVED, chosen_scenarios, unapproved_config
from dtef_pipeline.cli.imported_models import require_imported
from dtef_pipeline.cli.opened_warehouse import open_warehouse, say_skipped
from dtef_pipeline.cli.planned_table import lines_of_run_budgets, lines_of_sent, mean_call_tokens, planned_frame, print_planned
from dtef_pipeline.cli.ready import check_home_path, dagster_instance
from dtef_pipeline.cli.role_budgets import budgets_given, with_owners
from dtef_pipeline.cli.started_runs import say_used
from dtef_pipeline.cli.terminal_width import say
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.games.approved import require_approved
from dtef_pipeline.games.decision_points import has_decision_points, points_to_ask
from dtef_pipeline.games.decision_rows import DecisionPlan
from dtef_pipeline.games.entrants import entrants, models_among
from dtef_pipeline.games.packs import Pack, pack
from dtef_pipeline.games.strategy_values import require_fill
from dtef_pipeline.judging.call_ledger import CallLedger, UsualLengths, most_tokens, tokens_of
from dtef_pipeline.report.terminal import render
from dtef_pipeline.text.counted import counted
from resources.gateway.askable import refuse_early
from resources.gateway.budget import Accounts
from resources.gateway.progress import kept_terminal
from resources.known_models import known_models
from resources.responses.store import ResponseStore
from resources.settings import Settings
from resources.warehouse import Warehouse


@dataclass(frozen=True)
class DecisionOptions:
    """Options of `dtef games decisions` that say what is asked."""

    leagues: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    personas: tuple[str, ...] = ()
    draws: int = 10
    sample: int | None = None
    fill: str | None = None
    snapshot: str = "base"
    max_cost_usd: tuple[str, ...] = ()
    max_calls: tuple[str, ...] = ()
    unapproved: bool = False

    def config(self) -> dict[str, dict[str, Any]]:
        """Run configuration by asset name."""
        snapshot = {"snapshot": self.snapshot}
        asked = {"players": list(self.models), "personas": list(self.personas), "draws": self.draws}
        sample = {} if self.sample is None else {"sample": self.sample}
        fill = {} if self.fill is None else {"fill": self.fill}
        return {
            "decision_answers": {
                **asked,
                **sample,
                **snapshot,
                **budgets_given(self.max_cost_usd, self.max_calls),
                **unapproved_config(self.unapproved),
            },
            "strategy_values": {**snapshot, **fill},
        }


def run(options: DecisionOptions, output: str) -> int:
    """The exit code: 1 where a scenario failed or a file was left out."""
    settings = Settings.from_environment()
    check_home_path(settings)
    require_safe(options.snapshot)
    models = known_models(settings, COMPUTED_MODELS)
    plans = decision_plans(options, settings, models)
    warehouse = open_warehouse(new=True)
    _require_answers(warehouse, options)
    specs = models_among([player for plan in plans.values() for player in plan.players])
    require_imported(specs, options.snapshot, settings)
    config = with_owners(options, {spec.name for spec in specs}, models).config()
    with ResponseStore(settings.responses_url) as store:
        limit = budgets_given(options.max_cost_usd, options.max_calls).get("max_cost_usd")
        refuse_early(specs, options.snapshot, Accounts(Budget(max_cost_usd=limit), {}), store, os.environ)
    with kept_terminal():
        from assets.games.scenarios import add_scenarios
        from assets.launch import DECISION_STAGE_NAMES, OF_SCENARIOS, materialize
        from assets.stage.partitions import SNAPSHOT_TAG
        from assets.stage.shared_gateway import command

        with dagster_instance() as instance, command(list(plans)) as running:
            add_scenarios(instance, list(plans))
            tags = {**running.tags, SNAPSHOT_TAG: options.snapshot}
            outcome = materialize(instance, DECISION_STAGE_NAMES, list(plans), config, tags, space=OF_SCENARIOS)
            used = running.gateway.used if running.gateway else {}
    say_skipped(outcome, warehouse)
    if output == "table":
        say_used(used)
    for failure in outcome.failures:
        say(f"error: {failure}", err=True)
    if outcome.done:
        show({key: plans[key] for key in outcome.done}, output)
    return 1 if outcome.failures or warehouse.skipped else 0


def _require_answers(warehouse: Warehouse, options: DecisionOptions) -> None:
    """Raises WarehouseError where no model is to be asked and none was asked before: there is nothing to value."""
    if options.models:
        return
    if not warehouse.tables(["decision_answers"]):
        raise WarehouseError(f"no model was given, and {warehouse.root} has no answers to value: --model NAME asks a model")
    say("no model was given: nobody is asked, and what is stored is valued", err=True)


def estimate(options: DecisionOptions, output: str) -> None:
    """What a run would ask and cost, also before anything was ever run."""
    warehouse = open_warehouse(new=True)
    settings = Settings.from_environment()
    plans = decision_plans(options, settings, known_models(settings, COMPUTED_MODELS))
    of_games, of_points = (mean_call_tokens(warehouse, [table]) for table in ("episode_turns", "decision_answers"))
    ledger = CallLedger(usual=UsualLengths({**of_games, **of_points}))
    with stored_responses(settings) as store:
        for plan in plans.values():
            _count(plan, store, ledger)
    rows = [row for row in ledger.sorted_rows() if row.planned]
    frame = planned_frame(rows)
    if output != "table":
        click.echo(render(frame, output))
        return
    points = sum(len(plan.points) for plan in plans.values())
    click.echo(f"{counted(len(plans), 'scenario')}, {counted(points, 'decision point')}, snapshot {options.snapshot}\n")
    print_planned(frame, [*lines_of_run_budgets(options.config()["decision_answers"], frame), *lines_of_sent(rows)])


def decision_plans(options: DecisionOptions, settings: Settings, models: Models) -> dict[str, DecisionPlan]:
    """By scenario, what is to be asked: of those that are meant, the ones that have decision points.

    Raises ConfigError where none of them has, and for a scenario, model, persona, baseline or sample that is not known.
    """
    manifests, personas = known_scenarios(settings), known_personas(settings)
    meant = chosen_scenarios(manifests, options.leagues, options.scenarios)
    packs = {key: pack(key, manifests) for key in meant}
    small = {key: found for key, found in packs.items() if has_decision_points(found.scenario)}
    if not small:
        raise ConfigError(f"{', '.join(meant)}: no decision points; allowed: {', '.join(_with_points(manifests))}")
    plans = {}
    for key, found in small.items():
        require_fill(found, options.fill)
        players = entrants(found, models, personas, options.models, options.personas)
        if not options.unapproved:
            require_approved(players, OR_UNAPPROVED)
        if baselines := [one.name for one in players if one.model is None]:
            raise ConfigError(f"--model {', '.join(baselines)}: a baseline is never asked, and always shown; allowed: a model")
        plans[key] = DecisionPlan(
            found, points_to_ask(found.scenario, options.sample), players, options.draws, options.snapshot
        )
    return plans


def _with_points(manifests: Any) -> list[str]:
    every: dict[str, Pack] = {key: pack(key, manifests) for key in manifests}
    return [key for key, found in every.items() if has_decision_points(found.scenario)]


def _count(plan: DecisionPlan, store: ResponseStore | None, ledger: CallLedger) -> None:
    """The requests of a plan, behind what of them is stored already."""
    asked = list(plan.asked())
    known = store.known([one.request.key for one in asked]) if store is not None else set[str]()
    for one, is_new in zip(asked, ledger.new([one.request.key for one in asked]), strict=True):
        model = one.request.model
        row = ledger.row(CANDIDATE, model)
        row.planned += 1
        if not is_new:
            continue
        row.requests += 1
        if one.request.key in known:
            row.replayed += 1
        else:
            told = sum(tokens_of(message.text) for message in one.request.messages)
            row.send(1, told, ledger.usual.of_turn(model), most_tokens(model))
