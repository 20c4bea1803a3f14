"""Whether Dagster is at work in its home: its daemon, and whether a sensor is switched on. For those who only look."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

FRESH_HEARTBEAT_S = 120.0
"""The daemon's parts say every 30 seconds that they live."""


class DaemonState(NamedTuple):
    """What a home of Dagster tells of its daemon."""

    last_heartbeat_at: datetime | None
    """Of the part that runs sensors; None: it was never started here, or the home cannot be read."""
    is_sensor_on: bool
    """Whether the sensor that was named runs when the daemon does."""
    problem: str | None = None
    """Why the home cannot be read."""

    def is_running(self, now: datetime) -> bool:
        """Whether the daemon was heard of lately."""
        last = self.last_heartbeat_at
        return last is not None and (now - last).total_seconds() < FRESH_HEARTBEAT_S


def daemon_state(home: Path, sensor: str) -> DaemonState:
    """The state of the daemon of this home; `sensor` is one that is on unless somebody switched it off."""
    if not (home / "dagster.yaml").is_file():
        return DaemonState(None, True)
    import dagster as dg

    try:
        with dg.DagsterInstance.from_config(str(home)) as instance:
            beats = instance.get_daemon_heartbeats()
            stopped = {state.name for state in instance.all_instigator_state() if state.status.value == "STOPPED"}
    except Exception as error:  # Dagster has many, and whatever is wrong with its home is no fault of who looks.
        return DaemonState(None, True, f"{type(error).__name__}: {error}"[:300])
    last = max((beat.timestamp for name, beat in beats.items() if name == "SENSOR"), default=None)
    return DaemonState(None if last is None else datetime.fromtimestamp(last, UTC), sensor not in stopped)
