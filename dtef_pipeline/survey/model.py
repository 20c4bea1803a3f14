"""A survey round after reading: questions, segments, and the answers of each segment, in percent.

Adapters return a `Survey`; `observe` turns it into the tables of the pipeline. This module does not check the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dtef_pipeline.survey.answer_scales.non_answers import Role

Level = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Question:
    """A question with its options in questionnaire order; `scale`, `battery`, `roles` and `positions` only if the survey states them.

    `roles` and `positions` on the scale have one value per option, None if not stated; they are empty if none is stated. `block` is the
    questionnaire's introduction of the question's list, or None without a known list.
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
    """A demographic group. `n` and `n_effective` are its stated size and effective size, or None.

    `parts` are the (attribute, value) pairs that define it: one, or several for a group such as rural women.
    """

    key: str
    attribute: str
    value: str
    n: int | None
    parts: tuple[tuple[str, str], ...]
    n_effective: float | None = None


class Unreadable(str):
    """A cell that is not a percentage, as in the file. Its pair goes into quarantine; the rest of the survey is used."""

    __slots__ = ()


@dataclass(frozen=True)
class Answer:
    """The answer of a segment to a question: percentages in option order, None for a blank cell, `Unreadable` for a cell that is not a
    number.

    `n` is the number of respondents to this question, or None if not stated. `n_effective` is the stated size of a simple random sample
    with the same precision (Kish 1965), or None.
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
    """A message about the reading of a survey, and the affected columns, questions or segments."""

    level: Level
    code: str
    message: str
    items: tuple[str, ...] = ()


@dataclass(frozen=True)
class Survey:
    """One round, as read by an adapter. If its layout states n (`requires_n`), a pair without n goes into quarantine."""

    round: str
    name: str
    adapter: str
    path: str
    questions: tuple[Question, ...]
    segments: tuple[Segment, ...]
    answers: tuple[Answer, ...]
    findings: tuple[Finding, ...] = ()
    requires_n: bool = False
