"""Retrievers and their scores: against definitions, shared vectors and values by hand, filters, and floors on real interviews."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.socioscope.socioscope_results import compute_mean_of_scores, compute_transcript_averages
from dtef_pipeline.qa.transcripts.chunks import build_documents_table, build_index_texts, split_into_chunks
from dtef_pipeline.qa.transcripts.corpus import SpokenTurn, Transcript
from dtef_pipeline.qa.transcripts.quotations import check_citations, compute_existence_rate
from dtef_pipeline.qa.transcripts.retriever import (
    Bm25Scores,
    IndexRetriever,
    RemoteRetriever,
    Retrieval,
    Retriever,
    compute_retrieval_scores,
    find_relevant_ids,
    make_retriever,
    normalise_model_string,
    read_remote,
    split_index_words,
)
from tests.dtef_pipeline.qa.transcripts.interviews import METADATA, needs_interviews, shared_documents, shared_questions
from tests.made.shared_cases import case_parameters, cases_beside

CASES = cases_beside(__file__)
COLOURS = ("red", "green", "blue")


def documents(*texts: str, **metadata: Any) -> Any:
    """One document per text, in files f0, f1, ..."""
    transcripts = [
        Transcript(f"f{number}", (SpokenTurn(0, text),), {"FILE": f"f{number}", **metadata})
        for number, text in enumerate(texts)
    ]
    return build_documents_table(split_into_chunks(transcripts))


def ids(found: Retrieval) -> list[str]:
    return [source.doc_id.partition("#")[0] for source in found.sources]


def embed_colours(texts: Sequence[str]) -> np.ndarray:
    """How often each colour stands in a text."""
    return np.array([[text.count(colour) for colour in COLOURS] for text in texts], float)


def naive_bm25(words: list[list[str]], asked: list[str]) -> list[float]:
    mean = sum(map(len, words)) / len(words)
    holding = {word: sum(word in text for text in words) for word in asked}
    scores = []
    for text in words:
        counts, score = Counter(text), 0.0
        for word in asked:
            rarity = math.log(1 + (len(words) - holding[word] + 0.5) / (holding[word] + 0.5))
            often = counts[word]
            score += rarity * often / (often + 1.5 * (1 - 0.75 + 0.75 * len(text) / mean))
        scores.append(score)
    return scores


@given(
    st.lists(st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=9), min_size=1, max_size=8),
    st.lists(st.sampled_from("abcdefgz"), max_size=6),
)
def test_bm25_scores_are_those_of_the_definition(texts: list[list[str]], asked: list[str]) -> None:
    table = documents(*map(" ".join, texts))
    assert Bm25Scores(build_index_texts(table)).scores(" ".join(asked)) == pytest.approx(naive_bm25(texts, asked), abs=1e-12)


def test_words_are_compared_without_case_accents_and_marks() -> None:
    assert split_index_words("HavHøst’s café, STS-75; Straße") == ["havhost", "s", "cafe", "sts", "75", "strasse"]
    assert split_index_words("東京 \ud800 \x00 —")[:1] == ["dongjing"]


def test_equal_scores_are_in_the_order_of_ids_whatever_the_order_of_rows() -> None:
    table = documents("sea", "sand", "sea", "sand", "sea")
    shuffled = table.take([3, 1, 4, 0, 2])
    assert ids(make_retriever("bm25", shuffled).retrieve("sea", 5)) == ["f0", "f2", "f4", "f1", "f3"]
    assert ids(make_retriever("bm25", shuffled).retrieve("nothing of it", 9)) == ["f0", "f1", "f2", "f3", "f4"]


@pytest.mark.parametrize("text", ["", "   ", "—", "\ud800", "zebra"])
def test_a_question_without_known_words_finds_all_with_score_0(text: str) -> None:
    found = make_retriever("bm25", documents("sea", "sand")).retrieve(text, 10)
    assert [source.score for source in found.sources] == [0.0, 0.0]


def test_documents_without_words_are_searched_and_the_nearest_come_first() -> None:
    assert ids(make_retriever("bm25", documents("—", "sea", "…")).retrieve("sea", 1)) == ["f1"]
    assert ids(make_retriever("bm25", documents("—", "…")).retrieve("sea", 1)) == ["f0"]
    retriever = make_retriever("bm25", documents("sea", "sea sea sand", "sand"))
    assert len(retriever.retrieve("sand", 99).sources) == 3
    assert ids(retriever.retrieve("sand", 1)) == ["f2"]


def test_a_filter_is_exact_equality_on_all_its_keys() -> None:
    rows = [{"PROJECT": "A", "YEAR": 1999}, {"PROJECT": "A", "YEAR": 2000}, {"PROJECT": "a"}]
    transcripts = [Transcript(f"f{n}", (SpokenTurn(0, "sea"),), {"FILE": f"f{n}", **row}) for n, row in enumerate(rows)]
    retriever = make_retriever("bm25", build_documents_table(split_into_chunks(transcripts)))
    assert ids(retriever.retrieve("sea", 5, {"PROJECT": "A"})) == ["f0", "f1"]
    assert ids(retriever.retrieve("sea", 5, {"PROJECT": "A", "YEAR": 2000})) == ["f1"]
    assert retriever.retrieve("sea", 5, {"PROJECT": "NOPE"}) == Retrieval()
    assert len(retriever.retrieve("sea", 5, {}).sources) == len(retriever.retrieve("sea", 5, None).sources) == 3


@pytest.mark.parametrize(("where", "said"), CASES["a_filter_with_unknown_keys_or_values_of_another_kind_is_an_error"])
def test_a_filter_with_unknown_keys_or_values_of_another_kind_is_an_error(where: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_retriever("bm25", documents("sea")).retrieve("sea", 1, where)
    assert said in str(caught.value)


def test_embeddings_rank_by_cosine_and_equal_ones_by_id() -> None:
    table = documents("red red", "green", "red green", "red", "")
    retriever = make_retriever("embedding", table.filter(pa_not_blank(table)), embed_colours)
    found = retriever.retrieve("red", 9)
    assert ids(found) == ["f0", "f3", "f2", "f1"]
    assert [source.score for source in found.sources] == pytest.approx([1, 1, math.sqrt(0.5), 0])


def pa_not_blank(table: Any) -> Any:
    return [bool(text) for text in table.column("page_content").to_pylist()]


def test_fusion_is_the_sum_of_reciprocal_ranks() -> None:
    ranked = [lambda _, scores=scores: lambda text: np.array(scores) for scores in ((4, 3, 2, 1), (1, 4, 3, 2))]
    found = IndexRetriever(documents("a", "b", "c", "d"), ranked).retrieve("x", 4)
    by_hand = {"f0": 1 / 61 + 1 / 64, "f1": 1 / 62 + 1 / 61, "f2": 1 / 63 + 1 / 62, "f3": 1 / 64 + 1 / 63}
    assert ids(found) == sorted(by_hand, key=lambda name: -by_hand[name])
    assert [source.score for source in found.sources] == pytest.approx(sorted(by_hand.values(), reverse=True))


def test_fused_ranks_are_those_among_the_chunks_that_the_filter_leaves() -> None:
    retriever = make_retriever("hybrid", documents("red", "green", "red green"), embed_colours)
    (only,) = retriever.retrieve("red", 5, {"FILE": "f2"}).sources
    assert only.score == pytest.approx(2 / 61)


def test_retrievers_are_made_by_name() -> None:
    table = documents("red", "green")
    for name in ("bm25", "embedding", "hybrid"):
        assert ids(make_retriever(name, table, embed_colours).retrieve("green", 1)) == ["f1"]
    with pytest.raises(ConfigError, match="needs an embedder"):
        make_retriever("hybrid", table)


def test_equal_ids_are_refused() -> None:
    with pytest.raises(ConfigError, match="each doc_id once"):
        make_retriever("bm25", documents("red").take([0, 0]))


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
def test_retrieval_scores_are_those_of_the_definition(ranking: list[str], relevant: set[str], k: int) -> None:
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
        found = retriever.retrieve(pair["question"]["text"], 100)
        scores = compute_retrieval_scores(
            [one.doc_id for one in found.sources], find_relevant_ids(ids, texts, pair["quotes"]), 10
        )
        assert scores is not None
        hits.append(scores.hit)
        reciprocal.append(scores.mrr)
    assert sum(hits) >= 40
    assert sum(reciprocal) / len(reciprocal) > 0.77


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["context", "answer", "citations", "page_content", "metadata", "FILE", "YEAR", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.fixture
def retriever() -> Retriever:
    transcripts = [Transcript(f"f{n}", (SpokenTurn(0, "sea " * (n + 1)),), {**METADATA, "FILE": f"f{n}"}) for n in range(3)]
    return make_retriever("bm25", build_documents_table(split_into_chunks(transcripts)))


@pytest.mark.parametrize("case", case_parameters("transcripts", "retrieve_payload"))
def test_shared_vectors_of_payloads(case: Any, retriever: Retriever) -> None:
    payload = case["in"]["payload"]
    if case["out"] == "error":
        if "k" in payload or "filter" in payload:
            with pytest.raises(ConfigError, match="allowed: "):
                retriever.retrieve(payload.get("question", ""), payload.get("k", 10), payload.get("filter"))
        return
    assert case["out"].startswith("no documents: context []")
    found = retriever.retrieve(payload["question"], payload.get("k", 10), payload.get("filter"))
    assert (found.sources, found.problem) == ((), None)
    assert compute_existence_rate([one.exact for one in check_citations(found.sources, [])]) is None


@pytest.mark.parametrize(
    ("k", "where", "said"),
    [
        *(
            (k, None, f"k: got {said}")
            for k, said in ((0, "0; allowed: a whole number, 1 or more"), (-1, "-1"), (True, "True"))
        ),
        *((k, None, f"k: got {said}") for k, said in ((2.0, "2.0"), ("3", "'a str'"), (None, "None"))),
        (1, "all", "filter: got 'all'"),
    ],
)
def test_what_is_refused_is_reported_with_what_is_allowed(k: Any, where: Any, said: str, retriever: Retriever) -> None:
    with pytest.raises(ConfigError) as caught:
        retriever.retrieve("x", k, where)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("openai:gpt-4o-mini", "openai/gpt-4o-mini"),
        ("groq:meta-llama/llama-3", "groq/meta-llama/llama-3"),
        ("openai/gpt-4o-mini", "openai/gpt-4o-mini"),
        ("bedrock/anthropic.claude-v2:0", "bedrock/anthropic.claude-v2:0"),
    ],
)
def test_models_of_the_documents_and_of_this_project_are_litellm_strings_or_names(given: str, found: str) -> None:
    assert normalise_model_string(given) == found
    for other in ("openai:", ":mini", "open ai:mini", "openai: mini", "/x", "x/", "a b/c", "gpt"):
        with pytest.raises(ConfigError, match="model: got"):
            normalise_model_string(other)


class Reply(NamedTuple):
    value: Any
    problem: str | None = None


def test_a_remote_retriever_shows_the_first_k_and_refuses_before_it_asks() -> None:
    asked: list[Any] = []

    def post(payload: Any) -> Reply:
        asked.append(payload)
        return Reply({"context": [{"page_content": f"text {n}"} for n in range(5)]})

    remote = RemoteRetriever(post, model="openai/gpt-4o-mini")
    found = remote.retrieve("Who?", 2, {"PROJECT": "A"})
    assert [source.page_content for source in found.sources] == ["text 0", "text 1"]
    assert asked == [{"k": 2, "filter": {"PROJECT": "A"}, "question": "Who?", "model": "openai:gpt-4o-mini"}]
    for bad in ({"k": 0}, {"k": 1, "where": {"X": 1}}):
        with pytest.raises(ConfigError):
            remote.retrieve("Who?", **bad)
    assert len(asked) == 1


@pytest.mark.parametrize("value", [None, [], "text", {}, {"context": {}}, {"context": None, "answer": "x"}])
def test_a_reply_of_another_form_is_a_problem(value: Any) -> None:
    found = read_remote(value, "https://far.example/...")
    assert found.sources == ()
    assert str(found.problem).startswith(
        "https://far.example/... replied without a list of documents; allowed: {question, context:"
    )


def test_equal_texts_of_one_file_have_one_id_and_a_given_id_is_kept() -> None:
    context = [
        {"page_content": "a", "metadata": {"FILE": "f"}},
        {"page_content": "a", "metadata": {"FILE": "f"}},
        {"doc_id": "own"},
        7,
    ]
    first, second, own, none = read_remote({"context": context, "answer": None}).sources
    assert first.doc_id == second.doc_id
    assert first.doc_id.startswith("f@")
    assert own.doc_id == "own"
    assert none.page_content == ""


@given(JSON)
def test_whatever_a_server_replies_is_read_or_reported(value: Any) -> None:
    found = read_remote(value)
    assert (found.problem is None) == (isinstance(value, dict) and isinstance(value.get("context"), list))
    for source in found.sources:
        (source.doc_id + source.page_content).encode()
