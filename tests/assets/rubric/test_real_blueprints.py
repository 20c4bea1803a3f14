"""Real blueprints through all stages, with faults and kills: nothing is bought twice, nothing is lost, and the tables are the same."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from assets.stage.versions import content_version
from dtef_pipeline.rubric.tables import RUBRIC_RESPONSES
from resources.settings import Settings
from tests.assets.rubric.conftest import RubricPipeline, rubric_pipeline, state_in
from tests.assets.rubric.kills import Kill, asked_when_killed, committed, killed_when
from tests.assets.rubric.run_stages import StageRunner
from tests.conftest import SHARED
from tests.made.rubric_replies import READABLE_FORMS, UNREADABLE_FORMS, faulty

WEVAL = SHARED / "weval"
CHOSEN = (
    "adversarial-legal-reasoning-ca",  # four temperatures
    "benchmarks/aft-reasoning-assessment",  # functions written as strings
    "benchmarks/generative-ai-for-hate-speech-detection-cross-dataset",
    "benchmarks/mmlu-pro-evaluating-higher-order-reasoning-and-shortcut",
    "benchmarks/turkish-mmlu-tr-mmlu",
    "disability/language-preferences-by-community",  # turns that the model writes
    "factchecks/sri-lanka-factum",  # asks a service, three system prompts
    "factual-recall/geography-sample",  # scripts, alternative paths of functions, temperatures
    "prompting-techniques-meta-eval",  # alternative paths of criteria in words
    "tool-use-test",  # tool calls
    "visual/clocks",  # neither criteria nor ideal
    "visual/pelican",
)
"""Small ones, since every call costs time: together they have every kind of prompt and criterion, and every structure of files but one."""
CONFIG: dict[str, dict[str, Any]] = {
    "rubric_responses": {"models": ["cand-a"]},
    "rubric_judgements": {"judges": ["standard=judge-x", "holistic=judge-y"]},
    "rubric_embeddings": {"embedder": "embed"},
    "rubric_scores": {"embedder": "embed"},
    "rubric_summaries": {"analysts": ["analyst-z"]},
    "rubric_anchors": {"judges": ["standard=judge-x"], "anchors": 60, "snapshot": "night"},
}
N_JUDGES = 2
TABLES_WITHOUT_CLOCK = (
    *("rubric_judgements", "rubric_embeddings", "rubric_points", "rubric_scores", "rubric_similarities"),
    *("rubric_summaries", "rubric_grades", "analyst_ids"),
)
CLOCKED = {"latency_s", "answered_at", "attempts"}
"""Columns that say when and how fast a response came."""


@pytest.fixture(scope="module")
def real_blueprints() -> Path:
    if not (WEVAL / "blueprints").is_dir():
        pytest.skip(f"no real blueprints at {WEVAL}")
    return WEVAL / "blueprints"


def add_chosen(pipeline: RubricPipeline, folder: Path) -> None:
    pipeline.config = CONFIG
    pipeline.add({name.replace("/", "__"): folder / f"{name}.yml" for name in CHOSEN}, WEVAL / "models")


def writing_when_killed(pipeline: RubricPipeline, runner: StageRunner, stage: str, blueprints: int, before: str) -> Kill:
    """A stage that asks nobody, killed when it has written so many blueprints after the stage before it."""
    folder = Path(Settings.read_environment().warehouse) / stage
    return killed_when(pipeline, runner, [before, stage], lambda: len([*folder.glob("blueprint=*/**/*.parquet")]) >= blueprints)


def versions(pipeline: RubricPipeline) -> dict[tuple[str, str], str]:
    """The content of each table without a clock, by table and blueprint, as the hash that Dagster knows it by."""
    places = [(table, name.replace("/", "__")) for table in TABLES_WITHOUT_CLOCK for name in CHOSEN]
    return {(table, key): content_version(pipeline.table(table, key)) for table, key in places} | {
        ("rubric_board", ""): content_version(pipeline.table("rubric_board"))
    }


def has_all_responses_and_judgements(pipeline: RubricPipeline) -> None:
    """As many as an independent reader of the files counted."""
    expected = {one["id"]: one for one in json.loads((WEVAL / "expected.json").read_text(encoding="utf-8"))["files"]}
    for key in pipeline.keys:
        counted = expected[key]
        responses = pipeline.rows("rubric_responses", key)
        assert len(responses) == counted["planned_responses"] / counted["models"], key
        assert {row["status"] for row in responses} <= {"ok", "empty"}
        points = Counter(row["kind"] for row in pipeline.rows("rubric_points", key))
        assert len(pipeline.rows("rubric_judgements", key)) == N_JUDGES * points["text"]
        if all(row["status"] == "ok" for row in responses):
            assert points["text"] == counted["judge_pairs"] / counted["models"], key


def has_each_reason(pipeline: RubricPipeline) -> None:
    """Judges replied in all forms; candidates were truncated; what no judge could say has its reason."""
    assert set(pipeline.players.forms) == {*READABLE_FORMS, *UNREADABLE_FORMS}
    assert any(row["truncated"] for row in pipeline.rows("rubric_responses"))
    judged = pipeline.rows("rubric_judgements")
    assert {row["reason"] for row in judged} == {None, "unreadable", "cut", "empty", "declined"}
    assert all((row["score"] is None) == (row["reason"] is not None) for row in judged)
    in_words = [row for row in pipeline.rows("rubric_points") if row["kind"] == "text"]
    assert {row["n_answered"] for row in in_words} == {0, 1, N_JUDGES}
    assert all((row["score"] is None) == (row["n_answered"] == 0) for row in in_words)


def made_without_faults(folder: Path, real_blueprints: Path, patch: pytest.MonkeyPatch) -> RubricPipeline:
    with rubric_pipeline(state_in(folder, patch), patch) as whole:
        add_chosen(whole, real_blueprints)
        assert whole.run().failures == ()
        assert whole.roll_up("rubric_board").failures == ()
        has_all_responses_and_judgements(whole)
        has_each_reason(whole)
        assert set(whole.players.answered.values()) == {1}
        assert {row["status"] for row in whole.rows("rubric_summaries")} == {"ok"}
    return whole


def killed_in_each_stage(pipeline: RubricPipeline, runner: StageRunner) -> list[Kill]:
    """Each run begins with what the one before did not come to."""
    kills = [
        asked_when_killed(pipeline, runner, "candidate", 60, "rubric_blueprints", "rubric_responses"),
        asked_when_killed(pipeline, runner, "embedder", 3, "rubric_responses", "rubric_embeddings"),
        asked_when_killed(pipeline, runner, "judge", 150, "rubric_embeddings", "rubric_judgements"),
        writing_when_killed(pipeline, runner, "rubric_points", 4, "rubric_judgements"),
        writing_when_killed(pipeline, runner, "rubric_scores", 4, "rubric_points"),
    ]
    pipeline.server.latency = 0.05
    kills.append(asked_when_killed(pipeline, runner, "analyst", 3, "rubric_embeddings", "rubric_scores", "rubric_summaries"))
    pipeline.server.latency = 0.0
    return kills


def judged_again_after_a_kill(pipeline: RubricPipeline, runner: StageRunner) -> None:
    """Anchors of a night: whatever the kill lost, each verdict is kept once."""
    answered, before = pipeline.players.answered.total(), committed()
    asked_when_killed(pipeline, runner, "judge", 20, "rubric_anchors")
    assert pipeline.run(["rubric_anchors"]).failures == ()
    rows = pipeline.rows("anchors")
    assert (len(rows), len({row["anchor"] for row in rows}), {row["snapshot"] for row in rows}) == (60, 60, {"night"})
    kept = committed() - before
    assert 60 <= kept <= 2 * 60
    assert kept <= pipeline.players.answered.total() - answered <= kept + 2 * 8
    assert pipeline.players.asked
    assert pipeline.run(["rubric_anchors"]).failures == ()
    assert not pipeline.players.asked


@pytest.mark.thorough
def test_faults_and_kills_in_each_stage_buy_nothing_twice_and_leave_the_same_tables(
    real_blueprints: Path, runner: StageRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = made_without_faults(tmp_path / "whole", real_blueprints, monkeypatch)
    folder = state_in(tmp_path / "killed", monkeypatch)
    with rubric_pipeline(folder, monkeypatch, faulty(0.2), on_disk=True, timeout=1.0) as killed:
        add_chosen(killed, real_blueprints)
        kills = killed_in_each_stage(killed, runner)
        assert killed.run().failures == ()
        assert killed.roll_up("rubric_board").failures == ()
        answered, asked = Counter(killed.players.answered), len(killed.server.calls)
        assert committed() == len(answered) == len(whole.players.answered)
        judged_again_after_a_kill(killed, runner)
    assert set(answered) == set(whole.players.answered)
    assert asked > 1.15 * answered.total()
    # What was answered and not committed when the process died is all that was bought again.
    at = [Kill(0, 0), *kills, Kill(answered.total(), len(answered))]
    lost = [(after.answered - before.answered) - (after.committed - before.committed) for before, after in pairwise(at)]
    assert lost[-1] == 0
    assert all(0 <= one <= 2 * 8 for one in lost), lost
    assert max(answered.values()) <= 1 + len(kills)
    assert versions(killed) == versions(whole)
    kept = [name for name in RUBRIC_RESPONSES.names if name not in CLOCKED]
    assert killed.table("rubric_responses").select(kept) == whole.table("rubric_responses").select(kept)
