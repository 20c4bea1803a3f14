"""A made-up game: two seats with a secret card each wait or show; who shows first compares cards. And players, packs and responses for it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Failure, Request, Response
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
from dtef_pipeline.games.episode import GameEpisode, LeaguePlan, Match, play_baselines
from dtef_pipeline.games.episode_items import GameItem
from dtef_pipeline.games.episode_rows import EpisodeColumns, compute_episode_scores
from dtef_pipeline.games.manifest import ScenarioManifest, read_manifest, read_manifests
from dtef_pipeline.games.negotiation import allocation
from dtef_pipeline.games.negotiation.allocation import Allocation, Bargain
from dtef_pipeline.games.packs import Pack, pack
from dtef_pipeline.games.persona_results import compute_game_results
from dtef_pipeline.games.personas import Persona, Player
from dtef_pipeline.games.site.family_site import build_games_site, read_games
from dtef_pipeline.games.site.game_labels import GameDocuments
from dtef_pipeline.games.tables import EPISODE_SCORES, EPISODE_TURNS
from dtef_pipeline.site.build import build_site_files
from dtef_pipeline.site.family_content import FamilyContent
from tests.conftest import ROOT
from tests.made.responses import response
from tests.made.usual_rows import make_usual_row

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


CHIPS_WON = {
    name: value
    for name, value in make_usual_row("episode_scores").items()
    if name in ("metric", "metric_family", "unit", "direction", "unit_scale")
}


def scored_games(
    player: str, opponent: str, rewards: Mapping[int, Sequence[float]], metric: Mapping[str, Any] = CHIPS_WON
) -> Iterator[dict[str, Any]]:
    """A row per episode. `rewards`: by seed, those of both seats, and after them those of more draws."""
    for seed, found in rewards.items():
        for at, reward in enumerate(found):
            item = f"{seed}/{at % 2}/{opponent}"
            named = {"model": player, "model_variant": player, "episode_id": f"{player} {item} {at}", "item_id": item}
            placed = {"draw": at // 2, "opponent": opponent, "cluster": str(seed)}
            yield make_usual_row("episode_scores", **named, **placed, **metric, numerator=reward, value=reward)


def connected_scores(rows: Sequence[Mapping[str, Any]]) -> duckdb.DuckDBPyConnection:
    """A connection with these rows of `episode_scores`, and no texts."""
    connection = duckdb.connect(config={"threads": 1})
    connection.register("episode_scores", pa.Table.from_pylist(list(rows), schema=EPISODE_SCORES))
    connection.register("episode_turns", EPISODE_TURNS.empty_table())
    return connection


SCENARIOS = Path(__file__).parents[2] / "data" / "scenarios"
HOSTILE_TEXT = (
    "<think>secret</think>I hold aces </script><script>window.hacked = 1</script>"
    "<img src=x onerror='window.hacked = 1'>\n\u202eRTL \x00 {&amp;"
)
STEADY, HOSTILE = ModelSpec(name="steady", model="openai/steady"), ModelSpec(name="<b>hostile</b>", model="openai/hostile")
CALM = Persona(id="calm", version=2, display_name="Calm", system_prompt="You never hurry.")
PLANNED_MOVE = "A king is worth a bet.\nACTION: {}"
_OUT_OF_BUDGET = Failure("a" * 64, "the budget of <i>steady</i> has ended", 0, "budget")


def _texts(player: Player, legal: Sequence[str], text: int) -> str:
    """What a model writes: one plays, the other first writes what is no move."""
    command = legal[-1] if legal else "pass"
    if player.model is HOSTILE and text % 2 == 0:
        return HOSTILE_TEXT
    return PLANNED_MOVE.format(command)


def _played(plan: LeaguePlan, match: Match, most: int) -> tuple[Any, EpisodeResult]:
    """A match with at most so many texts; after them the budget has ended."""
    episode, history = plan.episode(match), list[Response]()
    while (request := episode.next(history)) is not None and len(history) < most:
        last = request.messages[-1].text
        listed = last.rpartition("Legal commands: ")[2].splitlines()[0].split(", ") if "Legal commands: " in last else []
        history.append(response_to(request, _texts(match.player, listed, len(history))))
    failure = _OUT_OF_BUDGET if request is not None else None
    return episode.trace(), EpisodeResult(history, failure)


def _episodes(own: Pack) -> pa.Table:
    manifest = own.manifest
    names = [f"baseline/{name}" for name in manifest.opponents]
    seats = range(len(manifest.seats))
    items = [GameItem(seed, seat, name) for seed in range(1, 7) for name in (names or [""]) for seat in seats]
    baselines = [Player(baseline=name) for name in own.scenario.baselines]
    models = [Player(model, role) for model in (STEADY, HOSTILE) for role in (None, CALM)]
    opponents = {name: Player(baseline=name.removeprefix("baseline/")) for name in names}
    plan = LeaguePlan(own, items, [*baselines, *models], opponents, 1, "base")
    columns = EpisodeColumns(plan)
    for match in plan.matches():
        if match.needs_no_model:
            columns.add(match, play_baselines(own, match.item.seed, match.list_seated_players(plan.n_seats)))
        else:
            unlucky = match.player == models[0] and match.item == items[-1]
            columns.add(match, *_played(plan, match, 0 if unlucky else 30))
    return columns.table()


def played_league(names: Sequence[str]) -> dict[str, pa.Table]:
    """Episodes, scores and results of some scenarios."""
    manifests = read_manifests(SCENARIOS)
    packs = [pack(name, manifests) for name in names]
    episodes = [_episodes(one) for one in packs]
    scores = [compute_episode_scores(table, one) for table, one in zip(episodes, packs, strict=True)]
    tables = {"episodes": pa.concat_tables(episodes), "episode_scores": pa.concat_tables(scores)}
    connection = connected_games({**tables, "episode_turns": EPISODE_TURNS.empty_table()})
    return {**tables, "persona_results": compute_game_results(connection)}


def connected_games(tables: Mapping[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    for name, rows in tables.items():
        connection.register(name, rows)
    return connection


def games_view(tables: Mapping[str, pa.Table], known: GameDocuments | None = None) -> FamilyContent:
    """What games show of these tables; `known`: None: the shipped scenarios."""
    return read_games(connected_games(tables), known or GameDocuments(read_manifests(SCENARIOS)))


def games_files(tables: Mapping[str, pa.Table]) -> dict[str, str]:
    """The files of a site of these tables alone, without those that all pages share."""
    site = build_games_site(GameDocuments(read_manifests(SCENARIOS)))
    files = build_site_files(connected_games(tables), [site], {}, "made for a test")
    return {path: text for path, text in files if not path.startswith("static/")}


def shipped(name: str, **changed: Any) -> ScenarioManifest:
    """The manifest of `negotiation/NAME`, with changed fields."""
    found = read_manifest(ROOT / "data" / "scenarios" / "negotiation" / f"{name}.yaml")
    return found.model_copy(update=changed)


def an_allocation(n_seats: int = 2, **settings: Any) -> Allocation:
    return allocation.of_manifest(shipped("allocation", seats=list("ABCD"[:n_seats]), settings=settings))


def a_bargain(*values: tuple[int, ...]) -> Bargain:
    """A negotiation that begins, with these values by seat; without, those of two parties: 6 3 1 and 2 5 3."""
    return Bargain(("boat", "clock", "drum"), values or ((6, 3, 1), (2, 5, 3)))
