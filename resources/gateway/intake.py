"""What is asked in one call of the gateway: what the caller wants, and what follows from the responses, without what is stored already."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from dtef_pipeline.asking.calls import Then
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import CANDIDATE, Failure, Request
from dtef_pipeline.asking.request_list import RequestList, RequestsOfModel
from resources.gateway.askable import missing_of_imported
from resources.gateway.queues import Arrival, Job, ModelQueue
from resources.responses.store import ResponseStore


class Intake:
    """Sorts requests into those to be asked and those that are settled. It lives in the caller's thread."""

    def __init__(self, store: ResponseStore, queue_of: Callable[[ModelSpec, str], ModelQueue], then: Then | None) -> None:
        self._store, self._queue_of, self._then = store, queue_of, then
        self._seen, self._settled = set[str](), set[str]()
        self.failures: dict[str, Failure] = {}
        """By request key."""

    @property
    def is_followed(self) -> bool:
        """Whether anything may follow from a response."""
        return self._then is not None

    def take(self, requests: Iterable[Request]) -> list[Arrival]:
        """What these become in the queues, and what follows from those that are settled already: the later in its episode, the earlier."""
        arrivals: list[Arrival] = []
        settled, made = self._sorted(requests)
        while settled and self._then is not None:
            arrivals = made + arrivals
            settled, made = self._sorted(self._then(settled, self.failures))
        return made + arrivals

    def follow(self, settled: Sequence[str], failures: Mapping[str, Failure]) -> list[Arrival]:
        """What follows from requests that were settled just now. `failures`: all so far, by request key."""
        self._settled.update(settled)
        self.failures |= {key: failures[key] for key in settled if key in failures}
        return self.take(self._then(settled, self.failures)) if self._then is not None else []

    def _sorted(self, requests: Iterable[Request]) -> tuple[list[str], list[Arrival]]:
        """Keys that are settled, and what is new."""
        replayed, arrived = list[str](), list[Arrival]()
        if isinstance(requests, RequestList):
            for part in requests.parts:
                replayed += part.stored
                arrived += self._replayed(part)
            requests = requests.not_stored()
        again, new = list[str](), dict[str, Request]()
        for request in requests:
            if request.key in self._settled:
                again.append(request.key)
            elif request.key not in self._seen:
                new[request.key] = request
        known = self._store.known(new)
        missing = missing_of_imported(new, known)
        self.failures |= missing
        self._seen |= new.keys()
        self._settled |= known | missing.keys()
        arrivals = [
            Arrival(self._queue_of(request.model, request.role), None if key in known else Job(key, request))
            for key, request in new.items()
            if key not in missing
        ]
        settled = [*again, *(key for key in new if key in known or key in missing)]
        return list(dict.fromkeys([*replayed, *settled])), arrived + arrivals

    def _replayed(self, requests: RequestsOfModel) -> list[Arrival]:
        """Those that are known to be stored, and were not there before."""
        new = [key for key in requests.stored if key not in self._seen]
        self._seen.update(new)
        self._settled.update(new)
        return [Arrival(self._queue_of(requests.model, CANDIDATE), None)] * len(new) if new else []
