"""What becomes of the requests that one stage makes: counted by request, so that what is asked for again counts once."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from dtef_pipeline.asking.request import LAST_ERROR, Failure
from resources.evaluations.evaluation_calls import CallCounts, StageCalls
from resources.gateway.progress import ModelProgress

_REASON_CHARACTERS = 300
_SENT_NO_MORE = re.compile(r"^not asked(?: again)?: ")


class CallsOfStage:
    """Over all blocks in which a stage asks, each of them in one call of the gateway or several."""

    def __init__(self, tell: Callable[[CallCounts, int], None], tell_end: Callable[[StageCalls], None]) -> None:
        """`tell`: takes what is settled so far, and how many requests are expected; `tell_end`: what became of all, at the end of each block."""
        self._tell, self._tell_end = tell, tell_end
        self._settled: dict[str, Failure | None] = {}
        self._before = CallCounts(0, 0, 0)
        self._expected = 0

    def begin(self, expected: int) -> None:
        """A further block begins, in which so many requests are expected."""
        self._expected = max(self._expected, self._before.asked + expected)

    def settle(self, keys: Iterable[str], failures: Mapping[str, Failure]) -> None:
        """These requests are settled: of one that is settled again, the last word holds."""
        self._settled.update((key, failures.get(key)) for key in keys)

    def call_done(self) -> None:
        """The gateway has returned: what was settled so far comes on top of what it counts the next time."""
        self._before = self.so_far.counts

    def update_progress(self, models: Sequence[ModelProgress]) -> None:
        """How far the present call of the gateway is."""
        self._expected = max(self._expected, self._before.asked + sum(model.total for model in models))
        before = self._before
        n_answered = before.answered + sum(model.replayed + model.done for model in models)
        n_failed = before.failed + sum(model.failed for model in models)
        self._tell(CallCounts(n_answered, n_failed, before.skipped + sum(model.stopped for model in models)), self._expected)

    def end(self) -> None:
        """The block has ended."""
        self._tell_end(self.so_far)

    @property
    def so_far(self) -> StageCalls:
        """What became of all requests that are settled, with the most frequent reasons."""
        failures = [failure for failure in self._settled.values() if failure is not None]
        messages = [failure.message for failure in failures if failure.status != "budget"]
        skips = [failure.message.partition(LAST_ERROR) for failure in failures if failure.status == "budget"]
        counts = CallCounts(len(self._settled) - len(failures), len(messages), len(skips))
        why_skipped = _find_most_frequent([budget for budget, _, _ in skips])
        # One request of many was tried, rather: its error says what the budget was spent on.
        if why_skipped and (last := _find_most_frequent([error for _, _, error in skips if error])):
            why_skipped += f"{LAST_ERROR}{last}"
        return StageCalls(counts, _find_most_frequent(messages), why_skipped)


def _find_most_frequent(messages: Sequence[str]) -> str | None:
    """Without the words that a request was not sent any more: why it was not is what follows them. Of how many, where there are others."""
    counts = Counter(_SENT_NO_MORE.sub("", message) for message in messages).most_common(1)
    if not counts:
        return None
    (reason, number) = counts[0]
    text = reason[:_REASON_CHARACTERS]
    return text if number == len(messages) else f"{number:,} of them: {text}"
