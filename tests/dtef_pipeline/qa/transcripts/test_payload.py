"""Requests in the documented form: what is allowed, what is refused and in which words; replies of remote servers."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.transcripts.chunks import build_documents_table, split_into_chunks
from dtef_pipeline.qa.transcripts.corpus import SpokenTurn, Transcript
from dtef_pipeline.qa.transcripts.quotations import check_citations, compute_existence_rate
from dtef_pipeline.qa.transcripts.retriever import (
    RemoteRetriever,
    Retriever,
    make_retriever,
    normalise_model_string,
    read_remote,
)
from tests.dtef_pipeline.qa.transcripts.interviews import METADATA
from tests.made.shared_cases import case_parameters

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


@pytest.mark.parametrize("given", ["openai:", ":mini", "open ai:mini", "openai: mini", "/x", "x/", "a b/c", "gpt"])
def test_other_models_are_refused(given: str) -> None:
    with pytest.raises(ConfigError, match="model: got"):
        normalise_model_string(given)


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
