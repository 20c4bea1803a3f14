"""What the evaluation of a schedule leaves behind in the process."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
from dagster._core.storage.defs_state.base import DefsStateStorage

from assets.games.nightly import games_nightly
from assets.qa.nightly import qa_nightly_schedule
from assets.rubric.nightly import rubric_nightly_schedule
from assets.survey.nightly import survey_nightly_schedule
from dtef_pipeline.cli.stage_runs import open_dagster_instance
from tests.assets.ticks import tick


def test_a_schedule_that_was_evaluated_leaves_no_storage_of_its_instance_behind(state: Path) -> None:
    before = DefsStateStorage.get()
    with open_dagster_instance() as instance:
        within = DefsStateStorage.get()
        for schedule in (survey_nightly_schedule, rubric_nightly_schedule, qa_nightly_schedule, games_nightly):
            assert isinstance(tick(schedule, instance, datetime(2026, 3, 1, 2, 0, tzinfo=UTC)), dg.SkipReason)
            assert DefsStateStorage.get() is within
    assert DefsStateStorage.get() is before
