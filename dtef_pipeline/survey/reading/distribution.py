"""The distribution in the text of a response.

The rules, in order:

1. Thinking (`<think>...</think>`) is not part of the answer, nor is anything in a JSON object beside its key `distribution`.
   Only the end of the rest is read (`LOOK_BACK` characters).
2. The text after the last marker (`DISTRIBUTION:`, `Final answer:`, ...) is read first, the whole text only if that fails.
   A `marked` response (reasoning, then a marked last line) is only read after its marker, first the line of the marker.
3. Arrays, values on a line or in a column, and values beside labels, letters or numbers of options are candidates.
   The last candidate that is a distribution over the expected number of options wins.
4. Without one: the last list of another length makes it `wrong_length`; else the last invalid distribution
   (negative, a range, all zero, not a number) makes it `unparseable`; else an apology makes it `refused`.

Percentages, fractions, counts and ratios are normalised to sum 1; the reason states a total more than three points from 100 %. If two
readings of the same words differ, the response is `unparseable` rather than guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dtef_pipeline.survey.reading.candidates import (
    Candidate,
    is_near_whole,
    read_any_labels,
    read_enumerated,
    read_labelled,
    read_unlabelled,
    sum_in_order,
)
from dtef_pipeline.text.json_values import extract_answer
from dtef_pipeline.text.labels import Labels
from dtef_pipeline.text.plain import LOOK_BACK, extract_answer_text, strip_thinking

_DISTRIBUTION_FOLLOWS = re.compile(
    r"(?<!\w)(?:(?:final|predicted|estimated)? ?(?:answer|distribution|prediction|estimate|output|result|response)s?|final)"
    r" ?(?:\([^()\n]{0,60}\) ?)?:"
)
_FINAL_LINE = re.compile(
    r"(?m)(?:^[^\w\n\[{]{0,8}|[.!?)] )(?:(?:my |the )?(?:final |predicted |estimated )*(?:answer|distribution)s?|final)"
    r" ?(?:\([^()\n]{0,60}\) ?)?: ?"
)
"""The mark of a last line: where a line or a sentence begins, so that `the population's distribution: ...` is none."""
_CLEAN_NUMBER = r"[ \t\r\n]*[0-9]{1,17}(?:\.[0-9]{1,20})?(?:e-?[0-9]{1,2})?[ \t\r\n]*"
_CLEAN_ARRAY = re.compile(rf"[ \t\r\n]*\[{_CLEAN_NUMBER}(?:,{_CLEAN_NUMBER})*\][ \t\r\n]*")
ONE_ARRAY = re.compile(r"(?:```)?(?:json)? ?\n?\[[^\[\]]*\]\.?")
_REFUSAL = re.compile(
    r"\b(?:sorry|apologi[sz]e|cannot|cant|can not|unable to|not able to|wont|will not|decline|as an ai|not comfortable"
    r"|not appropriate|inappropriate|not possible to)\b"
)


NO_DISTRIBUTION = "no distribution in the response"


@dataclass(frozen=True, slots=True)
class ParsedResponse:
    """The result of reading a response.

    `status` is ok | unparseable | wrong_length | refused | missing. `distribution` has fractions that sum to 1, in the survey's option
    order, only if ok. `reason` says how the response was read, or why it was not.
    """

    status: str
    distribution: tuple[float, ...] | None
    reason: str


def make_unparseable(reason: str) -> ParsedResponse:
    return ParsedResponse("unparseable", None, reason)


def read_distribution(text: str | None, n: int, labels: Labels | None, *, has_marker: bool = False) -> ParsedResponse:
    """Return the distribution over `n` options, in the order in which they are listed. Never raises on any text."""
    if text and (clean := _read_clean_array(text, n)):
        return clean
    plain = extract_answer_text(extract_answer(strip_thinking(text), "distribution", has_marker=has_marker)) if text else ""
    if not plain:
        return make_unparseable(explain_empty(text))
    best: Candidate | None = None
    regions = _iterate_marked_parts(plain) if has_marker else iterate_regions(plain, _DISTRIBUTION_FOLLOWS, has_marker=False)
    for part in regions:
        best = _choose_best(_find_all_candidates(part.lstrip(), n, labels))
        if best and best.status == "ok":
            total = sum_in_order(best.values)
            return ParsedResponse("ok", tuple(v / total for v in best.values), best.how + describe_total(total))
    if best:
        return ParsedResponse(best.status, None, best.how)
    if is_refusal(plain, labels, has_marker=has_marker):
        return ParsedResponse("refused", None, "an apology or a refusal without a distribution")
    return make_unparseable("no distribution after the reasoning" if has_marker else NO_DISTRIBUTION)


def _read_clean_array(text: str, n: int) -> ParsedResponse | None:
    """Return the distribution of a text that is only an array of `n` plain numbers, as most responses are, or None for another text."""
    if not _CLEAN_ARRAY.fullmatch(text):
        return None
    values = [float(value) for value in text.strip()[1:-1].split(",")]
    total = sum_in_order(values)
    if len(values) != n or total == 0:
        return None
    return ParsedResponse("ok", tuple(value / total for value in values), "array" + describe_total(total))


def explain_empty(text: str | None) -> str:
    return "empty response" if not text or text.isspace() else "no text outside the thinking"


def is_refusal(plain: str, labels: Labels | None, *, has_marker: bool = False) -> bool:
    """Return whether the words outside the options are an apology or a refusal.

    In a marked response only the beginning counts, because reasoning may contain `cannot` later.
    """
    plain = plain[:300] if has_marker else plain[-LOOK_BACK:]
    if not _REFUSAL.search(plain):
        return False
    return labels is None or bool(_REFUSAL.search(labels.remove_mentions(plain)))


def iterate_regions(
    text: str, marker: re.Pattern[str], *, has_marker: bool, is_answer: Callable[[str], object] = bool
) -> Iterator[str]:
    """Yield the text after the last marker, then the whole text if the answer needs no marker, or if it `is_answer` without one."""
    end = max((match.end() for match in marker.finditer(text)), default=0)
    if end:
        yield text[end:]
    if not has_marker or (not end and is_answer(text)):
        yield text


def _iterate_marked_parts(plain: str) -> Iterator[str]:
    """Yield the line of the last marker, then all text after it. Without a marker, yield a response that is only an array."""
    for part in iterate_regions(plain, _FINAL_LINE, has_marker=True, is_answer=ONE_ARRAY.fullmatch):
        line = part.partition("\n")[0]
        if line and line.count("[") == line.count("]"):
            yield line
        yield part.lstrip()


def _find_all_candidates(text: str, n: int, labels: Labels | None) -> list[Candidate]:
    """Return every reading of the text. A label takes precedence over the letter, number or place of its row."""
    plain_readings = list(read_unlabelled(text, n))
    if labels is None:
        return [*plain_readings, *read_enumerated(text, n, None), *read_any_labels(text, n)]
    label_readings = read_labelled(text, labels)
    named = [c for c in label_readings if c.status == "ok"][-2:]
    weaker = [_order_by_header(c, text, labels) for c in plain_readings] + read_enumerated(text, n, labels)
    return label_readings + [c for c in weaker if not any(c.start < last.end and c.end > last.start for last in named)]


def _order_by_header(candidate: Candidate, text: str, labels: Labels) -> Candidate:
    """Return a table's row of values in the order of its header. Other values beside options named in another order are not read."""
    if candidate.status != "ok" or candidate.how not in ("list of values", "array with remarks"):
        return candidate
    if candidate.how == "array with remarks":
        order = labels.order_in(text[candidate.start : candidate.end])
        if order and order != list(range(len(candidate.values))):
            return candidate._replace(status="unparseable", how="array with remarks that name the options in another order")
        return candidate
    before = text[max(0, candidate.start - 2000) : candidate.start]
    if "|" in text[candidate.start : candidate.end]:
        lines = before.split("\n")[-3:]
        order = labels.order_in("\n".join(line for line in lines if "|" in line))
        if sorted(order) == list(range(len(candidate.values))):
            values = tuple(candidate.values[order.index(i)] for i in range(len(order)))
            return candidate._replace(values=values, how="table row")
    else:
        line_after = text[candidate.end : candidate.end + 2000].partition("\n")[0]
        order = labels.order_in(before.rpartition("\n")[2] + " ; " + line_after)
    if order and order != sorted(order) and len(order) == len(candidate.values):
        return candidate._replace(status="unparseable", how="values with the options in another order")
    return candidate


def _choose_best(candidates: list[Candidate]) -> Candidate | None:
    """Return the last candidate of the best status, a list before a sentence, or None.

    It is unparseable if another reading of the same words differs.
    """
    for status in ("ok", "wrong_length", "unparseable"):
        matches = [c for c in candidates if c.status == status]
        pool = [c for c in matches if not c.prose] or matches
        if pool:
            last = max(pool, key=lambda c: (c.end, c.start))
            rival = next((c for c in matches if c.start < last.end and c.end > last.start and c.values != last.values), None)
            return last._replace(status="unparseable", how=f"two readings: {last.how}, {rival.how}") if rival else last
    return None


def describe_total(total: float) -> str:
    """Return a remark on a total that is not that of percentages or fractions."""
    return "" if is_near_whole(total, 3.0) else f"; raw total {total:.6g}"
