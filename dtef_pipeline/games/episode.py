"""Episodes with their players: models play turn by turn through requests, baselines play directly, and any episode can be replayed.

For estimates a stand-in plays in place of a model, and the largest number of texts that models may write is counted.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dtef_pipeline.asking.call_plan import estimate_tokens_cached, prompt_tokens
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Request, Response
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import ChooseCommand, GameMove, GameTrace, find_baseline, make_baseline_rng
from dtef_pipeline.games.episode_items import GameItem
from dtef_pipeline.games.game_in_play import GameInPlay, decode_trace, hash_trace
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.games.personas import Player
from dtef_pipeline.games.small_poker import SmallPoker, count_information_sets
from dtef_pipeline.identity import digest

_Automatic = dict[int, tuple[ChooseCommand, random.Random]]


@dataclass(slots=True)
class GameEpisode:
    """One episode to play, an episode of `asking.episodes`.

    Requests contain only the conversation of the model's own seat. Raises ConfigError if the number of players is not that of the seats,
    and for a baseline that the scenario does not have.
    """

    pack: Pack
    seed: int
    players: tuple[Player, ...]
    """By seat."""
    draw: int = 0
    snapshot: str = "base"
    _game: GameInPlay = field(init=False, repr=False)
    _baselines: _Automatic = field(init=False, repr=False)
    _texts: list[str] = field(init=False, repr=False, default_factory=list)

    def __post_init__(self) -> None:
        seats = self.pack.manifest.seats
        if len(self.players) != len(seats):
            allowed = f"{len(seats)}, one per seat ({', '.join(seats)})"
            raise ConfigError(f"{self.pack.name}: got {len(self.players)} players; allowed: {allowed}")
        self._start_game()

    def next(self, history: Sequence[Response]) -> Request | None:
        """Return the next request after these responses, for the seat to move, or None at the end.

        It continues from the present state; after a different history it starts again.
        """
        texts = [response.text for response in history]
        if texts[: len(self._texts)] != self._texts:
            self._start_game()
        for text in texts[len(self._texts) :]:
            if self._game.seat is None:
                break
            self._game.writes(text)
            self._texts.append(text)
            _play_on(self._game, self._baselines)
        if (seat := self._game.seat) is None or (model := self.players[seat].model) is None:
            return None
        messages = self._game.messages(seat, self.players[seat].persona)
        return Request.build_request(messages, model, self.draw, self.snapshot)

    @property
    def seat(self) -> int | None:
        """The seat to move after the last history, or None at the end."""
        return self._game.seat

    @property
    def state(self) -> Any:
        """The complete state of the game after the last history, including what seats hide."""
        return self._game.state

    @property
    def turn(self) -> int:
        """The number of the next turn, from 0."""
        return self._game.turn

    def trace(self) -> GameTrace:
        """Return the trace after the last history."""
        return self._game.trace()

    def list_reactions(self) -> tuple[str, ...]:
        """Return the game's reply to each text, in the order of the texts: after the last text of a seat how the game ended, with its
        ending.

        If a baseline makes the last move, seats of models still get the reply to their own last text.
        """
        moves = self._game.trace().moves
        last = {move.seat: place for place, move in enumerate(moves) if move.text is not None}
        return tuple(
            self._game.last_reaction(move) if last[move.seat] == place else move.reaction
            for place, move in enumerate(moves)
            if move.text is not None
        )

    def _start_game(self) -> None:
        self._game = GameInPlay(self.pack, self.seed)
        self._baselines = {
            seat: (find_baseline(self.pack.scenario, player.baseline), make_baseline_rng(self.seed, seat))
            for seat, player in enumerate(self.players)
            if player.baseline is not None
        }
        self._texts = []
        _play_on(self._game, self._baselines)


def play_baselines(pack: Pack, seed: int, players: tuple[Player, ...]) -> GameTrace:
    """Play an episode between baselines, which costs nothing. Raises ConfigError as `GameEpisode`, and if a player is a model."""
    if models := [player.name for player in players if player.baseline is None]:
        raise ConfigError(f"{', '.join(models)}: not a baseline; allowed: only baselines, such as baseline/random")
    return GameEpisode(pack, seed, players).trace()


def replay(trace: GameTrace, pack: Pack, seed: int) -> GameTrace:
    """Replay an episode from its texts and its baselines' commands: gives the same trace, byte for byte, for the same scenario and seed.

    Raises ValueError if the trace is of another scenario or seed, so that its moves cannot be played.
    """
    game = GameInPlay(pack, seed)
    for _ in replay_moves(trace, game):
        pass
    if trace.result is None and game.seat is not None:
        game.messages(game.seat)
    return game.trace()


def replay_moves(trace: GameTrace, game: GameInPlay) -> Iterator[GameMove]:
    """Yield each move of a trace, and then play it in the game, which has the seed of the trace. Raises ValueError as `replay`."""
    for move in trace.moves:
        if not move.by_default and game.seat != move.seat:
            raise ValueError(f"turn {move.turn}: the trace has seat {move.seat} move, the game seat {game.seat}")
        yield move
        if move.by_default:
            continue  # the game has played it already, after the text before it
        if move.text is not None:
            game.writes(move.text)
        elif move.command is not None:
            game.play_command(move.command)


def _play_on(game: GameInPlay, baselines: _Automatic) -> None:
    """Play until it is the turn of a seat without a baseline, or the game is over."""
    while (seat := game.seat) is not None and seat in baselines:
        chooses, rng = baselines[seat]
        game.play_command(chooses(game.state, seat, rng))


def check_replay(pack: Pack, seed: int, trace: str, stored_hash: str) -> str | None:
    """Return a stored trace's fault, or None if it replays byte for byte."""
    try:
        replay_hash = hash_trace(replay(decode_trace(trace), pack, seed))
    except (KeyError, TypeError, ValueError) as error:
        return f"it cannot be replayed: {error}"
    return None if replay_hash == stored_hash else f"its replay has the hash {replay_hash} instead of {stored_hash}"


class Match(NamedTuple):
    """One episode to play by one player."""

    item: GameItem
    player: Player
    """Under test."""
    opponent: Player | None
    """Player at all other seats; None: there are none."""
    draw: int = 0

    def list_seated_players(self, n_seats: int) -> tuple[Player, ...]:
        """Return the player of each seat."""
        if self.opponent is None:
            return (self.player,)
        return tuple(self.player if seat == self.item.seat else self.opponent for seat in range(n_seats))

    @property
    def needs_no_model(self) -> bool:
        return self.player.model is None and (self.opponent is None or self.opponent.model is None)


@dataclass(frozen=True, slots=True)
class MatchPlayed:
    """A match between models with its episode."""

    match: Match
    episode: GameEpisode

    def next(self, history: Sequence[Response]) -> Request | None:
        return self.episode.next(history)


@dataclass(frozen=True, slots=True)
class LeaguePlan:
    """The episodes to play in one scenario."""

    pack: Pack
    items: Sequence[GameItem]
    players: Sequence[Player]
    opponents: Mapping[str, Player]
    """Opponents by their name in items."""
    draws: int
    snapshot: str

    def matches(self) -> Iterator[Match]:
        """Yield all matches. A baseline against a baseline has one draw, because seed and seat determine its moves."""
        for player in self.players:
            for item in self.items:
                first = Match(item, player, self.opponents.get(item.opponent))
                for draw in range(1 if first.needs_no_model else self.draws):
                    yield first._replace(draw=draw)

    def episode(self, match: Match) -> GameEpisode:
        """Return the episode of a match."""
        return GameEpisode(self.pack, match.item.seed, match.list_seated_players(self.n_seats), match.draw, self.snapshot)

    @property
    def all_players(self) -> list[Player]:
        """The players under test, then their opponents."""
        return [*self.players, *self.opponents.values()]

    @property
    def n_seats(self) -> int:
        return len(self.pack.manifest.seats)

    def episode_id(self, match: Match) -> str:
        """Hash of scenario, version, item, persona, model variant, draw and snapshot."""
        manifest, player = self.pack.manifest, match.player
        named = (manifest.id, manifest.version, match.item.item_id, player.persona_name, player.variant)
        return digest("episode", *named, match.draw, self.snapshot)


STAND_IN = "random"
"""Baseline that plays for a model in a scenario without opponents; in others one of these, drawn for each turn, plays."""
_RETRY_TOKENS = 60
"""Tokens added around the reply form after a text that was not a move."""


def write_legal_text(episode: GameEpisode, request: Request, text: str) -> str:
    """Write a text with a legal move for the seat to move. It depends only on the request, so that equal conversations continue alike."""
    scenario, seat = episode.pack.scenario, episode.seat or 0
    rng = random.Random(request.key)  # noqa: S311 - a game's dice, no secret
    plays = find_baseline(scenario, rng.choice(episode.pack.manifest.opponents or [STAND_IN]))
    return f"{text}\nACTION: {plays(episode.state, seat, rng)}"


_Writer = tuple[str, str, int]
"""Model variant, persona and draw: a writer gives the same text to the same messages."""


class EpisodeTextLimit:
    """The largest number of texts that a scenario's episodes may still need: up to the turn limit, each turn with all its retries."""

    def __init__(self, pack: Pack) -> None:
        manifest, scenario = pack.manifest, pack.scenario
        self._n_seats, self._reply_format = len(manifest.seats), manifest.reply_format
        self._turn_texts = 1 + manifest.retries
        self._episode_texts = -(-manifest.turn_limit // self._n_seats) * self._turn_texts
        self._scenario_texts: int | None = None
        """Number of distinct texts over all episodes with one draw; None: unknown."""
        if isinstance(scenario, SmallPoker):  # each information set has only one conversation
            self._scenario_texts = count_information_sets(scenario) * self._turn_texts
        self._first_tokens = self._turn_tokens = 0
        """Tokens of the longest first prompt, and of the longest text shown to a player in a turn."""
        self._models: dict[_Writer, ModelSpec] = {}
        self._written: dict[_Writer, dict[tuple[str, str, str, int], int | str]] = defaultdict(dict)
        """Number of texts that a seat of an episode already has, which may be 0 although it has to move; before its first one, the key of its
        first request, because within a turn, episodes that begin alike continue alike."""

    def add(self, game: MatchPlayed, request: Request) -> None:
        """Count a request of an episode that is not stored. The number of a seat's other texts is estimated from its first request only."""
        match, seat = game.match, game.episode.seat or 0
        self._turn_tokens = max(self._turn_tokens, estimate_tokens_cached(request.messages[-1].text))
        self._first_tokens = max(self._first_tokens, prompt_tokens(request.messages[:2]))
        for place, player in enumerate(match.list_seated_players(self._n_seats)):
            if player.model is None:
                continue
            writer = (player.variant, player.persona_name, match.draw)
            self._models[writer] = player.model
            own_seat = (match.item.item_id, match.player.persona_name, match.player.variant, place)
            if not self._written[writer].setdefault(own_seat, 0) and place == seat:
                n_texts = sum(message.role == "assistant" for message in request.messages)
                self._written[writer][own_seat] = n_texts or request.key

    def total(self) -> Iterator[tuple[ModelSpec, int, float, float]]:
        """See `dtef_pipeline.family.stage.MostCalls`."""
        instruction_tokens = max(self._turn_tokens, estimate_tokens_cached(self._reply_format) + _RETRY_TOKENS)
        for writer, seats in self._written.items():
            begun = {texts for texts in seats.values() if isinstance(texts, str)}
            known = [self._turn_texts if isinstance(texts, str) else texts for texts in seats.values()]
            texts = len(begun) * self._turn_texts + sum(self._episode_texts - n for n in known)
            grown = len(begun) * _sum_to(self._turn_texts) + sum(_sum_to(self._episode_texts) - _sum_to(n) for n in known)
            if self._scenario_texts is not None and self._scenario_texts < texts:
                texts, grown = self._scenario_texts, min(grown, self._scenario_texts * (self._episode_texts - 1))
            model = self._models[writer]
            longest = float("inf") if model.max_tokens is None else float(model.max_tokens)
            more_tokens = grown * (instruction_tokens + longest) if grown else 0
            yield model, texts, texts * self._first_tokens + more_tokens, longest


def _sum_to(texts: int) -> float:
    """Return the number of earlier texts that this many prompts of a conversation contain together."""
    return texts * (texts - 1) / 2
