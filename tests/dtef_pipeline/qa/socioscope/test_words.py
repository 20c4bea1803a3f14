"""Words as values are compared with them: singulars, numbers."""

from __future__ import annotations

import gzip
import importlib.util
import re
import time
from collections.abc import Iterator
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.qa.model import ScorerSettings
from dtef_pipeline.qa.socioscope import words as lexicon
from dtef_pipeline.qa.socioscope.lists import ListOne
from dtef_pipeline.qa.socioscope.words import (
    convert_numbers_to_digits,
    extract_folded_answer,
    normalise_number,
    singularise,
    words,
)
from tests.conftest import ROOT
from tests.dtef_pipeline.qa.socioscope.scored import score
from tests.made.shared_cases import cases_beside

CASES = cases_beside(__file__)
ANY_TEXT = st.text(st.characters(exclude_categories=()))
ONES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
TEENS = ["ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def in_english(number: int) -> str:
    """A number below 10^15 in words, written down independently of the code that reads it."""
    for power, name in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred")):
        if number >= power:
            head, rest = divmod(number, power)
            joint = " and " if power == 100 else " "
            return f"{in_english(head)} {name}" + (joint + in_english(rest) if rest else "")
    if number < 20:
        return [*ONES, *TEENS][number]
    return TENS[number // 10 - 2] + (f"-{ONES[number % 10]}" if number % 10 else "")


@pytest.mark.parametrize(("plural", "one"), CASES["singulars"])
def test_singulars(plural: str, one: str) -> None:
    assert singularise(plural) == one


@given(st.text("abcdehiosuyxz", max_size=12))
def test_a_singular_keeps_how_the_word_begins(word: str) -> None:
    one = singularise(word + "s")
    kept = max(0, len(word) - 3)
    assert one[:kept] == word[:kept]
    assert one


@pytest.mark.parametrize(("text", "found"), CASES["words_of_texts"])
def test_words_of_texts(text: str, found: list[str]) -> None:
    assert words(text) == found


@given(st.integers(0, 10**15 - 1))
def test_a_number_in_words_is_its_digits(number: int) -> None:
    assert words(in_english(number)) == [str(number)]
    assert words(f"{number:,}") == [str(number)]


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**9), max_value=10**9))
def test_equal_numbers_are_one_word_and_others_are_not(number: Decimal) -> None:
    assert normalise_number(f"{number:f}") == normalise_number(f"{number:.9f}")
    assert Decimal(normalise_number(f"{number:f}") or "NaN") == number
    assert normalise_number(f"{number:f}") != normalise_number(f"{number + 1:f}")


@given(ANY_TEXT)
def test_words_of_any_text_are_words_of_small_ascii_letters(text: str) -> None:
    assert all(re.fullmatch(r"-?[a-z0-9]+(?:[./][a-z0-9]+)*|%", word) for word in words(extract_folded_answer(text)))


@given(
    st.lists(st.sampled_from([*ONES, *TENS, "hundred", "thousand", "million", "and", "a", "minus", "5", "-3", "0.5", "car"]))
)
def test_number_words_in_any_order_neither_fail_nor_vanish(mixed: list[str]) -> None:
    found = list(convert_numbers_to_digits(mixed))
    assert len(found) <= len(mixed)
    assert [word for word, _ in found if word == "car"] == ["car"] * mixed.count("car")
    assert all((normalise_number(word) == word) is is_number for word, is_number in found)


def test_thinking_and_pictures_are_not_read() -> None:
    assert extract_folded_answer("<think>No, wait.</think>✅ **Yes**, 👍") == "\n  **yes**,  "
    assert extract_folded_answer(None) == ""


@pytest.mark.parametrize("run", ["five hundred ", "1,111", "\u0301\u0316"])
def test_a_long_text_takes_no_more_than_its_length(run: str) -> None:
    started = time.perf_counter()
    words(run * (100_000 // len(run)))
    assert time.perf_counter() - started < 20


FIRST, ALL = ScorerSettings(), ScorerSettings(wordnet_senses="all")
WORDNET = Path("/usr/share/wordnet")


def synonyms(value: str, settings: ScorerSettings = FIRST) -> set[str]:
    return {" ".join(one) for one in lexicon.find_synonyms(value, settings)}


@pytest.fixture
def shipped_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Where the shipped file would be, in a process that has not looked for it yet."""
    monkeypatch.setattr(lexicon, "files", lambda _: tmp_path)
    monkeypatch.setattr(lexicon, "_LEXICON_FILE", "shipped.gz")
    _forget()
    yield tmp_path / "shipped.gz"
    _forget()


def _forget() -> None:
    lexicon.load_shipped_lexicon.cache_clear()
    lexicon._find_shipped_synonyms.cache_clear()


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_lexicon", ROOT / "data" / "make_lexicon.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TestShipped:
    def test_first_senses_and_all(self) -> None:
        assert {"auto", "automobile", "motorcar"} <= synonyms("car")
        assert "gondola" not in synonyms("car")
        assert {"auto", "gondola"} <= synonyms("Cars", ALL)
        assert synonyms("zyzzyva of nowhere") == set()
        assert "new york city" in synonyms("New York")
        assert {"spectacle", "eyeglass"} <= synonyms("glasses"), "a plural that has an entry"

    @pytest.mark.parametrize("number", ["five", "5", "5.0", "one hundred", "72", "-3"])
    def test_numerals_have_no_synonyms(self, number: str) -> None:
        assert synonyms(number, ALL) == set()

    @pytest.mark.parametrize("word", ["unity", "fin", "nickel", "hundred"])
    def test_numerals_are_no_synonyms(self, word: str) -> None:
        assert [one for one in synonyms(word, ALL) if re.fullmatch(r"[\d ]+|.", one)] == []

    def test_words_of_grammar_are_no_synonyms(self) -> None:
        assert {"or", "in", "us", "it", "me", "he"} & {
            one for state in ("Oregon", "Indiana", "United States", "Maine", "helium") for one in synonyms(state, ALL)
        } == set()

    def test_it_is_sets_of_two_words_and_more(self) -> None:
        text = gzip.decompress(files("dtef_pipeline.qa").joinpath("lexicon/wordnet-3.0.txt.gz").read_bytes()).decode("ascii")
        lines = text.split("\n")
        assert 45_000 < len(lines) < 60_000
        assert lines == sorted(set(lines))
        assert all(re.fullmatch(r"[*a-z0-9.%| -]+\|[*a-z0-9.%| -]+", line) for line in lines)

    def test_its_licence_lies_beside_it(self) -> None:
        text = files("dtef_pipeline.qa").joinpath("lexicon/LICENSE-wordnet.txt").read_text(encoding="utf-8")
        assert "WordNet 3.0 Copyright 2006 by Princeton University" in text
        assert "AS IS" in text

    @pytest.mark.thorough
    def test_it_is_what_the_script_makes_of_wordnet(self, maker: ModuleType) -> None:
        if not (WORDNET / "data.noun").exists():
            pytest.skip(f"no WordNet at {WORDNET}")
        shipped = gzip.decompress(files("dtef_pipeline.qa").joinpath("lexicon/wordnet-3.0.txt.gz").read_bytes())
        assert "\n".join(maker.lines(WORDNET)).encode() == shipped


class TestOwn:
    def test_it_stands_in_place_of_the_shipped_one(self) -> None:
        own = ScorerSettings(synonyms={"Sea": ["the Oceans", "5", "five"], "auto": ["car"]})
        assert lexicon.find_synonyms("seas", own) == (("the", "ocean"),)
        assert synonyms("car", own) == set()

    def test_another_lexicon_is_looked_up_in_itself(self) -> None:
        for word in ("ocean", "deep", "water"):
            assert synonyms("sea", ScorerSettings(synonyms={"sea": [word]})) == {word}


class TestFingerprint:
    def test_it_is_of_the_content_and_the_senses(self) -> None:
        prints = [lexicon.make_lexicon_fingerprint(settings) for settings in (FIRST, ALL)]
        assert prints == [
            lexicon.make_lexicon_fingerprint(ScorerSettings(wordnet_senses=senses, strict=True)) for senses in ("first", "all")
        ]
        assert len(set(prints)) == 2
        assert all(re.fullmatch(r"wordnet-3\.0/(first|all)/[0-9a-f]{12}", one or "") for one in prints)
        assert lexicon.WordNet("*car|auto").digest != lexicon.WordNet("*car|*auto").digest

    def test_it_is_of_the_users_own_whatever_its_order(self) -> None:
        one, same, other = (
            lexicon.make_lexicon_fingerprint(ScorerSettings(synonyms=synonyms))
            for synonyms in ({"a": ["b"], "c": []}, {"c": (), "a": ("b",)}, {"a": ["c"], "c": []})
        )
        assert one == same != other


class TestWithout:
    @pytest.mark.usefixtures("shipped_file")
    def test_scorers_go_on_by_names_and_aliases(self) -> None:
        assert lexicon.load_shipped_lexicon() is None
        assert lexicon.make_lexicon_fingerprint(FIRST) is None
        metric = [{"value": "car", "aliases": ["motor"]}]
        found = [score(ListOne(), answer, metric, settings=FIRST).value for answer in ("cars", "motor", "automobile")]
        assert found == [1, 1, 0]

    @pytest.mark.parametrize(
        "content", [b"", b"no archive", gzip.compress(b"*car|auto", mtime=0)[:-9], gzip.compress("é".encode(), mtime=0)]
    )
    def test_a_damaged_file_is_as_good_as_none(self, content: bytes, shipped_file: Path) -> None:
        shipped_file.write_bytes(content)
        assert lexicon.load_shipped_lexicon() is None
        assert synonyms("car") == set()


def test_words_of_the_lexicon_are_found_in_answers() -> None:
    """A synonym is compared by the same words as an answer."""
    started = time.perf_counter()
    for value in ("car", "doctor", "New York"):
        for synonym in synonyms(value):
            assert score(ListOne(), f"It was the {synonym}.", {value: 1}, settings=FIRST).value == 1
            assert words(synonym) == synonym.split()
    assert time.perf_counter() - started < 20
