"""Votes and lines of votes are read strictly."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.errors import BallotError
from dtef_pipeline.preference.vote_records import (
    RECORD_FIELDS,
    build_response,
    build_response_record,
    pair_record,
    read_record,
    record_line,
)
from dtef_pipeline.preference.votes import Vote, read_ballot, vote_pair
from tests.made.voted import responses, vectors

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


@given(ANYTHING, st.sampled_from([*RECORD_FIELDS, "ballot"]), st.data())
def test_whatever_arrives_is_reported_in_a_sentence(value: Any, kind: str, data: st.DataObject) -> None:
    with pytest.raises(BallotError):
        read_record(value)
    fields = RECORD_FIELDS.get(kind, ("pair_id", "choice"))
    whole = {"kind": kind, "schema": 1, **{name: data.draw(ANYTHING) for name in fields}}
    with pytest.raises(BallotError):
        read_record(whole)


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


@pytest.mark.parametrize(("given_", "expected"), vectors("post_vote"))
def test_vectors_of_votes(given_: dict[str, Any], expected: Any) -> None:
    """Which of them were voted on before is tried where votes are stored, and over HTTP."""
    bodies = [GOOD | one for one in given_["sequence"]] if "sequence" in given_ else [given_["body"]]
    statuses = expected if "sequence" in given_ else [expected]
    assert [is_read(body) for body in bodies] == [status != 422 for status in statuses]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"choice": "C"}, "choice: got 'C'; allowed: A, B, tie"),
        ({"confidence": 0}, "confidence: got 0; allowed: 1 to 5"),
        ({"confidence": 6}, "got 6"),
        ({"confidence": 2.5}, "got 2.5"),
        ({"confidence": True}, "got true"),
        ({"confidence": None}, "got null"),
        ({"justification": "x" * 2_001}, "at most 2000 characters"),
        ({"model": "gpt"}, "model: unknown key; known: pair_id, "),
        ({"pair_id": ""}, "pair_id"),
        ({"reviewer_id": "a\nb"}, "reviewer_id"),
        ({"reviewer_id": "\ud800"}, "reviewer_id"),
    ],
)
def test_a_faulty_vote_is_refused_with_what_is_allowed(change: dict[str, Any], said: str) -> None:
    with pytest.raises(BallotError, match=said):
        read_ballot(GOOD | change)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(BallotError, match="confidence: is missing"):
        read_ballot({name: value for name, value in GOOD.items() if name != "confidence"})
    with pytest.raises(BallotError, match="allowed: a mapping"):
        read_ballot([])


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
