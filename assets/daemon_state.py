"""The state of Dagster's daemon and of a sensor, read without changing anything."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from dtef_pipeline.text.amounts import format_span
from resources.failures import format_one_line, links, parse_error_chain

FRESH_HEARTBEAT_S = 120.0
"""The daemon's parts send heartbeats every 30 seconds."""
FRESH_TICK_S = 120.0
"""The sensors of the daemon run one after the other, most of them every 5 or 30 seconds."""
_LONGEST_ERROR = 200
_NO_SERVER = ("DagsterUserCodeUnreachableError", "DagsterCodeLocationLoadError", "DagsterUserCodeLoadError")
"""Dagster's errors for a code server that is down, hangs, or failed to load the code."""
_WITH_SCHEME = re.compile(r"[\w+.-]+://\S+")
_FOLDERS = re.compile(r"(?<![\w.])/(?:[^\s/:;,'\"]+/)+(?=[^\s/])")
_SERVER_NAME = re.compile(r'\b(server at|for user|user|role|host name|database) "[^"]*"')


class SensorTicks(NamedTuple):
    """The ticks of a sensor."""

    last_at: datetime | None
    """When the last tick began, or when the sensor was switched on, if later. None if this home has none."""
    error: str | None = None
    """Why the last completed tick failed, in one line without addresses and folders, or None if it succeeded."""


class DaemonState(NamedTuple):
    """The daemon's state in a home of Dagster."""

    last_heartbeat_at: datetime | None
    """Heartbeat of the daemon that runs sensors; None if it never ran here or the home cannot be read."""
    is_sensor_on: bool
    """Whether the given sensor is on."""
    problem: str | None = None
    """Why the home cannot be read."""
    ticks: SensorTicks | None = None
    """Ticks of that sensor; None without a daemon."""
    daemon_id: str | None = None
    """Changes with each start of the daemon."""
    began_after: datetime | None = None
    """A time when an earlier check did not see this daemon yet; None without such a check."""

    def is_running(self, now: datetime) -> bool:
        """Return whether the daemon had a recent heartbeat."""
        last = self.last_heartbeat_at
        return last is not None and (now - last).total_seconds() < FRESH_HEARTBEAT_S

    def merge_earlier(self, before: DaemonState, read_at: datetime) -> DaemonState:
        """Return this state, with the daemon's age from an earlier state, which was read at the time `read_at`."""
        is_same = before.is_running(read_at) and before.daemon_id == self.daemon_id
        return self._replace(began_after=before.began_after if is_same else read_at)

    def find_sensor_fault(self, now: datetime, sensor: str) -> str | None:
        """Return why the sensor does not work although it and the daemon are on, or None if it works as far as known."""
        if self.ticks is None or not self.is_sensor_on or not self.is_running(now):
            return None
        last, error = self.ticks
        if error is not None:
            return f"the last tick of the sensor {sensor} failed ({error})"
        is_young = self.began_after is not None and (now - self.began_after).total_seconds() < FRESH_TICK_S
        if is_young or (last is not None and (now - last).total_seconds() < FRESH_TICK_S):
            return None
        since = "in this home yet" if last is None else f"for {format_span(now - last)}"
        cause = "mostly its code location does not load or hangs"
        return f"the sensor {sensor} had no tick {since}, though Dagster's daemon is running ({cause})"


def daemon_state(home: Path, sensor: str) -> DaemonState:
    """Return the state of this home's daemon. `sensor` is on unless somebody switched it off."""
    if not (home / "dagster.yaml").is_file():
        return DaemonState(None, True)
    import dagster as dg

    from assets.stage.dagster_internals import read_sensor_state

    try:
        with dg.DagsterInstance.from_config(str(home)) as instance:
            beat = instance.get_daemon_heartbeats().get("SENSOR")
            look = read_sensor_state(instance, sensor)
    except Exception as error:  # Dagster raises many types, and a faulty home must not fail the check.
        return DaemonState(None, True, format_one_line(links(error), str(home)))
    if beat is None:
        return DaemonState(None, not look.is_stopped)
    ticks = SensorTicks(_convert_time(look.ticked_at), _format_tick_error(look.error) if look.error else None)
    return DaemonState(_convert_time(beat.timestamp), not look.is_stopped, None, ticks, beat.daemon_id)


def _convert_time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _format_tick_error(error: object) -> str:
    """Return the error of a tick in words that are safe for everybody who may see the service's state."""
    chain = list(parse_error_chain(error))
    if any(link.kind.endswith(_NO_SERVER) for link in chain):
        return "Dagster's code server does not answer"
    text = _SERVER_NAME.sub(r"\1 ...", _FOLDERS.sub("", _WITH_SCHEME.sub("...", format_one_line(chain))))
    return text if len(text) <= _LONGEST_ERROR else f"{text[: _LONGEST_ERROR - 3]}..."
