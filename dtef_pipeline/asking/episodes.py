"""Episodes: what is asked depends on what was answered before, as in a conversation, or when a reply has to be asked for once more.

Nothing about an episode is stored but its responses. After a kill the same episode runs against the full store, and buys nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import Protocol, TypeVar

import pyarrow as pa

from dtef_pipeline.asking.calls import Ask
from dtef_pipeline.asking.request import Failure, Request, Response

Stored = Callable[[Sequence[str]], pa.Table]
"""The stored responses to request keys: the fields of `Response`."""
_RESPONSE_FIELDS = tuple(one.name for one in fields(Response))


class Episode(Protocol):
    """One thing that takes a request or several, one after the other."""

    def next(self, history: Sequence[Response]) -> Request | None:
        """What is to be asked after these responses; None: the episode is over. It depends on the responses and on nothing else."""


Of = TypeVar("Of", bound=Episode)


@dataclass(slots=True)
class Played:
    """What came of an episode."""

    responses: list[Response] = field(default_factory=list)
    failure: Failure | None = None
    """Of the request that got no response, which ended the episode; None: it came to its end."""


def play(episodes: Sequence[Episode], ask: Ask, stored: Stored) -> list[Played]:
    """Play the episodes to their ends, all next requests together; what came of each, in order.

    Episodes may share a request, which is asked once. What the store has is replayed.
    """
    played = [Played() for _ in episodes]
    running = list(range(len(episodes)))
    while running:
        wanted = {at: request for at in running if (request := episodes[at].next(played[at].responses)) is not None}
        if not wanted:
            break
        failures = ask(list(wanted.values()))
        found = _by_key(stored([request.key for request in wanted.values()]))
        running = []
        for at, request in wanted.items():
            if (response := found.get(request.key)) is not None:
                played[at].responses.append(response)
                running.append(at)
            else:
                played[at].failure = failures.get(
                    request.key, Failure(request.key, "was not asked: the run ended before its turn", 0)
                )
    return played


def in_windows(episodes: Iterable[Of], most: int) -> Iterator[list[Of]]:
    """The episodes in groups of at most so many: what is held in memory at a time. They are made when their group's turn comes."""
    rest = iter(episodes)
    while some := list(islice(rest, most)):
        yield some


def _by_key(responses: pa.Table) -> dict[str, Response]:
    columns = [responses[name].to_pylist() for name in _RESPONSE_FIELDS]
    return {(response := Response(*values)).request_key: response for values in zip(*columns, strict=True)}
