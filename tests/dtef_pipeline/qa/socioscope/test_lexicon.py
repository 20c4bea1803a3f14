"""The shipped synonyms, those of the user, and what happens without any."""

from __future__ import annotations

import gzip
import importlib.util
import re
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from types import ModuleType

import pytest

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.model import ScorerSettings
from dtef_pipeline.qa.socioscope import words as lexicon
from dtef_pipeline.qa.socioscope.lists import ListOne
from dtef_pipeline.qa.socioscope.words import words
from tests.conftest import ROOT
from tests.dtef_pipeline.qa.socioscope.scored import score

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

    def test_senses_are_one_of_two(self) -> None:
        for call in (lexicon.make_lexicon_fingerprint, lambda settings: lexicon.find_synonyms("car", settings)):
            with pytest.raises(ConfigError, match="wordnet_senses: got 'most'; allowed: first, all"):
                call(ScorerSettings(wordnet_senses="most"))


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
