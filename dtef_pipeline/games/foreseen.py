"""What episodes of models will still ask, as far as that can be foreseen: a stand-in that makes legal moves plays on, and nobody is asked."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Message, Request, Response
from dtef_pipeline.games.baselines import baseline_of
from dtef_pipeline.games.decision_points import decision_points, has_decision_points
from dtef_pipeline.games.episode import GameEpisode
from dtef_pipeline.games.packs import Pack

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
