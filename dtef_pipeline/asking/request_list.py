"""Requests that are created only when needed; for requests with stored responses the keys suffice."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Self

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Request


@dataclass(frozen=True, slots=True)
class RequestsOfModel:
    """The requests to one model as a candidate, each once."""

    model: ModelSpec
    keys: Sequence[str]
    make: Callable[[Sequence[str]], list[Request]]
    """Makes the requests of some of the keys, in their order."""
    stored: Sequence[str] = ()
    """Those of the keys that are known to have a response in the store."""

    def list_missing_keys(self) -> list[str]:
        if len(self.stored) == len(self.keys):
            return []
        stored_keys = set(self.stored)
        return [key for key in self.keys if key not in stored_keys]


class RequestList(Sequence[Request]):
    """The requests of several models. Its keys and length are available without creating a request."""

    def __init__(self, parts: Iterable[RequestsOfModel] = ()) -> None:
        self.parts = tuple(parts)

    @classmethod
    def together(cls, lists: Iterable[RequestList]) -> Self:
        return cls(part for requests in lists for part in requests.parts)

    @property
    def keys(self) -> list[str]:
        return list(chain.from_iterable(part.keys for part in self.parts))

    def mark_stored(self, stored_keys: Collection[str]) -> RequestList:
        """Return the list with these request keys marked as stored."""
        return RequestList(replace(part, stored=[key for key in part.keys if key in stored_keys]) for part in self.parts)

    def list_missing_keys(self) -> list[str]:
        """Return the keys of requests not known to have a response."""
        return list(chain.from_iterable(part.list_missing_keys() for part in self.parts))

    def iterate_missing(self) -> Iterator[Request]:
        """Iterate over the requests that are not known to have a response."""
        return chain.from_iterable(part.make(keys) for part in self.parts if (keys := part.list_missing_keys()))

    def __len__(self) -> int:
        return sum(len(part.keys) for part in self.parts)

    def __iter__(self) -> Iterator[Request]:
        return chain.from_iterable(part.make(part.keys) for part in self.parts)

    def __getitem__(self, place: Any) -> Any:
        return list(self)[place]


def list_keys(requests: Sequence[Request]) -> list[str]:
    """Return the keys of the requests."""
    return requests.keys if isinstance(requests, RequestList) else [request.key for request in requests]
