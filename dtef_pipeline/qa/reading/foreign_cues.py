"""Forms of `The answer is` in German, French, Spanish, Russian, Chinese and Japanese, and their number formats."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_CUES = re.compile(
    r"""(?:\b(?:antwort|l[öo]sung|ergebnis|endergebnis)(?:\s(?:auf\sdie\sfrage|daher|also|somit))?\s?(?:lautet|ist|betr[äa]gt|w[äa]re|:)(?:\s(?:daher|also|somit))?
        |\b(?:r[ée]ponse|r[ée]sultat)(?:\s(?:finale?|correcte|exacte))?\s?(?:est|:)(?:\sdonc)?
        |\b(?:respuesta|resultado)(?:\s(?:final|correcta|correcto))?\s?(?:es|:)
        |\b(?:ответ|результат)(?:\s(?:равен|равна|будет|—\sэто|это))?\s?(?:[:—–-]|(?<=равен)|(?<=равна)|(?<=будет)|(?<=это))
        |(?:答案|正解|正确选项|正確選項|答え|解答|回答)(?:应该|應該|应|應|就)?(?:是|为|為|选|選|は|:|：))(?:[\s*_:]|\\[(\[]|选项|選項)*""",
    re.VERBOSE,
)
_FIRST_IDEOGRAPH = "\u2e80"
_WITH_POINTS = re.compile(r"(?<![\w.,])([1-9][0-9]{0,2})((?:\.[0-9]{3})+)(?:,([0-9]{1,2}))?(?![0-9]|[.,][0-9])")
_WITH_COMMA = re.compile(r"(?<![\w.,])([0-9]+),([0-9]{1,2}|[0-9]{4,})(?![0-9]|[.,][0-9])")
_EUROS = re.compile(
    r"(?<![\w.,])([1-9][0-9]{0,2})((?:\.[0-9]{3})+)(?:,([0-9]{2}))?(?![0-9]|[.,][0-9])(?=\s?(?:€|euros?\b|eur\b))",
    re.IGNORECASE,
)


class ForeignCue(NamedTuple):
    """The start of a statement in another language than English, and the start of the value that it states."""

    start: int
    end: int
    has_commas: bool
    """Whether the language uses decimal commas and points between thousands."""


def find_foreign_cues(lower: str) -> Iterator[ForeignCue]:
    """Return the statements of a text in lower case, from left to right."""
    for match in _CUES.finditer(lower):
        yield ForeignCue(match.start(), match.end(), match[0][0] < _FIRST_IDEOGRAPH)


def normalize_points(sentence: str) -> str:
    """Convert the numbers of a sentence to English form: `1.319` to 1319, `1.319,50` to 1319.50, `12,5` to 12.5."""
    return _WITH_COMMA.sub(r"\1.\2", _WITH_POINTS.sub(_strip_grouping, sentence))


def normalize_euros(text: str) -> str:
    """Convert `1.319 Euro` to `1319 Euro`, because no sum of money has three decimals."""
    return _EUROS.sub(_strip_grouping, text) if "€" in text or "eur" in text.lower() else text


def _strip_grouping(match: re.Match[str]) -> str:
    first, thousands, cents = match.groups()
    return first + thousands.replace(".", "") + (f".{cents}" if cents else "")
