"""What an operator does to the API by hand: the commands of the documentation as they stand there, and a disk that takes no more."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dtef_pipeline.preference.pairing import make_new_pairs
from resources.votes.vote_store import VoteStore
from tests.conftest import ROOT
from tests.dtef_pipeline.api.made import ROLE_TOKENS, client_in, services_in
from tests.dtef_pipeline.api.served import served
from tests.made.stored_votes import written

PIECES = re.compile(r"```sh\n(for kind in .*?)```", re.DOTALL)
TOOLS = ("bash", "grep", "split", "curl")
REVIEWERS = 3


def filled(store: VoteStore, items: int) -> list[str]:
    """The ids of new pairs."""
    responses = written(items=items)
    store.add_pairs(responses, make_new_pairs(responses), who="test")
    return [pair.pair_id for pair in store.pairs()]


@pytest.mark.skipif(any(shutil.which(tool) is None for tool in TOOLS), reason=f"without {', '.join(TOOLS)}")
def test_a_file_of_votes_comes_in_by_the_commands_of_the_guide(tmp_path: Path) -> None:
    """Pieces of 4 kB in place of 900 kB, so that a small file has several."""
    commands = PIECES.findall((ROOT / "docs" / "how-to" / "preference.md").read_text(encoding="utf-8"))
    assert len(commands) == 1
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    with client_in(here) as client:
        for pair_id in filled(client.app.state.services.votes, items=12):  # type: ignore[attr-defined]
            for number in range(REVIEWERS):
                ballot = {"pair_id": pair_id, "reviewer_id": f"r{number}", "choice": "A", "confidence": 3}
                assert client.post(
                    "/api/feedback/votes", json={**ballot, "justification": 'Both say "kind":"vote", oddly.'}
                ).is_success
        sent = client.get("/api/feedback/export").content
    (tmp_path / "votes.jsonl").write_bytes(sent)
    services = services_in(there)
    with served(services) as api:
        variables = {"API": f"{api.address}/api", "AUTH": f"Authorization: Bearer {ROLE_TOKENS['admin']}"}
        done = subprocess.run(
            ["bash", "-c", commands[0].replace("-C 900000", "-C 4000")],
            cwd=tmp_path,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert len(list(tmp_path.glob("piece.*"))) > REVIEWERS
        with client_in(there) as client:
            assert client.get("/api/feedback/export").content == sent
    services.close()


@contextmanager
def no_file_grows_beyond(size: int) -> Iterator[None]:
    """For this process: a file as large as that takes no more, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_vote_for_which_there_is_no_room_is_stored_later_and_once(tmp_path: Path) -> None:
    with client_in(tmp_path) as client:
        votes: VoteStore = client.app.state.services.votes  # type: ignore[attr-defined]
        pair_id, ballot = filled(votes, items=60)[0], {"reviewer_id": "r", "choice": "A", "confidence": 3}
        with no_file_grows_beyond((tmp_path / "responses.sqlite-wal").stat().st_size):
            refused = client.post("/api/feedback/votes", json={"pair_id": pair_id, **ballot})
            read = client.get("/api/feedback/next", params={"reviewer_id": "r"})
        assert refused.status_code == 503
        assert int(refused.headers["Retry-After"]) > 0
        assert str(tmp_path) not in refused.text
        assert read.json()["pair_id"] == pair_id
        assert client.post("/api/feedback/votes", json={"pair_id": pair_id, **ballot}).status_code == 201
        assert len(list(votes.votes())) == 1
