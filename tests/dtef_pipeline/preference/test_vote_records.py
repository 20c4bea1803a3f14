"""Lines of votes: read strictly, and whatever arrives is a record or a sentence about it."""

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
from dtef_pipeline.preference.votes import Vote, vote_pair
from tests.made.voted import responses

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
