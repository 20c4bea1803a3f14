"""Requests that are created only when needed; for requests with stored responses the keys suffice.

Prompts with the same text are sent once: two items can have the same text and options; their prompts then differ only in `prompt_id`. One of
them is sent, and its response serves all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple, Self

import pyarrow as pa

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Request
from dtef_pipeline.identity import request_keys


@dataclass(frozen=True, slots=True)
class RequestsOfModel:
    """The requests to one model as a candidate, without duplicates."""

    model: ModelSpec
    keys: Sequence[str]
    make_requests: Callable[[Sequence[str]], list[Request]]
    """Makes the requests of some of the keys, in their order."""
    stored_keys: Sequence[str] = ()
    """The keys with a known response in the store."""

    def list_missing_keys(self) -> list[str]:
        if len(self.stored_keys) == len(self.keys):
            return []
        stored_keys = set(self.stored_keys)
        return [key for key in self.keys if key not in stored_keys]


class RequestList(Sequence[Request]):
    """The requests of several models. Its keys and length are available without creating a request."""

    def __init__(self, parts: Iterable[RequestsOfModel] = ()) -> None:
        self.parts = tuple(parts)

    @classmethod
    def concatenate(cls, lists: Iterable[RequestList]) -> Self:
        return cls(part for requests in lists for part in requests.parts)

    @property
    def keys(self) -> list[str]:
        return list(chain.from_iterable(part.keys for part in self.parts))

    def mark_stored(self, stored_keys: Collection[str]) -> RequestList:
        """Return the list with these request keys marked as stored."""
        return RequestList(replace(part, stored_keys=[key for key in part.keys if key in stored_keys]) for part in self.parts)

    def list_missing_keys(self) -> list[str]:
        """Return the keys of requests not known to have a response."""
        return list(chain.from_iterable(part.list_missing_keys() for part in self.parts))

    def iterate_missing(self) -> Iterator[Request]:
        """Iterate over the requests that are not known to have a response."""
        return chain.from_iterable(part.make_requests(keys) for part in self.parts if (keys := part.list_missing_keys()))

    def __len__(self) -> int:
        return sum(len(part.keys) for part in self.parts)

    def __iter__(self) -> Iterator[Request]:
        return chain.from_iterable(part.make_requests(part.keys) for part in self.parts)

    def __getitem__(self, place: Any) -> Any:
        return list(self)[place]


def list_keys(requests: Sequence[Request]) -> list[str]:
    """Return the keys of the requests."""
    return requests.keys if isinstance(requests, RequestList) else [request.key for request in requests]


PROMPT_COLUMNS = ("prompt_id", "system", "user", "options", "reading", "response_schema", "answer_tokens")
"""The columns of a table of prompts that determine what is sent."""
ListOptions = Callable[[Sequence[str], Mapping[str, Any] | None], tuple[str, ...]]
"""Returns the options that a prompt offers, in its order, from its `options` and `reading`; empty if the response is not a choice."""


class SharedResponse(NamedTuple):
    """Request whose response is used for another request."""

    prompt_id: str
    request_key: str


def same_texts(prompts: pa.Table, formatter: ListOptions) -> dict[str, tuple[str, ...]]:
    """Return, by prompt id, the ids of all prompts that are sent with the same text, in table order.

    Prompts with a unique text are left out. `prompts`: of one partition, with the columns PROMPT_COLUMNS.
    """
    columns = [prompts[name].to_pylist() for name in PROMPT_COLUMNS]
    groups: dict[tuple[Any, ...], dict[str, None]] = {}
    for prompt, system, user, options, reading, schema, tokens in zip(*columns, strict=True):
        groups.setdefault((system, user, formatter(options, reading), schema, tokens), {})[prompt] = None
    return {prompt: tuple(members) for members in groups.values() if len(members) > 1 for prompt in members}


def sources(
    prompt_ids: Iterable[str],
    twins: Mapping[str, Sequence[str]],
    variant: str,
    draws: int,
    snapshot: str,
    lookup: Callable[[Sequence[str]], Collection[str]],
) -> dict[str, SharedResponse]:
    """Return, by request key, the request that is sent in its place; requests that are sent themselves are left out.

    A request with a stored response keeps it. Otherwise the first request of its text with a stored response serves it, or else the first
    of its text, whether this run sends it or not, so that later runs find its response. `lookup` returns the request keys that have a
    response.
    """
    prompts = [prompt for prompt in dict.fromkeys(prompt_ids) if prompt in twins]
    members = list(dict.fromkeys(member for prompt in prompts for member in twins[prompt]))
    shared_responses: dict[str, SharedResponse] = {}
    for draw in range(draws if members else 0):
        keys = dict(zip(members, request_keys(members, variant, draw, snapshot), strict=True))
        stored_keys = lookup(list(keys.values()))
        for prompt in prompts:
            first = next((member for member in (prompt, *twins[prompt]) if keys[member] in stored_keys), twins[prompt][0])
            if first != prompt:
                shared_responses[keys[prompt]] = SharedResponse(first, keys[first])
    return shared_responses


def count_distinct_requests(prompt_ids: Collection[str], draws: int, shared_responses: Mapping[str, SharedResponse]) -> int:
    """Return the number of requests sent or replayed for `draws` draws of the distinct prompts."""
    elsewhere = {source for source in shared_responses.values() if source.prompt_id not in prompt_ids}
    return len(prompt_ids) * draws - len(shared_responses) + len(elsewhere)
