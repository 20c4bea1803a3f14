"""Whether a question's list of options is an ordered scale, and which options are off it (don't know, prefer not to say).

Order matters to the earth mover's distance, so a list is only ordinal if every option on it is recognised and the options are in order,
rising or falling. Everything else is nominal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from dtef_pipeline.identity import normalize_text
from dtef_pipeline.survey.answer_scales.non_answers import Role, can_be_middle, find_word_of_degree, is_non_answer
from dtef_pipeline.survey.answer_scales.opposites import find_pole_family, is_between, remove_common_ends, remove_shared_words
from dtef_pipeline.survey.answer_scales.scale_families import find_scale_family, is_middle_of

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
    """Kind, reason, the options (k,) off the scale, and the positions of the others, or None for 1, 2, ..."""

    kind: Kind
    reason: str
    off: tuple[bool, ...]
    places: tuple[float, ...] | None = None

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
    kind, reason, mask, _ = verdict
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
        return _Verdict("nominal", "positions stated by the survey, all of them the same", mask)
    return _Verdict("ordinal", "positions stated by the survey", mask, places)


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
            return _Verdict(result.kind, result.reason, marks, result.places)
    return _judge_without_unconcerned(texts, mask, keep) or _Verdict("nominal", result.reason, mask)


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
            return _Verdict(result.kind, result.reason, marks, result.places)
    return None


class _WordVerdict(NamedTuple):
    """The verdict by the words of the options on the scale. `places` are their positions, or None for 1, 2, ..."""

    kind: Kind
    reason: str
    places: tuple[float, ...] | None = None


def _judge(texts: list[str]) -> _WordVerdict:
    if len(texts) < 2:
        return _WordVerdict("nominal", "fewer than two options on a scale")
    heads = [_extract_head(t) for t in texts]
    if len(set(heads)) < len(heads):  # `Yes - some difficulty`, `Leave - favor strongly`
        heads = [_extract_head(re.sub(r"\s?[–—-]\s", " ", re.sub(r"^(?:yes|no)\s[–—-]\s", "", t))) for t in texts]
    if set(heads) <= {"yes", "no"}:
        return _WordVerdict("nominal", "yes or no: nothing between")
    name = find_scale_family(heads)
    if name:
        return _WordVerdict("ordinal", f"{name}, in order")
    return _judge_middle_last(heads) or _WordVerdict("nominal", "no known scale in order")


def _judge_middle_last(heads: Sequence[str]) -> _WordVerdict | None:
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
    return _WordVerdict("ordinal", f"{name}, the middle listed last", places) if name else None


def _extract_head(text: str) -> str:
    """Return the part of an option that determines its place: before a dash, a colon, a bracket or `than one year ago`."""
    head = re.split(
        r"\s[–—-]\s|\s?[(:]|\be\.g\.|(?<!more)(?<!less)(?<!longer) (?:now )?(?:than|as(?! \w+ as\b)) .*(?:ago|before)\Z",
        text,
        maxsplit=1,
    )[0]
    return head.strip(" .,;!\"'“”")


_TIMES_COUNTED = ("numbers", "frequency", "share of time")
