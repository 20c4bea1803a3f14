"""The curation file, which corrects the rule of batteries: which questions were asked as one block, and why. A YAML file:

batteries:
  - {round: GD4, question_id: 51d0..., battery: work, reason: three questions on one's own job, asked one after the other}
  - {round: GD4, question_id: 77aa..., battery: work, reason: the same}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from dtef_pipeline.documents import Document, Part, read_document
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.model import Finding, Survey
from dtef_pipeline.survey.validation import named_round
from dtef_pipeline.text.beginning import beginning
from dtef_pipeline.text.counted import counted
from dtef_pipeline.text.nearest import nearest

_QUESTIONS_NAMED, _MOST_OF_TEXT = 4, 60
"""Questions that are named instead of one that is not there, and characters of their texts."""


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("is blank; allowed: text")
    return text.strip()


def _round(text: str) -> str:
    if not (name := named_round(text)):
        raise ValueError(f"{text!r} makes no round id; allowed: a name such as GD4")
    return name


_Text = Annotated[str, AfterValidator(_not_blank)]


class Correction(Part):
    """Where one question of one round belongs, and why."""

    round: Annotated[str, AfterValidator(_round)]
    question_id: _Text
    battery: _Text
    reason: _Text


class _File(Part):
    batteries: list[Correction] = Field(default_factory=list)


@dataclass(frozen=True)
class Curation:
    """The corrections of a file; without one there are none."""

    document: Document | None = None
    rows: tuple[Correction, ...] = ()

    def applied(self, survey: Survey) -> Survey:
        """The survey with its corrected questions in the batteries of the file, and a finding that names them with the reasons.

        Questions of one battery name are one battery, over rounds too; one with a name of its own is alone.
        Raises ConfigError, with file and line, for a question that the round does not have.
        """
        own = {row.question_id: row for row in self.rows if row.round == survey.round}
        if unknown := self.unknown_questions({survey.round: {q.id: q.text for q in survey.questions}}):
            raise ConfigError("; ".join(unknown))
        if not own:
            return survey
        questions = tuple(replace(q, battery=own[q.id].battery, curated=True) if q.id in own else q for q in survey.questions)
        return replace(survey, questions=questions, findings=(*survey.findings, _finding(survey, own)))

    def unknown_questions(self, asked: Mapping[str, Mapping[str, str]]) -> list[str]:
        """The rows whose question its round does not ask, a line each, with file and line, and the questions whose ids are most alike.

        `asked`: by round, the texts of its questions by their ids.
        """
        return [
            self._told(
                number,
                "question_id",
                f"got {row.question_id!r}, which round {row.round} does not ask",
                nearest(row.question_id, known, _QUESTIONS_NAMED, partial(_told, known)),
            )
            for number, row in enumerate(self.rows)
            if (known := asked.get(row.round)) is not None and row.question_id not in known
        ]

    def unknown_rounds(self, rounds: Collection[str]) -> list[str]:
        """The rounds that rows name and that are not among `rounds`, those ingested: a line each, with file and line of the first row."""
        lines = []
        for name, count in Counter(row.round for row in self.rows if row.round not in rounds).items():
            first = next(number for number, row in enumerate(self.rows) if row.round == name)
            problem = f"got {name!r}, which is not ingested: nothing to correct by {counted(count, 'row')}"
            lines.append(self._told(first, "round", problem, nearest(name, rounds)))
        return lines

    def _told(self, number: int, key: str, problem: str, allowed: str) -> str:
        message = f"{problem}; allowed: {allowed}"
        return str(self.document.error(("batteries", number, key), message)) if self.document else message


def _told(texts: Mapping[str, str], question_id: str) -> str:
    """A question by its id and the beginning of its text, where that is known."""
    text = texts[question_id]
    return f'{question_id} ("{beginning(text, _MOST_OF_TEXT)}")' if text else question_id


def _finding(survey: Survey, own: Mapping[str, Correction]) -> Finding:
    items = tuple(f"{q.text}: {own[q.id].battery} ({own[q.id].reason})" for q in survey.questions if q.id in own)
    return Finding(
        "info", "curated-battery", "The curation file says in which battery these questions were asked, and why.", items
    )


def load_curation(path: Path) -> Curation:
    """Read a curation file. Raises ConfigError with the file, the line, the row, what arrived and what is allowed."""
    document = read_document(path, "curation file", _File.model_fields, {"batteries": "row"})
    rows = document.checked(_File).batteries
    first: dict[tuple[str, str], int] = {}
    for number, row in enumerate(rows):
        before = first.setdefault((row.round, row.question_id), number)
        if before != number:
            of_first = f"question {row.question_id} of round {row.round} stands in row {before + 1} already"
            problem = f"{of_first} (battery {rows[before].battery}); allowed: one row per question"
            raise document.error(("batteries", number, "question_id"), problem)
    return Curation(document, tuple(rows))
