"""Votes that come in again are known by their reviewer and pair, in every engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dtef_pipeline.errors import SourceError
from dtef_pipeline.preference.ballots import Ballot
from dtef_pipeline.preference.pairing import make_new_pairs
from resources.votes.vote_files import add_lines, export_votes, read_lines
from resources.votes.vote_store import VoteStore
from tests.made.voted import responses


def test_a_vote_under_another_id_is_the_same_vote_or_contradicts_it(location: str, tmp_path: Path) -> None:
    rows = responses(3)
    with VoteStore(location) as store:
        store.add_pairs(rows, make_new_pairs(rows))
        cast = [Ballot(pair.pair_id, who, "A", 3) for pair in store.pairs() for who in ("ann", "annotator", "čeněk")]
        for ballot in cast:
            store.take(ballot)
            store.record_consent(ballot.reviewer_id, consent=True)
        export_votes(store, tmp_path / "votes.jsonl")
        lines = list(read_lines(tmp_path / "votes.jsonl"))
        assert add_lines(store, lines, "me", "again").added == {}
        vote = next(line for line in lines if line.kind == "vote")
        other = vote.replace_values(vote_id="0" * 32)
        assert add_lines(store, [other], "me", "another id").added == {}
        with pytest.raises(SourceError, match="exists already with other content"):
            add_lines(store, [other.replace_values(choice="B")], "me", "another choice")
        assert len(store.votes()) == len(cast)
        # A new reviewer on a pair that has votes is no repeat.
        fresh = replace(cast[0], reviewer_id="ben")
        assert store.take(fresh)
