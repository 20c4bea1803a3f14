"""What episodes of models will still ask, as far as that can be foreseen: a stand-in that makes legal moves plays on, and nobody is asked."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import CANDIDATE, Message, Request, Response
from dtef_pipeline.games.baselines import baseline_of
from dtef_pipeline.games.decision_points import decision_points, has_decision_points
from dtef_pipeline.games.episode import GameEpisode
from dtef_pipeline.games.matches import Match
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.judging.call_ledger import CallLedger, PlannedCalls, most_tokens, tokens_of

STAND_IN = "random"
"""The baseline that plays for a model in a scenario without opponents; in others one of these does, drawn anew for each turn."""
_AT_NO_TIME = datetime(2000, 1, 1, tzinfo=UTC)


class Foreseen(NamedTuple):
    """One request that an episode will make."""

    request_key: str
    seat: int
    model: ModelSpec
    messages: Sequence[Message]


class MostTexts(NamedTuple):
    """The most texts that one player can have to write at one seat."""

    in_turn: int
    in_episode: int
    in_scenario: int | None
    """Texts that differ, in any number of episodes with one draw; None: that is not known."""


def foreseen(episode: GameEpisode, responses: Sequence[Response]) -> Iterator[Foreseen]:
    """The requests that an episode makes after these responses, until it is over.

    What the stand-in does follows from what it is told, so that equal conversations go on alike.
    """
    scenario, history = episode.pack.scenario, list(responses)
    stand_ins = [baseline_of(scenario, name) for name in episode.pack.manifest.opponents or [STAND_IN]]
    while (request := episode.next(history)) is not None:
        seat = episode.seat or 0
        yield Foreseen(request.key, seat, request.model, request.conversation)
        rng = random.Random(request.key)  # noqa: S311 - a game's dice, no secret
        history.append(_written(request, f"ACTION: {rng.choice(stand_ins)(episode.state, seat, rng)}"))


def most_texts(pack: Pack) -> MostTexts:
    """What the limit of turns and the retries of a scenario allow. In a small game each decision point is met with one conversation alone."""
    manifest, scenario = pack.manifest, pack.scenario
    in_turn = 1 + manifest.retries
    in_episode = -(-manifest.turn_limit // len(manifest.seats)) * in_turn
    points = len(decision_points(scenario)) * in_turn if has_decision_points(scenario) else None
    return MostTexts(in_turn, in_episode, points)


def _written(request: Request, text: str) -> Response:
    model = request.model
    return Response(
        request.key,
        request.prompt_id,
        model.name,
        model.variant,
        request.draw,
        request.snapshot,
        text,
        *(None,) * 6,
        0.0,
        1,
        _AT_NO_TIME,
    )


_Writer = tuple[str, str, int]
"""A model variant, its persona, and a draw: whoever is told the same writes the same."""
_ASKED_AGAIN_TOKENS = 60
"""Tokens around the form of a reply where a text was no move."""


@dataclass(slots=True)
class _Most:
    """The most that one writer can still write."""

    model: ModelSpec
    texts: int = 0
    prompt_texts: float = 0.0
    """Texts that the prompts of these hold besides the first ones, each as long as the longest."""


@dataclass
class ForeseenCalls:
    """Counts the episodes of one scenario into a ledger. Requests that are equal are one, whichever episodes make them."""

    pack: Pack
    ledger: CallLedger
    _limits: MostTexts = field(init=False)
    _first_tokens: float = field(init=False, default=0.0)
    """The longest first prompt."""
    _told_tokens: float = field(init=False, default=0.0)
    """The longest text that a player is told in a turn."""
    _most: dict[_Writer, _Most] = field(init=False, default_factory=dict)
    _begun: dict[_Writer, set[str]] = field(init=False, default_factory=lambda: defaultdict(set))
    """First requests that are new, by writer: in one turn all episodes that begin alike go on alike."""

    def __post_init__(self) -> None:
        self._limits = most_texts(self.pack)

    def add_stored(self, responses: Sequence[Response], models: Mapping[str, ModelSpec]) -> None:
        """Texts of an episode that are stored. `models`: those at its seats, by variant."""
        for response, is_new in zip(responses, self.ledger.new([one.request_key for one in responses]), strict=True):
            row = self.ledger.row(CANDIDATE, models[response.model_variant])
            row.planned += 1
            row.requests += is_new
            row.replayed += is_new

    def add(self, match: Match, requests: Sequence[Foreseen]) -> None:
        """Texts that an episode will take."""
        new = self.ledger.new([one.request_key for one in requests])
        for one, is_new in zip(requests, new, strict=True):
            row = self.ledger.row(CANDIDATE, one.model)
            row.planned += 1
            row.requests += is_new
            if is_new and not one.model.is_imported:
                self._send(row, one)
        for seat, player in enumerate(match.by_seat(len(self.pack.manifest.seats))):
            if requests and player.model is not None and not player.model.is_imported:
                first = next((one for one in requests if one.seat == seat), None)
                self._at_most((player.model.variant, player.persona_name, match.draw), player.model, first)

    def close(self) -> None:
        """Count the most of all episodes into the ledger."""
        limits = self._limits
        told = max(self._told_tokens, tokens_of(self.pack.manifest.reply_format) + _ASKED_AGAIN_TOKENS)
        for writer, most in self._most.items():
            shared = len(self._begun[writer])
            texts = most.texts + shared * limits.in_turn
            grown = most.prompt_texts + shared * _sum_to(limits.in_turn)
            if limits.in_scenario is not None and limits.in_scenario < texts:
                texts, grown = limits.in_scenario, min(grown, limits.in_scenario * (limits.in_episode - 1))
            row, longest = self.ledger.row(CANDIDATE, most.model), most_tokens(most.model)
            row.calls_most += texts
            row.response_tokens_most += texts * longest
            row.prompt_tokens_most += texts * self._first_tokens + (grown * (told + longest) if grown else 0)

    def _send(self, row: PlannedCalls, one: Foreseen) -> None:
        usual = self.ledger.usual.of_turn(one.model)
        row.calls += 1
        row.prompt_tokens += sum(usual if _is_own(message) else tokens_of(message.text) for message in one.messages)
        row.response_tokens += usual
        self._told_tokens = max(self._told_tokens, tokens_of(one.messages[-1].text))
        self._first_tokens = max(self._first_tokens, sum(tokens_of(message.text) for message in one.messages[:2]))

    def _at_most(self, writer: _Writer, model: ModelSpec, first: Foreseen | None) -> None:
        """An episode more. `first`: what the seat is asked next; None: the stand-in never came to move there, which a model may."""
        limits, most = self._limits, self._most.setdefault(writer, _Most(model))
        begins = 0 if first is None else sum(map(_is_own, first.messages))
        if first is not None and not begins:
            self._begun[writer].add(first.request_key)
            begins = limits.in_turn
        most.texts += limits.in_episode - begins
        most.prompt_texts += _sum_to(limits.in_episode) - _sum_to(begins)


def _is_own(message: Message) -> bool:
    return message.role == "assistant"


def _sum_to(texts: int) -> float:
    """How many earlier texts so many prompts of a conversation hold together."""
    return texts * (texts - 1) / 2
