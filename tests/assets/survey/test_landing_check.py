"""The check `landings_can_be_read`, which makes a broken landing visible where one looks for what is red."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteInstigatorOrigin, RemoteRepositoryOrigin
from dagster._core.scheduler.instigation import InstigatorState, InstigatorStatus, SensorInstigatorData

from assets.definitions import defs
from assets.survey.rounds import survey_files
from tests.assets.survey.landing_folder import Landing


class TestCheck:
    def said(self, result: Any) -> tuple[bool, str, list[str]]:
        (found,) = result.asset_events
        assert (found.asset_key, found.severity) == (survey_files.key, dg.AssetCheckSeverity.WARN)
        return found.passed, found.description, sorted(found.metadata)

    def test_it_is_made_by_the_sensor_when_what_cannot_be_read_changes(self, landing: Landing) -> None:
        landing.land("a.csv", ["A1"], questions=1)
        assert self.said(landing.look()) == (True, "all 1 can be read", [])
        assert not landing.look().asset_events
        (landing.folder / "notes.txt").write_text("call me", encoding="utf-8")
        assert not landing.look().asset_events
        assert self.said(landing.look()) == (False, "1 of 2 cannot be read, or not wholly: notes.txt", ["notes.txt"])
        assert not landing.look().asset_events
        (landing.folder / "notes.txt").unlink()
        assert self.said(landing.look())[0]

    def test_executed_by_hand_it_says_what_the_sensor_saw_last(self, landing: Landing, tmp_path: Path) -> None:
        (landing.folder / "notes.txt").write_text("call me", encoding="utf-8")
        landing.look()
        landing.look()
        origin = RemoteInstigatorOrigin(
            RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("dtef"), "__repository__"), "new_round"
        )
        data = SensorInstigatorData(cursor=landing.cursor)
        checks = dg.AssetSelection.checks_for_assets(survey_files.key)
        job = dg.define_asset_job("by_hand", checks).resolve(asset_graph=defs.resolve_asset_graph())
        with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
            instance.add_instigator_state(InstigatorState(origin, InstigatorType.SENSOR, InstigatorStatus.RUNNING, data))
            result = job.execute_in_process(instance=instance)
        (found,) = result.get_asset_check_evaluations()
        assert (found.passed, found.description) == (False, "1 of 1 cannot be read, or not wholly: notes.txt")
