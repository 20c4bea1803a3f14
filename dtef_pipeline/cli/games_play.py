"""What `dtef games play` does; the words are in `dtef_pipeline/cli/games_group.py`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from assets.games.known_games import known_personas, known_scenarios
from dtef_pipeline.asking.models import Budget
from dtef_pipeline.asking.snapshot_label import require_safe
from dtef_pipeline.cli.games_asked import ModelSeats, NoResponse
from dtef_pipeline.cli.games_lines import commands_in, text_of
from dtef_pipeline.cli.games_person import Stopped, ask_person
from dtef_pipeline.cli.games_told import tell_end, tell_trace
from dtef_pipeline.cli.terminal_width import say
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.games.baselines import baseline_of, baseline_rng
from dtef_pipeline.games.contract import FreeCommands
from dtef_pipeline.games.entrants import names_of_players, player_named
from dtef_pipeline.games.in_play import GameInPlay
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.opening import ending_in_json
from dtef_pipeline.games.packs import Pack, pack
from dtef_pipeline.games.players import BASELINE_PREFIX, Player
from resources.known_models import known_models
from resources.settings import Settings

HUMAN, AS_WRITTEN = "human", "commands"


@dataclass(frozen=True)
class PlayOptions:
    """Options of `dtef games play`."""

    scenario: str
    seed: int = 1
    players: str | None = None
    commands: str | None = None
    as_json: bool = False
    with_trace: bool = False
    draw: int = 0
    snapshot: str = "base"
    max_cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Seated:
    """Who sits at each seat: a player, or None for a person or for the commands that were given."""

    names: tuple[str, ...]
    players: tuple[Player | None, ...]

    @property
    def written(self) -> frozenset[int]:
        """Seats of a person or of given commands, which may write as many texts in a turn as they like."""
        return frozenset(seat for seat, player in enumerate(self.players) if player is None)


def play(options: PlayOptions) -> int:
    """The exit code: 1 where a model gave no response."""
    require_safe(options.snapshot)
    settings = Settings.from_environment()
    manifests = known_scenarios(settings)
    one = pack(full_name(options.scenario, manifests), manifests)
    seated = _seated(one, options, settings)
    game = GameInPlay(one, options.seed, patient=seated.written)
    code = 0
    try:
        _play(game, seated, options, settings)
    except NoResponse as error:
        say(f"error: {error}; what was answered is kept, and the same command goes on", err=True)
        code = 1
    except Stopped:
        say("stopped before the end", err=True)
    if options.as_json:
        click.echo(json.dumps(played(game), ensure_ascii=False))
        return code
    if options.with_trace:
        tell_trace(game, seated.names)
    tell_end(game, seated.names, tells_all=options.with_trace or HUMAN not in seated.names)
    return code


def full_name(name: str, manifests: Mapping[str, ScenarioManifest]) -> str:
    """The scenario's id: as it was given, or the one that has this name behind its league."""
    fitting = [one.id for one in manifests.values() if one.scenario == name]
    return fitting[0] if name not in manifests and len(fitting) == 1 else name


def played(game: GameInPlay) -> dict[str, Any]:
    """What came of an episode, as JSON has it."""
    trace, seat, scenario = game.trace(), game.seat, game.pack.scenario
    reasons = [move.illegal.reason for move in trace.moves if move.illegal]
    return {
        "rewards": list(trace.result.rewards) if trace.result else None,
        "outcome": trace.result.outcomes[0] if trace.result else None,
        "ending": ending_in_json(game.ending),
        "actions": [[move.seat, move.command] for move in trace.moves if move.command is not None],
        "illegal": len(reasons),
        "illegal_reasons": reasons,
        "state": scenario.told(game.state),
        "legal": list(scenario.legal(game.state, seat)) if seat is not None else [],
        "always_legal": list(scenario.always_legal(game.state, seat))
        if seat is not None and isinstance(scenario, FreeCommands)
        else [],
    }


def _seated(one: Pack, options: PlayOptions, settings: Settings) -> Seated:
    seats = one.manifest.seats
    given = names_of_players(options.players or "")
    scripted = options.commands is not None
    if scripted and len(given) < len(seats):
        given = [AS_WRITTEN, *given]
    elif scripted:
        given[0] = AS_WRITTEN
    if not given:
        given = [HUMAN]
    if options.players is None:
        usual = one.manifest.opponents or ["random"]
        given += [f"{BASELINE_PREFIX}{usual[0]}"] * (len(seats) - len(given))
    if len(given) != len(seats):
        raise ConfigError(
            f"--players {options.players}: got {len(given)} for {one.name}; allowed: {len(seats)} ({', '.join(seats)})"
        )
    models = known_models(settings, COMPUTED_MODELS)
    personas = known_personas(settings)
    by_hand = (HUMAN, AS_WRITTEN) if scripted else (HUMAN,)
    players = [None if name in by_hand else player_named(one, models, personas, name) for name in given]
    return Seated(tuple(given), tuple(players))


def _play(game: GameInPlay, seated: Seated, options: PlayOptions, settings: Settings) -> None:
    """Play until the game is over, the commands are used up, or the person has had enough."""
    commands = iter(commands_in(options.commands or ""))
    rngs = [baseline_rng(options.seed, seat) for seat in range(len(seated.names))]
    with ModelSeats(settings, options.draw, options.snapshot, Budget(max_cost_usd=options.max_cost_usd)) as asked:
        while (seat := game.seat) is not None:
            player = seated.players[seat]
            if player is not None and player.baseline is not None:
                game.plays(baseline_of(game.pack.scenario, player.baseline)(game.state, seat, rngs[seat]))
            elif player is not None:
                game.writes(asked.text(game, seat, player))
            elif seated.names[seat] == AS_WRITTEN:
                if (command := next(commands, None)) is None:
                    return
                game.writes(text_of(command, game.pack.scenario))
            else:
                _flush()
                game.writes(ask_person(game, seat, to_stderr=options.as_json))


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
