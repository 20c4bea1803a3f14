"""A database that is away keeps nobody waiting for long, and those not at all who do not need it."""

from __future__ import annotations

import threading
from pathlib import Path

import httpx2

from tests.dtef_pipeline.api.followed import operator_client
from tests.dtef_pipeline.api.started import started
from tests.postgres import Postgres

HANGING = 50
"""More than the server has threads."""


def ask(http: httpx2.Client, address: str, answers: list[int]) -> None:
    answer = http.get(f"{address}/api/evaluations/queue")
    assert answer.status_code != 503 or "retry-after" in answer.headers
    answers.append(answer.status_code)


def test_login_files_and_health_answer_while_others_wait_for_the_database(server: Postgres, tmp_path: Path) -> None:
    """Every request waited for a minute, in a thread of the 40 that there are, and so nobody could log in."""
    with operator_client() as http, started(tmp_path, server.new_database()) as api:
        assert http.get(f"{api.address}/api/evaluations/queue").status_code == 200
        server.stop()
        try:
            answers: list[int] = []
            threads = [threading.Thread(target=ask, args=(http, api.address, answers)) for _ in range(HANGING)]
            for thread in threads:
                thread.start()
            for path in ("/login", "/static/api.css", "/healthz"):
                assert http.get(f"{api.address}{path}").status_code == 200
            assert not answers, "nobody was to be answered before those who need no database"
            told = http.get(f"{api.address}/api/health").json()
            assert told["database"]["answers"] is False
            assert len(answers) < HANGING, "health was to be told before all others"
            for thread in threads:
                thread.join()
            assert answers == [503] * HANGING
        finally:
            server.start()
        assert http.get(f"{api.address}/api/health").json()["database"]["answers"] is True
