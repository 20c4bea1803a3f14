"""A survey round as it was read: questions, segments, and what each segment answered, in percent.

Adapters make a `Survey`; `observe` turns it into the tables of the pipeline. Nothing here judges the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dtef_pipeline.survey.answer_scales.non_answers import Role

Level = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Question:
    """A question with its options in questionnaire order; `scale`, `battery`, `roles` and `positions` only where the survey states them.

    `roles` and `positions` on the scale are one per option, None where the survey states none; empty: it states none at all.

    `block`: the words by which the questionnaire introduces the list that the question is an item of; None: it stands in no list, or the
    source does not say.
    """

    id: str
    text: str
    options: tuple[str, ...]
    scale: str | None = None
    battery: str | None = None
    block: str | None = None
    roles: tuple[Role | None, ...] = ()
    positions: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class Segment:
    """A demographic group; `n` is its stated size, None where the survey states none, `n_effective` its stated effective size.

    `parts` are the (attribute, value) pairs that define it: one, or several for a group such as rural women.
    """

    key: str
    attribute: str
    value: str
    n: int | None
    parts: tuple[tuple[str, str], ...]
    n_effective: float | None = None


class Unreadable(str):
    """A cell that is no percentage, as it arrived: its pair is set aside, the rest of the survey goes on."""

    __slots__ = ()


@dataclass(frozen=True)
class Answer:
    """What one segment answered to one question: percentages in option order, None where a cell was blank, `Unreadable`
    where it held no number.

    `n` counts the respondents to this very question; None means that the survey does not say. `n_effective`: the size of the simple
    random sample that is worth as much (Kish 1965), where the survey states it.
    """

    segment: str
    question_id: str
    percentages: tuple[float | Unreadable | None, ...]
    n: int | None
    file: str
    line: int | None
    n_effective: float | None = None


@dataclass(frozen=True)
class Finding:
    """Something a person should know about how a survey was read, and the columns, questions or segments concerned."""

    level: Level
    code: str
    message: str
    items: tuple[str, ...] = ()


@dataclass(frozen=True)
class Survey:
    """One round, as an adapter read it. `requires_n`: its layout states n, so a pair without n has lost it and is set aside."""

    round: str
    name: str
    adapter: str
    path: str
    questions: tuple[Question, ...]
    segments: tuple[Segment, ...]
    answers: tuple[Answer, ...]
    findings: tuple[Finding, ...] = ()
    requires_n: bool = False
