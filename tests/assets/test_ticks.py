"""What the evaluation of a schedule leaves behind in the process."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
from dagster._core.storage.defs_state.base import DefsStateStorage

from assets.games.nightly import nightly_games
from assets.qa.nightly import nightly_questions
from assets.rubric.nightly import nightly_rubrics
from assets.survey.nightly import nightly_drift_schedule
from dtef_pipeline.cli.stage_runs import open_dagster_instance
from tests.assets.ticks import tick


def test_a_schedule_that_was_evaluated_leaves_no_storage_of_its_instance_behind(state: Path) -> None:
    before = DefsStateStorage.get()
    with open_dagster_instance() as instance:
        within = DefsStateStorage.get()
        for schedule in (nightly_drift_schedule, nightly_rubrics, nightly_questions, nightly_games):
            assert isinstance(tick(schedule, instance, datetime(2026, 3, 1, 2, 0, tzinfo=UTC)), dg.SkipReason)
            assert DefsStateStorage.get() is within
    assert DefsStateStorage.get() is before
