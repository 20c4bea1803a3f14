"""A made-up game: two seats with a secret card each wait or show; who shows first compares cards. And players, packs and responses for it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Request, Response
from dtef_pipeline.games.contract import (
    ChooseCommand,
    Count,
    GameEnding,
    GameMetric,
    GameResult,
    Illegal,
    Scenario,
    State,
    find_baseline,
    make_baseline_rng,
)
from dtef_pipeline.games.episode import GameEpisode
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.games.personas import Persona, Player
from tests.made.responses import response

CARDS = tuple(range(1, 10))
PERSONA = Persona(id="calm", version=2, display_name="The Calm One", system_prompt="You never hurry.")
MODEL_A = ModelSpec(name="alpha", model="openai/alpha")
MODEL_B = ModelSpec(name="beta", model="openai/beta")


@dataclass(frozen=True)
class ShowState:
    """Cards by seat, and what was said."""

    cards: tuple[int, int]
    said: tuple[str, ...] = ()


def careful(state: ShowState, seat: int, _: random.Random) -> str:
    return "show" if state.cards[seat] > 5 else "wait"


class ShowCards:
    """The scenario."""

    name = "made/show-cards"
    seats: tuple[str, ...] = ("A", "B")
    unit = "points"
    zero_sum = True
    metrics = (GameMetric("show_rate", "risk", "share", "none", "Shows over all turns of the seat."),)
    baselines: Mapping[str, ChooseCommand] = {"careful": careful, "waits": lambda *_: "wait"}

    def reset(self, seed: int) -> ShowState:
        first, second = random.Random(seed).sample(CARDS, 2)
        return ShowState((first, second))

    def seat_to_move(self, state: ShowState) -> int | None:
        return None if "show" in state.said else len(state.said) % 2

    def observation(self, state: ShowState, seat: int) -> str:
        said = ", ".join(state.said) or "nothing"
        return f"Your card is {state.cards[seat]}. Said so far: {said}."

    def legal(self, state: ShowState, seat: int) -> tuple[str, ...]:
        return ("wait", "show") if self.seat_to_move(state) == seat else ()

    def read(self, text: str, state: ShowState, seat: int) -> str | Illegal:
        if self.seat_to_move(state) != seat:
            return Illegal("It is not your turn.")
        last = text.strip().rpartition("\n")[2].casefold().removeprefix("action:").strip()
        if last in ("wait", "show"):
            return last
        if "refuse" in last:
            return Illegal("You have to play.", "refused")
        if last.isalpha():
            return Illegal(f"{last} is no command here.")
        return Illegal("No command was found.", "unparsed")

    def step(self, state: ShowState, seat: int, command: str) -> ShowState:
        if command not in self.legal(state, seat):
            raise ValueError(f"{command} is not legal for seat {seat}")
        return replace(state, said=(*state.said, command))

    def result(self, state: ShowState) -> GameResult | None:
        if self.seat_to_move(state) is not None:
            return None
        won = 1.0 if state.cards[0] > state.cards[1] else -1.0
        return GameResult((won, -won), ("win", "loss") if won > 0 else ("loss", "win"))

    def stop_episode(self, state: ShowState, seat: int | None) -> GameResult:
        if seat is None:
            return GameResult((0.0, 0.0), ("draw", "draw"))
        return GameResult((-1.0, 1.0) if seat == 0 else (1.0, -1.0), ("loss", "win") if seat == 0 else ("win", "loss"))

    def default(self, state: ShowState, seat: int) -> str:
        return "wait"

    def measure_seat(self, state: ShowState, seat: int) -> Mapping[str, Count]:
        mine = state.said[seat::2]
        return {"show_rate": Count(mine.count("show"), len(mine))}

    def ending(self, state: ShowState) -> GameEnding:
        cards = f"A had {state.cards[0]}, B had {state.cards[1]}."
        return GameEnding((f"{len(state.said)} words were said.",), (cards,))

    def encode_state(self, state: ShowState) -> dict[str, Any]:
        return {"cards": list(state.cards), "said": list(state.said)}

    def permute_hidden(self, state: ShowState, seat: int, rng: random.Random) -> ShowState:
        other = rng.choice([card for card in CARDS if card != state.cards[seat]])
        return replace(state, cards=(state.cards[0], other) if seat == 0 else (other, state.cards[1]))


def show_pack(**changed: Any) -> Pack:
    """The pack, with other fields of the manifest where they are given."""
    manifest = ScenarioManifest.model_validate(
        {
            "id": "made/show-cards",
            "version": 1,
            "status": "experimental",
            "description": "Who shows first compares cards.",
            "rules": "Each seat has a card. Say wait or show. After show, the higher card wins a point.",
            "constraints": ["speak of anything else"],
            "reply_format": "End with a line ACTION: <command>.",
            "seats": ["A", "B"],
            "seeds": {"count": 3},
            "opponents": ["careful"],
            "turn_limit": 8,
            "on_illegal": "forfeit",
            **changed,
        }
    )
    return Pack(manifest, ShowCards())


def apply_commands(scenario: Scenario[State], state: State, *commands: str) -> State:
    """The state after commands of whoever's turn it is."""
    for command in commands:
        seat = scenario.seat_to_move(state)
        assert seat is not None
        state = scenario.step(state, seat, command)
    return state


def play_out(scenario: Scenario[State], seed: int, *baselines: str) -> State:
    """The end of a game of baselines, one for each seat."""
    players = [(find_baseline(scenario, name), make_baseline_rng(seed, seat)) for seat, name in enumerate(baselines)]
    state = scenario.reset(seed)
    while (seat := scenario.seat_to_move(state)) is not None:
        choose, rng = players[seat]
        state = scenario.step(state, seat, choose(state, seat, rng))
    return state


def baseline(name: str) -> Player:
    return Player(baseline=name)


def model_player(model: ModelSpec = MODEL_A, persona: Persona | None = None) -> Player:
    return Player(model=model, persona=persona)


def response_to(request: Request, text: str) -> Response:
    """A stored response to a request."""
    model = {"model": request.model.model, "model_variant": request.model.variant}
    asked = {"request_key": request.key, "prompt_id": request.prompt_id, "draw": request.draw, "snapshot": request.snapshot}
    return response(0, text=text, cost_usd=0.0, **model, **asked)


def played_with(episode: GameEpisode, texts: Sequence[str]) -> list[Request]:
    """Play an episode with these texts one after the other; the requests that were made, the open one included."""
    history: list[Response] = []
    requests: list[Request] = []
    for text in texts:
        request = episode.next(history)
        if request is None:
            return requests
        requests.append(request)
        history.append(response_to(request, text))
    last = episode.next(history)
    return requests if last is None else [*requests, last]
