"""The nightly schedule on a Dagster instance on disk: what it asks for, what its runs do, and what weeks of them find."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.definitions import defs
from assets.stage.dagster_internals import RANGE_END, RANGE_START
from assets.stage.resources import SKIPPED_TAG
from assets.survey.rounds import ROUND_SEGMENT
from dtef_pipeline.cli.stage_runs import open_dagster_instance
from dtef_pipeline.drift import evidence
from dtef_pipeline.errors import ConfigError
from resources.warehouse import Warehouse
from tests.assets.conftest import Pipeline
from tests.assets.survey.conftest import MOVED, NIGHT, STEADY, Nights
from tests.dtef_pipeline.cli.commands import use
from tests.fake_llm_server import FakeLLM

NIGHTLY = ["predictions", "scores", "segment_results", "drift_checks"]


def unmade(nights: Nights, *keys: str) -> None:
    """Partitions that were ingested and never run."""
    for key in keys:
        for table in ("blueprints", "predictions", "scores", "segment_results", "drift_checks"):
            shutil.rmtree(nights.pipeline.file(table, key).parent)


class TestWhatItAsksFor:
    def test_without_a_panel_the_baselines_of_all_partitions_in_a_snapshot_named_after_the_night(self, nights: Nights) -> None:
        request = nights.request()
        assert request.run_key == f"survey_nightly {NIGHT}"
        keys = nights.pipeline.keys
        assert request.tags == {RANGE_START: keys[0], RANGE_END: keys[-1], "dtef/snapshot": NIGHT}
        config = {name: body["config"] for name, body in request.run_config["ops"].items()}
        assert config["scores"] == config["segment_results"] == {"only_snapshot": NIGHT}
        assert config["predictions"]["snapshot"] == NIGHT
        assert len(config["predictions"]["models"]) == 8
        assert config["predictions"]["conditions"] == ["distribution/attribute-label"]

    def test_the_panel_is_the_configuration_of_the_run(self, nights: Nights) -> None:
        plain = {"questions": 2, "sample_segments": 3, "draws": 3, "max_cost_usd": 5, "max_calls": 100, "max_tokens": 1000}
        models, budgets = ["gpt-4.1-mini", "baseline/uniform"], {"gpt-4.1-mini": {"max_calls": 10}}
        asked = {"rounds": ["T2"], "context_levels": [0], "conditions": ["shift"], "temperature": 0.5}
        nights.panel(models=models, budgets=budgets, **asked, **plain)
        request = nights.request()
        assert request.run_config["ops"]["predictions"]["config"] == {
            **plain,
            "models": ["gpt-4.1-mini@temperature=0.5", "baseline/uniform"],
            "context_levels": ["0"],
            "conditions": ["shift/attribute-label"],
            "budgets": {"gpt-4.1-mini@temperature=0.5": {"max_calls": 10}},
            "snapshot": NIGHT,
        }
        assert (request.tags[RANGE_START], request.tags[RANGE_END]) == ("T2/country:chile", "T2/country:kenya")
        dg.validate_run_config(defs.resolve_job_def("survey_nightly"), request.run_config)

    def test_partitions_that_were_never_run_are_left_out_and_named(self, nights: Nights) -> None:
        keys = [key for key in nights.pipeline.keys if key.startswith("T2")]
        unmade(nights, *keys, "T1/country:india")
        request = nights.request()
        assert request.tags["dtef/left_out"] == ", ".join(
            key for key in nights.pipeline.keys if key in {*keys, "T1/country:india"}
        )
        assert request.tags["dtef/partitions"].split("\n") == ["T1/country:chile", "T1/country:kenya"]
        assert (request.tags[RANGE_START], request.tags[RANGE_END]) == ("T1/country:chile", "T1/country:kenya")

    def test_without_partitions_it_skips(self, nights: Nights) -> None:
        for key in nights.pipeline.keys:
            nights.pipeline.instance.delete_dynamic_partition(str(ROUND_SEGMENT.name), key)
        skipped = nights.ask()
        assert isinstance(skipped, dg.SkipReason)
        assert "no round has been ingested yet" in str(skipped.skip_message)

    def test_a_panel_that_names_what_is_not_there_fails_the_tick_and_says_what_is(self, nights: Nights) -> None:
        nights.panel(rounds=["T9"])
        with pytest.raises(ConfigError, match="rounds: T9 not ingested; ingested: T1, T2"):
            nights.ask()


class TestItsRun:
    def test_it_makes_the_snapshot_and_leaves_the_others(self, nights: Nights) -> None:
        house = nights.pipeline.house
        before = {name: data for name, data in nights.pipeline.bytes().items() if "snapshot=base" in name}
        blueprints = {name: data for name, data in nights.pipeline.bytes().items() if name.startswith("blueprints")}
        assert nights.run().success
        assert house.values("scores", "snapshot", round="T2", segment="country:kenya") == [NIGHT, "base"]
        after = nights.pipeline.bytes()
        assert {name: after[name] for name in [*before, *blueprints]} == before | blueprints
        for asset in NIGHTLY:
            assert set(nights.pipeline.status(asset).values()) == {"MATERIALIZED"}

    def test_a_nightly_run_stops_at_its_budget_and_a_later_one_continues(self, nights: Nights) -> None:
        prompts = 3  # both rounds ask the same
        with FakeLLM(reply=lambda call: STEADY) as server:
            nights.serve(server)
            nights.panel(models=["mine"], segments=["country:kenya"], max_calls=2)
            assert nights.run().success
            assert len(server.calls) == 2
            nights.panel(models=["mine"], segments=["country:kenya"])
            assert nights.run().success
            written = nights.pipeline.bytes()
            assert nights.run().success
            assert len(server.calls) == prompts
            assert set(server.answers.values()) == {1}
        assert nights.pipeline.bytes() == written

    def test_chosen_segments_are_one_run_that_touches_no_other_and_is_held_up_by_none(self, nights: Nights) -> None:
        nights.panel(models=["baseline/uniform"], segments=["country:chile", "country:kenya"])
        chosen = [key for key in nights.pipeline.keys if "india" not in key]
        damaged = [key for key in nights.pipeline.keys if key not in chosen]
        for key in damaged:
            nights.pipeline.file("predictions", key, snapshot="base").write_bytes(b"nobody is to read this")
        others = {name: data for name, data in nights.pipeline.bytes().items() if "india" in name}
        result = nights.run()
        assert result.success
        red = [check for check in result.get_asset_check_evaluations() if not check.passed]
        assert {check.asset_key.to_user_string() for check in red} == {"predictions"}
        assert all(check.metadata["partitions"].value == damaged and not check.blocking for check in red)
        run = nights.pipeline.instance.get_run_by_id(result.run_id)
        assert run is not None
        assert len(json.loads(run.tags[SKIPPED_TAG])) == len(damaged)
        for asset in NIGHTLY:
            assert nights.materialized(result, asset) == chosen
            found = nights.pipeline.status(asset)
            assert found == {key: "MATERIALIZED" if key in chosen else None for key in nights.pipeline.keys}
        assert {name: data for name, data in nights.pipeline.bytes().items() if "india" in name} == others


@dataclass(frozen=True)
class Weeks:
    nights: Nights
    runs: list[dg.ExecuteInProcessResult]
    boards: list[dg.ExecuteInProcessResult]
    of_another_round: dict[str, bool]
    """Checks of a run over a round that no night asked about, made after the nights."""

    def said(self, board: int, name: str) -> Any:
        """Metadata of `survey_drift`."""
        (event,) = self.boards[board].asset_materializations_for_node("survey_drift")
        return event.metadata[name].value

    def check(self, board: int, name: str) -> dg.AssetCheckEvaluation:
        (found,) = [one for one in self.boards[board].get_asset_check_evaluations() if one.check_name == name]
        return found


@pytest.fixture(scope="module")
def weeks(tmp_path_factory: pytest.TempPathFactory, registered: Path) -> Iterator[Weeks]:
    """Nights of two models, the third one missed; the answers of one are others from the fifth on, for longer than an outage.

    Boards after them, and once the drift is accepted.
    """
    folder = tmp_path_factory.mktemp("weeks")
    shutil.copytree(registered, folder, dirs_exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        use(folder, patch)
        patch.setattr(evidence, "LONGEST_OUTAGE", 2)
        with open_dagster_instance() as instance:
            nights = Nights(Pipeline(instance, Warehouse(folder / "warehouse")), folder, patch)
            nights.panel(models=["mine", "beside"], rounds=["T1"], segments=["country:kenya"], drift={"baseline": 3})
            runs = []
            for night in (0, 1, *range(3, 7)):
                moved = STEADY if night < 4 else MOVED
                with FakeLLM(reply=lambda call, moved=moved: moved if call.body["model"] == "mine" else STEADY) as server:  # type: ignore[misc]
                    nights.serve(server)
                    runs.append(nights.run(night))
            others = [key for key in nights.pipeline.keys if key.startswith("T2/")]
            of_another_round = nights.pipeline.checks(nights.pipeline.run(["drift_checks"], keys=others))
            boards = [nights.boards()]
            nights.panel(drift={"since": "2026-03-05", "severity": {"drift": "OFF"}})
            boards.append(nights.boards())
            yield Weeks(nights, runs, boards, of_another_round)


class TestDrift:
    def test_a_missed_night_is_simply_absent(self, weeks: Weeks) -> None:
        assert all(run.success for run in weeks.runs)
        labels = weeks.nights.pipeline.house.values("scores", "snapshot", round="T1", segment="country:kenya")
        assert labels == ["2026-03-01", "2026-03-02", *(f"2026-03-{day:02}" for day in range(4, 8)), "base"]
        assert weeks.nights.pipeline.house.values("scores", "snapshot", round="T2", segment="country:kenya") == ["base"]

    def test_the_check_of_a_night_fails_from_the_first_changed_one_on(self, weeks: Weeks) -> None:
        found = [
            next(one for one in run.get_asset_check_evaluations() if one.check_name == "segment_has_no_drift")
            for run in weeks.runs
        ]
        assert [one.passed for one in found] == [True] * 3 + [False] * 3
        first = found[-1].metadata["first"].value
        assert isinstance(first, list)
        assert re.match(r"(drift|watch): mine on T1/country:\w+, context 0: ", str(first[0]))

    def test_what_a_night_found_stays_when_a_run_of_another_round_follows(self, weeks: Weeks) -> None:
        assert weeks.of_another_round == {"segment_has_no_drift": False}

    def test_the_model_drifts_from_the_first_changed_night_on(self, weeks: Weeks) -> None:
        assert re.match(
            r"Drift in 1 of \d+ series. Largest: mine, context 0, down by 0\.\d+ since 2026-03-05", weeks.said(0, "headline")
        )
        assert (weeks.said(0, "drift"), weeks.said(0, "watch")) == (1, 0)
        check = weeks.check(0, "survey_has_no_drift")
        assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.ERROR)
        (said,) = check.metadata["first"].value
        assert re.search(r"mine, context 0: down by 0\.\d+ .*since 2026-03-05; .*largest changes: T1/q", str(said))

    def test_a_drift_is_accepted_by_a_later_beginning(self, weeks: Weeks) -> None:
        """The nights that are left are alike."""
        assert weeks.said(1, "drift") == 0
        assert weeks.check(1, "survey_has_no_drift").passed
