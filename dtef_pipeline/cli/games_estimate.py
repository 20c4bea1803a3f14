"""What `dtef games run --estimate` does: the same selection as `dtef games run`, played as far as responses are stored, then by a stand-in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from dtef_pipeline.asking.episodes import Played, in_windows, play
from dtef_pipeline.asking.models import Budget
from dtef_pipeline.cli.budget_lines import budget_lines
from dtef_pipeline.cli.estimate import stored_responses
from dtef_pipeline.cli.games_run import LeagueOptions, league_plans
from dtef_pipeline.cli.opened_warehouse import open_warehouse
from dtef_pipeline.cli.planned_table import (
    lines_of_run_budgets,
    lines_of_sent,
    mean_call_tokens,
    planned_frame,
    planned_usage,
    print_planned,
)
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.games.foreseen import ForeseenCalls, foreseen
from dtef_pipeline.games.matches import LeaguePlan, Match
from dtef_pipeline.judging.call_ledger import USUAL_TURN_TOKENS, CallLedger, UsualLengths
from dtef_pipeline.report.terminal import render
from dtef_pipeline.text.counted import counted
from resources.known_models import known_models
from resources.responses.store import ResponseStore
from resources.settings import Settings

_EPISODES_FOLLOWED = 2_000
_OF_LEAGUES = {
    "planned": "Texts to be written, in all episodes",
    "calls": "Requests that are sent: all that are not replayed, where a stand-in plays on with legal moves",
    "calls_most": "Calls if every game lasts to its limit of turns, and every turn takes all the texts that it may",
    "response_tokens_most": "Tokens of the responses to the most calls, if each is as long as max_tokens of the model allows",
}
"""What columns of an estimate mean where games are played."""
HIGHEST_ASSUMES = (
    "The highest numbers assume that every game lasts to its limit of turns, "
    "every turn takes all its retries, and every response is as long as max_tokens allows."
)


def estimate(options: LeagueOptions, output: str) -> None:
    settings = Settings.from_environment()
    warehouse = open_warehouse(new=True)  # a first league is estimated before there is one
    models = known_models(settings, COMPUTED_MODELS)
    plans = league_plans(options, settings, models)
    ledger = CallLedger(usual=UsualLengths(mean_call_tokens(warehouse, ["episode_turns"])))
    episodes = 0
    with stored_responses(settings) as store:
        for plan in plans.values():
            calls = ForeseenCalls(plan.pack, ledger)
            for matches in in_windows((match for match in plan.matches() if not match.asks_nobody), _EPISODES_FOLLOWED):
                episodes += len(matches)
                _count(plan, matches, store, calls)
            calls.close()
    rows = [row for row in ledger.sorted_rows() if row.planned]
    frame = planned_frame(rows)
    if output != "table":
        click.echo(render(frame, output))
        return
    click.echo(
        f"{counted(len(plans), 'scenario')}, {counted(episodes, 'episode')} that models play, snapshot {options.snapshot}\n"
    )
    config = options.config()["episodes"]
    lines = [HIGHEST_ASSUMES, *_lengths_unknown(ledger), *lines_of_run_budgets(config, frame)]
    for name, limits in config["budgets"].items():
        lines += budget_lines(f"{name}: ", Budget.model_validate(limits), planned_usage(frame[frame["model"] == name]))
    print_planned(frame, [*lines, *lines_of_sent(rows)], _OF_LEAGUES)


def _lengths_unknown(ledger: CallLedger) -> Iterator[str]:
    """Of which models it is not known how much they write; every later prompt of an episode holds it again."""
    names = [row.model.name for row in ledger.sorted_rows() if row.calls and row.model.variant not in ledger.usual.turns]
    if names:
        yield (
            f"No text of {' and '.join(names)} was played yet: each is taken to have {counted(USUAL_TURN_TOKENS, 'token')}, "
            "or max_tokens if that is less, and later prompts of its episode hold it again. "
            "Once some seeds are played, the mean of what was written counts."
        )


def _count(plan: LeaguePlan, matches: Sequence[Match], store: ResponseStore | None, calls: ForeseenCalls) -> None:
    """What episodes still take, behind what of them is stored already."""
    episodes = [plan.episode(match) for match in matches]
    came = [Played() for _ in matches] if store is None else play(episodes, lambda _: {}, store.responses)
    for match, episode, played in zip(matches, episodes, came, strict=True):
        seats = [player.model for player in match.by_seat(plan.n_seats)]
        calls.add_stored(played.responses, {model.variant: model for model in seats if model is not None})
        calls.add(match, list(foreseen(episode, played.responses)))
