"""The pipeline on PostgreSQL: the commands, with the response store on a server of the tests' own."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import make_url

from resources.responses.store import ResponseStore
from tests.dtef_pipeline.cli.commands import CHOSEN, SAMPLE, distribution, ok, query, serve_as
from tests.fake_llm_server import FakeLLM
from tests.made.responses import stored
from tests.postgres import Postgres

RUN = ["run", "--round", "S1", *CHOSEN, "--model", "fake", "--questions", "3"]


@pytest.mark.thorough
def test_a_round_is_asked_replayed_and_moved_with_its_answers_in_postgresql(
    postgres: Postgres, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.new_database()
    monkeypatch.setenv("DTEF_RESPONSES", url)
    printed = ok("ingest", SAMPLE)
    with FakeLLM(reply=lambda call: distribution(call, 30.0)) as server:
        serve_as(server, state, monkeypatch)
        printed += ok(*RUN)
        assert server.answered == 6
        printed += ok(*RUN, "--draws", "2")
        assert server.answered == len(server.calls) == 12
    assert query("SELECT DISTINCT status FROM scores") == [{"status": "ok"}]
    shown = ok("responses", "show")
    assert "12 responses, " in shown
    file = state / "moved.parquet"
    printed += shown + ok("responses", "export", file)
    monkeypatch.setenv("DTEF_RESPONSES", str(state / "embedded.sqlite"))
    assert "12 responses added" in ok("responses", "import", file)
    assert str(make_url(url).password) not in printed
    assert not (state / "responses.sqlite").exists()


def test_a_plain_postgresql_url_is_enough(postgres: Postgres) -> None:
    with ResponseStore(postgres.new_database().replace("postgresql+psycopg://", "postgresql://")) as store:
        assert stored(store) == 0
        assert store.name.startswith("postgresql+psycopg://dtef:***@127.0.0.1:")
