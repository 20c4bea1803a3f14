"""The outcomes of a stage's requests, each counted once, even if repeated."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from dtef_pipeline.asking.request import LAST_ERROR, Failure
from resources.evaluations.evaluation_calls import CallCounts, StageCalls
from resources.gateway.progress import ModelProgress

_REASON_CHARACTERS = 300
_SENT_NO_MORE = re.compile(r"^not sent(?: again)?: ")


class CallsOfStage:
    """The calls of all blocks of a stage, each with one or several gateway calls."""

    def __init__(self, tell: Callable[[CallCounts, int], None], tell_end: Callable[[StageCalls], None]) -> None:
        """`tell`: takes the counts so far and the number of expected requests; `tell_end`: takes all outcomes, at the end of each block."""
        self._tell, self._tell_end = tell, tell_end
        self._settled: dict[str, Failure | None] = {}
        self._before = CallCounts(0, 0, 0)
        self._expected = 0

    def begin(self, expected: int) -> None:
        """Begin another block with `expected` requests."""
        self._expected = max(self._expected, self._before.n_requests + expected)

    def settle(self, keys: Iterable[str], failures: Mapping[str, Failure]) -> None:
        """Record these requests as settled. The latest outcome of a request counts."""
        self._settled.update((key, failures.get(key)) for key in keys)

    def call_done(self) -> None:
        """Record that the gateway has returned, so that its counts are added to those of its next call."""
        self._before = self.so_far.counts

    def update_progress(self, models: Sequence[ModelProgress]) -> None:
        """Report the progress of the current gateway call."""
        self._expected = max(self._expected, self._before.n_requests + sum(model.total for model in models))
        before = self._before
        n_answered = before.answered + sum(model.replayed + model.done for model in models)
        n_failed = before.failed + sum(model.failed for model in models)
        self._tell(CallCounts(n_answered, n_failed, before.skipped + sum(model.stopped for model in models)), self._expected)

    def end(self) -> None:
        """End the block."""
        self._tell_end(self.so_far)

    @property
    def so_far(self) -> StageCalls:
        """The outcomes of all settled requests, with the most frequent reasons."""
        failures = [failure for failure in self._settled.values() if failure is not None]
        messages = [failure.message for failure in failures if failure.status != "budget"]
        skips = [failure.message.partition(LAST_ERROR) for failure in failures if failure.status == "budget"]
        counts = CallCounts(len(self._settled) - len(failures), len(messages), len(skips))
        skip_reason = _find_most_frequent([budget for budget, _, _ in skips])
        # The error of an attempted request, if any, shows what used up the budget.
        if skip_reason and (last := _find_most_frequent([error for _, _, error in skips if error])):
            skip_reason += f"{LAST_ERROR}{last}"
        return StageCalls(counts, _find_most_frequent(messages), skip_reason)


def _find_most_frequent(messages: Sequence[str]) -> str | None:
    """Return the most frequent message, without the phrase that a request was not sent; with its number if there are others."""
    counts = Counter(_SENT_NO_MORE.sub("", message) for message in messages).most_common(1)
    if not counts:
        return None
    (reason, number) = counts[0]
    text = reason[:_REASON_CHARACTERS]
    return text if number == len(messages) else f"{number:,} of them: {text}"
