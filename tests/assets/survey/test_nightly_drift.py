"""Weeks of nights of a model whose answers change: what checks, boards and the webhook say of it."""

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
from resources.warehouse import Warehouse
from tests.assets.conftest import Pipeline
from tests.assets.survey.conftest import MOVED, STEADY, Nights
from tests.dtef_pipeline.cli.commands import use
from tests.fake_llm_server import FakeLLM
from tests.webhook_receiver import Receiver


@dataclass(frozen=True)
class Weeks:
    nights: Nights
    runs: list[dg.ExecuteInProcessResult]
    boards: list[dg.ExecuteInProcessResult]
    receiver: Receiver
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

    Boards without a webhook, with one that is down, with one that answers, again, and once the drift is accepted.
    """
    folder = tmp_path_factory.mktemp("weeks")
    shutil.copytree(registered, folder, dirs_exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        use(folder, patch)
        patch.delenv("DTEF_WEBHOOK", raising=False)
        with open_dagster_instance() as instance, Receiver(400, 200) as receiver:
            nights = Nights(Pipeline(instance, Warehouse(folder / "warehouse")), folder, patch)
            nights.panel(models=["mine", "beside"], rounds=["T1"], segments=["country:kenya"], drift={"baseline": 3})
            runs = []
            for night in (0, 1, *range(3, 10)):
                moved = STEADY if night < 4 else MOVED
                with FakeLLM(reply=lambda call, moved=moved: moved if call.body["model"] == "mine" else STEADY) as server:  # type: ignore[misc]
                    nights.serve(server)
                    runs.append(nights.run(night))
            others = [key for key in nights.pipeline.keys if key.startswith("T2/")]
            of_another_round = nights.pipeline.checks(nights.pipeline.run(["drift_checks"], keys=others))
            boards = [nights.boards()]
            patch.setenv("DTEF_WEBHOOK", receiver.url)
            boards += [nights.boards() for _ in range(3)]
            nights.panel(drift={"since": "2026-03-05", "severity": {"drift": "OFF"}})
            boards.append(nights.boards())
            yield Weeks(nights, runs, boards, receiver, of_another_round)


class TestDrift:
    def test_a_missed_night_is_simply_absent(self, weeks: Weeks) -> None:
        assert all(run.success for run in weeks.runs)
        labels = weeks.nights.pipeline.house.values("scores", "snapshot", round="T1", segment="country:kenya")
        assert labels == ["2026-03-01", "2026-03-02", *(f"2026-03-{day:02}" for day in range(4, 11)), "base"]
        assert weeks.nights.pipeline.house.values("scores", "snapshot", round="T2", segment="country:kenya") == ["base"]

    def test_the_check_of_a_night_fails_from_the_first_changed_one_on(self, weeks: Weeks) -> None:
        found = [next(one for one in run.get_asset_check_evaluations() if one.check_name == "no_drift") for run in weeks.runs]
        assert [one.passed for one in found] == [True] * 3 + [False] * 6
        first = found[-1].metadata["first"].value
        assert isinstance(first, list)
        assert re.match(r"(drift|watch): mine on T1/country:\w+, context 0: ", str(first[0]))

    def test_what_a_night_found_stays_when_a_run_of_another_round_follows(self, weeks: Weeks) -> None:
        assert weeks.of_another_round == {"no_drift": False}

    def test_the_model_drifts_from_the_first_changed_night_on(self, weeks: Weeks) -> None:
        assert re.match(
            r"Drift in 1 of \d+ series. Largest: mine, context 0, down by 0\.\d+ since 2026-03-05", weeks.said(0, "headline")
        )
        assert (weeks.said(0, "drift"), weeks.said(0, "watch")) == (1, 0)
        assert weeks.said(0, "timeline").startswith("![")
        check = weeks.check(0, "survey_no_drift")
        assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.ERROR)
        (said,) = check.metadata["first"].value
        assert re.search(r"mine, context 0: down by 0\.\d+ .*since 2026-03-05; .*moved most: T1/q", str(said))

    def test_the_webhook_is_notified_once_and_again_only_when_it_did_not_arrive(self, weeks: Weeks) -> None:
        assert weeks.said(0, "webhook").startswith("off")
        assert "failed, and sent again the next time" in weeks.said(1, "webhook")
        assert "answered 400" in weeks.said(1, "webhook")
        assert weeks.boards[1].success
        assert [weeks.said(board, "webhook") for board in (2, 3)] == ["sent the verdicts of 1 series", "nothing new to send"]

    def test_a_webhook_that_does_not_take_what_there_is_to_tell_is_a_warning(self, weeks: Weeks) -> None:
        checks = [weeks.check(board, "survey_verdicts_were_sent") for board in range(4)]
        assert [one.passed for one in checks] == [True, False, True, True]
        assert checks[1].severity == dg.AssetCheckSeverity.WARN
        assert checks[1].metadata["first"].value == ["mine, context 0: drift"]

    def test_the_message_says_what_moved(self, weeks: Weeks) -> None:
        (_, refused), (_, told), (_, accepted) = weeks.receiver.bodies
        assert refused == told
        assert [(one["verdict"], one["was"]) for one in accepted["series"]] == [("none", "drift")]
        assert (told["family"], told["snapshot"]) == ("survey", "2026-03-10")
        assert told["text"] == weeks.said(0, "headline")
        (series,) = told["series"]
        assert (series["model"], series["model_variant"]) == ("mine", "openai/mine[max_tokens=256,temperature=0]")
        assert (series["verdict"], series["was"], series["shift"] < 0) == ("drift", "none", True)
        assert series["first_snapshot"] == "2026-03-05"
        assert series["shift_low"] <= series["shift"] <= series["shift_high"] < 0
        assert [change["what"] for change in series["changes"]] == ["answers"]

    def test_a_drift_is_accepted_by_a_later_beginning(self, weeks: Weeks) -> None:
        """The nights that are left are alike; the verdict that was sent before is taken back."""
        assert weeks.said(4, "drift") == 0
        check = weeks.check(4, "survey_no_drift")
        assert check.passed
        assert weeks.said(4, "webhook") == "sent the verdicts of 1 series"

    def test_no_secret_is_written_anywhere(self, weeks: Weeks) -> None:
        instance = weeks.nights.pipeline.instance
        logs = "".join(str(entry) for board in weeks.boards for entry in instance.all_logs(board.run_id))
        assert "s3cret" in weeks.receiver.url
        assert "s3cret" not in logs
