"""The words of a text in the form in which values are compared (normalised, singular, numbers in digits), and synonyms of values.

Synonyms are those of the shipped WordNet data, or of a lexicon that the user gives. `data/make_lexicon.py` builds the shipped file and
describes its lines.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from importlib.resources import files

from dtef_pipeline.identity import digest
from dtef_pipeline.qa.metric import fold_to_ascii, normalise, strip_punctuation
from dtef_pipeline.qa.model import ScorerSettings
from dtef_pipeline.qa.reading.reply_end import cut_at_end, cut_before_next_turn
from dtef_pipeline.text.number_words import BELOW_TWENTY, SCALES_OF_WORDS, TENS_OF_WORDS, read_number_at
from dtef_pipeline.text.numbers import format_figures
from dtef_pipeline.text.plain import strip_thinking

_GROUPED_DIGITS = re.compile(r"(?<![0-9.,])[0-9]{1,3}(?:,[0-9]{3})+(?!,?[0-9])")
_WORD_OR_NUMBER = re.compile(r"(?:(?<![a-z0-9%])-)?[a-z0-9]+(?:\.[0-9][a-z0-9]*)*|%")
_PICTURES = re.compile("[\u2600-\u27bf\ufe0f\u200d\U0001f000-\U0001faff]+")
_PERCENT_WORDS = {"percent": "%"}


def words(text: str) -> list[str]:
    """Return the words of a text, in order.

    Numbers are compared by value: `1,319`, `1319.0` and `one thousand three hundred nineteen` are the same word. `50%` and `50 percent`
    are two words. A `-` between words only joins them: `STS-75` is `sts 75`.
    """
    return split_folded_words(fold_to_ascii(text))


def split_folded_words(text: str) -> list[str]:
    """Return the words of a text that is already folded."""
    plain = strip_punctuation(strip_thousands_commas(text))
    tokens = [_PERCENT_WORDS.get(word, word) for word in _WORD_OR_NUMBER.findall(plain)]
    return [word if is_number else singularise(word) for word, is_number in convert_numbers_to_digits(tokens)]


def strip_thousands_commas(text: str) -> str:
    """Convert `1,319` to `1319`; other commas stay."""
    return _GROUPED_DIGITS.sub(lambda match: match[0].replace(",", ""), text) if "," in text else text


def extract_folded_answer(text: str | None) -> str:
    """Return the part of a reply that is read: the folded text up to its end, without thinking and without emoji, whose names are several
    words."""
    reply = cut_at_end(strip_thinking(text or "")).text
    before = cut_before_next_turn(reply)
    answer = reply if before is None else before
    return fold_to_ascii(answer if answer.isascii() else _PICTURES.sub(" ", answer))


_SHORTEST_PLURAL, _LONGEST_NOUN = 4, 40
_F_TO_VES = "half calf loaf leaf thief shelf wolf sheaf hoof scarf"
_FE_TO_VES = "life wife knife midwife housewife"
_IRREGULAR = {
    "men": "man",
    "women": "woman",
    "children": "child",
    "people": "person",
    "oxen": "ox",
    "feet": "foot",
    "teeth": "tooth",
    "geese": "goose",
    "mice": "mouse",
    "lice": "louse",
    "criteria": "criterion",
    "phenomena": "phenomenon",
    "quizzes": "quiz",
    "gases": "gas",
    "lenses": "lens",
    **{f"{word[:-2]}es": word for word in ("analysis", "crisis", "thesis", "hypothesis", "diagnosis")},
    **{f"{word[:-1]}ves": word for word in _F_TO_VES.split()},
    **{f"{word[:-2]}ves": word for word in _FE_TO_VES.split()},
}
_ENDS_IN_E = (
    "movies cookies calories zombies rookies ties pies lies dies shoes toes canoes foes oboes axes caches niches avalanches quiches "
    "aches headaches toothaches stomachaches heartaches backaches earaches uses fuses muses excuses abuses refuses"
)
"""Words that lose only the s, although a rule would remove more."""
_SINGULAR_ALREADY = (
    "always perhaps news series species means lens mathematics physics economics politics ethics athletics "
    "texas kansas arkansas honduras christmas atlas canvas alias bias pancreas pyjamas"
)
_KNOWN_SINGULARS = (
    _IRREGULAR | {word: word[:-1] for word in _ENDS_IN_E.split()} | {word: word for word in _SINGULAR_ALREADY.split()}
)
_BY_ENDING = (
    ("ss", "ss"),
    ("us", "us"),
    ("is", "is"),
    ("auses", "ause"),
    ("ouses", "ouse"),
    ("uses", "us"),
    ("ies", "y"),
    ("sses", "ss"),
    ("shes", "sh"),
    ("ches", "ch"),
    ("xes", "x"),
    ("zzes", "zz"),
    ("oes", "o"),
    ("s", ""),
)
"""The first matching ending decides."""


@lru_cache(maxsize=1 << 15)
def _make_singular(word: str) -> str:
    if (singular := _KNOWN_SINGULARS.get(word)) is not None:
        return singular
    ending, singular_ending = next(rule for rule in _BY_ENDING if word.endswith(rule[0]))
    return word.removesuffix(ending) + singular_ending


def singularise(word: str) -> str:
    """Return the singular of a normalised word. A word with a digit, a singular, and a word of three letters or fewer stay unchanged.

    The rules use only the spelling: a name such as `adams` loses its s too. This is harmless if both sides of a comparison are made
    singular.
    """
    may_be_plural = (
        _SHORTEST_PLURAL <= len(word) <= _LONGEST_NOUN and word.isalpha() and (word[-1] == "s" or word in _IRREGULAR)
    )
    return _make_singular(word) if may_be_plural else word


_LARGE = {"hundred": 100, **SCALES_OF_WORDS}
_MAY_BEGIN_NUMBER = frozenset((*BELOW_TWENTY, *TENS_OF_WORDS, *_LARGE, "minus", "negative", "a", "an"))
_DIGITS_ONLY = re.compile(r"(-?)0*([0-9]+)(?:\.([0-9]*?)0*)?")
_LONGEST_MULTIPLIED = 15
"""Largest number of digits that a word such as `million` multiplies."""


def normalise_number(word: str) -> str | None:
    """Return a number in its shortest decimal form: `5` for `5.0` and `05`, or None if it is not in digits."""
    match = _DIGITS_ONLY.fullmatch(word)
    if match is None:
        return None
    sign, integer, part = match.groups()
    digits = f"{integer}.{part}" if part else integer
    return digits if digits == "0" else sign + digits


def convert_numbers_to_digits(words: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Return the normalised words with every number in its shortest decimal form, and whether each is a number.

    A number written in several words becomes one word, also after `minus`. Adjacent numbers stay separate: `twenty twenty four` is 20 and
    24. `5th`, `twenty first` and `v` are not numbers.
    """
    position = 0
    while position < len(words):
        word = words[position]
        number, end = None, position + 1
        if word[0] in "0123456789-":
            number, end = _read_digits(words, position)
        elif word in _MAY_BEGIN_NUMBER:
            number, end = _read_words(words, position)
        yield (word, False) if number is None else (number, True)
        position = end


def _read_digits(words: Sequence[str], position: int) -> tuple[str | None, int]:
    """Read `5`, `1.5 million`, `3 hundred thousand`."""
    number, end = normalise_number(words[position]), position + 1
    if number is None or len(number) > _LONGEST_MULTIPLIED:
        return number, end
    factor = 1
    while end < len(words) and factor < 10**6 and words[end] in _LARGE:
        factor *= _LARGE[words[end]]
        end += 1
    return (number, end) if factor == 1 else (format_figures(Fraction(number) * factor), end)


def _read_words(words: Sequence[str], position: int) -> tuple[str | None, int]:
    """Read `five`, `a hundred and five`, `minus five`, `minus 5`. Words of ordinals are not numbers."""
    run = read_number_at(words, position)
    if run is not None:
        return format_figures(run.value), run.end
    if words[position] in ("minus", "negative") and position + 1 < len(words) and words[position + 1][0] in "0123456789":
        number, end = _read_digits(words, position + 1)
        return (None, position + 1) if number is None else (normalise_number(f"-{number}"), end)
    return None, position + 1


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
    return f"{_LEXICON_NAME}/{settings.wordnet_senses}/{lexicon.digest}" if lexicon else None


def find_synonyms(value: str, settings: ScorerSettings) -> tuple[WordsOf, ...]:
    """Return the words of each synonym of a value, in order. Numerals have no synonyms and are not synonyms."""
    if settings.synonyms is None:
        return _find_shipped_synonyms(value, settings.wordnet_senses)
    key = " ".join(words(value))
    return () if _is_number(key) else _remove_numbers(_load_own_lexicon(settings.synonyms).get(key, ()))


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
