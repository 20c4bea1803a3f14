"""For estimates: how a stand-in plays for a model that nobody asks, and the most texts that models can have to write."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from dtef_pipeline.asking.call_plan import estimate_tokens_cached, prompt_tokens
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Request
from dtef_pipeline.games.contract import find_baseline
from dtef_pipeline.games.episode import GameEpisode, Match
from dtef_pipeline.games.exact.decision_points import has_decision_points, list_decision_points
from dtef_pipeline.games.packs import Pack

STAND_IN = "random"
"""The baseline that plays for a model in a scenario without opponents; in others one of these does, drawn anew for each turn."""
_ASKED_AGAIN_TOKENS = 60
"""Tokens around the form of a reply where a text was no move."""


def write_legal_text(episode: GameEpisode, request: Request, text: str) -> str:
    """The text with a legal move of the seat that is asked. It follows from the request, so that equal conversations go on alike."""
    scenario, seat = episode.pack.scenario, episode.seat or 0
    rng = random.Random(request.key)  # noqa: S311 - a game's dice, no secret
    plays = find_baseline(scenario, rng.choice(episode.pack.manifest.opponents or [STAND_IN]))
    return f"{text}\nACTION: {plays(episode.state, seat, rng)}"


class MostTexts(NamedTuple):
    """The most texts that one player can have to write at one seat."""

    in_turn: int
    in_episode: int
    in_scenario: int | None
    """Texts that differ, in any number of episodes with one draw; None: that is not known."""


def count_most_texts(pack: Pack) -> MostTexts:
    """What the limit of turns and the retries of a scenario allow. In a small game each decision point is met with one conversation alone."""
    manifest, scenario = pack.manifest, pack.scenario
    in_turn = 1 + manifest.retries
    in_episode = -(-manifest.turn_limit // len(manifest.seats)) * in_turn
    points = len(list_decision_points(scenario)) * in_turn if has_decision_points(scenario) else None
    return MostTexts(in_turn, in_episode, points)


_Writer = tuple[str, str, int]
"""A model variant, its persona and a draw: a writer that gets the same messages writes the same text."""


@dataclass(slots=True)
class _Most:
    """The most that one writer can still write."""

    model: ModelSpec
    texts: int = 0
    earlier_texts: float = 0.0
    """Texts that the prompts of these hold besides the first ones, each as long as the longest."""


class MostTurns:
    """The most texts that the episodes of a scenario can still take: to the limit of turns, each turn with all its retries."""

    def __init__(self, pack: Pack) -> None:
        self._pack, self._limits = pack, count_most_texts(pack)
        self._first_tokens = self._turn_tokens = 0
        """Tokens of the longest first prompt, and of the longest text that a player gets in a turn."""
        self._most: dict[_Writer, _Most] = {}
        self._begun: dict[_Writer, set[str]] = defaultdict(set)
        """First requests: in one turn all episodes that begin alike go on alike."""
        self._counted: set[tuple[str, str, str, int, int | None]] = set()
        """Episodes, and their seats."""

    def add(self, match: Match, seat: int, request: Request) -> None:
        """Counts a request of an episode that is not stored. The number of a seat's other texts is estimated from its first request only."""
        self._turn_tokens = max(self._turn_tokens, estimate_tokens_cached(request.messages[-1].text))
        self._first_tokens = max(self._first_tokens, prompt_tokens(request.messages[:2]))
        episode = (match.item.item_id, match.player.persona_name, match.player.variant, match.draw)
        if self._is_new((*episode, None)):
            self._add_whole(match)
        if self._is_new((*episode, seat)):
            self._begin(match, seat, request)

    def total(self) -> Iterator[tuple[ModelSpec, int, float, float]]:
        """As of `dtef_pipeline.family.stage.MostCalls`."""
        limits = self._limits
        instruction_tokens = max(
            self._turn_tokens, estimate_tokens_cached(self._pack.manifest.reply_format) + _ASKED_AGAIN_TOKENS
        )
        for writer, most in self._most.items():
            shared = len(self._begun[writer])
            texts = most.texts + shared * limits.in_turn
            grown = most.earlier_texts + shared * _sum_to(limits.in_turn)
            if limits.in_scenario is not None and limits.in_scenario < texts:
                texts, grown = limits.in_scenario, min(grown, limits.in_scenario * (limits.in_episode - 1))
            longest = float("inf") if most.model.max_tokens is None else float(most.model.max_tokens)
            yield (
                most.model,
                texts,
                texts * self._first_tokens + (grown * (instruction_tokens + longest) if grown else 0),
                longest,
            )

    def _is_new(self, seat: tuple[str, str, str, int, int | None]) -> bool:
        is_new = seat not in self._counted
        self._counted.add(seat)
        return is_new

    def _add_whole(self, match: Match) -> None:
        """All texts of the models at all seats, which may come to move though the stand-in did not."""
        for player in match.list_seated_players(len(self._pack.manifest.seats)):
            if player.model is not None and not player.model.is_imported:
                most = self._most.setdefault((player.variant, player.persona_name, match.draw), _Most(player.model))
                most.texts += self._limits.in_episode
                most.earlier_texts += _sum_to(self._limits.in_episode)

    def _begin(self, match: Match, seat: int, request: Request) -> None:
        """Leave out the texts that a seat has, or, before the first one, those of its first turn, which it shares."""
        player = match.list_seated_players(len(self._pack.manifest.seats))[seat]
        writer = (player.variant, player.persona_name, match.draw)
        if writer not in self._most:
            return
        n_texts = sum(message.role == "assistant" for message in request.messages)
        if not n_texts:
            self._begun[writer].add(request.key)
            n_texts = self._limits.in_turn
        self._most[writer].texts -= n_texts
        self._most[writer].earlier_texts -= _sum_to(n_texts)


def _sum_to(texts: int) -> float:
    """How many earlier texts so many prompts of a conversation hold together."""
    return texts * (texts - 1) / 2
