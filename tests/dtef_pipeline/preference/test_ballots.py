"""Votes are read strictly."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.errors import BallotError
from dtef_pipeline.preference.votes import read_ballot
from tests.made.voted import vectors

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
        ({"confidence": 0}, "confidence: got 0; allowed: 1 or more"),
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


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_whatever_arrives_is_read_or_refused(body: Any) -> None:
    assert not is_read(body)
    is_read(GOOD | {"justification": body})
