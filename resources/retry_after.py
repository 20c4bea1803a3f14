"""The Retry-After header of HTTP responses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds that a Retry-After header demands, as seconds or an HTTP date, or None without a readable one."""
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            end = parsedate_to_datetime(value)
        except ValueError:
            return None
        end = end if end.tzinfo else end.replace(tzinfo=UTC)
        seconds = (end - now).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None
