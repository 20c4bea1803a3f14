"""A corpus of transcripts: who said what, turn by turn, and what is known of each interview."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from dtef_pipeline.qa.model import ItemError

METADATA_FIELDS = ("PROJECT", "YEAR", "MONTH", "NAME", "COUNTRY", "GEOGRAPHY", "FILE", "TYPE", "RECORD LANG")
"""What is known of an interview. YEAR is a whole number, all else is text; FILE tells interviews apart."""
YEAR_FIELD, FILE_FIELD = "YEAR", "FILE"
BETWEEN_TURNS = "\n\n"
"""Stands between two turns of a transcript."""

MetadataValue = str | int | None


@dataclass(frozen=True, slots=True)
class SpokenTurn:
    """What one person said until another one spoke."""

    number: int
    """From 0 in each interview, as quotations name it."""
    text: str
    speaker: str | None = None
    """None: the text is a whole document, in which speakers stand as they stand."""
    role: str | None = None
    """`interviewer` or `interviewee`; None: not said."""

    @property
    def spoken(self) -> str:
        """The turn as a transcript shows it: `Speaker: text`."""
        return self.text if self.speaker is None else f"{self.speaker}: {self.text}"


@dataclass(frozen=True)
class Transcript:
    """One interview, or one document of a file of documents."""

    file: str
    turns: tuple[SpokenTurn, ...]
    metadata: Mapping[str, MetadataValue] = field(default_factory=lambda: MappingProxyType({}))
    """Keys are METADATA_FIELDS; None or absent: not said."""

    @cached_property
    def text(self) -> str:
        """All turns, one after the other."""
        return BETWEEN_TURNS.join(turn.spoken for turn in self.turns)


@dataclass(frozen=True)
class Corpus:
    """The transcripts that could be read, and what was wrong with the rest."""

    transcripts: tuple[Transcript, ...]
    quarantined: tuple[ItemError, ...] = ()
    """What was left out, and why: each names file, line, what was found and what is allowed."""
    ignored_fields: tuple[str, ...] = ()
    """Names of metadata that are none of METADATA_FIELDS, and so are not kept."""

    @cached_property
    def turns(self) -> Mapping[tuple[str, int], SpokenTurn]:
        """The turns by file and number."""
        return {(one.file, turn.number): turn for one in self.transcripts for turn in one.turns}

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """The whole text of each file."""
        parts: dict[str, list[str]] = {}
        for one in self.transcripts:
            parts.setdefault(one.file, []).append(one.text)
        return {file: BETWEEN_TURNS.join(texts) for file, texts in parts.items()}

    def turn_text(self, file: str, turn: int | None) -> str | None:
        """The text of a turn; of the whole file where no turn is asked for, or the file is a document in which none are marked.

        None: there is no such file, or no such turn in it.
        """
        first = self.turns.get((file, 0))
        if turn is None or (first is not None and first.speaker is None):
            return self.texts.get(file)
        found = self.turns.get((file, turn))
        return None if found is None else found.text
