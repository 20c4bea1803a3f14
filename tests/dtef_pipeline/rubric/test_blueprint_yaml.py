"""Blueprints keep YAML 1.2: scalars, keys, documents and lines; hostile files are one fault and cost little."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.rubric.blueprint.blueprint_yaml import (
    DEEPEST_VALUE,
    MAX_CHARACTERS,
    MAX_EXPANDED,
    ParsedDocuments,
    YamlFault,
    format_js_number,
    read_json,
    read_yaml,
)

SCALARS = [
    *[(text, text) for text in ("yes", "no", "on", "off", "y", "n", "Y", "No", "12:30", "1:2:3", "2026-03-01", "2026-13-45")],
    *[("true", True), ("True", True), ("TRUE", True), ("false", False), ("tRUE", "tRUE")],
    *[("null", None), ("~", None), ("", None), ("NULL", None), ("nULL", "nULL")],
    *[("0", 0), ("-7", -7), ("+7", 7), ("017", 17), ("0o17", 15), ("0b101", 5), ("0x1F", 31), ("-0x1f", -31), ("1_000", 1000)],
    *[("_1", "_1"), ("1_", "1_"), ("0_1", 1), ("0o8", "0o8"), ("0x", "0x"), ("0b2", "0b2"), ("+", "+")],
    *[
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("1E-2", 0.01),
        (".5", 0.5),
        ("-.5", "-.5"),
        ("5.", 5.0),
        ("1.5_", "1.5_"),
        ("1.2.3", "1.2.3"),
    ],
    *[(".inf", math.inf), ("-.INF", -math.inf), (".inF", ".inF"), ("1e", "1e"), (".", "."), ("e5", "e5")],
]
"""What js-yaml 4.1 makes of a scalar without quotes, from its rules."""


def value_of(text: str) -> Any:
    (value,) = read_yaml(text).values
    return value


def fault_of(text: str) -> YamlFault:
    with pytest.raises(YamlFault) as caught:
        read_yaml(text)
    return caught.value


def attempted(text: str) -> ParsedDocuments | YamlFault:
    try:
        return read_yaml(text)
    except YamlFault as fault:
        return fault


@pytest.mark.parametrize(("text", "value"), SCALARS)
def test_scalar_without_quotes_means_what_js_yaml_makes_of_it(text: str, value: object) -> None:
    found = value_of(f"key: {text}\n")["key"]
    assert (found, type(found)) == (value, type(value))


def test_whole_number_beyond_all_doubles_is_infinite() -> None:
    assert value_of(f"[{'9' * 100_000}, -{'9' * 100_000}]") == [math.inf, -math.inf]
    assert read_json("9" * 100_000).values == (math.inf,)


@pytest.mark.parametrize(("text", "value"), [("!!str 5", "5"), ("'5'", "5"), ("!!int '5'", 5), ("!!float 3", 3.0)])
def test_tags_and_quotes_decide_what_a_scalar_is(text: str, value: object) -> None:
    assert read_yaml(f"- {text}").values == ([value],)


@pytest.mark.parametrize(
    "text",
    [
        "!!python/object:os.system {}",
        "!mine 5",
        "!!binary aGk=",
        "!!timestamp 2026-03-01",
        "!!int five",
        "!!bool 1",
        "!!map [a]",
        "!!seq {a: b}",
    ],
)
def test_other_tags_are_refused_with_their_line(text: str) -> None:
    assert fault_of(f"a: 1\nb: {text}\n").line == 2


def test_keys_are_texts_as_in_javascript() -> None:
    assert value_of("{5: a, 1.0: b, true: c, null: d, x: e}") == {"5": "a", "1": "b", "true": "c", "null": "d", "x": "e"}


def test_key_given_twice_is_a_fault_with_the_line_of_the_second() -> None:
    fault = fault_of("a:\n  5: x\n  b: y\n  '5': z\n")
    assert (fault.line, "'5'" in fault.problem) == (4, True)


def test_list_or_mapping_is_no_key() -> None:
    assert fault_of("x: 1\ny: {{name}}").line == 2


def test_merge_keys_give_what_is_not_there() -> None:
    text = "base: &b {a: 1, c: 2}\nother: &o {c: 3, d: 4}\nx: {<<: [*b, *o], a: 5}\ny: {'<<': 1}"
    assert value_of(text)["x"] == {"a": 5, "c": 2, "d": 4}
    assert value_of(text)["y"] == {"<<": 1}
    assert fault_of("b: 1\na: {<<: 5}").line == 2


@pytest.mark.parametrize("character", "\x85\u2028\u2029")
def test_characters_that_ended_a_line_in_older_yaml_stay_in_their_text(character: str) -> None:
    """libyaml takes them for line ends: the texts of a file that was pasted together changed, or it could not be read."""
    text = f"a{character}b \ue000"
    assert value_of(f"- {text}\n- 'x {character} y'\n- |\n  {character}\n  z{character}\n- {{k{character}: 1}}\n") == [
        text,
        f"x {character} y",
        f"{character}\nz{character}\n",
        {f"k{character}": 1},
    ]
    assert fault_of(f"a: {character}\nb: c: d\n").line == 2


def test_anchor_may_be_given_again() -> None:
    assert value_of("a: &x 1\nb: *x\nc: &x 2\nd: *x") == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_every_member_has_its_line() -> None:
    documents = read_yaml("# first\ntitle: a\nlist:\n- b\n-\n  c: d\n---\n- e\n")
    header, others = documents.values
    assert [documents.lines.find_member_line(header, key) for key in ("title", "list", "nothing")] == [2, 3, 2]
    assert [documents.lines.find_member_line(header["list"], place) for place in (0, 1)] == [4, 6]
    assert documents.lines.find_member_line(others, 0) == 8
    assert documents.lines.find_member_line(object()) is None


def test_alias_bomb_is_one_fault_at_once() -> None:
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 12)]
    began = time.process_time()
    assert f"{MAX_EXPANDED:,}" in fault_of("\n".join(["l0: &l0 [lol, lol]", *levels])).problem
    assert (
        f"{MAX_EXPANDED:,}"
        in fault_of("\n".join(["l0: &l0 {a: 1}", *levels]).replace("[", "{<<: [").replace("]", "]}")).problem
    )
    assert time.process_time() - began < 10


def test_long_text_behind_many_aliases_counts_at_each_use() -> None:
    assert f"{MAX_EXPANDED:,}" in fault_of(f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 300)}]").problem


def test_value_that_holds_itself_is_a_fault() -> None:
    assert fault_of("b: 1\na: &a [1, *a]").line == 2


@pytest.mark.parametrize("text", ["[" * 10_000, "- " * 10_000, "{a: " * 10_000, "? " * 10_000])
def test_endless_nesting_is_one_fault(text: str) -> None:
    assert str(DEEPEST_VALUE) in fault_of(text).problem


def test_nesting_is_allowed_up_to_the_limit_in_both_languages() -> None:
    deep = "[" * DEEPEST_VALUE + "1" + "]" * DEEPEST_VALUE
    assert read_yaml(deep).values == read_json(deep).values
    assert str(DEEPEST_VALUE) in fault_of(f"[{deep}]").problem
    for text in (f"[{deep}]", "[" * 100_000):
        with pytest.raises(YamlFault, match=str(DEEPEST_VALUE)):
            read_json(text)


def test_huge_file_is_not_parsed() -> None:
    assert f"{MAX_CHARACTERS:,}" in fault_of("a" * (MAX_CHARACTERS + 1)).problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [('{"a": 1, "a": 2}', "'a'"), ("{", "column 2"), ("NaN", "NaN"), ('["\\ud800"]', "ud"), ('{"\\udc00": 1}', "ud")],
)
def test_faulty_json_is_refused(text: str, problem: str) -> None:
    with pytest.raises(YamlFault, match=problem):
        read_json(text)


def test_fault_of_json_has_its_line() -> None:
    with pytest.raises(YamlFault) as caught:
        read_json('{"a": 1,\n"b" 2}')
    assert caught.value.line == 2


TEXTS = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xD7FF, exclude_characters="\x7f\x85\u2028\u2029"))
SHORT_TEXTS = TEXTS.filter(lambda text: len(text) < 100)
"""Of a key, YAML allows 1,024 characters."""
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(SHORT_TEXTS, inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_json_means_the_same_in_both_languages(value: Any) -> None:
    text = json.dumps(value)
    expected = (value,) if value is not None else ()
    assert read_json(text).values == expected
    assert read_yaml(text).values == expected


@given(st.text(st.sampled_from("ab:-[]{}&*!|>'\"%@`#?, \n\t0.~<"), max_size=60))
def test_any_text_is_read_or_is_one_fault_with_a_line_in_it(text: str) -> None:
    found = attempted(text)
    if isinstance(found, YamlFault):
        assert found.problem
        assert found.line is not None
        assert 1 <= found.line <= text.count("\n") + 2


@pytest.mark.parametrize(
    ("number", "text"),
    [(3.0, "3"), (5, "5"), (0.1, "0.1"), (-0.5, "-0.5"), (math.inf, "Infinity"), (-math.inf, "-Infinity"), (math.nan, "NaN")],
)
def test_number_becomes_text_as_in_javascript(number: float, text: str) -> None:
    assert format_js_number(number) == text


@pytest.mark.parametrize(
    ("text", "line", "column", "remedy"),
    [
        ("a:\n\tb: c\n", 2, 1, "spaces"),
        ("- a\n- @b\n", 2, 3, "@"),
        ("- a\r\n- `b`\n", 2, 3, "`"),
        ("- *b* c\n", 1, None, "*"),
        ("- a\n- *b\n", 2, 3, "*"),
        ("a: 1\nb: !c d\n", 2, 4, "!"),
        ("a: b: c\n", 1, 5, "`: `"),
        ('a: "C:\\windows"\n', 1, None, "single quotes"),
        ('a: "b\n\nc\n', 4, None, "close the quote"),
        ("a: [b, c\nd: e\n", 2, None, "close the bracket"),
        ("a: b\n...\nc: d\n", 3, None, "---"),
    ],
)
def test_fault_says_where_it_is_and_what_to_do(text: str, line: int, column: int | None, remedy: str) -> None:
    fault = fault_of(text)
    assert (fault.line, remedy in fault.problem) == (line, True), fault.problem
    assert column is None or f"at column {column};" in fault.problem
