"""Weeks of nights of a model whose answers change: what checks and boards say of it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from dtef_pipeline.cli.stage_runs import open_dagster_instance
from dtef_pipeline.drift import evidence
from resources.warehouse import Warehouse
from tests.assets.conftest import Pipeline
from tests.assets.survey.conftest import MOVED, STEADY, Nights
from tests.dtef_pipeline.cli.commands import use
from tests.fake_llm_server import FakeLLM


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
        assert weeks.said(0, "timeline").startswith("![")
        check = weeks.check(0, "survey_has_no_drift")
        assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.ERROR)
        (said,) = check.metadata["first"].value
        assert re.search(r"mine, context 0: down by 0\.\d+ .*since 2026-03-05; .*largest changes: T1/q", str(said))

    def test_a_drift_is_accepted_by_a_later_beginning(self, weeks: Weeks) -> None:
        """The nights that are left are alike."""
        assert weeks.said(1, "drift") == 0
        assert weeks.check(1, "survey_has_no_drift").passed
