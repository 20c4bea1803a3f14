"""Whether a scenario does what the contract says: its names, and one seed played through to the end."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from dtef_pipeline.games.baselines import baseline_of, baseline_rng, baselines_of
from dtef_pipeline.games.contract import Illegal
from dtef_pipeline.games.episode import replay
from dtef_pipeline.games.in_play import GameInPlay
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.games.traces import trace_hash, trace_json, trace_of_json

_TURNS_LOOKED_AT = 8
"""In so many turns it is tried what seats cannot see, and a text that is no move: `permuted` may be slow."""
_NO_MOVE = "\0 no command"


class _Unlike(Exception):
    """The scenario does something else than the contract says."""


def trial_faults(pack: Pack) -> Iterator[str]:
    """A sentence for the first thing that goes wrong when baselines play the first seed of the manifest, and then its own baselines one by one.

    The limit of turns ends an episode that has no end. Whatever the scenario raises is a fault of it.
    """
    own = [name for name in pack.scenario.baselines if name not in getattr(pack.scenario, "oracles", ())]
    for name in dict.fromkeys(("random", *own)):
        turn = 0
        try:
            for turn in _played(pack, name):  # noqa: B007 - told of below
                pass
        except _Unlike as error:
            yield f"its adapter does not keep to the contract: {error}"
            return
        except Exception as error:  # an engine may fail in any way
            yield (
                f"its adapter fails where baseline/{name} plays seed {pack.manifest.seeds.first}, "
                f"in turn {turn + 1}: {type(error).__name__}: {error}"
            )
            return


def _played(pack: Pack, name: str) -> Iterator[int]:
    """The numbers of the turns, while a baseline plays all seats."""
    scenario, seed = pack.scenario, pack.manifest.seeds.first
    chooses = baseline_of(scenario, name) if name in baselines_of(scenario) else baselines_of(scenario)["random"]
    rngs = [baseline_rng(seed, seat) for seat in range(len(scenario.seats))]
    game = GameInPlay(pack, seed)
    while (seat := game.seat) is not None:
        yield game.turn
        if game.turn < _TURNS_LOOKED_AT and name == "random":
            _look(pack, game.state, seat)
        game.plays(chooses(game.state, seat, rngs[seat]))
    _look_at_end(pack, game, seed)


def _look(pack: Pack, state: Any, seat: int) -> None:
    scenario, n_seats = pack.scenario, len(pack.manifest.seats)
    if not scenario.legal(state, seat):
        raise _Unlike("`legal` names no command for the seat that is to move")
    scenario.step(state, seat, scenario.default(state, seat))
    hidden = scenario.permuted(state, seat, random.Random(0))  # noqa: S311 - a game's cards, no secret
    if scenario.observation(hidden, seat) != scenario.observation(state, seat):
        raise _Unlike("`permuted` changes what the seat sees")
    if not isinstance(found := scenario.read(_NO_MOVE, state, seat), str | Illegal):
        raise _Unlike(f"`read` gives {type(found).__name__}; allowed: a command, or Illegal")
    if len(scenario.stopped(state, seat).rewards) != n_seats or len(scenario.stopped(state, None).outcomes) != n_seats:
        raise _Unlike(f"`stopped` has not {n_seats} rewards and outcomes, one per seat")
    json.dumps(scenario.told(state))


def _look_at_end(pack: Pack, game: GameInPlay, seed: int) -> None:
    result, ending, n_seats = game.result, game.ending, len(pack.manifest.seats)
    if result is None or ending is None:
        raise _Unlike("an episode is over for `to_move` and has no `result` or `ending`")
    if not len(result.rewards) == len(result.outcomes) == n_seats:
        raise _Unlike(
            f"`result` has {len(result.rewards)} rewards and {len(result.outcomes)} outcomes; allowed: {n_seats} of each"
        )
    if pack.scenario.zero_sum and abs(sum(result.rewards)) > 1e-9:
        raise _Unlike(f"`zero_sum` is true, and the rewards are {', '.join(map(str, result.rewards))}")
    for text in (*ending.shown, *ending.hidden):
        if not isinstance(text, str):
            raise _Unlike(f"`ending` holds {type(text).__name__}; allowed: sentences")
    json.dumps(pack.scenario.told(game.state))
    trace, known = game.trace(), {one.name for one in pack.scenario.metrics}
    if unknown := sorted({name for one in trace.measured for name in one} - known):
        raise _Unlike(f"`measured` counts {', '.join(unknown)}, which `metrics` does not name")
    if trace_hash(replay(trace_of_json(trace_json(trace)), pack, seed)) != trace_hash(trace):
        raise _Unlike("an episode does not play again byte for byte from its commands")
