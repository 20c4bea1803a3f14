"""Real blueprints through all stages, with faults and kills: nothing is bought twice, nothing is lost, and the tables are the same."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from assets.launch import RUBRIC_STAGE_NAMES
from assets.stage.versions import content_version
from dtef_pipeline.rubric.tables import RUBRIC_RESPONSES
from resources.responses.store import ResponseStore
from resources.settings import Settings
from tests.assets.rubric.conftest import RubricPipeline, rubric_pipeline, state_in
from tests.assets.rubric.run_stages import StageRunner, stage_runner
from tests.conftest import SHARED
from tests.made.responses import stored
from tests.made.rubric_replies import faulty

WEVAL = SHARED / "weval"
CHOSEN = (
    "adversarial-legal-reasoning-ca",  # four temperatures
    "benchmarks/aft-reasoning-assessment",  # functions written as strings
    "benchmarks/generative-ai-for-hate-speech-detection-cross-dataset",
    "benchmarks/mmlu-translation-impact-evaluation",  # functions alone
    "compass/disagreeable",  # scripts, system prompts, temperatures
    "compass/introverted",  # two prompts of one id, a turn that the model writes
    "disability/language-preferences-by-community",  # turns that the model writes
    "factchecks/sri-lanka-factum",  # asks a service, three system prompts
    "prompting-techniques-meta-eval",  # alternative paths
    "tool-use-test",  # tool calls
    "visual/clocks",  # neither criteria nor ideal
    "visual/pelican",
)
CONFIG: dict[str, dict[str, Any]] = {
    "rubric_responses": {"models": ["cand-a"]},
    "rubric_judgements": {"judges": ["prompt-aware=judge-x"]},
    "rubric_embeddings": {"embedder": "embed"},
    "rubric_scores": {"embedder": "embed"},
    "rubric_summaries": {"analysts": ["analyst-z"]},
}
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


@pytest.fixture
def runner() -> Iterator[StageRunner]:
    with stage_runner() as made:
        yield made


def add_chosen(pipeline: RubricPipeline, folder: Path) -> None:
    pipeline.config = CONFIG
    pipeline.add({name.replace("/", "__"): folder / f"{name}.yml" for name in CHOSEN}, WEVAL / "models")


@dataclass
class Kill:
    """What a kill left behind: answers of the server until then, and responses that are in the store."""

    answered: int
    committed: int


def killed_when(
    pipeline: RubricPipeline, runner: StageRunner, role: str, further: int, stages: Sequence[str] = RUBRIC_STAGE_NAMES
) -> Kill:
    """Run stages in a process of their own, and kill it when so many further requests of a role were answered."""
    counts = pipeline.players.by_role
    goal = counts[role] + further
    process = runner.start({name: given for name, given in pipeline.config.items() if name in stages}, stages)
    deadline = time.monotonic() + 120
    while counts[role] < goal and time.monotonic() < deadline:
        time.sleep(0.002)
    os.kill(process, signal.SIGKILL)
    assert runner.ended() == -signal.SIGKILL
    assert counts[role] >= goal
    while pipeline.server.busy:
        time.sleep(0.002)
    return Kill(pipeline.players.answered.total(), committed())


def committed() -> int:
    with ResponseStore(Settings.from_environment().responses_url) as store:
        return stored(store)


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
        assert len(pipeline.rows("rubric_judgements", key)) == points["text"]
        if all(row["status"] == "ok" for row in responses):
            assert points["text"] == counted["judge_pairs"] / counted["models"], key


def test_faults_and_kills_in_each_stage_buy_nothing_twice_and_leave_the_same_tables(
    real_blueprints: Path, runner: StageRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rubric_pipeline(state_in(tmp_path / "whole", monkeypatch), monkeypatch) as whole:
        add_chosen(whole, real_blueprints)
        assert whole.run().failures == ()
        whole.roll_up()
        has_all_responses_and_judgements(whole)
        assert set(whole.players.answered.values()) == {1}
    folder = state_in(tmp_path / "killed", monkeypatch)
    with rubric_pipeline(folder, monkeypatch, faulty(0.2), on_disk=True, timeout=1.0) as killed:
        add_chosen(killed, real_blueprints)
        kills = [
            killed_when(killed, runner, "candidate", 90),
            killed_when(killed, runner, "embedder", 3, ["rubric_responses", "rubric_embeddings"]),
            killed_when(killed, runner, "judge", 150),
        ]
        killed.server.latency = 0.05
        kills.append(killed_when(killed, runner, "analyst", 3))
        killed.server.latency = 0.0
        assert killed.run().failures == ()
        killed.roll_up()
        answered, asked = killed.players.answered, len(killed.server.calls)
        assert committed() == len(answered) == len(whole.players.answered)
    assert set(answered) == set(whole.players.answered)
    assert {row["status"] for row in whole.rows("rubric_summaries")} == {"ok"}
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
