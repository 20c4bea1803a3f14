"""The nightly schedule on a Dagster instance on disk: what it asks for, and what its runs do night after night."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml

from assets.definitions import defs
from assets.survey.nightly import left_out, nightly_drift_schedule
from assets.survey.rounds import RANGE_END, RANGE_START, ROUND_SEGMENT
from assets.survey.store import SurveyStore
from dtef_pipeline.cli.run import dagster_instance
from dtef_pipeline.errors import ConfigError
from resources.warehouse import Warehouse
from tests.assets.conftest import Pipeline, write_survey
from tests.dtef_pipeline.cli.commands import use
from tests.fake_llm_server import FakeLLM
from tests.webhook_receiver import Receiver

FIRST = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)
NIGHT = "2026-03-01"
STEADY, MOVED = "[50, 30, 20]", "[5, 5, 90]"
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
NIGHTLY = ["predictions", "scores", "segment_results", "drift_checks"]


class Nights:
    """A pipeline of two rounds that were run once, its panel, and the schedule evaluated night after night."""

    def __init__(self, pipeline: Pipeline, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.pipeline, self.folder, self.patch = pipeline, folder, patch

    def panel(self, **values: Any) -> None:
        (self.folder / "panel.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
        self.patch.setenv("DTEF_PANEL", str(self.folder / "panel.yaml"))

    def serve(self, server: FakeLLM) -> None:
        """Make the model `mine` known: the server, without a wait between attempts."""
        spec = {"model": "openai/mine", "api_base": server.base_url, "retries": 0, "input_price": 1.0, "output_price": 1.0}
        (self.folder / "models.yaml").write_text(yaml.safe_dump({"models": {"mine": spec}}), encoding="utf-8")
        self.patch.setenv("DTEF_MODELS", str(self.folder / "models.yaml"))

    def ask(self, night: int = 0) -> dg.RunRequest | dg.SkipReason:
        at = FIRST + timedelta(days=night)
        context = dg.build_schedule_context(instance=self.pipeline.instance, scheduled_execution_time=at)
        result = nightly_drift_schedule(context, store=SurveyStore())
        assert isinstance(result, dg.RunRequest | dg.SkipReason)
        return result

    def request(self, night: int = 0) -> dg.RunRequest:
        asked = self.ask(night)
        assert isinstance(asked, dg.RunRequest), asked
        return asked

    def run(self, night: int = 0) -> dg.ExecuteInProcessResult:
        asked = self.request(night)
        return defs.resolve_job_def("nightly_drift").execute_in_process(
            instance=self.pipeline.instance, run_config={**asked.run_config, **QUIET}, tags=asked.tags, raise_on_error=False
        )

    def boards(self) -> dg.ExecuteInProcessResult:
        """The run that `boards_after_run` asks for, as far as drift goes."""
        return defs.resolve_job_def("roll_ups").execute_in_process(
            instance=self.pipeline.instance,
            asset_selection=[dg.AssetKey("model_drift")],
            run_config=QUIET,
            raise_on_error=False,
        )

    def materialized(self, result: dg.ExecuteInProcessResult, asset: str = "scores") -> list[str | None]:
        logs = self.pipeline.instance.all_logs(result.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
        return [entry.dagster_event.partition for entry in logs if entry.dagster_event.asset_key == dg.AssetKey(asset)]


@pytest.fixture(scope="module")
def registered(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """State of two rounds whose six stages were run once, with a Dagster instance on disk; to be copied, not changed."""
    folder = tmp_path_factory.mktemp("registered")
    with pytest.MonkeyPatch.context() as patch:
        use(folder, patch)
        with dagster_instance() as instance:
            made = Pipeline(instance, Warehouse(folder / "warehouse"))
            made.register(write_survey(folder / "surveys.csv"))
        for table in (finished / "warehouse").iterdir():
            if table.name != "sources":
                shutil.copytree(table, folder / "warehouse" / table.name)
    return folder


@pytest.fixture
def nights(state: Path, registered: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nights]:
    shutil.copytree(registered, state, dirs_exist_ok=True)
    with dagster_instance() as instance:
        yield Nights(Pipeline(instance, Warehouse(state / "warehouse")), state, monkeypatch)


def unmade(nights: Nights, *keys: str) -> None:
    """Partitions that were ingested and never run."""
    for key in keys:
        for table in ("blueprints", "predictions", "scores", "segment_results", "drift_checks"):
            shutil.rmtree(nights.pipeline.file(table, key).parent)


class TestWhatItAsksFor:
    def test_without_a_panel_the_baselines_of_all_partitions_in_a_snapshot_named_after_the_night(self, nights: Nights) -> None:
        request = nights.request()
        assert request.run_key == NIGHT
        keys = nights.pipeline.keys
        assert request.tags == {RANGE_START: keys[0], RANGE_END: keys[-1], "dtef/snapshot": NIGHT, "dtef/rounds": "T1, T2"}
        config = {name: body["config"] for name, body in request.run_config["ops"].items()}
        assert config["scores"] == config["segment_results"] == {"snapshot": NIGHT}
        assert config["predictions"]["snapshot"] == NIGHT
        assert len(config["predictions"]["models"]) == 8
        assert config["predictions"]["conditions"] == ["distribution/attribute-label"]

    def test_the_panel_is_the_configuration_of_the_run(self, nights: Nights) -> None:
        nights.panel(
            models=["gpt-4.1-mini", "baseline/uniform"],
            rounds=["T2"],
            context_levels=[0],
            conditions=["shift"],
            questions=2,
            draws=3,
            temperature=0.5,
            max_cost_usd=5,
            max_calls=100,
            max_tokens=1000,
            budgets={"gpt-4.1-mini": {"max_calls": 10}},
        )
        request = nights.request()
        assert request.run_config["ops"]["predictions"]["config"] == {
            "models": ["gpt-4.1-mini@temperature=0.5", "baseline/uniform"],
            "context_levels": ["0"],
            "conditions": ["shift/attribute-label"],
            "questions": 2,
            "draws": 3,
            "max_cost_usd": 5,
            "max_calls": 100,
            "max_tokens": 1000,
            "budgets": {"gpt-4.1-mini@temperature=0.5": {"max_calls": 10}},
            "snapshot": NIGHT,
        }
        assert (request.tags[RANGE_START], request.tags[RANGE_END]) == ("T2/country:chile", "T2/country:kenya")
        dg.validate_run_config(defs.resolve_job_def("nightly_drift"), request.run_config)

    def test_asked_twice_for_a_night_it_asks_for_the_same_run(self, nights: Nights) -> None:
        assert nights.request() == nights.request()
        assert nights.request(1).run_key == "2026-03-02"

    def test_partitions_that_were_never_run_are_left_out_and_named(self, nights: Nights) -> None:
        keys = [key for key in nights.pipeline.keys if key.startswith("T2")]
        unmade(nights, *keys, "T1/country:india")
        request = nights.request()
        assert request.tags["dtef/left_out"] == "T1: country:india; T2: all segments"
        assert request.tags["dtef/partitions"].split("\n") == ["T1/country:chile", "T1/country:kenya"]
        assert (request.tags[RANGE_START], request.tags[RANGE_END]) == ("T1/country:chile", "T1/country:kenya")

    def test_where_nothing_was_ever_run_it_says_what_to_do(self, nights: Nights) -> None:
        unmade(nights, *nights.pipeline.keys)
        skipped = nights.ask()
        assert isinstance(skipped, dg.SkipReason)
        assert "dtef run --round" in str(skipped.skip_message)

    def test_without_partitions_it_skips(self, nights: Nights) -> None:
        for key in nights.pipeline.keys:
            nights.pipeline.instance.delete_dynamic_partition(str(ROUND_SEGMENT.name), key)
        skipped = nights.ask()
        assert isinstance(skipped, dg.SkipReason)
        assert "no round has been ingested yet" in str(skipped.skip_message)

    @pytest.mark.parametrize(
        ("values", "said"),
        [
            ({"rounds": ["T9"]}, "rounds: T9 not ingested; ingested: T1, T2"),
            ({"segments": ["country:peru"]}, "country:peru in none .* country:chile, country:india, country:kenya"),
            ({"models": ["gtp-4.1"]}, "no model or collection 'gtp-4.1'; known: gpt-4.1"),
            ({"drift": {"severity": {"watch": "SHOUT"}}}, "panel.yaml:.*allowed: WARN, ERROR, OFF"),
        ],
    )
    def test_a_panel_that_names_what_is_not_there_fails_the_tick_and_says_what_is(
        self, nights: Nights, values: dict[str, Any], said: str
    ) -> None:
        nights.panel(**values)
        with pytest.raises(ConfigError, match=said):
            nights.ask()


def test_left_out_counts_whole_rounds_and_names_a_few_segments() -> None:
    keys = [f"T1/a:{n}" for n in range(9)] + ["T2/a:1", "T3/a:1"]
    assert left_out(keys, ["T1/a:0", "T2/a:1"]) == "T1: a:1, a:2, a:3, a:4, a:5, ...; T3: all segments"
    assert left_out(keys, keys) == ""


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

    def test_a_night_stops_at_its_budget_then_goes_on_where_it_stopped_and_fires_again_without_a_call(
        self, nights: Nights
    ) -> None:
        prompts = 3 * 3  # both rounds ask the same
        with FakeLLM(reply=lambda call: STEADY) as server:
            nights.serve(server)
            nights.panel(models=["mine"], max_calls=4)
            assert nights.run().success
            assert len(server.calls) == 4
            nights.panel(models=["mine"])
            assert nights.run().success
            written = nights.pipeline.bytes()
            assert nights.run().success
            assert len(server.calls) == prompts
            assert set(server.answers.values()) == {1}
        assert nights.pipeline.bytes() == written

    def test_chosen_segments_are_one_run_that_touches_and_checks_no_other(self, nights: Nights) -> None:
        nights.panel(models=["baseline/uniform"], segments=["country:chile", "country:kenya"])
        chosen = [key for key in nights.pipeline.keys if "india" not in key]
        for key in set(nights.pipeline.keys) - set(chosen):
            nights.pipeline.file("predictions", key, snapshot="base").write_bytes(b"nobody is to read this")
        others = {name: data for name, data in nights.pipeline.bytes().items() if "india" in name}
        result = nights.run()
        assert result.success
        assert all(check.passed for check in result.get_asset_check_evaluations())
        for asset in NIGHTLY:
            assert nights.materialized(result, asset) == chosen
            found = nights.pipeline.status(asset)
            assert found == {key: "MATERIALIZED" if key in chosen else None for key in nights.pipeline.keys}
        assert {name: data for name, data in nights.pipeline.bytes().items() if "india" in name} == others

    def test_where_chosen_segments_have_gaps_a_failed_night_shows_those_between_as_failed_but_never_touched_them(
        self, nights: Nights
    ) -> None:
        """Dagster plans whole ranges and calls failed what a failed run had planned; docs/nightly.md says so."""
        nights.panel(models=["baseline/uniform"], rounds=["T1"], segments=["country:chile", "country:kenya"])
        between = {name: data for name, data in nights.pipeline.bytes().items() if "india" in name}
        nights.pipeline.file("blueprints", "T1/country:kenya").write_bytes(b"broken")
        result = nights.run()
        assert not result.success
        assert nights.materialized(result) == ["T1/country:chile"]
        after = nights.pipeline.bytes()
        assert {name: after[name] for name in after if "india" in name} == between
        assert nights.pipeline.status("scores")["T1/country:india"] == "FAILED"


@dataclass(frozen=True)
class Weeks:
    nights: Nights
    runs: list[dg.ExecuteInProcessResult]
    boards: list[dg.ExecuteInProcessResult]
    receiver: Receiver
    of_another_round: dict[str, bool]
    """Checks of a run over a round that no night asked about, made after the nights."""

    def said(self, board: int, name: str) -> Any:
        """Metadata of `model_drift`."""
        (event,) = self.boards[board].asset_materializations_for_node("model_drift")
        return event.metadata[name].value

    def check(self, board: int, name: str) -> dg.AssetCheckEvaluation:
        (found,) = [one for one in self.boards[board].get_asset_check_evaluations() if one.check_name == name]
        return found


@pytest.fixture(scope="module")
def weeks(tmp_path_factory: pytest.TempPathFactory, registered: Path) -> Iterator[Weeks]:
    """Nights of one model, the third one missed, whose answers are others from the fifth on.

    Boards without a webhook, with one that is down, with one that answers, again, and once the drift is accepted.
    """
    folder = tmp_path_factory.mktemp("weeks")
    shutil.copytree(registered, folder, dirs_exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        use(folder, patch)
        patch.delenv("DTEF_WEBHOOK", raising=False)
        with dagster_instance() as instance, Receiver(400, 200) as receiver:
            nights = Nights(Pipeline(instance, Warehouse(folder / "warehouse")), folder, patch)
            nights.panel(models=["mine"], rounds=["T1"], drift={"baseline": 3})
            runs = []
            for night in (0, 1, 3, 4, 5, 6):
                with FakeLLM(reply=lambda call, reply=STEADY if night < 4 else MOVED: reply) as server:  # type: ignore[misc]
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
        assert labels == ["2026-03-01", "2026-03-02", *(f"2026-03-0{day}" for day in (4, 5, 6, 7)), "base"]
        assert weeks.nights.pipeline.house.values("scores", "snapshot", round="T2", segment="country:kenya") == ["base"]

    def test_the_check_of_a_night_fails_from_the_first_changed_one_on(self, weeks: Weeks) -> None:
        found = [next(one for one in run.get_asset_check_evaluations() if one.check_name == "no_drift") for run in weeks.runs]
        assert [one.passed for one in found] == [True] * 3 + [False] * 3
        first = found[-1].metadata["first"].value
        assert isinstance(first, list)
        assert re.match(r"(drift|watch): mine on T1/country:\w+ at context 0, distribution/attribute-label: ", str(first[0]))

    def test_what_a_night_found_stays_when_a_run_of_another_round_follows(self, weeks: Weeks) -> None:
        assert weeks.of_another_round == {"no_drift": False}

    def test_the_model_drifts_from_the_first_changed_night_on(self, weeks: Weeks) -> None:
        assert re.match(
            r"Drift in 1 of \d+ series. Largest: mine at context 0, down by 0\.\d+ since 2026-03-05", weeks.said(0, "headline")
        )
        assert (weeks.said(0, "drift"), weeks.said(0, "watch")) == (1, 0)
        assert weeks.said(0, "timeline").startswith("![")
        check = weeks.check(0, "no_model_drift")
        assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.ERROR)
        (said,) = check.metadata["first"].value
        assert re.search(r"mine at context 0, .*: down by 0\.\d+ .*since 2026-03-05; .*moved most: T1/q", str(said))

    def test_the_webhook_is_told_once_and_again_only_when_it_did_not_arrive(self, weeks: Weeks) -> None:
        assert weeks.said(0, "webhook").startswith("off")
        assert "failed, and sent again the next time" in weeks.said(1, "webhook")
        assert "answered 400" in weeks.said(1, "webhook")
        assert weeks.boards[1].success
        assert [weeks.said(board, "webhook") for board in (2, 3)] == ["told of 1 series", "nothing new to tell"]

    def test_a_webhook_that_does_not_take_what_there_is_to_tell_is_a_warning(self, weeks: Weeks) -> None:
        checks = [weeks.check(board, "verdicts_were_told") for board in range(4)]
        assert [one.passed for one in checks] == [True, False, True, True]
        assert checks[1].severity == dg.AssetCheckSeverity.WARN
        assert checks[1].metadata["first"].value == ["mine at context 0: drift"]

    def test_the_message_says_what_moved(self, weeks: Weeks) -> None:
        (_, refused), (_, told), (_, accepted) = weeks.receiver.bodies
        assert refused == told
        assert [(one["verdict"], one["was"]) for one in accepted["series"]] == [("none", "drift")]
        assert accepted["text"].endswith("mine at context 0, told as drift: no longer so.")
        assert {name: told[name] for name in ("version", "event", "snapshot")} == {
            "version": 1,
            "event": "drift",
            "snapshot": "2026-03-07",
        }
        assert told["text"] == weeks.said(0, "headline")
        (series,) = told["series"]
        assert (series["model"], series["model_variant"]) == ("mine", "openai/mine[max_tokens=256,temperature=0]")
        assert (series["verdict"], series["was"], series["direction"]) == ("drift", "none", "down")
        assert series["first_snapshot"] == "2026-03-05"
        assert series["low"] <= series["shift"] <= series["high"] < 0
        assert [change["what"] for change in series["changes"]] == ["answers"]
        assert series["moved"][0]["question"].startswith("T1/q")

    def test_a_drift_is_accepted_by_a_later_beginning(self, weeks: Weeks) -> None:
        """The nights that are left are alike; what was told before is taken back."""
        assert weeks.said(4, "drift") == 0
        check = weeks.check(4, "no_model_drift")
        assert check.passed
        assert weeks.said(4, "webhook") == "told of 1 series"

    def test_no_secret_is_written_anywhere(self, weeks: Weeks) -> None:
        instance = weeks.nights.pipeline.instance
        logs = "".join(str(entry) for board in weeks.boards for entry in instance.all_logs(board.run_id))
        assert "s3cret" in weeks.receiver.url
        assert "s3cret" not in logs
