"""Whether a question's list of options is an ordered scale, and which options are off it (don't know, prefer not to say).

Order matters to the earth mover's distance, so a list is only ordinal if every option on it is recognised and the options are in order,
rising or falling. Everything else is nominal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

import numpy as np

from dtef_pipeline.identity import normalize_text
from dtef_pipeline.survey.answer_scales.non_answers import Role, can_be_middle, find_word_of_degree, is_non_answer
from dtef_pipeline.survey.answer_scales.opposites import (
    FAMILIES,
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


Kind = Literal["ordinal", "nominal"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Scale:
    """The classification of a list of options; `dont_know` marks the options that were set aside first.

    `positions` has a place on the scale for each option, None if set aside; the field is None if nominal. Only their order counts.
    """

    kind: Kind
    reason: str
    dont_know: tuple[bool, ...]
    positions: tuple[float | None, ...] | None


_HAS_NONE = re.compile(
    r"i (?:have no|do not have|don['’]?t have|am not (?:an?|in|at)|['’]?m not (?:an?|in|at))\b.*"
    r"|(?:not|no longer) (?:employed|working|married|in)\b.*|(?:no|not had any) (?:contact|experience)\b.*"
)
_DOES_NOT = re.compile(
    r"i (?:have never|have not|haven['’]?t|do not|don['’]?t|never|did not|didn['’]?t)\b.*"
    r"|(?:never|not) (?:used|tried|had|been|needed|visited|seen|met)\b.*"
)
"""`I have no family doctor`, `I did not go`: off the scale if it is at an end of a list that is a scale without it."""


_LONGEST_OPTION = 300
"""Characters of an option that are read; a scale shows in fewer."""


class _Verdict(NamedTuple):
    """Kind, reason, the positions of the options on the scale, or None for 1, 2, ..., and the options (k,) off the scale."""

    kind: Kind
    reason: str
    places: tuple[float, ...] | None = None
    off: tuple[bool, ...] = ()

    @property
    def positions(self) -> tuple[float | None, ...]:
        """(k,) positions, None off the scale."""
        scale_places = iter(self.places or map(float, range(1, len(self.off) + 1)))
        return tuple(None if is_off else next(scale_places) for is_off in self.off)


def detect_scale(
    options: Sequence[str],
    stated_kind: str | None = None,
    *,
    roles: Sequence[Role | None] = (),
    positions: Sequence[float | None] = (),
) -> Scale:
    """Return whether the options are ordinal or nominal, with the reason. A scale stated by the survey is not checked.

    `roles` and `positions` have one value per option, None if not stated. If any position is stated, the options without one are off the
    scale.
    """
    texts = [normalize_text(o)[:_LONGEST_OPTION] for o in options]
    option_roles = tuple(roles) or (None,) * len(options)
    is_stated = any(place is not None for place in positions)
    verdict = _judge_positions(positions) if is_stated else _judge_options(texts, option_roles, stated_kind == "ordinal")
    kind, reason, _, mask = verdict
    aside = ", ".join(
        f"{o!r} ({role})" if role else repr(o) for o, role, is_off in zip(options, option_roles, mask, strict=True) if is_off
    )
    note = f"; set aside: {aside}" if aside else ""
    if stated_kind in ("ordinal", "nominal"):
        kind, reason = ("ordinal" if stated_kind == "ordinal" else "nominal"), "stated by the survey"
    return Scale(kind, reason + note, mask, verdict.positions if kind == "ordinal" else None)


def _judge_positions(positions: Sequence[float | None]) -> _Verdict:
    """Return the verdict on a list with positions stated by the survey."""
    mask = tuple(place is None for place in positions)
    places = tuple(place for place in positions if place is not None)
    if len(set(places)) < 2:
        return _Verdict("nominal", "positions stated by the survey, all of them the same", off=mask)
    return _Verdict("ordinal", "positions stated by the survey", places, mask)


def _judge_options(options: Sequence[str], roles: Sequence[Role | None], is_ordinal: bool) -> _Verdict:
    mask = tuple(role != "substantive" if role else is_non_answer(t) for t, role in zip(options, roles, strict=True))
    texts = [
        "" if is_off and role else t for t, role, is_off in zip(options, roles, mask, strict=True)
    ]  # no words bring them back
    keep = {place for place, role in enumerate(roles) if role}
    degrees = _keep_degrees(texts, mask)
    alternatives = [marks for marks in (degrees, _keep_middle(texts, mask)) if marks != mask]
    for marks in (*alternatives, mask):
        answers = [_NEUTRAL if was and can_be_middle(t) else t for t, was, o in zip(texts, mask, marks, strict=True) if not o]
        result = _judge(answers)
        if marks == degrees != mask and result.kind == "nominal":
            result = _judge(_strip_shared_bottom(answers, [was for was, is_off in zip(mask, marks, strict=True) if not is_off]))
        if result.kind == "ordinal" or (is_ordinal and marks == degrees != mask):
            return result._replace(off=marks)
    return _judge_without_unconcerned(texts, mask, keep) or _Verdict("nominal", result.reason, off=mask)


_NEUTRAL = "neutral"


def _keep_degrees(texts: Sequence[str], mask: tuple[bool, ...]) -> tuple[bool, ...]:
    """Return `mask` without non-answers whose word other options have in other degrees: `not sure` below `very sure`."""
    answers = [t for t, is_off in zip(texts, mask, strict=True) if not is_off]
    words = [find_word_of_degree(t) if is_off else None for t, is_off in zip(texts, mask, strict=True)]
    return tuple(is_off and not (word and any(map(word.search, answers))) for is_off, word in zip(mask, words, strict=True))


_VERB_OF_KNOWING = re.compile(r"^i (?:have )?(?:heard|know|used?|tried|have)(?: it)? ")


def _strip_shared_bottom(answers: list[str], is_bottom: Sequence[bool]) -> list[str]:
    """Return the answers without shared words of knowing or use, and `none` for the bottom: `I have never heard of it`."""
    tops = [_VERB_OF_KNOWING.sub("", t) for t, bottom in zip(answers, is_bottom, strict=True) if not bottom]
    if not any(map(find_scale_family, (tops, bare := remove_common_ends(tops)))):
        return answers
    answer_texts = iter(tops if find_scale_family(tops) else bare)
    return ["none" if bottom else next(answer_texts) for bottom in is_bottom]


def _keep_middle(texts: Sequence[str], mask: tuple[bool, ...]) -> tuple[bool, ...]:
    """Return `mask` without an option such as not sure in the middle of the answers: between `maybe won't` and `maybe will`."""
    answers = [place for place, is_off in enumerate(mask) if not is_off]
    half = len(answers) // 2
    if len(answers) < 2 or len(answers) % 2 or {_extract_head(texts[place]) for place in answers} <= {"yes", "no"}:
        return mask
    middle = [p for p in range(answers[half - 1] + 1, answers[half]) if can_be_middle(texts[p])]
    return tuple(is_off and [place] != middle for place, is_off in enumerate(mask))


def _judge_without_unconcerned(texts: Sequence[str], mask: tuple[bool, ...], keep: Set[int]) -> _Verdict | None:
    """Return the verdict on a list that is a scale without its first or last option, for unconcerned people, unless in `keep`."""
    core = [i for i, is_off in enumerate(mask) if not is_off]
    for pattern in (_HAS_NONE, _DOES_NOT):
        ends = (
            {i for i in (core[0], core[-1]) if i not in keep and pattern.fullmatch(texts[i])} if len(core) > 2 else set[int]()
        )
        if not ends:
            continue
        marks = tuple(is_off or i in ends for i, is_off in enumerate(mask))
        result = _judge([t for t, is_off in zip(texts, marks, strict=True) if not is_off])
        # "I do not drink" beside daily and weekly is never: a place on the scale, and nothing to set aside.
        if result.kind == "ordinal" and not (pattern is _DOES_NOT and result.reason.startswith(_TIMES_COUNTED)):
            return result._replace(off=marks)
    return None


def _judge(texts: list[str]) -> _Verdict:
    if len(texts) < 2:
        return _Verdict("nominal", "fewer than two options on a scale")
    heads = [_extract_head(t) for t in texts]
    if len(set(heads)) < len(heads):  # `Yes - some difficulty`, `Leave - favor strongly`
        heads = [_extract_head(re.sub(r"\s?[–—-]\s", " ", re.sub(r"^(?:yes|no)\s[–—-]\s", "", t))) for t in texts]
    if set(heads) <= {"yes", "no"}:
        return _Verdict("nominal", "yes or no: nothing between")
    name = find_scale_family(heads)
    if name:
        return _Verdict("ordinal", f"{name}, in order")
    return _judge_middle_last(heads) or _Verdict("nominal", "no known scale in order")


def _judge_middle_last(heads: Sequence[str]) -> _Verdict | None:
    """Return the verdict on a scale whose middle is listed last: `Too much`, `Not enough`, `About right`."""
    *ends, middle = heads
    half = len(ends) // 2
    if len(ends) < 2 or len(ends) % 2 or not is_between(middle) or any(map(is_between, ends)):
        return None
    if len(ends) == 2:
        name = "two opposites with a middle" if is_middle_of(middle, *ends) else None
    else:
        name = find_pole_family(ends) or find_pole_family(remove_shared_words(heads)[:-1])
    places = (*map(float, range(1, len(ends) + 1)), half + 0.5)
    return _Verdict("ordinal", f"{name}, the middle listed last", places) if name else None


def _extract_head(text: str) -> str:
    """Return the part of an option that determines its place: before a dash, a colon, a bracket or `than one year ago`."""
    head = re.split(
        r"\s[–—-]\s|\s?[(:]|\be\.g\.|(?<!more)(?<!less)(?<!longer) (?:now )?(?:than|as(?! \w+ as\b)) .*(?:ago|before)\Z",
        text,
        maxsplit=1,
    )[0]
    return head.strip(" .,;!\"'“”")


_TIMES_COUNTED = ("numbers", "frequency", "share of time")
