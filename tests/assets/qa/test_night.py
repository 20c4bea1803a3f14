"""The schedule `qa_nightly`: which parts a night has, how it is configured, and what two nights of a run tell of drift."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.definitions import defs
from assets.qa.roll_ups import qa_nightly_schedule
from assets.stage.file_notes import add_noted
from dtef_pipeline.cli.stage_runs import open_dagster_instance
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import FAMILY_BY_NAME
from resources.notes import ITEM_NOTES, QaSource
from tests.assets.qa.conftest import QaPipeline, qa_pipeline
from tests.assets.rubric.conftest import state_in
from tests.assets.ticks import run_request, tick
from tests.conftest import ROOT
from tests.dtef_pipeline.cli.commands import ok
from tests.made.models_file import write_models
from tests.made.qa_scores import keep_in

SUMS = ROOT / "data" / "questions" / "gsm8k"
MADE, NEVER_MADE = ("mmlu/law", "mmlu/physics", "gsm8k/all", "socioscope/talks"), "mmlu/biology"


def of_night(day: int) -> datetime:
    return datetime(2026, 3, day, 3, 0, tzinfo=UTC)


@pytest.fixture
def night(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """What the tick of a night says, given the panel's text."""
    monkeypatch.setenv("DTEF_MODELS", str(write_models(state, ("m", "j"))))
    keys = [key.split("/") for key in (*MADE, NEVER_MADE)]
    items = [{"suite": suite, "part": part, "item_id": f"{part}/1"} for suite, part in keys if f"{suite}/{part}" in MADE]
    documents = [{"suite": "socioscope", "part": "talks", "doc_id": "a#0", "project": "US-002"}]
    house = keep_in(state / "warehouse", {"qa_items": items, "qa_documents": documents})
    with open_dagster_instance() as instance:
        sources = [QaSource(suite, part, f"{part}.csv", None, None, part) for suite, part in keys]
        add_noted(instance, house, FAMILY_BY_NAME["qa"], ITEM_NOTES, sources)

        def asked(panel: str) -> Any:
            (state / "panel.yaml").write_text(panel, encoding="utf-8")
            monkeypatch.setenv("DTEF_PANEL", str(state / "panel.yaml"))
            return tick(qa_nightly_schedule, instance, of_night(1))

        yield asked


def told(request: dg.RunRequest) -> dict[str, Any]:
    """The configuration of each stage, which the job takes."""
    dg.validate_run_config(defs.resolve_job_def("qa_nightly"), request.run_config)
    return {name: given["config"] for name, given in request.run_config["ops"].items()}


WITHOUT_PARTS = {
    "models: [baselines]": "no panel file with a section `qa`",
    "qa: {models: [m]}": "that names suites or parts",
    "qa: {parts: [biology]}": "has been added yet",
}
"""Panels that ask nothing, and what the tick then says."""
UNKNOWN_NAMES = {
    "parts: ['x*']": r"qa.parts: 'x\*' matches none; known: .*mmlu/law",
    "suites: [humaneval]": "qa.suites: 'humaneval' matches none; known: .*gsm8k",
    "suites: [mmlu], models: [nobody]": "nobody",
    "suites: [mmlu], models: [m], judge: nobody": "nobody",
    "parts: [law, talks], models: [m], filter: [PROJECT=ZZ]": "qa.filter PROJECT=ZZ matches no document; PROJECT has US-002",
}


class TestTick:
    def test_a_night_is_one_run_from_the_prompts_on_in_a_snapshot_of_the_date(self, night: Any) -> None:
        request = night(
            "qa: {parts: [law, 'gsm8k/*'], models: [m], draws: 2, limit: 30, max_cost_usd: 1.5, few_shot: 5, judge: none}\n"
        )
        assert request.run_key == "qa_nightly 2026-03-01"
        assert request.tags["dtef/snapshot"] == "2026-03-01"
        assert request.tags["dtef/partitions"].split("\n") == ["mmlu/law", "gsm8k/all"]
        config = told(request)
        assert list(config) == ["qa_prompts", "qa_responses", "qa_judgements", "qa_executions", "qa_scores"]
        assert {key.to_user_string() for key in request.asset_selection} == set(config)
        shown = {"few_shot": 5}
        assert config["qa_prompts"] == shown
        asking = {"snapshot": "2026-03-01", "max_cost_usd": 1.5}
        assert config["qa_responses"] == {**asking, **shown, "models": ["m"], "draws": 2, "limit": 30}
        assert config["qa_judgements"] == {**asking, "judge": "none"}
        assert config["qa_scores"] == config["qa_executions"] == {"snapshot": "2026-03-01"}

    def test_a_server_that_finds_chunks_and_a_judge_without_a_price_are_those_of_the_night(
        self, night: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        panel = (
            "drift: {since: {m: 2026-02-01}}\nqa: {suites: [gsm8k], models: [m], retriever: remote, filter: [YEAR=2024], judge: j, "
            "allow_unpriced: [j], strict: true, sandbox: off}\n"
        )
        monkeypatch.delenv("DTEF_SOCIOSCOPE_URL", raising=False)
        with pytest.raises(ConfigError, match="DTEF_SOCIOSCOPE_URL is not set"):
            night(panel)
        monkeypatch.setenv("DTEF_SOCIOSCOPE_URL", "https://interviews.example/evaluation")
        config = told(night(panel))
        assert {config[name]["retriever"] for name in ("qa_prompts", "qa_responses")} == {"remote"}
        assert config["qa_prompts"]["filter"] == config["qa_responses"]["filter"] == ["YEAR=2024"]
        assert config["qa_judgements"]["allow_unpriced"] == config["qa_anchors"]["allow_unpriced"] == ["j"]
        assert config["qa_executions"] == {"snapshot": "2026-03-01", "sandbox": "off"}
        assert config["qa_scores"] == {"snapshot": "2026-03-01", "strict": True}

    def test_the_judge_is_shown_anchors_in_the_same_run_within_its_budgets(self, night: Any) -> None:
        config = told(
            night(
                "qa: {suites: [gsm8k], models: [m], judge: j, sample_rate: 0.5, daily_budget: 2, max_calls: 99, "
                "role_budgets: {judge: {max_calls: 9}}}\n"
            )
        )
        bounds = {"snapshot": "2026-03-01", "max_calls": 99, "role_budgets": {"judge": {"max_calls": 9}}}
        assert config["qa_judgements"] == {**bounds, "judge": "j", "sample_rate": 0.5, "daily_budget": 2.0}
        assert config["qa_anchors"] == {**bounds, "judge": "j", "daily_budget": 2.0}
        assert "qa_anchors" not in told(night("qa: {suites: [gsm8k], models: [m], judge: j, anchors: 0}\n"))

    def test_a_panel_without_parts_asks_nothing_and_a_name_that_nothing_has_fails_the_tick(
        self, night: Any, subtests: pytest.Subtests
    ) -> None:
        for panel, why in WITHOUT_PARTS.items():
            with subtests.test(panel):
                assert why in night(f"{panel}\n").skip_message
        for given, said in UNKNOWN_NAMES.items():
            with subtests.test(given), pytest.raises(ConfigError, match=said):
                night(f"qa: {{{given}}}\n")

    def test_what_was_never_made_is_left_out(self, night: Any) -> None:
        request = night("qa: {suites: [mmlu], models: [m]}\n")
        ends = [request.tags[f"dagster/asset_partition_range_{end}"] for end in ("start", "end")]
        assert ends == ["mmlu/law", "mmlu/physics"]


PANEL = "qa: {suites: [gsm8k], models: [honest], judge: arbiter, sample_rate: 1, anchors: 12, limit: 15}\n"


def run_of_night(qa: QaPipeline, day: int) -> None:
    """The run that the tick asks for."""
    result = run_request(tick(qa_nightly_schedule, qa.instance, of_night(day)), qa.instance, "qa_nightly")
    assert result.success, [event.step_failure_data.error for event in result.all_events if event.is_step_failure]


def judge_says(score: float) -> str:
    return json.dumps({"score": score, "reason": "so it is"})


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QaPipeline]:
    """Two nights: in the second the model's answers are worse, and the judge thinks less of the same answers."""
    with pytest.MonkeyPatch.context() as patch:
        folder = state_in(tmp_path_factory.mktemp("nights"), patch)
        with qa_pipeline(folder, patch, on_disk=True, input_price=0.1, output_price=0.1) as qa:
            two_nights(qa, folder, patch)
            yield qa


def two_nights(qa: QaPipeline, folder: Path, patch: pytest.MonkeyPatch) -> None:
    (folder / "panel.yaml").write_text(PANEL, encoding="utf-8")
    patch.setenv("DTEF_PANEL", str(folder / "panel.yaml"))
    qa.add("gsm8k", SUMS)
    assert qa.run(["qa_items"]).failures == ()
    items = qa.rows("qa_items")
    qa.players.known = {row["text"]: f"So it is.\n#### {row['reference']}" for row in items}
    patch.setattr(qa.players, "_judged", lambda call: judge_says(0.9))
    run_of_night(qa, 1)
    # Of the answers every other one is wrong from now on.
    qa.players.known = {
        text: said if at % 2 else "It is one.\n#### 1" for at, (text, said) in enumerate(qa.players.known.items())
    }
    patch.setattr(qa.players, "_judged", lambda call: judge_says(0.4))
    run_of_night(qa, 2)


class TestNights:
    def test_a_model_that_drifted_gets_its_verdict_and_the_judge_gets_one_of_its_own(self, nights: QaPipeline) -> None:
        assert {row["snapshot"] for row in nights.rows("qa_scores")} == {"2026-03-01", "2026-03-02"}
        items = Counter(row["snapshot"] for row in nights.rows("qa_responses"))
        assert items == {"2026-03-01": 15, "2026-03-02": 15}
        assert nights.roll_up("qa_drift", "qa_costs").failures == ()
        of_models = {row["setting"].split(", ")[1].split(" by ")[0]: row for row in nights.rows("drift")}
        assert {row["model"] for row in of_models.values()} == {"honest"}
        exact = of_models["correct"]
        assert (exact["verdict"], exact["n_snapshots"]) == ("watch", 2)
        assert " in 2026-03-02, " in exact["reason"]
        of_judge = {row["evaluator"]: row for row in nights.rows("judge_drift")}
        assert set(of_judge) == {"semantic", "factuality"}
        for row in of_judge.values():
            assert (row["judge"], row["verdict"], row["n_items"], row["n_snapshots"]) == ("arbiter", "watch", 12, 2)
            assert (row["highest"], row["lowest"]) == pytest.approx((0.9, 0.4))
            assert row["gap"] == pytest.approx(0.5)
        said = " ".join(ok("drift", "--family", "qa").split())
        assert "judge arbiter, semantic: watch on 12 anchors" in said

    def test_anchors_are_kept_from_the_first_night_on_and_asked_once_a_night(self, nights: QaPipeline) -> None:
        kept = nights.table("anchor_items")
        assert len(kept) == 12
        rows = nights.rows("anchors")
        assert Counter((row["snapshot"], row["score"]) for row in rows) == {("2026-03-01", 0.9): 24, ("2026-03-02", 0.4): 24}
        assert {row["anchor"] for row in rows} == set(kept["anchor"].to_pylist())
        answered = nights.server.answered
        run_of_night(nights, 2)
        assert nights.server.answered == answered, "the run of a night that is there is started again, and buys nothing"
        assert nights.table("anchor_items") == kept
        assert nights.rows("anchors") == rows

    def test_what_anchors_cost_is_the_judges(self, nights: QaPipeline) -> None:
        assert nights.roll_up("qa_costs").failures == ()
        judge = [row for row in nights.rows("costs") if row["role"] == "judge"]
        asked = nights.players.by_role["judge"]
        assert sum(row["calls"] for row in judge) == asked
        assert sum(row["answered"] for row in judge) == asked

    def test_the_command_says_what_the_schedule_does(self, nights: QaPipeline) -> None:
        answered = nights.server.answered
        said = ok("anchors", "--family", "qa", "--snapshot", "2026-03-02", "--n", 12, "--judge", "arbiter")
        assert "12 anchors, 24 judgements in snapshot 2026-03-02" in said
        assert nights.server.answered == answered, "the night has asked all of it"
        rows = json.loads(ok("anchors", "--family", "qa", "--results", "--json"))
        assert {(row["evaluator"], row["verdict"], row["n_items"]) for row in rows} == {
            ("semantic", "watch", 12),
            ("factuality", "watch", 12),
        }
        assert "arbiter" in ok("anchors", "--family", "qa", "--results")
