"""The rubric family with its state elsewhere: responses and Dagster in PostgreSQL, the warehouse in an object store."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from dagster_postgres.event_log import PostgresEventLogStorage
from pyarrow.fs import S3FileSystem

from assets.stage.versions import content_version
from tests.assets.rubric.conftest import RubricPipeline, rubric_pipeline, state_in
from tests.assets.rubric.kills import asked_when_killed, committed
from tests.assets.rubric.run_stages import StageRunner
from tests.conftest import ROOT
from tests.made.rubric_documents import PATHS, PATHS_PROMPTS
from tests.made.rubric_replies import faulty
from tests.postgres import NoPostgres, running_postgres
from tests.s3_server import running
from tests.test_s3 import CREDENTIALS

COLD = [{**PATHS, "temperatures": [0.0]}, PATHS_PROMPTS]
WITHOUT_CLOCK = (
    "rubric_judgements",
    "rubric_embeddings",
    "rubric_points",
    "rubric_scores",
    "rubric_similarities",
    "rubric_board",
)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An environment whose warehouse, responses and Dagster are servers'; the folder is for the rest."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    for name in ("DTEF_MODELS", "DTEF_PANEL", "DTEF_WEBHOOK"):
        monkeypatch.delenv(name, raising=False)
    try:
        with running_postgres() as postgres, running(tmp_path / "requests.jsonl") as s3:
            place = f"127.0.0.1:{s3.port}"
            files = S3FileSystem(endpoint_override=place, scheme="http", region="us-east-1", allow_bucket_creation=True)
            files.create_dir("rubrics")
            monkeypatch.setenv("DTEF_WAREHOUSE", f"s3://rubrics/warehouse?endpoint_override={place}&scheme=http")
            monkeypatch.setenv("DTEF_RESPONSES", postgres.new_database())
            monkeypatch.setenv("DAGSTER_POSTGRES_URL", postgres.new_database().replace("+psycopg:", "+psycopg2:"))
            monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
            (tmp_path / "dagster").mkdir()
            shutil.copyfile(ROOT / "deploy" / "dagster.yaml", tmp_path / "dagster" / "dagster.yaml")
            yield tmp_path
    except NoPostgres as why:
        pytest.skip(f"without PostgreSQL: {why}")


def made(pipeline: RubricPipeline) -> dict[str, str]:
    """The blueprint through all stages and the board; the content of each table."""
    assert pipeline.run().failures == ()
    assert pipeline.roll_up("rubric_board").failures == ()
    return {name: content_version(pipeline.table(name)) for name in WITHOUT_CLOCK}


def test_on_servers_with_faults_and_kills_the_tables_are_those_of_a_run_on_disk(
    elsewhere: Path, runner: StageRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rubric_pipeline(elsewhere, monkeypatch, faulty(0.2), on_disk=True, timeout=5.0) as remote:
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
        assert not list(elsewhere.rglob("*.parquet"))
    with rubric_pipeline(state_in(elsewhere / "disk", monkeypatch), monkeypatch) as local:
        local.write("paths", COLD)
        assert made(local) == found
        assert set(local.players.answered.values()) == {1}
        assert set(local.players.answered) == set(answered)
