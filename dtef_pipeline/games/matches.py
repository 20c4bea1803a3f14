"""Matches: an item with the player that is to play it, its opponent and the draw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dtef_pipeline.games.contract import GameTrace
from dtef_pipeline.games.episode import GameEpisode, play_baselines
from dtef_pipeline.games.episode_items import GameItem
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.games.players import Player
from dtef_pipeline.identity import digest


class Match(NamedTuple):
    """One episode to be played by one player."""

    item: GameItem
    player: Player
    """Under test."""
    opponent: Player | None
    """At all other seats; None: there are none."""
    draw: int = 0

    def by_seat(self, n_seats: int) -> tuple[Player, ...]:
        """Who sits where."""
        if self.opponent is None:
            return (self.player,)
        return tuple(self.player if seat == self.item.seat else self.opponent for seat in range(n_seats))

    @property
    def asks_nobody(self) -> bool:
        return self.player.model is None and (self.opponent is None or self.opponent.model is None)


@dataclass(frozen=True, slots=True)
class LeaguePlan:
    """What is to be played of one scenario."""

    pack: Pack
    items: Sequence[GameItem]
    players: Sequence[Player]
    opponents: Mapping[str, Player]
    """By the name that items have."""
    draws: int
    snapshot: str

    def matches(self) -> Iterator[Match]:
        """All of them. A baseline against a baseline has one draw: its moves follow from the seed and the seat."""
        for player in self.players:
            for item in self.items:
                first = Match(item, player, self.opponents.get(item.opponent))
                for draw in range(1 if first.asks_nobody else self.draws):
                    yield first._replace(draw=draw)

    def episode(self, match: Match) -> GameEpisode:
        """The match, to be asked turn by turn."""
        return GameEpisode(self.pack, match.item.seed, match.by_seat(self.n_seats), match.draw, self.snapshot)

    @property
    def n_seats(self) -> int:
        return len(self.pack.manifest.seats)

    def episode_id(self, match: Match) -> str:
        """Hash of scenario, version, item, persona, model variant, draw and snapshot."""
        manifest, player = self.pack.manifest, match.player
        named = (manifest.id, manifest.version, match.item.item_id, player.persona_name, player.variant)
        return digest("episode", *named, match.draw, self.snapshot)


class BaselineGames:
    """Games of baselines, each played once: A against B is the same game for the item of either seat."""

    def __init__(self, pack: Pack) -> None:
        self._pack = pack
        self._played: dict[tuple[int, tuple[str, ...]], GameTrace] = {}

    def trace(self, seed: int, players: tuple[Player, ...]) -> GameTrace:
        """What was played, with players by seat."""
        key = (seed, tuple(player.name for player in players))
        if key not in self._played:
            self._played[key] = play_baselines(self._pack, seed, players)
        return self._played[key]
