"""What `dtef games estimate` does: the same selection as `dtef games run`, played as far as responses are stored, then estimated."""

from __future__ import annotations

from typing import NamedTuple

import click
import pyarrow.compute as pc

from dtef_pipeline.asking.episodes import play
from dtef_pipeline.asking.models import Budget, ModelSpec
from dtef_pipeline.asking.request import CANDIDATE
from dtef_pipeline.asking.tokens import estimate_tokens
from dtef_pipeline.cli.budget_lines import budget_lines
from dtef_pipeline.cli.estimate import stored_responses
from dtef_pipeline.cli.games_run import LeagueOptions, league_plans
from dtef_pipeline.cli.left_out import open_warehouse
from dtef_pipeline.cli.planned_table import lines_of_run_budgets, mean_tokens, planned_frame, planned_usage, print_planned
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.games.matches import LeaguePlan, Match
from dtef_pipeline.games.opening import opening_messages
from dtef_pipeline.games.players import BASELINE_PREFIX
from dtef_pipeline.games.space import LEAGUE_SPACE
from dtef_pipeline.judging.call_ledger import CallLedger, UsualLengths, most_tokens
from dtef_pipeline.report.terminal import render
from dtef_pipeline.text.counted import counted
from resources.known_models import known_models
from resources.responses.store import ResponseStore
from resources.settings import Settings
from resources.table_reader import TableReader

_EPISODES_FOLLOWED = 2_000


class _Length(NamedTuple):
    """Texts of one seat in an episode of a scenario."""

    usual: float
    most: float


def estimate(options: LeagueOptions, output: str) -> None:
    settings = Settings.from_environment()
    reader = TableReader(open_warehouse(new=True))  # a first league is estimated before there is one
    models = known_models(settings, COMPUTED_MODELS)
    plans = league_plans(options, settings, models)
    ledger = CallLedger(usual=UsualLengths(mean_tokens(reader, "episode_turns", "model_variant", "1")))
    episodes = 0
    with stored_responses(settings) as store:
        for key, plan in plans.items():
            asked = [match for match in plan.matches() if not match.asks_nobody]
            length = _usual_length(reader, key, plan)
            episodes += len(asked)
            for begin in range(0, len(asked), _EPISODES_FOLLOWED):
                _count(plan, asked[begin : begin + _EPISODES_FOLLOWED], length, store, ledger)
    frame = planned_frame([row for row in ledger.sorted_rows() if row.planned])
    if output != "table":
        click.echo(render(frame, output))
        return
    click.echo(
        f"{counted(len(plans), 'scenario')}, {counted(episodes, 'episode')} that models play, snapshot {options.snapshot}\n"
    )
    config = options.config()["episodes"]
    lines = [*lines_of_run_budgets(config, frame)]
    for name, limits in config["budgets"].items():
        lines += budget_lines(f"{name}: ", Budget.model_validate(limits), planned_usage(frame[frame["model"] == name]))
    print_planned(frame, lines)


def _usual_length(reader: TableReader, key: str, plan: LeaguePlan) -> _Length:
    """Texts of a seat: the mean of earlier episodes of models, else the turns of baselines, else half the limit of turns.

    At most all its turns with all retries.
    """
    manifest = plan.pack.manifest
    turns = -(-manifest.turn_limit // plan.n_seats)
    most = turns * (1 + manifest.retries)
    texts = reader.rows("episode_turns", columns=["episode_id", "seat", "call_status"], **LEAGUE_SPACE.levels(key))
    texts = texts.filter(pc.equal(texts["call_status"], "answered"))
    of = texts.group_by(["episode_id", "seat"]).aggregate([]).num_rows
    usual = len(texts) / of if of else _turns_of_baselines(reader, key) or turns / 2
    return _Length(min(max(usual, 1), most), most)


def _turns_of_baselines(reader: TableReader, key: str) -> float | None:
    """The mean number of turns of baselines in an episode; None: none has played."""
    rows = reader.rows("episodes", columns=["model", "n_turns"], **LEAGUE_SPACE.levels(key))
    turns: float | None = pc.mean(rows.filter(pc.starts_with(rows["model"], BASELINE_PREFIX))["n_turns"]).as_py()
    return turns


def _count(plan: LeaguePlan, matches: list[Match], length: _Length, store: ResponseStore | None, ledger: CallLedger) -> None:
    """What episodes still take, behind what of them is stored already."""
    episodes = [plan.episode(match) for match in matches]
    if store is not None:
        came = play(episodes, lambda _: {}, store.responses)
        done = [[one.request_key for one in played.responses] for played in came]
        over = [played.failure is None for played in came]
    else:
        done, over = [[] for _ in matches], [False] * len(matches)
    for match, keys, ended in zip(matches, done, over, strict=True):
        new = sum(ledger.new(keys))
        for seat, player in enumerate(match.by_seat(plan.n_seats)):
            if player.model is not None:
                own = new if seat == match.item.seat else 0
                row = ledger.row(CANDIDATE, player.model)
                row.planned += own
                row.requests += own
                row.replayed += own
                if not ended:
                    _add(plan, match, seat, player.model, _left(length, len(keys)), ledger)


def _left(length: _Length, stored: int) -> _Length:
    """What is left of an episode of which so many texts are stored."""
    return _Length(max(length.usual - stored, 1), max(length.most - stored, 1))


def _add(plan: LeaguePlan, match: Match, seat: int, model: ModelSpec, left: _Length, ledger: CallLedger) -> None:
    """The texts that one seat still writes. Each request holds the conversation so far, so that prompts grow."""
    player = match.by_seat(plan.n_seats)[seat]
    spoken = [estimate_tokens(one.text) for one in opening_messages(plan.pack, match.item.seed, player, seat)]
    row, usual, most = ledger.row(CANDIDATE, model), ledger.usual.of_turn(model), most_tokens(model)
    if model.is_imported:
        return
    calls = round(left.usual)
    row.planned += calls
    row.requests += calls
    row.calls += calls
    row.calls_most += round(left.most)
    row.prompt_tokens += _grown(left.usual, sum(spoken), spoken[-1] + usual)
    row.prompt_tokens_most += _grown(left.most, sum(spoken), spoken[-1] + (usual if most == float("inf") else most))
    row.response_tokens += left.usual * usual
    row.response_tokens_most += left.most * most


def _grown(texts: float, first: float, more: float) -> float:
    """Tokens of so many prompts, of which the first has `first` and each further one `more` than that before it."""
    return texts * first + texts * (texts - 1) / 2 * more
