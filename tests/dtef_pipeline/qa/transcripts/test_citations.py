"""Citations looked up in the sources: character by character, relaxed, the reasons, and texts made to hurt."""

from __future__ import annotations

import time
import unicodedata
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.qa.transcripts.quotations import (
    CheckedCitation,
    check_citations,
    compute_existence_rate,
    compute_pooled_existence,
    find_relaxed_spans,
    relax_text,
)
from tests.made.shared_cases import case_parameters, cases_beside

CASES = cases_beside(__file__)
SEA = "We think the sea is cold in May."
PAGE = "Another “page” with\nlines."
CONTEXT = [{"page_content": SEA}, {"page_content": PAGE}]
WORDS = st.text(st.sampled_from("abcAB éÉ—-–'’\"“ \n\t.…[](),ﬁ²e\u0301\u00ad\u200b\ud800\x00"), max_size=30)


def check(index: Any, quote: Any, context: Any = CONTEXT) -> CheckedCitation:
    (checked,) = check_citations(context, [{"source_index": index, "quote": quote}])
    return checked


def outcome(checked: CheckedCitation) -> tuple[int, int, str | None]:
    return checked.exact, checked.relaxed, checked.reason


@pytest.mark.parametrize("case", case_parameters("transcripts", "verbatim"))
def test_shared_vectors_of_quotations(case: Any) -> None:
    checked = check_citations(case["in"]["context"], case["in"]["citations"])
    assert [one.exact for one in checked] == case["out"]["exact"]
    assert [one.relaxed for one in checked] == case["out"]["relaxed"]
    assert [one.reason for one in checked] == case["out"]["reasons"]


@pytest.mark.parametrize("case", case_parameters("transcripts", "existence"))
def test_shared_vectors_of_existence(case: Any) -> None:
    assert compute_existence_rate(case["in"]["checks"]) == pytest.approx(case["out"])


@pytest.mark.parametrize("case", case_parameters("transcripts", "existence_pair"))
def test_shared_vectors_of_pooled_existence(case: Any) -> None:
    assert compute_pooled_existence(case["in"]["answers"]) == pytest.approx(case["out"], abs=case["tol"])


def test_existence_without_citations_is_null_and_an_answer_counts_by_its_citations() -> None:
    assert compute_existence_rate([]) is None
    assert compute_pooled_existence([]) is None
    assert compute_pooled_existence([[], []]) is None
    assert compute_pooled_existence([[1, 1, 1], [0]]) == pytest.approx(0.75)


def test_white_space_around_a_quotation_is_no_part_of_it() -> None:
    assert outcome(check(0, "  the sea\n")) == (1, 1, None)
    assert SEA[slice(*check(0, "  the sea\n").spans[0])] == "the sea"


@pytest.mark.parametrize("index", [None, "0", True, False, 0.0, [0], {}, float("nan")])
def test_what_is_no_whole_number_is_a_bad_index(index: Any) -> None:
    assert outcome(check(index, "Another")) == (0, 0, "bad_index")
    assert check(index, "Another").source_index is None


@pytest.mark.parametrize("index", [-1, -2, 2, 10**400, -(10**400)])
def test_an_index_never_counts_from_the_end(index: int) -> None:
    assert outcome(check(index, "Another")) == (0, 0, "index_out_of_range")
    assert check(index, "Another").source_index == (index if abs(index) < 2**31 else None)


def test_quotations_without_words_sources_without_text_and_what_is_no_citation_have_their_reasons() -> None:
    for quote in ("", "  \n", None, 7, ["the sea"], True):
        assert outcome(check(0, quote)) == (0, 0, "empty_quote"), quote
    for source in ({}, {"page_content": None}, {"page_content": 3}, {"page_content": " "}, None, "text", 5, []):
        assert outcome(check(0, "the sea", [source])) == (0, 0, "no_content"), source
    for citation in (None, 5, "the sea", [], ["source_index", 0], {}):
        (checked,) = check_citations(CONTEXT, [citation])
        assert outcome(checked) == (0, 0, "bad_index"), citation


def test_source_id_is_another_name_of_the_index_and_sources_may_be_objects() -> None:
    (checked,) = check_citations(CONTEXT, [{"source_id": 1, "quote": "Another"}])
    assert (checked.source_index, checked.exact) == (1, 1)
    assert check(0, "cold", [SimpleNamespace(page_content=SEA)]).exact == 1


@pytest.mark.parametrize(("quote", "text"), CASES["spellings_of_careful_copies_are_the_same"])
def test_spellings_of_careful_copies_are_the_same(quote: str, text: str) -> None:
    spans = find_relaxed_spans(quote, text)
    assert spans
    assert [span.end for span in spans] <= [len(text)] * len(spans)


@pytest.mark.parametrize(("quote", "text"), CASES["other_words_and_another_order_are_not"])
def test_other_words_and_another_order_are_not(quote: str, text: str) -> None:
    assert find_relaxed_spans(quote, text) == ()


def test_spans_say_where_the_words_stand_in_the_source() -> None:
    text = "«Well» — I  READ\n… [George] cafe\u0301 all"
    spans = find_relaxed_spans('"well" - i read ... CAFÉ', text)
    assert [text[slice(*span)] for span in spans] == ["«Well» — I  READ", "cafe\u0301"]
    whole = check(0, '"well" - i read ... CAFÉ', [{"page_content": text}]).span
    assert whole is not None
    assert text[slice(*whole)] == "«Well» — I  READ\n… [George] cafe\u0301"


@given(WORDS, WORDS, WORDS)
def test_what_stands_there_exactly_is_found_relaxed_and_marked(before: str, quote: str, after: str) -> None:
    text = before + quote + after
    checked = check(0, quote, [{"page_content": text}])
    if quote.strip():
        assert (checked.exact, checked.relaxed, checked.reason) == (1, 1, None)
        assert checked.span is not None
        assert text[slice(*checked.span)] == quote.strip()
    (checked.quote or "").encode()


@given(WORDS)
def test_the_relaxed_form_is_stable_and_every_character_has_its_place(text: str) -> None:
    form = relax_text(text)
    assert relax_text(form.text).text == form.text
    assert len(form.starts) == len(form.ends) == len(form.text)
    assert all(0 <= start < end <= len(text) for start, end in zip(form.starts, form.ends, strict=True))
    assert list(form.starts) == sorted(form.starts)


@given(st.text(st.sampled_from("abcé ßXÅ"), max_size=20))
def test_upper_case_and_decomposed_copies_are_found(text: str) -> None:
    if text.strip():
        for copy in (text.upper(), unicodedata.normalize("NFD", text), f"\n{text}\t"):
            assert find_relaxed_spans(copy, f"… {text} …")


@pytest.mark.parametrize(
    "quote",
    ["a" * 60_000 + "b", "…".join("ab" * 12_000), "a\u0301" + "\u0301\u0316" * 25_000, "[ ..." * 12_000],
    ids=range(4),
)
def test_hostile_quotations_take_time_by_their_length(quote: str) -> None:
    """Ten times the text may take some ten times as long, not a hundred times."""

    def seconds(length: int) -> float:
        started = time.process_time()
        check(0, quote[:length], [{"page_content": quote[: length // 2]}, {"page_content": "a" * length}])
        return time.process_time() - started

    short, long = min(seconds(len(quote) // 10) for _ in range(2)), seconds(len(quote))
    assert long < 40 * short + 1.0
