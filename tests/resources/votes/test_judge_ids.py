"""Ids of judges: nobody votes under one but the judge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dtef_pipeline.errors import BallotError, SourceError
from dtef_pipeline.preference.pairing import make_new_pairs
from dtef_pipeline.preference.votes import Ballot
from resources.votes.vote_files import export_votes, import_votes
from resources.votes.vote_store import VoteStore, add_judge, store_judge_votes
from tests.made.voted import responses

NOT_YET_A_JUDGE = "pairs(openai/gpt-4.1-mini[temperature=0])#844a6136"


def filled(path: Path) -> VoteStore:
    store, rows = VoteStore(path), responses(3)
    store.add_pairs(rows, make_new_pairs(rows))
    return store


def ballot(pair_id: str, reviewer_id: str) -> str:
    said = {"pair_id": pair_id, "reviewer_id": reviewer_id, "choice": "A", "confidence": 3, "justification": ""}
    return json.dumps({"kind": "ballot", "schema": 1, **said}) + "\n"


def test_a_person_does_not_vote_under_the_id_of_a_judge(tmp_path: Path) -> None:
    """The vote was stored as a person's, and the judge never saw the pair."""
    with filled(tmp_path / "one.sqlite") as store:
        pair, other, _ = (one.pair_id for one in store.pairs())
        add_judge(store, "registered")
        store_judge_votes(store, [Ballot(other, "voted", "A", 1)])
        for judge in (NOT_YET_A_JUDGE, "registered", "voted"):
            with pytest.raises(BallotError, match=r"reviewer_id: the id '.*' belongs to a judge; allowed: the id of a person"):
                store.take(Ballot(pair, judge, "A", 3))
            (path := tmp_path / "v.jsonl").write_text(ballot(pair, "r1") + ballot(pair, judge))
            with pytest.raises(SourceError, match=r"v\.jsonl:2: reviewer_id: the id '.*' belongs to a judge"):
                import_votes(store, path)
        assert len(store.votes()) == 1
        # That of a judge itself comes in again, from another store too.
        export_votes(store, path := tmp_path / "x.jsonl")
    with VoteStore(tmp_path / "two.sqlite") as again:
        assert import_votes(again, path).added["vote"] == 1
