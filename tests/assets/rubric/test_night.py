"""The schedule `rubric_nightly`: which blueprints a night has, and how it is configured."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.definitions import defs
from assets.rubric.roll_ups import rubric_nightly_schedule
from assets.stage.file_notes import add_noted
from dtef_pipeline.cli.stage_runs import open_dagster_instance
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.rubric.tables import RUBRIC_BLUEPRINTS, RUBRIC_SCORES
from resources.notes import BLUEPRINT_NOTES, RubricFile
from resources.warehouse import Warehouse
from tests.assets.ticks import tick

MADE, NEVER_MADE = ["a", "b", "c"], "d"


@pytest.fixture
def night(state: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the tick of a night says, given the panel's text."""
    house = Warehouse(state / "warehouse")
    with open_dagster_instance() as instance:
        files = [RubricFile(key, f"{key}.yml", None, False, key) for key in (*MADE, NEVER_MADE)]
        add_noted(instance, house, FAMILY_BY_NAME["rubric"], BLUEPRINT_NOTES, files)
        for key in MADE:
            house.write("rubric_blueprints", RUBRIC_BLUEPRINTS.empty_table(), blueprint=key)

        def asked(panel: str) -> Any:
            (state / "panel.yaml").write_text(panel, encoding="utf-8")
            monkeypatch.setenv("DTEF_PANEL", str(state / "panel.yaml"))
            return tick(rubric_nightly_schedule, instance, datetime(2026, 3, 1, 2, 30, tzinfo=UTC))

        yield asked


def test_a_night_is_one_run_from_the_responses_on_in_a_snapshot_of_the_date(night: Any) -> None:
    request = night("rubric:\n  blueprints: [a, c]\n  models: [m]\n  draws: 2\n  max_cost_usd: 1.5\n")
    assert request.tags["dtef/snapshot"] == "2026-03-01"
    assert request.tags["dtef/partitions"].split("\n") == ["a", "c"]
    assert "rubric_blueprints" not in {key.to_user_string() for key in request.asset_selection}
    told = {name: given["config"] for name, given in request.run_config["ops"].items()}
    assert told["rubric_responses"] == {"snapshot": "2026-03-01", "max_cost_usd": 1.5, "models": ["m"], "draws": 2}
    assert {config["snapshot"] for config in told.values()} == {"2026-03-01"}
    dg.validate_run_config(defs.resolve_job_def("rubric_nightly"), request.run_config)


def test_judges_are_shown_anchors_in_the_run_of_the_night_and_within_its_budgets(night: Any, state: Path) -> None:
    panel = "rubric: {models: [m], anchors: 30, judges: [standard=j], max_cost_usd: 2, role_budgets: {judge: {max_calls: 9}}}\n"
    assert "rubric_anchors" not in night(panel).run_config["ops"]
    Warehouse(state / "warehouse").write("rubric_scores", RUBRIC_SCORES.empty_table(), blueprint="a", snapshot="base")
    request = night(panel)
    told = {name: given["config"] for name, given in request.run_config["ops"].items()}
    bounds = {"max_cost_usd": 2.0, "role_budgets": {"judge": {"max_calls": 9}}}
    assert told["rubric_anchors"] == {"snapshot": "2026-03-01", "judges": ["standard=j"], "anchors": 30, **bounds}
    assert bounds.items() <= told["rubric_judgements"].items()
    assert dg.AssetKey("rubric_anchors") in request.asset_selection
    assert request.run_key == "rubric_nightly 2026-03-01"
    dg.validate_run_config(defs.resolve_job_def("rubric_nightly"), request.run_config)


def test_a_panel_can_have_key_points_extracted_first(night: Any) -> None:
    request = night("rubric: {extract_points: true, analysts: [m], max_cost_usd: 2}\n")
    told = request.run_config["ops"]["rubric_blueprints"]["config"]
    assert told == {"snapshot": "2026-03-01", "max_cost_usd": 2.0, "extract_points": True, "analysts": ["m"]}
    assert "rubric_blueprints" in {key.to_user_string() for key in request.asset_selection}
    dg.validate_run_config(defs.resolve_job_def("rubric_pipeline"), request.run_config)


def test_a_pattern_that_no_blueprint_has_fails_the_tick(night: Any) -> None:
    with pytest.raises(ConfigError, match=r"rubric.blueprints: 'x\*' matches none; known: "):
        night("rubric: {blueprints: ['x*']}\n")
