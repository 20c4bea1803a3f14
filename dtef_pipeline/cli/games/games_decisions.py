"""`dtef games run --decisions`: run, estimate and show whole strategies."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from assets.games.game_catalog import load_known_personas, load_known_scenarios
from dtef_pipeline.asking.models import Models
from dtef_pipeline.boards.named_boards import TableLayout
from dtef_pipeline.cli.families import load_stages
from dtef_pipeline.cli.family_run import FamilyRun, RunSelection, estimate, open_run, start
from dtef_pipeline.cli.games.games_run import OR_UNAPPROVED, choose_scenarios, register
from dtef_pipeline.cli.settings_command import RunFlags
from dtef_pipeline.cli.stage_runs import report_run_end
from dtef_pipeline.cli.terminal import print_rows, say
from dtef_pipeline.cli.warehouse_access import reads_tables
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.family.run_settings import build_settings
from dtef_pipeline.games.entrants import list_player_models, resolve_entrants
from dtef_pipeline.games.exact.decision_points import DecisionPlan, has_decision_points, select_points_to_ask
from dtef_pipeline.games.exact.strategy_values import EXPLOITABLE, EXPLOITABLE_CORRECTED, PARTIAL_STRATEGY, WON, require_fill
from dtef_pipeline.games.packs import Pack, pack
from dtef_pipeline.games.persona_results import format_player_names
from dtef_pipeline.games.personas import BASELINE_PREFIX, require_approved
from dtef_pipeline.games.settings import DecisionSettings
from dtef_pipeline.games.tables import LEAGUE_SPACE
from resources.settings import Settings
from resources.warehouse import Warehouse

_WON_FROM = "against_"
_WHOSE_STRATEGY = ("league", "scenario", "version", "snapshot", "player", "persona", "model", "model_variant")
_STRATEGY_COUNTS = ("n_draws", "n_points", "n_missing", "n_filled")
DECISION_COLUMNS = {
    "player": "Player: baseline/NAME, a model, or PERSONA@MODEL",
    "exploitability": "Chips per hand that the best opponent wins, mean of both seats, corrected for few draws: lower is better",
    "of_random": "Exploitability as a share of that of play at random: 0 is perfect play, 1 no better than random",
    "as_drawn": "Exploitability of the draws as they are: too high on average",
    "interval": "95 % interval of exploitability, over other draws of the same player",
    f"{_WON_FROM}NAME": "Chips per hand won from the baseline NAME, mean of both seats: higher is better",
    "unreadable": "Share of the responses from which no legal command was read, 0-1",
    "status": "State of the strategy: scored, partial (a baseline plays where the model was not asked; ranked separately) or unscored",
    "asked": "Decision points that were asked, of all that the game has",
    "draws": "Responses that it follows from",
}


_STRATEGIES_LAYOUT = TableLayout(
    (),
    ("player", "status", "asked", "exploitability", "interval"),
    ("scenario", "as_drawn", "draws", "unreadable"),
    "exploitability",
    name_columns=("scenario", "player"),
)


@reads_tables
def show(warehouse: Warehouse, plans: Mapping[str, DecisionPlan], output: str) -> None:
    """Print the stored strategies in the scenarios and snapshot of the plans, the least exploitable first."""
    players = _group_players([row for key, plan in plans.items() for row in _read_strategy_rows(warehouse, key, plan)])
    if not players:
        raise WarehouseError("nothing to show: `dtef games run --decisions --player NAME` asks a model")
    values = list(dict.fromkeys(name for row in players for name in row if name.startswith(_WON_FROM)))
    names = (
        *("scenario", "player", "status", "asked", "exploitability", "interval", "of_random", "as_drawn"),
        *values,
        *("unreadable", "draws"),
    )
    print_rows(replace(_STRATEGIES_LAYOUT, columns=names), _build_frame(players), output, (), "games/decisions")


def _read_strategy_rows(warehouse: Warehouse, key: str, plan: DecisionPlan) -> Iterator[dict[str, Any]]:
    """Yield the rows of `strategy_values` of the scenario's current version, with player names."""
    rows = warehouse.rows("strategy_values", **LEAGUE_SPACE.levels(key), snapshot=plan.snapshot).to_pylist()
    for row in rows:
        if row["version"] == plan.pack.manifest.version:
            yield {**row, "player": format_player_names([row["persona"]], [row["model"]])[0]}


def _build_frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the rows with numeric columns, even if all values are unknown."""
    frame = pd.DataFrame(rows)
    integers = {name: "Int64" for name in ("draws", "points", "of_points", "missing", "filled") if name in frame}
    real = {name: "float64" for name in ("exploitability", "low", "high", "of_random", "as_drawn") if name in frame}
    return frame.astype({**integers, **real})


def _group_players(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    players = []
    most = {row["scenario"]: row["n_points"] for row in rows if row["model"].startswith(BASELINE_PREFIX)}
    of_player: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        of_player.setdefault(tuple(row[name] for name in _WHOSE_STRATEGY), []).append(row)
    for key, group in of_player.items():
        who = dict(zip(_WHOSE_STRATEGY, key, strict=True))
        by = {row["quantity"]: row for row in group}
        corrected, plain = by[EXPLOITABLE_CORRECTED], by[EXPLOITABLE]
        share = corrected["value"] / plain["scale"] if corrected["value"] is not None and plain["scale"] else None
        player_row = {"exploitability": corrected["value"], "low": corrected["low"], "high": corrected["high"]}
        player_row |= {"as_drawn": plain["value"], "scale": plain["scale"], "of_random": share}
        wins = [row for row in group if row["quantity"] == WON]
        player_row |= {f"{_WON_FROM}{row['opponent'].removeprefix(BASELINE_PREFIX)}": row["value"] for row in wins}
        player_row["unreadable"] = 1 - corrected["n_readable"] / corrected["n_draws"] if corrected["n_draws"] else None
        player_row |= {name.removeprefix("n_"): corrected[name] for name in _STRATEGY_COUNTS}
        of = most[who["scenario"]]
        player_row |= {"of_points": of, "status": plain["status"], "asked": f"{corrected['n_points']:,} of {of:,}"}
        players.append({**who, **player_row, "note": _describe_values(corrected, of)})
    return sorted(players, key=_sort_key)


def _sort_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Sort by scenario, then the least exploitable first; then strategies partly played by a baseline, then those without a value."""
    value = row["exploitability"] if row["exploitability"] is not None else row["as_drawn"]
    return row["league"], row["scenario"], value is None, row["status"] == PARTIAL_STRATEGY, value or 0.0, row["player"]


def _describe_values(row: Mapping[str, Any], most: int) -> str:
    """Return notes on a player's values. `most`: all decision points of the game."""
    if row["model"].startswith(BASELINE_PREFIX):
        return ""
    notes = [row["reason"]] if row["reason"] else []
    if row["n_filled"]:
        coverage = f"partial: {row['n_points']:,} of {most:,} decision points were asked"
        notes.append(
            f"{coverage}, {row['filled_by']} plays in {row['n_filled']:,}: not a value of the player, so it is ranked separately"
        )
    elif row["n_points"] < most:
        notes.append("--sample 0 asks in all decision points; --fill nash uses perfect play where the model was not asked")
    return "; ".join(notes)


def run_or_estimate(settings: Mapping[str, Any], flags: RunFlags, *, is_estimate: bool, output: str) -> None:
    """Do what `dtef games run --decisions` does. `settings`: by option names; the players are the models to call."""
    options = DECISIONS_RUN.settings({"models" if name == "players" else name: value for name, value in settings.items()})
    if is_estimate:
        estimate(DECISIONS_RUN, options, flags, output)
    else:
        sys.exit(run(options, flags, output))


def run(options: DecisionSettings, beside: RunFlags, output: str) -> int:
    """Return the exit code: 1 if a scenario failed or a file was skipped."""
    context = open_run(DECISIONS_RUN, options, beside)
    plans = build_decision_plans(options, context.environment, context.models)
    _require_answers(context.warehouse, options)
    _, running = start(DECISIONS_RUN, context, _build_selection(plans))
    if output == "table":
        running.say_used()
    code = report_run_end(context.warehouse, running.outcome)
    if running.done:
        show({key: plans[key] for key in running.done}, output)
    return code


def _build_selection(plans: Mapping[str, DecisionPlan]) -> RunSelection:
    specs = list_player_models([player for plan in plans.values() for player in plan.players])
    return RunSelection(list(plans), {spec.name for spec in specs}, specs)


def _require_answers(warehouse: Warehouse, options: DecisionSettings) -> None:
    """Raise WarehouseError if no model is given and no answers are stored."""
    if options.models:
        return
    if not warehouse.tables(["decision_answers"]):
        raise WarehouseError(f"no player was given, and {warehouse.root} has no answers to value: --player NAME asks a model")
    say("no player was given: the run asks no model and values the stored answers", err=True)


def build_decision_plans(options: DecisionSettings, settings: Settings, models: Models) -> dict[str, DecisionPlan]:
    """Return the plans of the selected scenarios that have decision points.

    Raises ConfigError if none has, or if a scenario, model, persona, baseline or sample is unknown.
    """
    manifests, personas = load_known_scenarios(settings), load_known_personas(settings)
    keys = choose_scenarios(manifests, options.leagues, options.scenarios)
    packs = {key: pack(key, manifests) for key in keys}
    small = {key: entry for key, entry in packs.items() if has_decision_points(entry.scenario)}
    if not small:
        raise ConfigError(f"{', '.join(keys)}: no decision points; allowed: {', '.join(_list_with_points(manifests))}")
    plans = {}
    for key, entry in small.items():
        require_fill(entry, options.fill)
        players = resolve_entrants(entry, models, personas, options.models, options.personas)
        if not options.unapproved:
            require_approved(players, OR_UNAPPROVED)
        if baselines := [player.name for player in players if player.model is None]:
            raise ConfigError(
                f"--player {', '.join(baselines)}: baselines are always shown and never asked; allowed with --decisions: a model"
            )
        plans[key] = DecisionPlan(
            entry, select_points_to_ask(entry.scenario, options.sample), players, options.draws, options.snapshot
        )
    return plans


def _list_with_points(manifests: Any) -> list[str]:
    every: dict[str, Pack] = {key: pack(key, manifests) for key in manifests}
    return [key for key, entry in every.items() if has_decision_points(entry.scenario)]


DECISIONS_RUN = FamilyRun(
    "games",
    "scenario",
    partial(load_stages, "games", "DECISION_STAGES"),
    partial(build_settings, DecisionSettings),
    lambda context: _build_selection(build_decision_plans(context.options, context.environment, context.models)),
    register=register,
    roll_up=lambda context, running: running.roll_up_costs(),
    makes_warehouse=True,
    sized_by=("decision_answers", "decision"),
)
