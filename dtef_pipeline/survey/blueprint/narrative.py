"""Rule-based sentences on how a group answered a question, and how it differs from all respondents.

Words depend on the percentages as written, with one decimal, so that no sentence contradicts its figures. docs/explanation/prompts.md lists
the rules and the thresholds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from dtef_pipeline.survey.blueprint.wording import GROUP, People, join_words

_NOTABLE = 20
"""Tenths of a percentage point from which the difference of an option is mentioned."""

_DEGREES = ((200, "far "), (100, "much "), (50, ""), (_NOTABLE, "slightly "))
_MAJORITIES = ((900, "Almost all"), (667, "A large majority"), (501, "A majority"), (500, "Half"))


class _Share(NamedTuple):
    """The shares of an option in the group and among all respondents, in tenths of a percent as written."""

    option: str
    group: int
    everyone: int
    nobody: bool
    """Exactly no one of the group, not only 0.0 % as written."""


def write_narrative(
    options: Sequence[str], observed: Sequence[float], population: Sequence[float] | None, people: People = GROUP
) -> str:
    """Return a paragraph on one question. Differences from all respondents are omitted if `population` is None.

    `observed` and `population` are fractions that sum to 1, in the order of the options. `people` names the respondents.
    """
    shares = [
        _Share(f"“{option}”", _round_to_tenths(share), _round_to_tenths(everyone), share == 0)
        for option, share, everyone in zip(options, observed, population or observed, strict=True)
    ]
    sentences = [*_iterate_level_sentences(shares, people), *(_iterate_difference_sentences(shares) if population else ())]
    return " ".join(sentences)


def _round_to_tenths(share: float) -> int:
    return round(10 * float(f"{100 * share:.1f}"))


def _format_tenths(tenths: int) -> str:
    return f"{tenths / 10:.1f}%"


def _iterate_level_sentences(shares: Sequence[_Share], people: People) -> Iterator[str]:
    """Yield sentences on the chosen options, most common first."""
    choices = sorted((s for s in shares if not s.nobody), key=lambda s: -s.group)
    ranks = [list(ties) for _, ties in groupby(choices, key=lambda s: s.group)]
    first, later = ranks[0], ranks[1:]
    yield _write_first_sentence(first, people, single=len(choices) == 1, only=len(first) == len(shares), all_chosen=not later)
    if later:
        *earlier, last = map(_format_tied, later)
        yield f"Next came {', '.join(earlier)}, then {last}." if earlier else f"Next came {last}."
    empty_options = [s.option for s in shares if s.nobody]
    if empty_options and len(choices) > 1:
        yield f"Nobody chose {join_words(empty_options, 'or')}."


def _write_first_sentence(first: Sequence[_Share], people: People, *, single: bool, only: bool, all_chosen: bool) -> str:
    names, share = join_words([s.option for s in first]), first[0].group
    if single:
        return f"{people.everyone} chose {names}."
    if only:
        return f"{people.were} evenly spread over the options: {_format_tenths(share)} chose each of {names}."
    if all_chosen:
        return f"{people.were} evenly divided between {names}, with {_format_tenths(share)} each."
    if len(first) > 1:
        return f"The most common answers of {people.name} were {names}, with {_format_tenths(share)} each."
    for threshold, words in _MAJORITIES:
        if share >= threshold:
            return f"{words} of {people.name} ({_format_tenths(share)}) chose {names}."
    return f"The most common answer of {people.name} was {names} ({_format_tenths(share)})."


def _format_tied(ties: Sequence[_Share]) -> str:
    """Return options of one share: `“B” (20.0%)`, or `“B” and “C” (20.0% each)`."""
    suffix = " each" if len(ties) > 1 else ""
    return f"{join_words([s.option for s in ties])} ({_format_tenths(ties[0].group)}{suffix})"


def _iterate_difference_sentences(shares: Sequence[_Share]) -> Iterator[str]:
    """Yield sentences on how the group differs from all respondents, the largest differences first."""
    by_size = sorted(shares, key=lambda s: -abs(s.group - s.everyone))
    largest = abs(by_size[0].group - by_size[0].everyone)
    notable = [s for s in by_size if abs(s.group - s.everyone) >= _NOTABLE]
    if largest == 0:
        yield "All respondents together answered the same way."
    elif not notable:
        yield f"All respondents together answered almost the same way: no option differs by more than {_format_points(largest)}."
    else:
        yield f"Compared with all respondents, this group chose {join_words([_format_difference(s) for s in notable])}."
        n_others = len(shares) - len(notable)
        if n_others:
            subject = "The other options differ" if n_others > 1 else "The other option differs"
            yield f"{subject} by less than {_format_points(_NOTABLE)}."


def _format_points(tenths: int) -> str:
    return f"{tenths / 10:g} percentage point{'' if tenths == 10 else 's'}"


def _format_difference(share: _Share) -> str:
    gap = share.group - share.everyone
    figures = f"({_format_tenths(share.group)} against {_format_tenths(share.everyone)})"
    if share.nobody:
        return f"{share.option} not at all {figures}"
    degree = next(word for threshold, word in _DEGREES if abs(gap) >= threshold)
    return f"{share.option} {degree}{'more' if gap > 0 else 'less'} often {figures}"
