"""Find the numbers of a text, in figures and in words, with exact values and positions.

These are numbers:

- figures with a sign, grouped thousands, decimals, an exponent or a currency: `-1,234.50`, `12 345`, `1_000`, `$18`, `.5`, `1e3`,
  `4 x 10^3`, `2^{10}`;
- fractions: `3/4`, `2 1/2`, `½`; a percent sign is ignored (`50%` is 50); `5k` and `1.5 million` are multiplied;
- words: `one hundred fifty-seven thousand`, `a hundred`, `minus five`, `two and a half` (see `number_words`);
- figures directly followed by a unit: `300g`, `5pm`.

These are not: ordinals (`5th`, `twenty-first`), clock times and ratios (`3:45`), dates and versions (`1.2.3`, `1/2/2020`), figures
inside a name (`x1`, `legos_4x500`), powers of something else (`m^2`), a denominator of zero, and more than 300 digits. A `-` after a
word or a number is a dash, and `minus` between two numbers is an operation. A `-` followed by a blank is a list dash, except
after `is`, `equals` and `=`, where it is a sign (`the change is - 5`).

These are numbers of unclear value: irregular commas (`1,23`, `5,000,00`, `1.234,56`), powers that are not computed
(`2^n`, `(3+4)^2`), and dozens in words (`two dozen` may mean 24, or two if dozens are counted, as in `20 dozens`). All patterns are linear
in the length of the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from dtef_pipeline.text.alignment import align_lower
from dtef_pipeline.text.number_words import (
    BELOW_TWENTY,
    ORDINALS_BELOW_TEN,
    SCALES_OF_WORDS,
    TENS_OF_WORDS,
    NumberRun,
    read_number_at,
)

_MAX_FIGURES = 300
_MOST_WORDS = 40
_CURRENCY = r"(?:(?:us|au|ca|nz)?\$|usd|eur|gbp|rs\.?|[€£¥₹])"
_IN_THOUSANDS = r"[0-9]{1,3}(?:,[0-9]{2,3}){0,12},[0-9]{3}(?![0-9])"
_WITH_UNDERSCORES = r"[0-9]{1,3}(?:_[0-9]{3}){1,12}(?![0-9a-z_])"
_WITH_SPACES = r"(?<![0-9][ ,.])[1-9][0-9]{0,2}(?:[ ][0-9]{3}){1,12}(?![0-9a-z_/:^-]|[ ][0-9]|,[0-9])"
_PLAIN_FIGURES = rf"(?:{_IN_THOUSANDS}|{_WITH_UNDERSCORES}|{_WITH_SPACES}|[0-9]+)(?:\.[0-9]+)?|(?<![\w.])\.[0-9]+"
_BEHIND_VERB = r"(?:(?<==)|(?<==[ ])|(?<=\bis[ ])|(?<=\bequals[ ]))"
_NOT_CLEAR = rf"""(?<![0-9],)(?:-[ ]?)?(?:{_CURRENCY}[ ]?-?)?
        (?:[0-9]+,(?![0-9]{{3}}(?![0-9]))[0-9]+(?![0-9]|,[0-9])
        |[0-9]{{4,}},[0-9]+(?!,[0-9])
        |(?!{_IN_THOUSANDS}(?!,[0-9]))[0-9]{{1,3}},[0-9]{{3}}(?:,[0-9]+)++
        |[0-9]{{1,3}}(?:\.[0-9]{{3}}){{1,6}},[0-9]{{1,2}}(?![0-9]|,[0-9]))(?:\.[0-9]+)?
        |(?:half[ -])?an?[ -](?:half[ -])?dozens?\b"""
_NUMBER_WORD = "|".join(sorted({*BELOW_TWENTY, *TENS_OF_WORDS, *SCALES_OF_WORDS, "hundred"}, key=len, reverse=True))
_AFTER_WORD = f"(?:and[ -]{{1,3}})?(?:an?[ -]{{1,3}})?(?:{_NUMBER_WORD}|point|half|quarters?|thirds?|fourths|fifths|eighths)"
_NEXT = re.compile(
    rf"""(?=[a-z0-9_.$€£¥₹¼-¾⅐-⅞-])(?<![a-z0-9_^])(?<!\^[{{(-])(?:
    (?P<words>(?:(?:minus|negative)[ ]{{1,3}})?(?:an?[ -]{{1,3}}(?=hundred|half\b|thousand|[mbt]r?illion))?(?:{_NUMBER_WORD}|(?<=a.)half)\b
        (?:,?[ -]{{1,3}}{_AFTER_WORD}\b)*+)
    |(?P<none>[a-z_]+(?<!\busd)(?<!\brs)[0-9]\w*(?:\.\w+)*+
        |[0-9]+(?::[0-9]+)++
        |[0-9]+(?:\.[0-9]+){{2,}}+
        |[0-9]+(?:/[0-9]+){{2,}}+
        |[0-9]{{4}}-[0-9]{{1,2}}-[0-9]{{1,2}}(?![0-9])
        |(?!{_WITH_UNDERSCORES})[0-9]+_\w*
        |[0-9][0-9,]{{0,15}}+(?:st|nd|rd|th)(?![a-z]))
    |(?P<not_clear>{_NOT_CLEAR})
    |(?P<sign>(?:minus|negative)[ ]{{1,3}}|(?<![\w)\]}}%.])-[ ]?(?=[$€£¥₹])|{_BEHIND_VERB}-[ ]{{1,3}}(?=[.0-9])|(?<![\w)\]}}%.])-)?
        (?P<money>{_CURRENCY}[ ]?-?)?
        (?:(?P<whole>[0-9]{{1,9}})(?:[ ]|-|[ ]and[ ])(?P<part>[0-9]{{1,9}}/[0-9]{{1,9}})(?![0-9/.:,])
        |(?P<vulgar_whole>[0-9]{{1,9}})?[ ]?(?P<vulgar>[¼-¾⅐-⅞])
        |(?P<figures>{_PLAIN_FIGURES})
            (?P<exponent>e[-+]?[0-9]{{1,5}}(?![a-z0-9_]))?
            (?:(?:[ ]?\^[ ]?[{{(]?|(?<=[0-9])\*\*(?=[-0-9]))(?P<raised>[-+]?[0-9]{{1,5}})(?![0-9.])[)}}]?)?
            (?:[ ]?/[ ]?(?P<under>[0-9]{{1,12}}(?:\.[0-9]{{1,12}})?)(?![0-9.]*[0-9/:]))?
            (?:[ ]?(?:[x×*·])[ ]?10[ ]?(?:\^|\*\*)[ ]?[{{(]?(?P<power>[-+]?[0-9]{{1,5}})(?![0-9])[)}}]?)?
            (?P<kilo>k(?![a-z0-9_]))?
            (?P<scales>(?:[ -](?:hundred|thousand|million|billion|trillion)\b){{1,3}})?))""",
    re.VERBOSE,
)
_SIGN_STANDS_AFTER = re.compile(
    r"(?:^|[=:(,{\[#*$\"\n]|\b(?:is|was|be|are|to|at|of|from|by|or|and|equals|about|approximately|exactly|than))[ *]*\Z"
)
_WORDS_AND_COMMAS = re.compile(r"[a-z]+|[,-]")
_PARTS_BEHIND_HYPHEN = {
    "half": 2,
    "halves": 2,
    "third": 3,
    "quarter": 4,
    "fourth": 4,
    "fifth": 5,
    "sixth": 6,
    "eighth": 8,
    "tenth": 10,
}
_HYPHENED_PART = re.compile(r"-([a-z]+?)s?\b")
_FOLLOWING_WORD = re.compile(r"[ -]([a-z]+)")
_DOZENS_FOLLOW = re.compile(r"[ -]dozens?\b")
_RAISED_FOLLOWS = re.compile(r"\)?[ ]?\^[ ]?[{(]?-?(?!(?:o|th|st|nd|rd|circ)\b)[a-z0-9.]")
_WITHOUT_GROUPS = str.maketrans("", "", ", _")
_AROUND = " \t\r\n*_\"'`.,;:!?()[]"


class FoundNumber(NamedTuple):
    """A number and its position: `text[start:end]`, without a percent sign or unit."""

    value: Fraction
    start: int
    end: int
    in_words: bool = False
    is_clear: bool = True
    """False: it is a number, but not clear which; the value is what dozens come to (24 for `two dozen`), and says nothing of others."""


def find_numbers(text: str) -> Iterator[FoundNumber]:
    """Return all numbers of a text from left to right. The text must have passed `align_lower`."""
    for match in _NEXT.finditer(text):
        if match["words"]:
            yield from _read_number_words(text, match)
        elif match["not_clear"]:
            is_dozen = match[0].endswith(("dozen", "dozens"))
            value = Fraction((6 if "half" in match[0] else 12) if is_dozen else 0)
            yield FoundNumber(value, match.start(), match.end(), in_words=is_dozen, is_clear=False)
        elif match["none"] is None:
            yield from _read_figures(text, match)


def parse_exact_number(text: str) -> Fraction | None:
    """Return the number if the whole text is one number, ignoring surrounding punctuation, currency and a percent sign, else None."""
    lower = align_lower(text).strip(_AROUND.replace(".", "")).rstrip(_AROUND)
    first = next(find_numbers(lower), None)
    if first is None or not first.is_clear or first.start or lower[first.end :].strip() not in ("", "%", "percent"):
        return None
    return first.value


def is_same_number(a: Fraction, b: Fraction) -> bool:
    """Whether |a - b| <= 1e-6 max(1, |b|), in exact arithmetic."""
    return abs(a - b) * 1_000_000 <= max(Fraction(1), abs(b))


def convert_to_json_number(value: Fraction) -> int | float:
    """Return an int for a whole number that a float cannot represent better, else a float."""
    return int(value) if value.denominator == 1 and abs(value) < 2**53 else float(value)


def format_figures(value: Fraction) -> str:
    """Return one spelling per value: `72`, `14.8`, `1/3`; `72.0` and `seventy-two` give the same."""
    shift = 0
    while 10**shift % value.denominator and shift < 18:
        shift += 1
    product = value * 10**shift
    if product.denominator != 1:
        return f"{value.numerator}/{value.denominator}"
    digits = str(abs(int(product))).rjust(shift + 1, "0")
    return ("-" if value < 0 else "") + (f"{digits[:-shift]}.{digits[-shift:]}" if shift else digits)


def _is_sign(text: str, start: int) -> bool:
    """Whether a `minus` belongs to the number after it, because no number precedes it."""
    return _SIGN_STANDS_AFTER.search(text, max(0, start - 20), start) is not None


def _read_number_words(text: str, match: re.Match[str]) -> Iterator[FoundNumber]:
    tokens = [token for token in _WORDS_AND_COMMAS.finditer(match["words"]) if token[0] != "-"]
    place = 0
    while place < len(tokens):
        if tokens[place][0] == ",":
            place += 1
            continue
        words = _take_words(tokens, place)
        run = read_number_at(words)
        if run is None:
            place += 1
            continue
        start, end = match.start() + tokens[place].start(), match.start() + _find_run_end(tokens, place, run)
        value, part = run.value, _HYPHENED_PART.match(text, end)
        if part and 0 < abs(value) < 20 and part[1] in _PARTS_BEHIND_HYPHEN:  # such as `two-thirds`
            value, end = value / _PARTS_BEHIND_HYPHEN[part[1]], part.end()
        if words[0] == "minus" and not _is_sign(text, start):
            value = abs(value)
        place += run.end + sum(token[0] == "," for token in tokens[place : place + run.end])
        if not _is_before_ordinal(text, end, words[run.end - 1]):
            if dozens := _DOZENS_FOLLOW.match(text, end):
                value, end = 12 * value, dozens.end()
            yield FoundNumber(value, start, end, in_words=True, is_clear=dozens is None)


def _take_words(tokens: list[re.Match[str]], place: int) -> list[str]:
    """Return the words up to a comma that ends a number, unless a scale word precedes the comma."""
    words: list[str] = []
    for token in tokens[place : place + _MOST_WORDS]:
        if token[0] != ",":
            words.append(token[0])
        elif not words or words[-1] not in SCALES_OF_WORDS:
            break
    return words


def _find_run_end(tokens: list[re.Match[str]], place: int, run: NumberRun) -> int:
    count = 0
    for token in tokens[place : place + 2 * _MOST_WORDS]:
        count += token[0] != ","
        if count == run.end:
            return token.end()
    return tokens[place].end()


def _is_before_ordinal(text: str, end: int, last: str) -> bool:
    """Whether the words continue as an ordinal: `twenty-first`, `one hundred third`."""
    if last not in TENS_OF_WORDS and last != "hundred":
        return False
    following = _FOLLOWING_WORD.match(text, end)
    return following is not None and following[1] in ORDINALS_BELOW_TEN and (following[1] != "second" or text[end] == "-")


def _read_figures(text: str, match: re.Match[str]) -> Iterator[FoundNumber]:
    if match["part"]:
        yield from _read_mixed_number(text, match)
        return
    value = _read_value(match)
    if value is None:
        return
    is_clear = _RAISED_FOLLOWS.match(text, match.end()) is None
    yield FoundNumber(_apply_sign(text, match, value), match.start(), match.end(), is_clear=is_clear)


def _apply_sign(text: str, match: re.Match[str], value: Fraction) -> Fraction:
    sign = match["sign"] or ""
    if (match["money"] or "").endswith("-") or (sign and (sign[0] != "m" or _is_sign(text, match.start()))):
        return -value
    return value


def _read_mixed_number(text: str, match: re.Match[str]) -> Iterator[FoundNumber]:
    """Read `2 1/2` as one number; `5 7/3` and `10 20/40` are two numbers each."""
    numerator, _, denominator = match["part"].partition("/")
    integer, parts = int(match["whole"]), int(denominator)
    if 0 < int(numerator) < parts <= 100:
        yield FoundNumber(_apply_sign(text, match, integer + Fraction(int(numerator), parts)), match.start(), match.end())
        return
    yield FoundNumber(_apply_sign(text, match, Fraction(integer)), match.start(), match.end("whole"))
    if parts:
        yield FoundNumber(Fraction(int(numerator), parts), match.start("part"), match.end("part"))


def _read_value(match: re.Match[str]) -> Fraction | None:
    if match["vulgar"]:
        return int(match["vulgar_whole"] or 0) + Fraction(unicodedata.numeric(match["vulgar"])).limit_denominator(100)
    figures, exponent = match["figures"], match["exponent"] or ""
    power = int(match["power"] or 0) + int(exponent[1:] or 0)
    if len(figures) > _MAX_FIGURES or abs(power) + len(figures) > _MAX_FIGURES:
        return None
    base, raised = Fraction(figures.translate(_WITHOUT_GROUPS)), int(match["raised"] or 1)
    if abs(raised) * len(figures) > _MAX_FIGURES or (raised < 0 and not base):
        return None
    value = base**raised * Fraction(10) ** power
    if match["under"]:
        denominator = Fraction(match["under"])
        if not denominator:
            return None
        value /= denominator
    for scale in (match["scales"] or "").replace("-", " ").split():
        value *= 100 if scale == "hundred" else SCALES_OF_WORDS[scale]
    return value * 1000 if match["kilo"] else value
