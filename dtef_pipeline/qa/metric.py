"""The metric of an item: the values that an answer may name, with their weights."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from dtef_pipeline.qa.item_files.rows import has_invalid_text
from dtef_pipeline.qa.model import ItemError
from dtef_pipeline.text.json_values import JsonFault, parse_json
from dtef_pipeline.text.shortening import shorten_value

METRIC_PLACE = "metric"
"""Place of an error in a metric, for callers without a file; others replace it by file and line."""
_BEGINS_JSON = ("{", "[", '"')
_METRIC_FORMS = (
    '{"car": 1, "bike": 0.5}, ["car", "bike"], [{"value": "car", "weight": 1, "aliases": ["auto"]}], or a single value'
)
_VALUE_KEYS = ("value", "weight", "aliases")


@dataclass(frozen=True, slots=True)
class MetricValue:
    """One value that an answer may name."""

    text: str
    weight: float = 1.0
    """Weight: 1 is the full score; below 0 it reduces the score of other values."""
    aliases: tuple[str, ...] = ()
    """Other names of the value."""


def parse_metric(metric: str | None) -> tuple[MetricValue, ...]:
    """Parse the values of a metric, in its order; empty: there is nothing to score.

    A metric is a JSON object of values and weights, a list of values (each of weight 1) or of objects with `value`, `weight` and `aliases`,
    or one value in plain words. Raises ItemError for any other form, for a weight that is not a finite number, for an empty value, and for
    two values that are equal when normalised.
    """
    content = parse_metric_json(metric)
    if content is None:
        return ()
    return read_metric_values(content)


def parse_metric_json(metric: str | None) -> Any:
    """Parse a metric as JSON; plain words are a text, an empty metric and `null` are None. Raises ItemError for broken JSON."""
    text = (metric or "").strip()
    if text in ("", "null", '""'):
        return None
    if not text.startswith(_BEGINS_JSON):
        return text
    try:
        return parse_json(text)
    except JsonFault as fault:
        _refuse(f"the metric is not JSON: {fault}", text, _METRIC_FORMS)


def read_metric_values(content: Any) -> tuple[MetricValue, ...]:
    """Return the values of a metric that was parsed as JSON. Raises ItemError as `parse_metric`."""
    if isinstance(content, str):
        values = [_make_metric_value(content, 1, ())]
    elif isinstance(content, dict):
        values = [_make_metric_value(text, weight, ()) for text, weight in content.items()]
    elif isinstance(content, list):
        values = [_read_list_value(entry) for entry in content]
    else:
        _refuse("the metric has an unknown form", content, _METRIC_FORMS)
    _check_different(values)
    return tuple(values)


def _read_list_value(entry: Any) -> MetricValue:
    if isinstance(entry, str):
        return _make_metric_value(entry, 1, ())
    if not isinstance(entry, dict) or "value" not in entry or not entry.keys() <= set(_VALUE_KEYS):
        _refuse("a value of the metric has an unknown form", entry, f"a text, or an object with {', '.join(_VALUE_KEYS)}")
    return _make_metric_value(entry["value"], entry.get("weight", 1), entry.get("aliases", ()))


def _make_metric_value(text: Any, weight: Any, aliases: Any) -> MetricValue:
    if not isinstance(aliases, Sequence) or isinstance(aliases, str):
        _refuse(f"the aliases of {text!r} are not a list", aliases, "a list of strings")
    for name in (text, *aliases):
        if not isinstance(name, str) or not normalise(name):
            _refuse("a value is empty or not text", name, "a text with a letter or a digit")
        if has_invalid_text(name):
            _refuse("a value contains text that is not valid UTF-8", name, "UTF-8 without NUL")
    return MetricValue(text.strip(), _check_weight(text, weight), tuple(alias.strip() for alias in aliases))


def _check_weight(text: str, weight: Any) -> float:
    try:
        number = float(weight) if type(weight) in (int, float) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        _refuse(f"the weight of {text!r} is not a finite number", weight, "a number such as 1 or 0.5")
    return number


def _check_different(values: Sequence[MetricValue]) -> None:
    texts: dict[str, str] = {}
    for value in values:
        key = normalise(value.text)
        if key in texts:
            _refuse(f"the values {texts[key]!r} and {value.text!r} are equal", None, "values that differ when normalised")
        texts[key] = value.text


def _refuse(problem: str, value: Any, form: str) -> NoReturn:
    raise ItemError(problem, where=METRIC_PLACE, arrived=shorten_value(value), allowed=form)


_NOT_ASCII_RUN = re.compile(r"[^\x00-\x7f]{1,256}")
"""Short pieces, because ordering long runs of combining marks takes quadratic time."""
_NO_WORD = re.compile(r"(?<![0-9])\.|\.(?![0-9])|-(?![0-9])|[^a-z0-9.%-]+")


def normalise(text: str | None) -> str:
    """Normalise a text for comparison: NFKC, transliterated to ASCII, case folded, apostrophes removed, punctuation replaced by spaces.

    A `.` between digits, a `-` before a digit and `%` stay, so that 3.5 and -5 are still numbers. Spaces are single, with none at either
    end. Normalising twice changes nothing. None, a missing reply, becomes the empty text.
    """
    return strip_punctuation(fold_to_ascii(text)) if text else ""


def fold_to_ascii(text: str) -> str:
    """Convert a text to lower-case ASCII with its punctuation: `Łódź – “HavHøst”` is `lodz - "havhost"`."""
    return (text if text.isascii() else _NOT_ASCII_RUN.sub(_convert_to_ascii, text)).lower()


def _convert_to_ascii(match: re.Match[str]) -> str:
    from anyascii import anyascii

    # NFKC turns a lone acute accent, which people use as an apostrophe, into a space with a combining accent.
    return anyascii(unicodedata.normalize("NFKC", match[0].replace("´", "'")))


def strip_punctuation(text: str) -> str:
    """Remove the apostrophes of a folded text, and replace its punctuation by single spaces."""
    return " ".join(_NO_WORD.sub(" ", text.replace("'", "")).split())
