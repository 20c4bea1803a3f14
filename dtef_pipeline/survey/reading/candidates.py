"""Readings of values in a plain text (see `text/plain.py`): arrays, values on a line, in a column, and labelled ones (`Agree: 40%`,
`{"Agree": 40}`, `b) 35`, `40% agree`, table rows), whose pairs of a name and a value are grouped into runs that name each option once.

Each reader yields candidates: a place in the text, its values and notes on them. `parsing` chooses among them. All patterns are possessive
or bounded: time is linear in the text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from dtef_pipeline.text.labels import Labels, Mention
from dtef_pipeline.text.number_words import format_count, list_first_names
from dtef_pipeline.text.plain import RECENT, take_recent

# Groups are atomic, `(?>...)`, and not possessive: before 3.11.5 Python loses its place in a possessive group that fails half-way.
NUMERAL = r"[-+]?+(?:[0-9]++(?>(?:\.[0-9]++)?)|\.[0-9]++)(?>(?:e[-+]?+[0-9]++)?)"
COMMA_NUMBER = r"[-+]?+(?:[0-9]++(?>(?:,[0-9]++)*)(?>(?:\.[0-9]++)?)|\.[0-9]++)(?>(?:e[-+]?+[0-9]++)?)"
ABOUT = r"(?>(?:(?:~|about|around|approximately|approx\.?|roughly|circa|ca\.|nearly) ?)?)"
PERCENT = r"(?>(?: ?(?:%|percent\b|per cent\b|pct\b))?)"

_BETWEEN_VALUES = r"(?: ?[,;/|] ?(?:and )?| and | & | |\t)"
_STANDS_ALONE = r"(?! ?[-–→] ?[0-9])(?![\w:])(?!\.[0-9])(?! to [0-9])(?! or [0-9])"
_LISTED_VALUE = ABOUT + NUMERAL + PERCENT + _STANDS_ALONE
_RUN = re.compile(rf"(?<![\w.,–-]){_LISTED_VALUE}(?>(?:{_BETWEEN_VALUES}{_LISTED_VALUE})+)")
_NUMBER_PER_LINE = re.compile(rf"(?m)(?>(?:^[ |]*+(?>(?:[-–•·] )?){ABOUT}{COMMA_NUMBER}{PERCENT}[ ,;|.]*+(?:\n|\Z)){{2,}})")
_BULLET = re.compile(r"(?m)^[ |]*[-–•·] ")
_ARRAY = re.compile(r"\[([^\[\]{}]*)\]")
_INTERVAL = re.compile(r"(?:[%0-9]|\bci|\binterval|\brange)[ :,=]*\Z")
_BOUNDS = re.compile(r"\b(?:between|from) ?\Z")
_CITATION = re.compile(r"\[ ?\^?[0-9]{1,3} ?\]")
_ITEM = re.compile(rf"{ABOUT}({COMMA_NUMBER})\.?{PERCENT}")
_RANGE = re.compile(rf"{ABOUT}{NUMERAL}{PERCENT} ?(?:[-–]|to) ?{NUMERAL}{PERCENT}")
_NOT_A_NUMBER = re.compile(r"[-+]?(?:nan|inf|infinity|null|none|n/a)")
_PLAIN_NUMBERS = re.compile(NUMERAL)
_COMMA_NUMBERS = re.compile(COMMA_NUMBER)
_THOUSANDS = re.compile(r"[-+]?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_CLOSE_COMMA = re.compile(r",(?! )")
"""A comma that separates as one of thousands would: `1,200,800` may be two numbers, `1,200, 800` are."""
_REMARK = re.compile(r"(?://|#)[^\n]*|\([^()\n0-9]{1,80}+\)")
_DECIMAL_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+")
NEARBY = 200
"""How far a line is looked along, so that one endless line costs no more than many short ones."""
_ALNUM = re.compile(r"[^\W_]")


class Candidate(NamedTuple):
    """A reading: `status` is ok, wrong_length or unparseable; `values` are as written, in option order if ok.

    With `prose`, it is in the middle of a sentence, so it never displaces an array or a list.
    """

    start: int
    end: int
    status: str
    values: tuple[float, ...]
    how: str
    prose: bool = False


def make_candidate(start: int, end: int, values: Sequence[float], n: int, form: str, *, prose: bool = False) -> Candidate:
    """Return a reading of `values`, with its status as a distribution over n options."""
    if fault := explain_no_distribution(values):
        return Candidate(start, end, "unparseable", (), f"{form}: {fault}")
    if len(values) != n:
        return Candidate(
            start, end, "wrong_length", (), f"{form} of {format_count(len(values), 'value')} for {format_count(n, 'option')}"
        )
    # `1.200` beside `800` may be counts with a European separator.
    has_fraction = max(values) >= 100 and any(v != int(v) for v in values)
    if has_fraction and not form.startswith("array") and not is_near_whole(sum_in_order(values)):
        return Candidate(start, end, "unparseable", (), f"{form}: a point may be a decimal or a thousands separator")
    return Candidate(start, end, "ok", tuple(values), form, prose)


def explain_no_distribution(values: Sequence[float]) -> str:
    """Return why the values are not a distribution, or a blank."""
    if any(not math.isfinite(v) for v in values):
        return "a value is not a finite number"
    if any(v < 0 for v in values):
        return "a value is negative"
    total = sum_in_order(values)
    if total == 0:
        return "all values are zero"
    return "" if math.isfinite(total) else "the values add up to infinity"


def sum_in_order(values: Sequence[float]) -> float:
    """Return the sum from left to right with plain rounding, as in the vectorised path (`sum` compensates from 3.12 on)."""
    total = 0.0
    for value in values:
        total += value
    return total


def is_near_whole(total: float, points: float = 5.0) -> bool:
    """Return whether a total is within `points` percentage points of 100 or of 1."""
    return abs(total - 100) <= points or abs(total - 1) <= points / 100


def parse_written_number(text: str, commas: bool = False) -> float:
    """Return the value of a written number. `commas`: a comma is a thousands separator or a decimal comma."""
    if commas and "," in text:
        text = text.replace(",", "") if _THOUSANDS.fullmatch(text) else text.replace(",", ".")
    return float(text)


def is_joinable(text: str) -> bool:
    """Return whether a number with commas can be a single number: `1,200` or `45,2`, not `45,30,15`."""
    return "," not in text or bool(_THOUSANDS.fullmatch(text) or _DECIMAL_COMMA.fullmatch(text))


def mask_matches(pattern: re.Pattern[str], text: str, filler: str) -> str:
    """Replace each match by `filler`, with places unchanged."""
    return pattern.sub(lambda match: filler * (match.end() - match.start()), text)


def read_unlabelled(text: str, n: int) -> Iterator[Candidate]:
    text = mask_matches(_CITATION, text, " ")
    yield from _find_arrays(text, n)
    remainder = mask_matches(_ARRAY, text, "\x1a")
    yield from _find_columns(remainder, n)
    yield from _find_runs(remainder, n)


def _find_arrays(text: str, n: int) -> Iterator[Candidate]:
    for match in take_recent(_ARRAY.finditer(text), n):
        content = _REMARK.sub("", match[1])
        values = _read_array_values(content)
        if len(values) < 2 or _INTERVAL.search(text, max(0, match.start() - 12), match.start()):
            continue
        if _is_like_citations(values) and not _is_on_own_line(text, match.start(), match.end()):
            continue
        form = "array" if content == match[1] else "array with remarks"
        if "-" in content and any(map(_RANGE.fullmatch, _split_array_items(content))):
            form = "array with a range in it"
        yield make_candidate(match.start(), match.end(), values, n, form)


def _split_array_items(content: str) -> list[str]:
    separator = next((s for s in (";", ",", "|") if s in content), None)
    return [item.strip() for item in content.strip(" ,;|\n").split(separator)]


def _read_array_values(content: str) -> list[float]:
    """Return the values of an array, NaN for an element that is not a value; empty if it is not an array of values."""
    values = []
    for item in _split_array_items(content):
        if (match := _ITEM.fullmatch(item)) and is_joinable(match[1]):
            values.append(parse_written_number(match[1], commas=True))
        elif _RANGE.fullmatch(item) or _NOT_A_NUMBER.fullmatch(item):
            values.append(math.nan)
        else:
            return []
    return values


def _is_like_citations(values: Sequence[float]) -> bool:
    """Return whether these are small rising whole numbers: the sources [2, 5]."""
    rising = all(a < b for a, b in pairwise(values))
    return rising and values[0] >= 1 and values[-1] < 90 and all(v == int(v) for v in values) and sum(values) < 90


def _is_on_own_line(text: str, start: int, end: int) -> bool:
    """Return whether the text from start to end has its own line, or follows a colon or an equals sign."""
    before = text[max(0, start - NEARBY) : start].rpartition("\n")[2].rstrip()
    after = text[end : end + NEARBY].partition("\n")[0]
    sources = before.endswith(("sources:", "source:", "references:", "refs:", "ref:", "see:"))
    return not sources and (before.endswith((":", "=")) or not _ALNUM.search(before)) and not _ALNUM.search(after)


def _find_columns(text: str, n: int) -> Iterator[Candidate]:
    for match in take_recent(_NUMBER_PER_LINE.finditer(text), n):
        numbers = _COMMA_NUMBERS.findall(_BULLET.sub("", match[0]))
        if all(map(is_joinable, numbers)):
            values = [parse_written_number(v, commas=True) for v in numbers]
            yield make_candidate(match.start(), match.end(), values, n, "column of values")


def _find_runs(text: str, n: int) -> Iterator[Candidate]:
    """Yield values on one line. In prose they must add up to a whole, as must `60/40` and an array cut off before its end."""
    for match in take_recent(_RUN.finditer(text), n):
        values = _run_values(match[0], n)
        is_whole = is_near_whole(sum_in_order(values))
        cut_off = "[" in text[max(0, match.start() - 2) : match.start()]
        if cut_off and not is_near_whole(sum_in_order(values), 1.0):
            yield Candidate(match.start(), match.end(), "unparseable", (), "array without its end")
            continue
        own_line = _is_on_own_line(text, match.start(), match.end())
        bounds = _BOUNDS.search(text, max(0, match.start() - 10), match.start())
        if (is_whole and not bounds) or (own_line and "/" not in match[0]):
            yield make_candidate(match.start(), match.end(), values, n, "list of values", prose=not own_line)


def _run_values(run: str, n: int) -> list[float]:
    """Return the values of a run. By length and separators, `45,2; 30,1` and `1,200; 800` have commas inside numbers, `45,30,15,10` does
    not.
    """
    split = [float(v) for v in _PLAIN_NUMBERS.findall(run)]
    if len(split) == n or "," not in run:
        return split
    numbers = _COMMA_NUMBERS.findall(run)
    if len(numbers) != n or not all(map(is_joinable, numbers)):
        return split
    comma_values = [parse_written_number(v, commas=True) for v in numbers]
    comma_numbers = [v for v in numbers if "," in v]
    thousands = sum(1 for v in comma_numbers if _THOUSANDS.fullmatch(v))
    separators = _COMMA_NUMBERS.sub("", run)
    comma_separates = "," in separators
    if thousands == len(comma_numbers):
        return split if _CLOSE_COMMA.search(separators) else comma_values
    certain = thousands == 0 and is_near_whole(sum_in_order(comma_values)) and (not comma_separates or len(comma_numbers) == n)
    return comma_values if certain else split


_VALUE_NAME = r"(?:percentage|percent|value|share|probability|proportion|fraction|count|pct)"
_LINK = re.compile(
    r"[+!?)%]{0,2}+(?>(?:\.(?= ?[:=|–(]))?)(?>(?: ?\((?!~? ?[0-9.])[^()\n]{0,80}\))?) ?"  # a remark in parentheses that is not the value itself
    rf"(?P<sep>\.{{2,20}}|…+|,\s?{_VALUE_NAME} ?:|:\s?\{{\s?{_VALUE_NAME} ?:|:|=>|=|->|→|\||–|-(?= )|\(|)"
    r"[ \n]?(?:(?:is|are|at|would be) )?"
)
_LABELLED_VALUE = re.compile(rf"{ABOUT}({COMMA_NUMBER}|(?:nan|inf|infinity|null|none|n/a)\b)(?P<percent>{PERCENT})")
_MORE_DIGITS = re.compile(r" ?(?:(?:-|–|to\b|or\b|→|->) ?~?[0-9]|[/,.][0-9]|\| ?~?[0-9])")
_NO_SHARE = re.compile(r"[^\W_]| ?(?:percentage )?(?:points?|pp|higher|lower|more|less|fewer)\b")
_OPENING_WORDS = re.compile(r"(?:^|[^\w])(?:and|is|are|as|be|option|choice|answer|with|for|say) ?\Z")
_ROW_START = re.compile(r"(?:\A|\n|[\[(]) ?(?:[-•·] )?\Z")
_ROW_COMMA = re.compile(r", ?")
_ROW_END = re.compile(r" ?(?:\n|\Z|[\])]|, )")
_WOULD = r"(?:of (?:them|people|respondents) )?(?:would |will |might )?(?:say|answer|choose|select|pick|respond|report) "
_BARE_ROW = re.compile(rf"[|•·-]? ?(?P<label>[^\n]*?[^\W_]) (?P<value>{ABOUT}{COMMA_NUMBER}) ?")
_VALUE_FIRST = re.compile(rf"(?<![\w.,–-]){ABOUT}({COMMA_NUMBER}) ?(?:%|percent|per cent|pct) ?(?:[-–:] ?|{_WOULD})?(?=\w)")
_ENUMERATOR = re.compile(r"(?<![\w.])\(?([a-z]|[0-9]{1,2})(?:\)[:.]?|\.(?![0-9])|(?= ?[:=|])|(?= –)|(?= - ))")
_NEXT_LETTER = re.compile(r" [a-z] ?[=:] ?[0-9]")
_ENUMERATED_TEXT = re.compile(r" ?([^\n:=|]{1,120})")
_GENERIC = re.compile(r"(?:[:=|]| –| -(?= )) ?(?=[~a-z0-9.+-])")
_ANY_LETTER = re.compile(r"[^\W0-9_]")
_SUMMARY_ROW = re.compile(r"\b(?:total|sum|confidence|n|respondents|sample size)\b")
_OTHER_ROW = re.compile(rf"(?m)^[ |\-•·]*([^\n:=|]{{1,80}}?) ?[:=|] ?{ABOUT}{COMMA_NUMBER}{PERCENT}[ |,]*$")


class Pair(NamedTuple):
    """The value of option number `option` in the text from `start` to `end`; `fault` says why it cannot be used."""

    option: int
    value: float
    start: int
    end: int
    fault: str


class _Value(NamedTuple):
    value: float
    end: int
    percent: bool
    fault: str


def read_labelled(text: str, labels: Labels) -> list[Candidate]:
    """Return readings of values before or after an option's label."""
    if not labels.distinct:
        return []
    readings = [*_group_runs(text, _find_label_first(text, labels), labels.names, "labelled list")]
    for reading in _group_runs(text, _find_value_first(text, labels), labels.names, "labelled list, values first"):
        opens_line = _ROW_START.search(text, max(0, reading.start - 6), reading.start)
        readings.append(reading._replace(prose=not opens_line))
    return [*readings, *_find_bare_rows(text, labels)]


def read_enumerated(text: str, n: int, labels: Labels | None) -> list[Candidate]:
    """Return readings of values with an option's letter or number."""
    letters, numbers = _find_enumerated(text, n, labels)
    letter_names = [chr(ord("a") + i) if i < 26 else str(i + 1) for i in range(n)]
    readings = [*_group_runs(text, letters, letter_names, "lettered list")]
    if labels is None or not labels.numeric:
        readings += _group_runs(text, numbers, [str(i + 1) for i in range(n)], "numbered list")
    return readings


def _read_value_at(text: str, start: int, colon_follows: bool = False) -> _Value | None:
    """Return the value at `start`, or None if there is none, or if it is not a share (`5 points more`, `3rd`).

    `colon_follows`: numbers may be labels, so that the end of `0: 40,1: 30` belongs to the next label.
    """
    match = _LABELLED_VALUE.match(text, start)
    if match is None:
        return None
    raw, end = match[1], match.end()
    if colon_follows and "," in raw and re.match(r" ?[:=]", text[end : end + 2]):
        raw, end = raw[: raw.rindex(",")], match.start(1) + raw.rindex(",")
    elif _MORE_DIGITS.match(text, end):
        return _Value(math.nan, end, False, "a range or a second number instead of one value")
    if _NO_SHARE.match(text, end):
        return None
    if not raw[-1].isdigit():
        return _Value(math.nan, end, False, "a value is not a number")
    if not is_joinable(raw):
        return _Value(math.nan, end, False, f"{raw} is not a single number")
    return _Value(parse_written_number(raw, commas=True), end, bool(match["percent"]), "")


def _is_at_boundary(text: str, start: int) -> bool:
    """Return whether a name may begin here: at a line's start, after punctuation or a value, not in the middle of a phrase."""
    before = text[max(0, start - 12) : start]
    last = before.rstrip(" ")[-1:]
    return not last.isalpha() or bool(_OPENING_WORDS.search(before))


def _find_label_first(text: str, labels: Labels) -> Iterator[Pair]:
    position = 0
    for match in take_recent(labels.find_starts(text), len(labels.names)):
        start = match.start()
        if start < position or not _is_at_boundary(text, start):
            continue
        mentions = labels.find_mentions(text, start)
        for mention in mentions:
            if pair := _read_linked_value(text, start, mention, labels):
                yield pair
                position = pair.end
                break
        else:
            position = mentions[0].end if mentions and mentions[0].whole else position


def _read_linked_value(text: str, start: int, mention: Mention, labels: Labels) -> Pair | None:
    """Return the value linked to a label: by a sign or, for a whole label, by a space before a percentage."""
    row = _ROW_COMMA.match(text, mention.end) if _ROW_START.search(text, max(0, start - 6), start) else None
    if row:
        value = _read_value_at(text, row.end(), colon_follows=labels.numeric)
        is_tied = value is not None and _ROW_END.match(text, value.end) is not None
    else:
        link = _LINK.match(text, mention.end)
        value = _read_value_at(text, link.end(), colon_follows=labels.numeric) if link else None
        is_tied = link is not None and bool(link["sep"])
        if value is not None and not is_tied:
            is_tied = mention.whole and (value.percent or bool(value.fault) or value.value < 0)
            if text[mention.end - 1] in ".,;:":  # the mark may as well end a sentence
                is_tied = is_tied and _ROW_END.match(text, value.end) is not None
    return Pair(mention.option, value.value, start, value.end, value.fault) if value and is_tied else None


def _find_value_first(text: str, labels: Labels) -> Iterator[Pair]:
    for match in take_recent(_VALUE_FIRST.finditer(text), len(labels.names)):
        mentions = labels.find_mentions(text, match.end())
        if mentions and mentions[0].whole and is_joinable(match[1]):
            value = parse_written_number(match[1], commas=True)
            yield Pair(mentions[0].option, value, match.start(), mentions[0].end, "")


def _find_enumerated(text: str, n: int, labels: Labels | None) -> tuple[list[Pair], list[Pair]]:
    """Return pairs by letter and pairs by number. A number before an unknown text counts only if no labels are known."""
    letters: list[Pair] = []
    numbers: list[Pair] = []
    position = 0
    for match in take_recent(_ENUMERATOR.finditer(text), n):
        if match.start() < position or not _is_at_boundary(text, match.start()):
            continue
        by_letter = match[1].isalpha()
        index = ord(match[1]) - ord("a") if by_letter else int(match[1]) - 1
        value = _read_enumerated_value(text, match.end(), text_allowed=by_letter or labels is None)
        if value is None or index >= n or (by_letter and index < 0):
            continue
        (letters if by_letter else numbers).append(Pair(index, value.value, match.start(), value.end, value.fault))
        position = value.end
    # Keys of a JSON object may begin with 0.
    shift = int(any(p.option == -1 for p in numbers))
    return letters, [p._replace(option=p.option + shift) for p in numbers if 0 <= p.option + shift < n]


def _read_enumerated_value(text: str, start: int, text_allowed: bool) -> _Value | None:
    link = _LINK.match(text, start)
    value = _read_value_at(text, link.end() if link else start)
    if value and (_NEXT_LETTER.match(text, value.end) or not re.match(r" ?(?:[^\W0-9]|[:=])", text[value.end : value.end + 2])):
        return value
    words = _ENUMERATED_TEXT.match(text, start)
    if not text_allowed or words is None:
        return None
    tie = _GENERIC.match(text, words.end())
    return _read_value_at(text, tie.end()) if tie else None


def _group_runs(text: str, pairs: Iterable[Pair], names: Sequence[str], form: str) -> Iterator[Candidate]:
    """Group pairs into candidates. A run ends if it names every option, or if a name is repeated after other text."""
    run: dict[int, Pair] = {}
    clash: list[int] = []
    end = 0
    for pair in pairs:
        earlier = run.get(pair.option)
        fresh = len(run) == len(names) or (earlier is not None and text.count("\n", end, pair.start) >= 2)
        if fresh:
            yield from _make_candidates(text, run, clash, names, form)
            run, clash, earlier = {}, [], None
        if earlier is not None and not (earlier.fault or pair.fault) and earlier.value != pair.value:
            clash.append(pair.option)
        run.setdefault(pair.option, pair)
        end = pair.end
    yield from _make_candidates(text, run, clash, names, form)


def _make_candidates(text: str, run: dict[int, Pair], clash: list[int], names: Sequence[str], form: str) -> Iterator[Candidate]:
    if len(run) < 2:
        return
    start = min(p.start for p in run.values())
    end = max(p.end for p in run.values())
    missing = [name for i, name in enumerate(names) if i not in run]
    if fault := next((p.fault for p in run.values() if p.fault), ""):
        yield Candidate(start, end, "unparseable", (), f"{form}: {fault}")
    elif clash:
        yield Candidate(start, end, "wrong_length", (), f"{form} gives {names[clash[0]]!r} two values")
    elif missing:
        yield Candidate(start, end, "wrong_length", (), f"{form} without {_list_first_few(missing)}")
    elif strangers := _find_strangers(text, start, end, run):
        yield Candidate(start, end, "wrong_length", (), f"{form} with {_list_first_few(strangers)}, which is not an option")
    else:
        yield make_candidate(start, end, [run[i].value for i in range(len(names))], len(names), form)


def _find_bare_rows(text: str, labels: Labels) -> Iterator[Candidate]:
    """Yield lines of a label and a number with only a blank (a tab) between them, all options once, adding up to a whole.

    The whole is required because such lines may also number the options. A line of that form that names no option invalidates the reading.
    """
    lines = text.split("\n")[-RECENT - 4 * len(labels.names) :]
    place = len(text) - sum(map(len, lines)) - len(lines) + 1
    rows: list[Pair] = []
    for line in [*lines, ""]:
        pair = _read_bare_row(line, place, labels) if line else None
        place += len(line) + 1
        if pair is not None:
            rows.append(pair)
        elif rows:
            yield from _combine_rows(rows, labels)
            rows = []


def _read_bare_row(line: str, place: int, labels: Labels) -> Pair | None:
    match = _BARE_ROW.fullmatch(line[:NEARBY])
    if match is None or not is_joinable(number_text := match["value"].split(" ")[-1].lstrip("~")):
        return None
    option = labels.match_exactly(match["label"])
    return Pair(-1 if option is None else option, parse_written_number(number_text, commas=True), place, place + len(line), "")


def _combine_rows(rows: Sequence[Pair], labels: Labels) -> Iterator[Candidate]:
    values = {row.option: row.value for row in rows}
    if len(rows) != len(labels.names) or sorted(values) != list(range(len(rows))):
        return
    shares = [values[option] for option in range(len(rows))]
    if is_near_whole(sum_in_order(shares)):
        yield make_candidate(rows[0].start, rows[-1].end, shares, len(rows), "labelled list")


def _list_first_few(names: Sequence[str]) -> str:
    return list_first_names([repr(name) for name in names], 3)


def _find_strangers(text: str, start: int, end: int, run: dict[int, Pair]) -> list[str]:
    """Return rows of the same form, between or after the pairs, that name no option: a distribution over other options."""
    first = text.rfind("\n", max(0, start - NEARBY), start) + 1
    rest_of_line, _, next_line = text[end : end + 2 * NEARBY].partition("\n")
    stop = end + len(rest_of_line) + 1 + len(next_line.partition("\n")[0])
    spans = [(p.start, p.end) for p in run.values()]
    return [
        row[1].strip()
        for row in _OTHER_ROW.finditer(text, first, stop)
        if _ANY_LETTER.search(row[1])
        and not _SUMMARY_ROW.search(row[1])
        and not any(s < row.end() and e > row.start() for s, e in spans)
    ]


def read_any_labels(text: str, n: int) -> Iterator[Candidate]:
    """Yield values after any labels, in written order, for unknown options."""
    values: list[float] = []
    start = end = place = 0
    for match in take_recent(_GENERIC.finditer(text), n):
        value = _read_value_at(text, match.end())
        if match.start() < place or value is None:
            continue
        label = text[max(place, match.start() - NEARBY) : match.start()].rpartition("\n")[2]
        if not _ANY_LETTER.search(label) or _SUMMARY_ROW.search(label):
            continue
        if values and (text.count("\n", end, match.start()) >= 2 or len(values) == n):
            yield make_candidate(start, end, values, n, "labelled list in written order")
            values = []
        start = start if values else match.start() - len(label)
        values.append(value.value)
        end = place = value.end
    if len(values) > 1:
        yield make_candidate(start, end, values, n, "labelled list in written order")
