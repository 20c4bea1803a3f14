"""Synonyms of values: from the shipped WordNet data, or from a lexicon that the user gives.

`data/make_lexicon.py` builds the shipped file and describes its lines.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import digest
from dtef_pipeline.qa.metric import normalise
from dtef_pipeline.qa.model import ScorerSettings
from dtef_pipeline.qa.socioscope.words import normalise_number, words

SENSES = ("first", "all")
"""Senses of a word whose synonyms count."""
_LEXICON_FILE = "lexicon/wordnet-3.0.txt.gz"
_LEXICON_NAME = "wordnet-3.0"
_FINGERPRINT_DIGITS = 12

WordsOf = tuple[str, ...]
"""A name in the form of `words`."""


class WordNet:
    """The shipped synonym sets."""

    def __init__(self, text: str) -> None:
        """Read `text`, the file's lines."""
        self.digest = hashlib.sha256(text.encode()).hexdigest()[:_FINGERPRINT_DIGITS]
        self._sets: dict[str, str] = {}
        for line in text.split("\n"):
            for word in line.split("|"):
                self._sets[word] = f"{self._sets[word]}|{line}" if word in self._sets else line

    def synonyms(self, word: str, senses: str) -> set[str]:
        """Return the words that share the first sense, or any sense, with a normalised word, without the word itself."""
        entry = self._sets.get(f"*{word}", "")
        if senses == "all":
            entry += "|" + self._sets.get(word, "")
        return {synonym.removeprefix("*") for synonym in entry.split("|")} - {word, ""}


@lru_cache(maxsize=1)
def load_shipped_lexicon() -> WordNet | None:
    """Return the shipped lexicon, read once per process; None if its file is missing or damaged."""
    try:
        data = files("dtef_pipeline.qa").joinpath(_LEXICON_FILE).read_bytes()
        text = gzip.decompress(data).decode("ascii")
        return WordNet(text) if text else None
    except (OSError, EOFError, zlib.error, UnicodeDecodeError):
        return None


def make_lexicon_fingerprint(settings: ScorerSettings) -> str | None:
    """Return the fingerprint of the synonyms, which is stored with every score: `wordnet-3.0/first/0f3a...`, or `own/77c0...`.

    None: the shipped file is missing or damaged, so that only names and aliases of values count.
    """
    if settings.synonyms is not None:
        pairs = sorted((word, list(synonyms)) for word, synonyms in settings.synonyms.items())
        return f"own/{digest('synonyms', pairs)[:_FINGERPRINT_DIGITS]}"
    lexicon = load_shipped_lexicon()
    return f"{_LEXICON_NAME}/{_check_senses(settings)}/{lexicon.digest}" if lexicon else None


def find_synonyms(value: str, settings: ScorerSettings) -> tuple[WordsOf, ...]:
    """Return the words of each synonym of a value, in order. Numerals have no synonyms and are not synonyms.

    Raises ConfigError for senses outside SENSES.
    """
    senses = _check_senses(settings)
    if settings.synonyms is None:
        return _find_shipped_synonyms(value, senses)
    key = " ".join(words(value))
    return () if _is_number(key) else _remove_numbers(_load_own_lexicon(settings.synonyms).get(key, ()))


def _check_senses(settings: ScorerSettings) -> str:
    if settings.wordnet_senses not in SENSES:
        raise ConfigError(f"wordnet_senses: got {settings.wordnet_senses!r}; allowed: {', '.join(SENSES)}")
    return settings.wordnet_senses


@lru_cache(maxsize=1 << 16)
def _find_shipped_synonyms(value: str, senses: str) -> tuple[WordsOf, ...]:
    lexicon, singular_words = load_shipped_lexicon(), " ".join(words(value))
    if lexicon is None or _is_number(singular_words):
        return ()
    as_written = lexicon.synonyms(normalise(value), senses)
    return _remove_numbers(sorted(as_written or lexicon.synonyms(singular_words, senses)))


def _is_number(text: str) -> bool:
    return all(map(normalise_number, text.split()))


def _remove_numbers(synonyms: Sequence[str]) -> tuple[WordsOf, ...]:
    """Return the synonyms as words, without those that are only a number."""
    names = (tuple(words(synonym)) for synonym in synonyms)
    return tuple(dict.fromkeys(name for name in names if name and not all(map(normalise_number, name))))


_latest_own: list[tuple[Mapping[str, Sequence[str]], dict[str, Sequence[str]]]] = []


def _load_own_lexicon(synonyms: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    """Return the lexicon in the form of `words`; the latest one is cached, because many items share a lexicon."""
    if not _latest_own or _latest_own[0][0] is not synonyms:
        _latest_own[:] = [(synonyms, {" ".join(words(word)): values for word, values in synonyms.items()})]
    return _latest_own[0][1]
