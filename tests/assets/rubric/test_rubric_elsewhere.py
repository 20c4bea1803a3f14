"""The rubric family with its state elsewhere: responses and Dagster in PostgreSQL, the warehouse in an object store."""

from __future__ import annotations

from pathlib import Path

import pytest
from dagster_postgres.event_log import PostgresEventLogStorage

from assets.stage.versions import content_version
from tests.assets.rubric.conftest import RubricPipeline, rubric_pipeline, state_in
from tests.assets.rubric.kills import asked_when_killed, committed
from tests.assets.rubric.run_stages import StageRunner
from tests.made.rubric_documents import PATHS, PATHS_PROMPTS
from tests.made.rubric_replies import faulty
from tests.servers import move_to, state_on_servers

COLD = [{**PATHS, "temperatures": [0.0]}, PATHS_PROMPTS]
WITHOUT_CLOCK = (
    "rubric_judgements",
    "rubric_embeddings",
    "rubric_points",
    "rubric_scores",
    "rubric_similarities",
    "rubric_board",
)


def made(pipeline: RubricPipeline) -> dict[str, str]:
    """The blueprint through all stages and the board; the content of each table."""
    assert pipeline.run().failures == ()
    assert pipeline.roll_up("rubric_board").failures == ()
    return {name: content_version(pipeline.table(name)) for name in WITHOUT_CLOCK}


def test_on_servers_with_faults_and_kills_the_tables_are_those_of_a_run_on_disk(
    tmp_path: Path, runner: StageRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    move_to(tmp_path / "dagster", monkeypatch)
    with (
        state_on_servers(tmp_path, monkeypatch),
        rubric_pipeline(tmp_path, monkeypatch, faulty(0.2), on_disk=True, timeout=5.0) as remote,
    ):
        assert isinstance(remote.instance.event_log_storage, PostgresEventLogStorage)
        remote.write("paths", COLD)
        asked_when_killed(remote, runner, "candidate", 9, "rubric_blueprints", "rubric_responses")
        asked_when_killed(remote, runner, "judge", 20, "rubric_responses", "rubric_judgements")
        found = made(remote)
        assert set(remote.status("rubric_scores").values()) == {"MATERIALIZED"}
        assert len(remote.server.calls) > remote.server.answered
        answered = remote.players.answered
        assert committed() == len(answered)
        # What was answered and not committed when a process died is all that was bought again: eight calls of each model in flight.
        candidates, judges = 2, 1
        assert answered.total() - len(answered) <= 8 * (candidates + judges)
        assert set(remote.players.asked) == {"candidate", "judge", "embedder"}
        assert remote.run(["rubric_responses", "rubric_judgements", "rubric_embeddings"]).failures == ()
        assert not remote.players.asked
        assert not list(tmp_path.rglob("*.parquet"))
    with rubric_pipeline(state_in(tmp_path / "disk", monkeypatch), monkeypatch) as local:
        local.write("paths", COLD)
        assert made(local) == found
        assert set(local.players.answered.values()) == {1}
        assert set(local.players.answered) == set(answered)
