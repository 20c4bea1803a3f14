"""A disk that takes no more."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dtef_pipeline.preference.pairing import make_new_pairs
from resources.votes.vote_store import VoteStore
from tests.dtef_pipeline.api.made import client_in
from tests.made.stored_votes import written


def filled(store: VoteStore, items: int) -> list[str]:
    """The ids of new pairs."""
    responses = written(items=items)
    store.add_pairs(responses, make_new_pairs(responses), user="test")
    return [pair.pair_id for pair in store.pairs()]


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
        assert read.status_code == 200
        assert client.post("/api/feedback/votes", json={"pair_id": pair_id, **ballot}).status_code == 201
        assert len(list(votes.votes())) == 1
