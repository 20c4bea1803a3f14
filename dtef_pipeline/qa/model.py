"""What the qa family speaks of: an item, a response to it, and what a scorer makes of the two."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dtef_pipeline.errors import SourceError

OK_STATUS, UNPARSEABLE_STATUS = "ok", "unparseable"
NULL_STATUSES = (
    "error",
    "refused",
    "missing",
    "budget",
    "unscorable",
    "no_scorer",
    "judge_failed",
    "skipped_budget",
    "skipped_sample",
    "sandbox_unavailable",
    "sandbox_error",
)
"""Why a response has no score: what these say is no fault of the response."""
CITES_NOTHING = "the response cites nothing"
"""Why a response has no score where quotations are looked up: it has none. No failure, and no fault."""
QA_STATUSES = (OK_STATUS, UNPARSEABLE_STATUS, *NULL_STATUSES)


class ItemError(SourceError):
    """A row of an item file, or a metric in it, is not usable: what arrived, and what is allowed."""


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of a document that an answer rests on."""

    text: str
    """As it stands in the document, character by character."""
    file: str
    turn: int | None = None
    """Number of the turn in which it stands; None: not said."""


@dataclass(frozen=True, slots=True)
class QaItem:
    """One question with what is expected of an answer to it."""

    item_id: str
    """Unique within its suite: `college_physics/17`, `HumanEval/4`."""
    suite: str
    part: str
    type: str
    """What the question asks for, which says who scores it: `choice`, `number`, `code`, or a type of Socioscope such as `ListOne`."""
    text: str
    options: tuple[str, ...] = ()
    """The texts to choose from, in order; none: the answer is free."""
    reference: str = ""
    """What is expected, as the scorer reads it: a letter, a number, a metric in JSON, or the tests of a program in JSON."""
    cluster: str = ""
    """What items hang together by: the subject, the transcript, or the item itself."""
    source_line: int | None = None
    """Line of the file, from 1, in which the row begins; None: the file has none."""
    flags: tuple[str, ...] = ()
    """What was noticed on reading it: `equal_options`, ..."""
    quotes: tuple[Quote, ...] = ()
    """The evidence that the file names."""
    solution: str = ""
    """The working that leads to what is expected, where the file gives it: shown in examples, and to judges."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a model wrote, as scorers are given it."""

    text: str | None
    finish_reason: str | None = None
    """The provider's word for the end of the text: `stop`, or `length` where it was cut."""

    @property
    def was_cut(self) -> bool:
        """Whether a limit of tokens ended the text."""
        return self.finish_reason == "length"


@dataclass(frozen=True, slots=True)
class ItemScore:
    """What a scorer makes of one reply."""

    status: str
    """One of QA_STATUSES."""
    value: float | None = None
    """0-1: higher is better. None unless the status is `ok`."""
    how: str | None = None
    """The rule that read the reply: `statement`, `line`, `option_text`, `boxed`, ...; None: none did."""
    flags: tuple[str, ...] = ()
    """What was noticed: `multi`, `ambiguous`, `several`, `truncated`, ..."""
    own: Mapping[str, Any] = field(default_factory=dict)
    """What this scorer tells beside it: `letter`, `number`, `raw`, `binary`, `rationale`, ..., as JSON can hold it."""
    reason: str | None = None
    """Why there is no value, in words; None: there is one, or the status says it all."""

    @property
    def score(self) -> float | None:
        """The value as it is published: a reply that cannot be read counts 0, one that is not at fault has none."""
        return 0.0 if self.status == UNPARSEABLE_STATUS else self.value


@dataclass(frozen=True, slots=True)
class ScorerSettings:
    """How the scorers of Socioscope's types are set; the others have nothing to set."""

    strict: bool = False
    """Whether several different values in place of one count 0."""
    penalty: float = 0.0
    """Taken off for each item of a list that is no expected value, 0-1."""
    senses: str = "first"
    """`first` or `all`: the senses of a word whose synonyms count."""
    synonyms: Mapping[str, Sequence[str]] | None = None
    """The lexicon: a word, and the words that count as it; None: the one that is shipped."""


ScoreWritten = Callable[[Written], ItemScore]
"""Scores one reply to the item it was made for."""


class Scorer(Protocol):
    """Scores replies to items of a type. Pure: no clock, no network, no process."""

    name: str
    """`exact_choice`, `numeric`, `yes_no`, ..."""
    version: int
    """Raised whenever a reply could get another score; it stands in every score."""

    def prepare_item(self, reference: str, options: Sequence[str], settings: ScorerSettings) -> ScoreWritten:
        """Reads the reference once, and scores replies by it. Raises ItemError for a reference that is not usable."""
