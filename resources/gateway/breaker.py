"""A circuit breaker: a model whose calls all fail is paused, then tried with one call."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BreakerRules:
    """When to pause a model, and when to give it up."""

    failures: int = 10
    """Number of consecutive temporary failures (5xx, timeouts, lost connections) that open the breaker."""
    cool_down: float = 5.0
    """Seconds until the first probe; each failed probe doubles them."""
    longest: float = 60.0
    """Maximum seconds between two probes."""
    probes: int = 12
    """Number of consecutive failed probes after which the run gives the model up; with these numbers, after about nine minutes."""
    first_probes: int = 3
    """The same for a model whose server was never reached, because its address may be wrong: after about half a minute."""


class Breaker:
    """A circuit breaker. Closed: calls pass. Open: none does. Half-open, after the cool-down: one call, the probe, decides.

    Times are seconds of one monotonic clock.
    """

    def __init__(self, rules: BreakerRules) -> None:
        self._rules = rules
        self._failures = 0
        self.failed_probes = 0
        """Consecutive failed probes."""
        self.openings = 0
        """How often the breaker opened or a failed probe kept it open; a call that spans one of these moments met an outage."""
        self._probing = False
        self._was_reached = False
        self.open_until: float | None = None
        """Time until which the breaker is open; None: it is closed."""

    @property
    def is_exhausted(self) -> bool:
        """Whether too many probes failed for the run to wait longer."""
        return self.failed_probes >= (self._rules.probes if self._was_reached else self._rules.first_probes)

    def is_allowing(self, now: float) -> bool:
        return self.open_until is None or (now >= self.open_until and not self._probing)

    def start(self) -> bool:
        """Begin a call; return whether it is a probe."""
        self._probing = self.open_until is not None
        return self._probing

    def record_answer(self) -> None:
        """Record that the server answered, if only with a refusal."""
        self._was_reached = True
        self._failures = self.failed_probes = 0
        self._probing, self.open_until = False, None

    def record_failure(self, now: float, *, probe: bool, reached: bool = True, alone: bool = False) -> bool:
        """Record a failure that may be due to the server's state; return whether it opened the breaker or kept it open.

        `reached`: a server was reached. `alone`: the request itself seems at fault, which counts only for a probe.
        """
        self._was_reached = self._was_reached or reached
        if probe:
            self._probing = False
            self.failed_probes += 1
        elif self.open_until is not None or alone:
            return False
        self._failures += 1
        if not probe and self._failures < self._rules.failures:
            return False
        self.openings += 1
        self.open_until = now + min(self._rules.longest, self._rules.cool_down * 2.0**self.failed_probes)
        return True

    def record_abandoned(self, *, probe: bool) -> None:
        """Record a call without a result because the run is stopping."""
        if probe:
            self._probing = False
