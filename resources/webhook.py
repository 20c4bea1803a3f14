"""Messages to another system: a JSON document sent to a URL by POST, tried again when that may help."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from resources.gateway.retries import Backoff, retry_after
from resources.http_posts import NO_REDIRECTS, address_fault, in_safe_words, may_change, scheme_and_host


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a message: `problem` says in words why it did not arrive; None: it did."""

    attempts: int
    problem: str | None = None


@dataclass
class Webhook:
    """Sends to one URL. The URL is a secret: nothing here says more of it than its scheme and host.

    `timeout`: seconds for each step of one attempt (connecting, sending, every piece of the answer). `attempts`: how often it is tried,
    with growing waits between; a server that asks to be left alone for more than `backoff.longest` seconds is not waited for.
    """

    url: str = field(repr=False)
    timeout: float = 10.0
    attempts: int = 4
    backoff: Backoff = field(default_factory=lambda: Backoff(first=1.0, longest=20.0))
    sleep: Callable[[float], None] = time.sleep

    @property
    def where(self) -> str:
        """Scheme and host of the URL: `https://hooks.example.org/...`."""
        return scheme_and_host(self.url, "the webhook")

    @property
    def problem(self) -> str | None:
        """Why nothing can be sent to this URL, in words that hold nothing of it; None: it is a web address."""
        fault = address_fault(self.url)
        return f"DTEF_WEBHOOK {fault}" if fault else None

    def send(self, payload: Mapping[str, Any]) -> Sent:
        """POST the payload as JSON. Raises nothing for what happens on the way: see `Sent.problem`."""
        if self.problem:
            return Sent(0, self.problem)
        try:
            request = urllib.request.Request(  # noqa: S310 - the scheme has been looked at
                self.url,
                data=json.dumps(payload, allow_nan=False).encode(),
                headers={"Content-Type": "application/json", "User-Agent": "dtef-pipeline"},
                method="POST",
            )
        except ValueError:
            return Sent(0, "DTEF_WEBHOOK is no URL, or the message no JSON; allowed: https://... or http://...")
        problem = ""
        for attempt in range(1, self.attempts + 1):
            problem, again_after = self._once(request)
            if not problem or again_after is None:
                return Sent(attempt, problem or None)
            wait = max(again_after, self.backoff.wait(attempt))
            if attempt == self.attempts or wait > self.backoff.longest:
                return Sent(attempt, problem)
            self.sleep(wait)
        return Sent(self.attempts, problem)

    def _once(self, request: urllib.request.Request) -> tuple[str, float | None]:
        """(what went wrong or nothing, seconds to wait at least before another attempt; None: another one will not help)."""
        try:
            with NO_REDIRECTS.open(request, timeout=self.timeout):
                return "", None
        except urllib.error.HTTPError as error:
            with error:
                again = may_change(error.code)
                asked = retry_after({key.lower(): value for key, value in error.headers.items()}, datetime.now(UTC))
            return f"{self.where} answered {error.code}", (asked or 0.0) if again else None
        except (OSError, http.client.HTTPException) as error:
            return f"{self.where}: {in_safe_words(error)}", 0.0
        except ValueError:  # control characters and the like; the message would show the URL
            return "DTEF_WEBHOOK is no URL; allowed: https://... or http://...", None
