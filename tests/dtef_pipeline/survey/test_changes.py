"""What changed between two readings of a round."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.survey.changes import Changes, compare_readings, is_copy
from dtef_pipeline.survey.tables import SURVEY_RESPONSES

Pairs = dict[tuple[str, str], dict[str, Any]]


def table(pairs: Pairs) -> pa.Table:
    usual = {"question_text": "Why?", "options": ["a", "b"], "observed": [0.25, 0.75], "n": 20}
    rows = [{"segment": s, "question_id": q, **usual, **how} for (s, q), how in pairs.items()]
    return pa.Table.from_pylist(rows, schema=SURVEY_RESPONSES)


def grid(segments: str, questions: str) -> Pairs:
    return {(s, q): {} for s in segments for q in questions}


def test_each_kind_of_change_is_named() -> None:
    before = grid("KLM", "1234") | {("K", "1"): {"n": 30}}
    after = grid("KLN", "1235") | {
        ("K", "1"): {"n": 31},
        ("K", "2"): {"observed": [0.5, 0.5]},
        ("L", "3"): {"options": ["b", "a"]},
    }
    del after["L", "1"]
    del before["K", "3"]
    assert compare_readings(table(before), table(after)) == Changes(
        segments_added=("N",),
        segments_dropped=("M",),
        questions_added=("5",),
        questions_dropped=("4",),
        questions_reworded=("3",),
        pairs_added=("K 3",),
        pairs_dropped=("L 1",),
        distributions_changed=("K 2",),
        n_changed=("K 1",),
    )


PAIRS = st.dictionaries(
    st.tuples(st.sampled_from("KLM"), st.sampled_from("123")),
    st.fixed_dictionaries(
        {
            "n": st.sampled_from([20, 30]),
            "observed": st.sampled_from([[0.5, 0.5], [1.0, 0.0]]),
            "scale": st.sampled_from(["ordinal", "nominal"]),
            "shuffled_segment": st.sampled_from(["K", None]),
        }
    ),
)


@given(PAIRS, PAIRS)
def test_backwards_additions_are_losses_and_equal_tables_have_no_changes(before: Pairs, after: Pairs) -> None:
    there, back = compare_readings(table(before), table(after)), compare_readings(table(after), table(before))
    for kind in ("segments", "questions", "pairs"):
        assert set(getattr(there, f"{kind}_added")) == set(getattr(back, f"{kind}_dropped"))
    assert set(there.n_changed) == set(back.n_changed)
    assert set(there.distributions_changed) == set(back.distributions_changed)
    assert compare_readings(table(before), table(before)) == Changes()
    assert (there == Changes()) == (before == after)


def of_answers(*shares: float, segment: str = "country:kenya") -> pa.Table:
    rows = [
        {"segment": segment, "question_text": f"Question {at}?", "options": ["Yes", "No"], "observed": [share, 1 - share]}
        for at, share in enumerate(shares)
    ]
    return pa.Table.from_pylist(rows)


def test_equal_distributions_are_one_survey_under_two_ids() -> None:
    """Its own copy was predicted with a score of 1."""
    answers = of_answers(0.25, 0.5, 0.75)
    assert is_copy(answers, of_answers(0.25, 0.5, 0.75, 0.1))
    assert not is_copy(answers, of_answers(0.25, 0.51, 0.74))
    assert not is_copy(answers, of_answers(0.25, 0.5, 0.75, segment="country:india"))
    assert not is_copy(answers.slice(0, 0), answers)
