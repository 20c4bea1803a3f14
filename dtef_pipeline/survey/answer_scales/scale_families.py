"""Lists of options that make a scale: families of words such as frequency, agreement and extent, and numbers, amounts of money, ages or
durations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from dtef_pipeline.survey.answer_scales.opposites import (
    can_have_shares,
    detect_two_subjects,
    find_opposite_objects,
    find_pole_family,
    has_same_object,
    is_about_one_thing,
    is_between,
    is_known_and_monotonic,
    is_negated,
    place_comparison,
    remove_common_ends,
    remove_shared_words,
)
from dtef_pipeline.survey.answer_scales.scale_words import FAMILIES

_NUMERALS = {
    word: str(value)
    for value, word in enumerate(("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"))
}
_BELOW = r"less than|fewer than|younger than|before|under|up to|below|no more than|at most|within|<"
_ABOVE = r"more than|greater than|older than|after|over|above|at least|longer than|>"
_OR_MORE = r"(?P<more>\+| or more| or (?:over|older|later|above|higher|longer|greater)| and (?:over|older|above|up))"
_OR_LESS = r"(?P<less> or (?:less|fewer|under|below|younger|earlier)| and (?:under|below|younger))"
_AMOUNT_WRITTEN = r"[$€£]?(?P<{0}>\d+(?:[.,]\d+)*)(?P<{0}_k>k\b)?%?"
_NUMBER_WRITTEN = re.compile(
    rf"(?:ages? |aged |about |around |only |just )?(?:(?P<below>{_BELOW})|(?P<above>{_ABOVE}))?\s*{_AMOUNT_WRITTEN.format('first')}"
    rf"(?:(?: [a-z]+)?\s*(?:-|–|to|or|and)\s*(?:just |less than |under )*{_AMOUNT_WRITTEN.format('second')})?"
    rf"(?:{_OR_MORE}|{_OR_LESS})?(?:\s*[a-z]+)?(?: old)?"
)


def place_number(head: str) -> float | None:
    """Return the place of `3`, `none`, `three or more`, `18-25`, `$1,000 to less than $2,000`, `under 5`, `more than 7`, `65+`, `2 hours`."""
    head = re.sub(r"^no (?=[a-z]+(?:s\b|\Z))", "0 ", head)
    match = _NUMBER_WRITTEN.fullmatch(_replace_words(head, _NUMERALS))
    if match is None:
        return None
    value = float(match["first"].replace(",", "")) * (1000 if match["first_k"] else 1)
    return value - 0.5 * bool(match["below"] or match["less"]) + 0.5 * bool(match["above"] or match["more"])


_COUNTS_IN_WORDS = {
    "once": 1.0,
    "once or twice": 1.5,
    "twice": 2.0,
    "couple of": 2.0,
    "few": 3.0,
    "several": 4.0,
    "multiple": 4.0,
    "many": 6.0,
}
_TIMES_A_YEAR = {"hour": 8760, "day": 365, "week": 52, "month": 12, "year": 1}
_ADVERBS_OF_RATE = {
    "hourly": "hour",
    "daily": "day",
    "weekly": "week",
    "monthly": "month",
    "yearly": "year",
    "annually": "year",
}
_RATE = re.compile(
    r"(?:about |around |only |just |at least )?(?:(?P<below>(?:less|fewer)(?: often)? than|lt) |(?P<above>more(?: often)? than) )?"
    rf"(?:(?:an? )?(?P<count>{'|'.join(sorted(_COUNTS_IN_WORDS, reverse=True))}|\d+)(?: ?(?:-|–|to|or) ?(?P<to>\d+))?(?P<more> or more)?"
    r"(?: times| days)? (?:an?|per|each|every(?! few| several| couple))|(?:once )?every(?: (?P<gap>few|several|other|couple of|[1-9]\d*))?)"
    r" (?P<unit>hour|day|week|month|year)s?"
)
_PLACES_OF_RATES = ((0.01, 1.0), (1, 2.0), (12, 3.0), (52, 4.0), (208, 5.0), (365, 6.0), (1460, 7.0), (8760, 8.0))
"""Times a year, and the place between `never` (0) and `always` (8)."""


def place_rate(head: str) -> float | None:
    """Return the place of `once a week`, `2-3 times a month`, `every few days`, `less than monthly` among words of frequency."""
    units = {adverb: f"every {unit}" for adverb, unit in _ADVERBS_OF_RATE.items()}
    match = _RATE.fullmatch(_replace_words(head, _NUMERALS | units))
    if match is None:
        return None
    count = _count_of(match["count"] or "once")
    times_a_unit = (count + float(match["to"] or count)) / 2 + 0.5 * bool(match["more"] or match["above"])
    size = (0.9 if match["below"] else 1.0) * times_a_unit * _TIMES_A_YEAR[match["unit"]]
    rates, places = zip(*_PLACES_OF_RATES, strict=True)
    gap = 2.0 if match["gap"] == "other" else _count_of(match["gap"] or "once")
    return float(np.interp(size / gap, rates, places))


def _count_of(count: str) -> float:
    return _COUNTS_IN_WORDS[count] if count in _COUNTS_IN_WORDS else float(count)


def _replace_words(text: str, replacements: Mapping[str, str]) -> str:
    return re.sub(r"\b[a-z]+\b", lambda word: replacements.get(word[0], word[0]), text)


_DAYS = {"minute": 1 / 1440, "hour": 1 / 24, "day": 1.0, "week": 7.0, "month": 30.0, "year": 365.0, "decade": 3650.0}
_UNIT = r"(?P<{0}>minutes?|hours?|days?|weeks?|months?|years?|decades?)"
_COUNT_OF_UNITS = r"(?P<{0}>\d+(?:\.\d+)?|an?|the|few|several|a few|a couple of)"
_DURATION = re.compile(
    rf"(?:about |around |it was |yes,? )?(?:(?P<below>{_BELOW})|(?P<above>{_ABOVE})|(?P<past>in|during|over))?\s*"
    rf"(?:(?:the |my |this )?(?P<recent>past|last|previous|next|coming) )?"
    rf"(?:{_COUNT_OF_UNITS.format('count')}(?: |(?=-|–)))?(?:{_UNIT.format('unit')})?"
    rf"(?:\s*(?:-|–|to|or|and|but)\s*(?:less than |under )?(?:{_COUNT_OF_UNITS.format('to')} )?{_UNIT.format('to_unit')})?"
    rf"(?:{_OR_MORE}|{_OR_LESS})?(?: ago| old| before)?"
)


def place_durations(heads: Sequence[str]) -> list[float | None]:
    """Return the places of `less than a month`, `1 to 6 months`, `within the past year`, `more than 5 years ago`; `never` is longest ago."""
    is_past = any(re.search(r"\b(?:ago|past|last)\b", head) for head in heads)
    is_until = any(re.match(r"(?:with)?in \S", head) for head in heads)
    none = float("inf") if is_past or is_until else 0.0
    heads = [re.sub(r"^this (?=week|month|year)", "past ", "past day" if head == "today" else head) for head in heads]
    heads = ["more than 100 years ago" if re.fullmatch(r"longer ago|before (?:that|then)", head) else head for head in heads]
    end_sizes = {"never(?: .*)?|no|none|not at all|no time": none, "right (?:away|now)|immediately|now|at once": 0.0}
    return [
        next((size for words, size in end_sizes.items() if re.fullmatch(words, head)), _place_duration(head)) for head in heads
    ]


def place_times(heads: Sequence[str]) -> list[float | None]:
    """Return the places of `never`, `once`, `2 to 5 times`, `6 or more times`; `[None]` if no option counts times."""
    if not any(re.search(r"\d.* times\b", head) for head in heads):
        return [None]
    numbers = {"never": "0", "not at all": "0", "once": "1", "only once": "1", "twice": "2"}
    return [place_number(numbers.get(head, head)) for head in heads]


def _place_duration(head: str) -> float | None:
    match = _DURATION.fullmatch(_replace_words(head, _NUMERALS))
    unit = match and (match["unit"] or (match["count"] and match["to_unit"]))
    if match is None or not unit or not (match["count"] or match["recent"]):
        return None
    size = _count_of(re.sub(r"^(?:an?|the)\Z", "once", (match["count"] or "once").removeprefix("a ")))
    shift = bool(match["above"] or match["more"]) + 0.5 * bool(match["to_unit"]) - bool(match["below"] or match["less"])
    return size * _DAYS[unit.rstrip("s")] * (1 + 0.01 * shift)


_VERBS = r"(?:know|trust|like|care|worry|support|follow|believe|agree|rely|depend|enjoy|help|allow)s?"


def find_scale_family(heads: Sequence[str]) -> str | None:
    """Return the family whose places put all options in order, with or without shared words."""
    name = "numbers between labelled ends" if _has_labelled_ends(heads) else _find_first_in_order(_WHOLE_OPTIONS, heads)
    if not name and len(heads) == 3 and is_between(heads[1]):
        return "two opposites with a middle" if is_middle_of(heads[1], heads[0], heads[2]) else None
    if name or not is_about_one_thing(heads):
        return name
    name = _find_degree_family(heads)
    if name or len(heads) < 3:
        return name
    if sum(h.startswith("yes") for h in heads) == len(heads) - 1 and any(map(_NO.fullmatch, heads)):
        return find_scale_family([re.sub(r"^yes,? (?:but |and )?", "", _NO.sub("never", h)) for h in heads])
    answers = re.findall(r"^(yes|no),? ", "\n".join(heads), re.MULTILINE)
    if len(answers) == len(heads) and min(answers.count("yes"), answers.count("no")) > 1:
        return find_scale_family([re.sub(r"^(?:yes|no),? ", "", h) for h in heads])
    if any({place(h) for h in heads} >= {0, 1} and is_known_and_monotonic([place(h) for h in heads]) for place in _STANDINGS):
        return "in full, in part or never"
    bare = remove_common_ends(heads)
    if bare != list(heads) and (name := _find_first_in_order(_WHOLE_OPTIONS, bare)):
        return name
    remainders = remove_shared_words(heads)
    return (
        _find_first_in_order(_BARE_DEGREES, list(map(_extract_bare_degree, remainders)))
        or find_pole_family(remainders)
        or detect_two_subjects(heads)
    )


_NO = re.compile(r"^no(?:,? (?:never|none|not at all))?\Z")


def _find_first_in_order(families: Families, heads: Sequence[str]) -> str | None:
    """Return the first family that has a place for every option, in order."""
    return next((name for name, place in families if is_known_and_monotonic([place(h) for h in heads])), None)


def _find_degree_family(heads: Sequence[str]) -> str | None:
    name = _find_first_in_order(_PARTS_OF_OPTIONS, heads)
    if name:
        return name
    if is_known_and_monotonic([_place_extent(h) for h in _add_plain_degree(heads)]):
        return "extent"
    if len(heads) > 2 and is_known_and_monotonic(place_durations(heads)):
        return "length of time"
    if len(heads) > 1 and is_known_and_monotonic(place_times(heads)):
        return "numbers of times"
    return find_pole_family(heads)


def is_middle_of(middle: str, first: str, second: str) -> bool:
    """Return whether an option is both, neither or about the same, beside opposites of one object or two compared statements."""
    if not is_between(middle) or is_between(first) or is_between(second):
        return False
    objects = list(find_opposite_objects(first, second))
    if objects:
        return any(has_same_object(*pair) for pair in objects)
    return is_negated(first, second) or can_have_shares(middle, first, second)


def _has_labelled_ends(heads: Sequence[str]) -> bool:
    """Return whether the options are consecutive numbers with words at the ends: `Very bad | 2 | 3 | 4 | Very good`."""
    inner = [place_number(h) for h in heads[1:-1]]
    if (
        place_number(heads[0]) is not None
        or len(inner) < 3
        or None in inner
        or not all(re.fullmatch(r"\d+(?:\.0)?", h) for h in heads[1:-1])
    ):
        return False
    steps = {b - a for a, b in pairwise(n for n in inner if n is not None)}
    return steps in ({1.0}, {-1.0}) and not {heads[0], heads[-1]} & {"other", "none", "none of these", "all"}


def _add_plain_degree(heads: Sequence[str]) -> list[str]:
    """Replace `close` beside `very close` and `not close at all` by `moderately close`."""
    return [
        f"moderately {h}" if " " not in h and any(re.search(rf" {re.escape(h)}(?: at all)?\Z", o) for o in heads) else h
        for h in heads
    ]


def _make_lookup(family: str, tail: str = "", prefix: str = "") -> Callable[[str], float | None]:
    patterns = [(place, re.compile(f"{prefix}(?:{pattern}){tail}")) for place, pattern in FAMILIES[family]]
    return lambda head: next((place for place, pattern in patterns if pattern.fullmatch(head)), None)


_place_of_extent = _make_lookup(
    "extent", tail=r"(?: (?!and\b)\w+){0,2}(?: or \w+)?(?: who .*| to come .*)?", prefix=r"(?:i know |i am )?"
)


def _place_extent(head: str) -> float | None:
    """Return the place of `very much`, `trust completely`, `do not trust at all`."""
    head = re.sub(r"^(?:i )?(?:do not|don['’]?t|have not|haven['’]?t) \w+ anything\b", "nothing", head)
    text = re.sub(rf"^(?:i )?(?:do not|don['’]?t) {_VERBS}(?: (?:it|them))?(?= |\Z)", "not", head)
    return _place_of_extent(re.sub(rf"^(?:i )?(?:{_VERBS}|bothered|heard)(?: (?:it|them))? (?=\w)", "", text))


_ARTICLE = re.compile(
    r"\b(?:an?|the) (?!lot\b|little\b|few\b|bit\b|great|good|fair|moderate|large|small|major|minor|big|year|month|week|day|time)"
)
_NOT_BARE = re.compile(
    r"^(?:there|are|is|be|it|do|does|did|would|have|has|of|to|in|under)\s+|\s+(?:of|an?|the|in|on|for|to|is|are|be)\Z"
)


def _extract_bare_degree(text: str) -> str:
    """Return the degree of an option without shared words: `not too of a` is `not too`, a blank is the plain degree."""
    text = re.sub(r"^(?:do|does|did)(?: not|n['’]?t)\b", "not", re.sub(r",? but .*", "", text))
    text = _ARTICLE.sub("", f"{text} ").strip(" .,;")
    while (shorter := _NOT_BARE.sub("", text)) != text:
        text = shorter
    return text or "moderately"


_place_of_frequency = _make_lookup("frequency")


def _place_frequency(head: str) -> float | None:
    """Return the place of `often`, `yes, sometimes`, `weekly or more often`."""
    bare = re.sub(r"^yes,? | or more(?: often)?\Z", "", head)
    places = (find(text) for text in (head, bare) for find in (_place_of_frequency, place_rate))
    return next((place for place in places if place is not None), None)


Families = tuple[tuple[str, Callable[[str], float | None]], ...]
_WHOLE_OPTIONS: Families = (
    ("frequency", _place_frequency),
    ("comparison", place_comparison),
    ("rating", _make_lookup("rating")),
    ("share of time", _make_lookup("share_of_time")),
    ("likeness", _make_lookup("likeness")),
    ("comparison with the usual", _make_lookup("than_usual")),
    ("difficulty", _make_lookup("difficulty")),
    ("living", _make_lookup("living", prefix=r"(?:i |we |they )?", tail=r"(?: on .*)?")),
    ("class", _make_lookup("class", tail=r"(?: class| income)?", prefix=r"(?:the )?")),
    ("priority", _make_lookup("priority")),
    ("relation", _make_lookup("relation")),
    ("timing", _make_lookup("timing")),
    (
        "working time",
        _make_lookup("working", prefix=r"(?:(?:working|employed) )?", tail=r"(?: (?:for pay|work|job))*(?: at all)?"),
    ),
    ("schooling", _make_lookup("schooling")),
    ("recency", _make_lookup("recency")),
    ("knowledge", _make_lookup("heard_of")),
)
_PARTS_OF_OPTIONS: Families = (
    ("numbers", place_number),
    ("adequacy", _make_lookup("sufficiency")),
    ("severity", _make_lookup("severity", tail=r"(?: (?!and\b)\w+){0,4}", prefix=r"(?:i (?:have )?)?(?:an? )?")),
    ("level", _make_lookup("level", tail=r"(?: \w+)?")),
    ("extent", _place_extent),
)
_STANDINGS = (_make_lookup("ever"), _make_lookup("action"), _make_lookup("kept"))
_BARE_DEGREES: Families = (
    ("extent", _make_lookup("extent")),
    ("frequency", _place_frequency),
    ("share of time", _make_lookup("share_of_time")),
    ("working time", _make_lookup("working")),
    ("class", _make_lookup("class")),
    ("rating", _make_lookup("rating")),
    ("level", _make_lookup("level")),
    ("severity", _make_lookup("severity")),
)
