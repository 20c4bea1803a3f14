"""The folder that `new_round` watches, and the sensor looking at it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from assets.definitions import defs
from assets.stage.resources import Store
from assets.survey.landing import new_round
from tests.assets.conftest import Pipeline, write_survey
from tests.assets.ticks import run_request


class Landing:
    """The watched folder, and the sensor looking at it again and again."""

    def __init__(self, pipeline: Pipeline, folder: Path) -> None:
        self.pipeline, self.folder = pipeline, folder
        self.cursor: str | None = None
        self.reason: str | None = None
        folder.mkdir()

    def look(self) -> Any:
        context = dg.build_sensor_context(instance=self.pipeline.instance, cursor=self.cursor, definitions=defs)
        result = new_round(context, store=Store())
        if isinstance(result, dg.SensorResult):
            self.cursor = result.cursor
            self.reason = result.skip_reason.skip_message if result.skip_reason else None
        return result

    def requests(self) -> list[dg.RunRequest]:
        return list(self.look().run_requests or [])

    def settled(self) -> list[dg.RunRequest]:
        """The requests after a look that only waits."""
        assert self.requests() == []
        return self.requests()

    def land(self, name: str, rounds: Sequence[str], **how: Any) -> Path:
        return write_survey(self.folder / name, rounds, **how)

    def run(self, request: dg.RunRequest) -> None:
        assert run_request(request, self.pipeline.instance, "survey_pipeline").success
