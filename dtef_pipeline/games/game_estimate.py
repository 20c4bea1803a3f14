"""Estimates: a stand-in that plays in place of a model, and the largest number of texts that models may write."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from dtef_pipeline.asking.call_plan import estimate_tokens_cached, prompt_tokens
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Request
from dtef_pipeline.games.contract import find_baseline
from dtef_pipeline.games.episode import GameEpisode, Match, MatchPlayed
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.games.small_poker import SmallPoker, count_information_sets

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


@dataclass(slots=True)
class _WriterLimit:
    """The largest number of texts that one writer may still write."""

    model: ModelSpec
    texts: int = 0
    earlier_texts: float = 0.0
    """Number of texts in their prompts other than the first ones, each counted at the longest length."""


class EpisodeTextLimit:
    """The largest number of texts that a scenario's episodes may still need: up to the turn limit, each turn with all its retries."""

    def __init__(self, pack: Pack) -> None:
        manifest, scenario = pack.manifest, pack.scenario
        self._pack = pack
        self._turn_texts = 1 + manifest.retries
        self._episode_texts = -(-manifest.turn_limit // len(manifest.seats)) * self._turn_texts
        self._scenario_texts: int | None = None
        """Number of distinct texts over all episodes with one draw; None: unknown."""
        if isinstance(scenario, SmallPoker):  # each information set has only one conversation
            self._scenario_texts = count_information_sets(scenario) * self._turn_texts
        self._first_tokens = self._turn_tokens = 0
        """Tokens of the longest first prompt, and of the longest text shown to a player in a turn."""
        self._most: dict[_Writer, _WriterLimit] = {}
        self._begun: dict[_Writer, set[str]] = defaultdict(set)
        """First requests; within a turn, episodes that begin alike continue alike."""
        self._counted: set[tuple[str, str, str, int, int | None]] = set()
        """Episodes, and their seats."""

    def add(self, game: MatchPlayed, request: Request) -> None:
        """Count a request of an episode that is not stored. The number of a seat's other texts is estimated from its first request only."""
        match, seat = game.match, game.episode.seat or 0
        self._turn_tokens = max(self._turn_tokens, estimate_tokens_cached(request.messages[-1].text))
        self._first_tokens = max(self._first_tokens, prompt_tokens(request.messages[:2]))
        episode = (match.item.item_id, match.player.persona_name, match.player.variant, match.draw)
        if self._is_new((*episode, None)):
            self._add_whole(match)
        if self._is_new((*episode, seat)):
            self._begin(match, seat, request)

    def total(self) -> Iterator[tuple[ModelSpec, int, float, float]]:
        """See `dtef_pipeline.family.stage.MostCalls`."""
        instruction_tokens = max(self._turn_tokens, estimate_tokens_cached(self._pack.manifest.reply_format) + _RETRY_TOKENS)
        for writer, most in self._most.items():
            shared = len(self._begun[writer])
            texts = most.texts + shared * self._turn_texts
            grown = most.earlier_texts + shared * _sum_to(self._turn_texts)
            if self._scenario_texts is not None and self._scenario_texts < texts:
                texts, grown = self._scenario_texts, min(grown, self._scenario_texts * (self._episode_texts - 1))
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
        """Add all texts of the models at all seats, which may have to move even if the stand-in did not."""
        for player in match.list_seated_players(len(self._pack.manifest.seats)):
            if player.model is not None:
                most = self._most.setdefault((player.variant, player.persona_name, match.draw), _WriterLimit(player.model))
                most.texts += self._episode_texts
                most.earlier_texts += _sum_to(self._episode_texts)

    def _begin(self, match: Match, seat: int, request: Request) -> None:
        """Subtract the texts that a seat already has or, before its first one, those of its first turn, which are shared."""
        player = match.list_seated_players(len(self._pack.manifest.seats))[seat]
        writer = (player.variant, player.persona_name, match.draw)
        if writer not in self._most:
            return
        n_texts = sum(message.role == "assistant" for message in request.messages)
        if not n_texts:
            self._begun[writer].add(request.key)
            n_texts = self._turn_texts
        self._most[writer].texts -= n_texts
        self._most[writer].earlier_texts -= _sum_to(n_texts)


def _sum_to(texts: int) -> float:
    """Return the number of earlier texts that this many prompts of a conversation contain together."""
    return texts * (texts - 1) / 2
