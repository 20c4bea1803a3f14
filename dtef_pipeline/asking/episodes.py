"""Episodes: each request depends on earlier responses, as in a conversation, or when a reply has to be requested again.

Only the responses of an episode are stored. After a kill the same episode continues from the stored responses and pays for none twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import Protocol, TypeVar

import pyarrow as pa

from dtef_pipeline.asking.calls import Ask, AskWithFollowUps
from dtef_pipeline.asking.request import Failure, Request, Response

ReadStored = Callable[[Sequence[str]], pa.Table]
"""Reads the stored responses to request keys; columns are fields of `Response`."""
_RESPONSE_FIELDS = tuple(member.name for member in fields(Response))


class Episode(Protocol):
    """A sequence of one or more requests."""

    def next(self, history: Sequence[Response]) -> Request | None:
        """Return the request that follows these responses, or None if the episode is over. It depends only on the responses."""


Source = TypeVar("Source")


@dataclass(slots=True)
class EpisodeResult:
    """The result of an episode."""

    responses: list[Response] = field(default_factory=list)
    failure: Failure | None = None
    """Failure of the request that ended the episode; None: the episode was completed."""

    @property
    def outcomes(self) -> list[Response | Failure]:
        """The outcomes of all requests, in order."""
        return [*self.responses, *([self.failure] if self.failure else [])]


def play(episodes: Sequence[Episode], ask: Ask, lookup: ReadStored) -> list[EpisodeResult]:
    """Play the episodes to their ends and return their results, in order.

    If `ask` is an `AskWithFollowUps`, each episode continues as soon as its request is settled; otherwise all next requests are sent together,
    and the slowest holds up all episodes. A request that episodes share is sent once. Stored responses are replayed.
    """
    side_by_side = _ConcurrentEpisodes(episodes, lookup)
    requests = side_by_side.list_next_requests(range(len(episodes)))
    if isinstance(ask, AskWithFollowUps):
        if requests:
            ask.ask_until_done(requests, side_by_side.continue_settled)
    else:
        while requests:
            requests = side_by_side.continue_settled([request.key for request in requests], ask(requests))
    return side_by_side.played


class _ConcurrentEpisodes:
    """Episodes in progress, and the request that each is waiting for."""

    def __init__(self, episodes: Sequence[Episode], lookup: ReadStored) -> None:
        self._episodes, self._stored = episodes, lookup
        self._waiting: dict[str, list[int]] = {}
        self.played = [EpisodeResult() for _ in episodes]

    def continue_settled(self, keys: Sequence[str], failures: Mapping[str, Failure]) -> list[Request]:
        """Return the next requests of the episodes that waited for `keys`, without duplicates."""
        responses = index_responses(self._stored(keys))
        places: list[int] = []
        for key in keys:
            for at in self._waiting.pop(key, ()):
                if (response := responses.get(key)) is not None:
                    self.played[at].responses.append(response)
                    places.append(at)
                else:
                    self.played[at].failure = failures.get(key, Failure(key, "was not sent: the run ended first", 0))
        return self.list_next_requests(sorted(places))

    def list_next_requests(self, places: Iterable[int]) -> list[Request]:
        """Return the next requests of the episodes at these places, without duplicates."""
        requests: dict[str, Request] = {}
        for at in places:
            if (request := self._episodes[at].next(self.played[at].responses)) is not None:
                self._waiting.setdefault(request.key, []).append(at)
                requests[request.key] = request
        return list(requests.values())


def play_by_key(episodes: Mapping[str, Sequence[Episode]], ask: Ask, lookup: ReadStored) -> dict[str, list[EpisodeResult]]:
    """Play the episodes of several keys, such as partitions, side by side, and return the results by key."""
    outcomes = iter(play([episode for group in episodes.values() for episode in group], ask, lookup))
    return {key: list(islice(outcomes, len(group))) for key, group in episodes.items()}


def split_into_windows(episodes: Iterable[Source], limit: int) -> Iterator[list[Source]]:
    """Yield the episodes in groups of at most `limit`, to limit memory. Episodes are made when their group's turn comes."""
    remaining = iter(episodes)
    while window := list(islice(remaining, limit)):
        yield window


def index_responses(responses: pa.Table) -> dict[str, Response]:
    """Return the stored responses by request key."""
    columns = [responses[name].to_pylist() for name in _RESPONSE_FIELDS]
    return {(response := Response(*values)).request_key: response for values in zip(*columns, strict=True)}
