"""Elements escape whatever is no markup."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.api.pages.elements import Html, element, html, link
from tests.dtef_pipeline.api.browsed import tags_of


@given(st.text(st.characters(codec=None)))
def test_no_text_becomes_markup_or_an_attribute(words: str) -> None:
    markup = element("p", words, [words, element("b", words)], class_=words, data_x=words)
    assert [tag for tag, _ in tags_of(markup)] == ["p", "b"]
    assert set(tags_of(markup)[0][1]) == {"class", "data-x"}
    markup.encode()
    assert "\x00" not in markup


def test_attributes_without_value_are_named_and_false_ones_are_left_out() -> None:
    assert element("input", required=True, disabled=False, value=None, for_="x", aria_label="a b") == (
        '<input required for="x" aria-label="a b">'
    )


def test_numbers_nothing_and_lists_are_contents() -> None:
    assert html("a<", None, 1, 2.5, ["b", Html("<br>")], link("/x?a&b", "c")) == 'a&lt;12.5b<br><a href="/x?a&amp;b">c</a>'
