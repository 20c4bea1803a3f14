"""Blocks of pages: which columns are shown, what stands once, and how numbers and texts are written."""

from __future__ import annotations

import gzip
import json
import math
from base64 import b64decode

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from dtef_pipeline.site.content import (
    Chart,
    Column,
    DataFile,
    Estimate,
    Fold,
    Kind,
    Prose,
    Section,
    Table,
    drop_empty_sections,
    footnotes,
    has_content,
    is_unknown,
    list_constant_columns,
    list_shown_columns,
)
from dtef_pipeline.site.number_text import show, show_interval
from dtef_pipeline.site.paths import choose_file_names
from dtef_pipeline.site.rendering import environment, render_data, render_script_json
from dtef_pipeline.text.json_values import simplify_value

COLUMNS = (
    Column("name", "Name"),
    Column("kind", "Kind"),
    Column("empty", "Empty"),
    Column("note", "Note", "note"),
    Column("n", "N", "count"),
)


def test_empty_columns_go_and_what_all_rows_share_is_stated_once() -> None:
    rows = [
        {"name": name, "kind": "k", "note": note, "n": n} for name, note, n in (("a", "few", 1), ("b", "few", 2), ("c", "", 3))
    ]
    table = Table("T", COLUMNS, rows)
    assert [column.name for column in list_shown_columns(table)] == ["name", "note", "n"]
    assert list_constant_columns(table) == [(COLUMNS[1], "k")]
    assert footnotes(table) == {"few": False}


def test_sections_without_content_are_left_out() -> None:
    empty = Section("a", "A", [Table("T", COLUMNS, []), Prose([""]), Fold("F", [Chart("bars", [], "C")])])
    answered, full = Section("b", "B", [], "It is so."), Section("c", "C", [Prose([]), Prose(["x"])])
    assert [one.id for one in drop_empty_sections([empty, answered, full])] == ["b", "c"]
    assert len(drop_empty_sections([full])[0].blocks) == 1
    assert not has_content(Fold("F", [Prose([])]))


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (None, "text", "–"),
        (float("nan"), "score", "–"),
        (pd.NA, "count", "–"),
        (Estimate(None), "score", "–"),
        (0.5, "score", "0.500"),
        (-0.0004, "signed", "0.000"),
        (0.25, "signed", "+0.250"),
        (12345, "count", "12,345"),
        (0.071, "percent", "7.1%"),
        (1.0, "percent", "100%"),
        (0.0000123, "dollars", "$0.0000123"),
        (0.0001, "p", "< 0.001"),
        (0.0, "dollars", "$0"),
        (41.66667, "dollars", "$41.67"),
        (np.int64(3), "text", "3"),
        (Estimate(0.12345, 0.1, 0.15), "number", "0.123"),
        (True, "text", "yes"),
        ("<b>", "text", "<b>"),
    ],
)
def test_values_are_written_by_their_kind(value: object, kind: Kind, text: str) -> None:
    assert show(value, kind) == text


def test_an_interval_has_the_digits_and_the_sign_of_its_estimate() -> None:
    assert show_interval(Estimate(0.1, -0.05, 0.25), "signed") == "-0.050 to +0.250"
    assert show_interval(Estimate(0.1)) == ""


@given(st.text())
def test_json_in_a_script_element_cannot_end_it(text: str) -> None:
    written = str(render_script_json({"text": text}))
    assert "<" not in written
    assert json.loads(written) == {"text": text}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda one: st.lists(one) | st.dictionaries(st.text(), one),
    )
)
def test_data_files_hold_what_they_are_given(value: object) -> None:
    script = render_data(DataFile("a/b.js", value))
    assert json.loads(gzip.decompress(b64decode(script.split('"')[3]))) == simplify_value(value)


def test_what_json_cannot_hold_is_null_or_text() -> None:
    given_value = {"a": np.float64("nan"), "b": np.array([1.0, math.inf]), "c": pd.NA, 1: pd.Timestamp("2026-01-01")}
    assert simplify_value(given_value) == {"a": None, "b": [1.0, None], "c": None, "1": "2026-01-01 00:00:00"}


def test_templates_escape_and_refuse_names_that_are_not_there() -> None:
    shown = environment().from_string("{{ text }}|{{ words | ticks }}").render(text="<i>&", words="`a<b` & c")
    assert shown == "&lt;i&gt;&amp;|<code>a&lt;b</code> &amp; c"
    with pytest.raises(UndefinedError):
        environment().from_string("{{ missing }}").render()


@given(st.lists(st.text(min_size=1), unique=True))
def test_file_names_are_plain_and_differ_on_any_disk(ids: list[str]) -> None:
    names = choose_file_names(ids)
    assert len({name.lower() for name in names.values()}) == len(ids)
    assert all(
        name.isascii() and "/" not in name and name.lower() != "index" and not name.startswith(".") for name in names.values()
    )


def test_unknown_is_what_has_no_value() -> None:
    assert all(map(is_unknown, (None, "", [], float("nan"), pd.NaT, Estimate(float("nan")))))
    assert not any(map(is_unknown, (0, False, 0.0, "0", Estimate(0.0), np.float64(0))))


@pytest.mark.parametrize(
    "template", ["{{ text }}", "<p title='{{ text }}'>", "{{ text | ticks }}", "<bdi>{{ [text] | first }}</bdi>"]
)
def test_what_cannot_be_seen_is_shown_by_every_template(template: str) -> None:
    """A model's mark of direction turned the words behind it, and its tags hid a text in a text."""
    shown = environment().from_string(template).render(text="<b>\u202eab\U000e0041\t\n\r\n")
    assert "&lt;b&gt;⟨U+202E⟩ab⟨U+E0041⟩\t\n\n" in shown


def test_a_field_sends_back_what_it_was_given() -> None:
    assert environment().from_string("{{ text | e }}").render(text="<\u202e") == "&lt;\u202e"
