"""Votes, lines of votes and files of votes are read strictly: a fault names its place, what arrived and what is allowed."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.errors import BallotError, SourceError
from dtef_pipeline.preference.vote_files import VoteColumns, read_votes
from dtef_pipeline.preference.vote_fit import VoteSettings, compute_longer_share, fit_votes
from dtef_pipeline.preference.vote_records import (
    RECORD_FIELDS,
    build_response,
    build_response_record,
    pair_record,
    read_record,
    record_line,
)
from dtef_pipeline.preference.votes import Vote, read_ballot, vote_pair
from tests.conftest import SHARED
from tests.made.shared_cases import cases_beside
from tests.made.votes import paired, responses

CASES = cases_beside(__file__)
TIME = datetime(2026, 1, 31, 12, 0, 0, 5, tzinfo=UTC)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=4,
)


def test_a_record_is_the_same_after_its_line() -> None:
    left, right = responses(2)
    for kind, record in (
        ("response", build_response_record(left, None)),
        ("pair", pair_record(vote_pair(left, right), 2, TIME)),
        ("pair", pair_record(vote_pair(left, right), 0, None)),
    ):
        line = record_line(kind, record)
        assert read_record(json.loads(line)) == (kind, record)
        assert record_line(*read_record(json.loads(line))) == line
    assert build_response(build_response_record(left, None)) == left


def test_a_line_whose_id_is_not_its_hash_is_refused() -> None:
    left, right = responses(2)
    values = json.loads(record_line("response", build_response_record(left, None)))
    with pytest.raises(BallotError, match="allowed: the hash of the other fields"):
        read_record(values | {"text": "another"})
    pair = json.loads(record_line("pair", pair_record(vote_pair(left, right), 0, None)))
    with pytest.raises(BallotError, match="the lower of the two"):
        read_record(pair | {"left_id": pair["right_id"], "right_id": pair["left_id"]})


@given(ANYTHING, st.sampled_from([*RECORD_FIELDS, "ballot"]))
def test_whatever_arrives_is_reported_in_a_sentence(value: Any, kind: str) -> None:
    fields = RECORD_FIELDS.get(kind, ("pair_id", "choice"))
    for line in (value, {"kind": kind, "schema": 1, **dict.fromkeys(fields, value)}):
        with pytest.raises(BallotError):
            read_record(line)


@pytest.mark.parametrize(
    ("choice", "side", "preferred"),
    [("A", "left", "left"), ("B", "left", "right"), ("A", "right", "right"), ("B", "right", "left"), ("tie", "right", "tie")],
)
def test_what_a_vote_prefers_follows_from_what_was_a(choice: Any, side: Any, preferred: str) -> None:
    assert Vote("p", "r", choice, 1, "", None, shown_as_a=side).preferred_side == preferred


GOOD = {"pair_id": "P1", "reviewer_id": "r1", "choice": "A", "confidence": 3}


def is_read(values: object) -> bool:
    try:
        read_ballot(values)
    except BallotError:
        return False
    return True


@pytest.mark.parametrize(
    ("change", "said"),
    [*CASES["a_faulty_vote_is_refused_with_what_is_allowed"], ({"justification": "x" * 2_001}, "at most 2000 characters")],
)
def test_a_faulty_vote_is_refused_with_what_is_allowed(change: dict[str, Any], said: str) -> None:
    with pytest.raises(BallotError, match=said):
        read_ballot(GOOD | change)


def test_all_faults_are_reported_at_once_each_with_its_field() -> None:
    """Each was told when the one before it was mended."""
    with pytest.raises(BallotError) as told:
        read_ballot({"pair_id": "P1", "choice": "C", "confidence": 9, "mood": 1, "tone": 2})
    assert [field for field, _ in told.value.faults] == ["reviewer_id", "choice", "confidence", "mood", "tone"]
    assert str(told.value) == "; ".join(f"{field}: {message}" for field, message in told.value.faults)


@given(ANYTHING)
def test_whatever_arrives_is_read_or_refused(body: Any) -> None:
    assert not is_read(body)
    is_read(GOOD | {"justification": body})


REAL = SHARED / "votes" / "llmfao" / "votes.csv"
HEADER = "left,right,choice\n"


def read(folder: Path, text: str | bytes) -> VoteColumns:
    path = folder / "votes"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return read_votes(path)


@pytest.mark.skipif(not REAL.exists(), reason=f"no published votes at {REAL}")
def test_real_votes_are_read_whole() -> None:
    found = read_votes(REAL)
    assert (found.votes, len(found.players), len(set(found.reviewer_ids or ()))) == (3538, 59, 123)
    assert [int((found.outcome == outcome).sum()) for outcome in (1, -1, 0)] == [973, 951, 1614]


def test_columns_may_stand_in_any_order_beside_others_and_an_empty_one_is_not_there(tmp_path: Path) -> None:
    found = read(tmp_path, "\ufeffnote,choice,right,left,reviewer_id,confidence\nx,tie,b,a,r1,5\n\n,B,b, a ,r2,1\n")
    assert found.players == ("a", "b")
    assert (found.left.tolist(), found.outcome.tolist()) == ([0, 0], [0, -1])
    assert found.reviewer_ids == ("r1", "r2")
    assert found.confidence is not None
    assert found.confidence.tolist() == [5, 1]
    assert read(tmp_path, "left,right,choice,reviewer_id\na,b,A,\n").reviewer_ids is None


def test_json_holds_votes_or_wins_and_a_pair_that_never_won_is_no_vote(tmp_path: Path) -> None:
    wins = read(tmp_path, '{"wins": [["a", "b", 3], ["b", "c", 0]], "source": "x"}')
    assert (wins.players, wins.counts.tolist(), wins.votes) == (("a", "b", "c"), [3.0], 3)
    votes = read(tmp_path, '{"votes": [["b", "a", "B"], [" a", "b", "tie"]]}')
    assert (votes.players, votes.left.tolist(), votes.outcome.tolist()) == (("a", "b"), [1, 0], [-1, 0])


@pytest.mark.parametrize(
    ("text", "line", "got"),
    [
        *CASES["a_fault_names_its_place_in_few_words"],
        (b"left,right,choice\na,\xff,A\n", 2, "is not text"),
        ("[" * 100_000, None, "is not JSON"),
        (HEADER + f"a,b,{'x' * 900_000}\n", 2, "choice"),
    ],
)
def test_a_fault_names_its_place_in_few_words(text: str | bytes, line: int | None, got: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        read(tmp_path, text)
    said = str(caught.value)
    assert f"votes:{line}: " in said or line is None
    assert got in said
    assert len(said) < 500


@given(st.one_of(st.binary(max_size=200), st.text(alphabet='left,righchoc{}[]"\n\x00AB', max_size=200).map(str.encode)))
def test_no_file_is_more_than_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    with suppress(SourceError):
        read(tmp_path_factory.getbasetemp(), content)


def test_lengths_show_how_often_the_longer_one_is_preferred(tmp_path: Path) -> None:
    votes = read(tmp_path, "left,right,choice,prompt_id\na,b,A,1\nb,a,B,1\na,b,B,1\na,b,tie,1\n")
    lengths = np.array([(7.0, 3.0), (3.0, 7.0), (7.0, 3.0), (7.0, 3.0)])
    found = fit_votes(votes, lengths=lengths)
    assert found.length is not None
    assert found.length.longer_share.share == pytest.approx(2 / 3)
    only_two = fit_votes(votes, VoteSettings(control="length"), lengths)
    assert {score.reason for score in only_two.scores} == {
        "no score: the effect of lengths cannot be separated from that of players"
    }


def test_the_share_of_the_longer_one_is_clustered_by_reviewer() -> None:
    """Reviewers who each prefer the longer one always or never know as little as one vote each would say."""
    lengths = np.tile([9.0, 4.0], (200, 1))
    alone_rows = paired([(0, 1, 1 if at // 20 % 2 else -1) for at in range(200)])
    whole = compute_longer_share(lengths, replace(alone_rows, cluster=np.repeat(np.arange(10), 20)))
    alone = compute_longer_share(lengths, alone_rows)
    assert whole.share == alone.share == pytest.approx(0.5)
    assert whole.low is not None
    assert alone.low is not None
    # The error of the share over p (1 - p) is that of its logit.
    half = 2.262157 * np.sqrt(10 / 9 * 10 * 10**2) / 200 / 0.25
    assert whole.low == pytest.approx(1 / (1 + np.exp(half)), abs=1e-5)
    assert alone.low > whole.low + 0.2
    assert "worth 2.0 reviewers" in compute_longer_share(lengths, replace(alone_rows, cluster=np.repeat([0, 1], 100))).reason
    assert compute_longer_share(lengths, replace(alone_rows, outcome=np.ones(200, dtype=np.int64))).reason == "all votes agree"
    assert compute_longer_share(lengths, replace(alone_rows, outcome=np.zeros(200, dtype=np.int64))).share is None
