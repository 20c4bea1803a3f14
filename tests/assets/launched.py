"""An instance of Dagster with a run launcher of this project, in a folder, and what became of its runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import yaml


@contextmanager
def instance_with(
    folder: Path, module: str, name: str, config: Mapping[str, Any], **further: Any
) -> Iterator[dg.DagsterInstance]:
    """`name`: of the run launcher's class. `further`: other parts of `dagster.yaml`."""
    launcher = {"module": module, "class": name, "config": config}
    settings = {"telemetry": {"enabled": False}, "run_launcher": launcher, **further}
    (folder / "dagster.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    with dg.DagsterInstance.from_config(str(folder)) as made:
        yield made


def status_of(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dg.DagsterRunStatus:
    """What the run is now."""
    found = instance.get_run_by_id(run.run_id)
    assert found is not None
    return found.status
