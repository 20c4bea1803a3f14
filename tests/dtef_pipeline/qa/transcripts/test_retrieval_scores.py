"""Retrieval metrics against values worked out by hand, the shared vectors and a naive definition; averages over transcripts."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.qa.socioscope.socioscope_results import compute_mean_of_scores, compute_transcript_averages
from dtef_pipeline.qa.transcripts.retrieval_scores import compute_retrieval_scores, find_relevant_ids
from dtef_pipeline.qa.transcripts.retriever import make_retriever
from tests.dtef_pipeline.qa.transcripts.interviews import needs_interviews, shared_documents, shared_questions
from tests.made.shared_cases import case_parameters

IDS = st.sampled_from([f"d{number}" for number in range(14)])


@pytest.mark.parametrize("case", case_parameters("transcripts", "retrieval"))
def test_shared_vectors_of_retrieval(case: Any) -> None:
    scores = compute_retrieval_scores(case["in"]["ranking"], set(case["in"]["relevant"]), case["in"]["k"])
    assert {name: getattr(scores, name) for name in case["out"]} == pytest.approx(case["out"], abs=case["tol"])


@pytest.mark.parametrize("case", case_parameters("transcripts", "averages"))
def test_shared_vectors_of_averages(case: Any) -> None:
    averages = compute_transcript_averages(case["in"]["scores"])
    own = {name: mean.value for name, mean in averages.transcripts.items()}
    found = {**own, "micro": averages.micro.value, "macro": averages.macro.value}
    assert found == pytest.approx(case["out"], abs=case["tol"])


def naive(ranking: list[str], relevant: set[str], k: int) -> tuple[float, ...]:
    gains = []
    for place, one in enumerate(ranking):
        gains.append(1.0 if one in relevant and one not in ranking[:place] else 0.0)
    found = sum(gains[:k])
    mrr = 0.0
    for place, gain in enumerate(gains):
        if gain:
            mrr = 1 / (place + 1)
            break
    dcg = sum(gain / math.log2(place + 2) for place, gain in enumerate(gains[:10]))
    ideal = sum(1 / math.log2(place + 2) for place in range(10) if place < len(relevant))
    return found / k, found / len(relevant), float(found > 0), mrr, dcg / ideal


@given(st.lists(IDS, max_size=20), st.sets(IDS, min_size=1, max_size=13), st.integers(1, 25))
def test_scores_are_those_of_the_definition(ranking: list[str], relevant: set[str], k: int) -> None:
    scores = compute_retrieval_scores(ranking, relevant, k)
    assert scores is not None
    values = (scores.precision, scores.recall, scores.hit, scores.mrr, scores.ndcg)
    assert values == pytest.approx(naive(ranking, relevant, k))
    assert all(0 <= value <= 1 + 1e-12 for value in values)


def test_nothing_relevant_has_no_scores_and_nothing_found_has_zeros() -> None:
    assert compute_retrieval_scores(["a"], set(), 3) is None
    empty = compute_retrieval_scores([], {"a"}, 3)
    assert empty is not None
    assert (empty.precision, empty.recall, empty.hit, empty.mrr, empty.ndcg) == pytest.approx((0, 0, 0, 0, 0))
    with pytest.raises(ValueError, match="k: got 0; allowed: 1 or more"):
        compute_retrieval_scores(["a"], {"a"}, 0)


def test_a_chunk_is_relevant_when_it_holds_a_quote_whatever_its_white_space() -> None:
    texts = ["the sea\n is cold", "The sea is cold", "sea"]
    assert find_relevant_ids("abc", texts, ["the  sea is", "nothing"]) == {"a"}
    assert find_relevant_ids("abc", texts, ["", "  "]) == set()


def test_nulls_count_nowhere_and_are_counted() -> None:
    averages = compute_transcript_averages({"A": [1.0, None, 0.5], "B": [None, None], "C": [0.0]})
    assert averages.transcripts["A"].value == pytest.approx(0.75)
    assert averages.transcripts["B"].value is None
    assert (averages.micro.value, averages.micro.n_scored, averages.micro.n_skipped) == (pytest.approx(0.5), 3, 3)
    assert (averages.macro.value, averages.macro.n_scored, averages.macro.n_skipped) == (pytest.approx(0.375), 2, 1)
    assert compute_mean_of_scores([]).value is None
    assert compute_transcript_averages({}).macro.value is None


@needs_interviews
def test_the_first_ten_chunks_hold_the_evidence_of_nineteen_shared_questions_out_of_twenty() -> None:
    table = shared_documents()
    retriever = make_retriever("bm25", table)
    ids, texts = table.column("doc_id").to_pylist(), table.column("page_content").to_pylist()
    hits, reciprocal = [], []
    for pair in shared_questions():
        found = retriever.retrieve(pair["question"]["text"], table.num_rows)
        scores = compute_retrieval_scores(
            [one.doc_id for one in found.sources], find_relevant_ids(ids, texts, pair["quotes"]), 10
        )
        assert scores is not None
        hits.append(scores.hit)
        reciprocal.append(scores.mrr)
    assert sum(hits) >= 40
    assert sum(reciprocal) / len(reciprocal) > 0.77
