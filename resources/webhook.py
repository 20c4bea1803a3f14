"""The webhook: messages as JSON to one URL. The URL is a secret: of it, only scheme and host are ever shown."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import stamina

from resources.http_posts import address_fault, may_change, scheme_and_host

TIMEOUT_S = 10.0
ATTEMPTS = 4


class _NotDelivered(Exception):
    """In words that hold nothing of the URL."""


class _RetryLater(_NotDelivered):
    """Another attempt may succeed."""


@dataclass(frozen=True)
class Webhook:
    """Sends to one URL."""

    url: str = field(repr=False)

    @property
    def problem(self) -> str | None:
        """Why nothing can be sent to this URL; None: it is a web address."""
        fault = address_fault(self.url)
        return f"DTEF_WEBHOOK {fault}" if fault else None

    def send(self, message: Mapping[str, Any]) -> str | None:
        """POST the message as JSON; why it was not delivered, or None. Raises nothing for what happens on the way."""
        if self.problem:
            return self.problem
        # httpx logs each URL in full.
        log = logging.getLogger("httpx")
        log.addFilter(_drop)
        try:
            for attempt in stamina.retry_context(
                on=_RetryLater, attempts=ATTEMPTS, timeout=None, wait_initial=1.0, wait_max=20.0
            ):
                with attempt:
                    self._post(message)
        except _NotDelivered as error:
            return str(error)
        finally:
            log.removeFilter(_drop)
        return None

    def _post(self, message: Mapping[str, Any]) -> None:
        """Redirects are not followed: the message is not meant for another address."""
        where = scheme_and_host(self.url, "the webhook")
        try:
            status = httpx.post(self.url, json=message, timeout=TIMEOUT_S).status_code
        except httpx.TransportError as error:
            raise _RetryLater(f"{where}: {type(error).__name__}") from None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise _NotDelivered(f"{where}: {type(error).__name__}") from None
        if not httpx.codes.is_success(status):
            raise (_RetryLater if may_change(status) else _NotDelivered)(f"{where} answered {status}")


def _drop(record: logging.LogRecord) -> bool:
    return False
