"""Records of the qa family: items, responses and scores."""

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
"""Reasons for a missing score that are not the fault of the response."""
CITES_NOTHING = "the response cites nothing"
"""Reason for a missing citation score: the response has no quotations. It counts neither as a failure nor as a wrong answer."""
QA_STATUSES = (OK_STATUS, UNPARSEABLE_STATUS, *NULL_STATUSES)


class ItemError(SourceError):
    """A row of an item file, or a metric in it, is unusable; the message has the value and allowed values."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A quotation from a document that supports an answer."""

    text: str
    """Exactly as in the document."""
    file: str
    turn: int | None = None
    """Number of its turn; None: unknown."""


@dataclass(frozen=True, slots=True)
class QaItem:
    """One question with its expected answer."""

    item_id: str
    """Unique within its suite: `college_physics/17`, `HumanEval/4`."""
    suite: str
    part: str
    type: str
    """Type of the question, which selects the scorer: `choice`, `number`, `code`, or a type of Socioscope such as `ListOne`."""
    text: str
    options: tuple[str, ...] = ()
    """Texts to choose from, in order; empty: the answer is free text."""
    reference: str = ""
    """Expected answer in the scorer's format: a letter, a number, a metric in JSON, or the tests of a program in JSON."""
    cluster: str = ""
    """Cluster of dependent items: the subject, the transcript, or the item itself."""
    source_line: int | None = None
    """First line of the row in the file, from 1; None: the file has no lines."""
    flags: tuple[str, ...] = ()
    """Flags set when the item was read: `equal_options`, ..."""
    quotes: tuple[Quote, ...] = ()
    """Evidence that the file gives."""
    solution: str = ""
    """Worked answer from the file, shown in examples and to judges; empty: none."""


@dataclass(frozen=True, slots=True)
class WrittenResponse:
    """A model's response, as scorers receive it."""

    text: str | None
    finish_reason: str | None = None
    """The provider's finish reason: `stop`, or `length` if the text was cut off."""

    @property
    def is_truncated(self) -> bool:
        """Whether the token limit cut off the text."""
        return self.finish_reason == "length"


@dataclass(frozen=True, slots=True)
class ItemScore:
    """A scorer's result for one reply."""

    status: str
    """One of QA_STATUSES."""
    value: float | None = None
    """0-1, higher is better; None unless the status is `ok`."""
    read_by: str | None = None
    """Rule that read the reply: `statement`, `line`, `option_text`, `boxed`, ...; None: no rule could."""
    flags: tuple[str, ...] = ()
    """Flags: `multi`, `ambiguous`, `several`, `truncated`, ..."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further output of the scorer, as JSON values: `letter`, `number`, `raw`, `binary`, `rationale`, ..."""
    reason: str | None = None
    """Why there is no value, in words; None: there is a value, or the status says enough."""

    @property
    def score(self) -> float | None:
        """The published value: an unreadable reply counts 0; a reply that is not at fault has no score."""
        return 0.0 if self.status == UNPARSEABLE_STATUS else self.value


@dataclass(frozen=True, slots=True)
class ScorerSettings:
    """Settings of the scorers for Socioscope's types; other scorers have no settings."""

    strict: bool = False
    """Whether a response with several different values scores 0 if one is expected."""
    penalty: float = 0.0
    """Deduction for each listed item that is not expected, 0-1."""
    wordnet_senses: str = "first"
    """Senses of a word whose synonyms count: `first` or `all`."""
    synonyms: Mapping[str, Sequence[str]] | None = None
    """The lexicon: for each word its synonyms; None: the shipped lexicon."""


ScoreResponse = Callable[[WrittenResponse], ItemScore]
"""Scores one reply to the item that it was prepared for."""


class Scorer(Protocol):
    """A scorer of replies to items of a type. Pure: no clock, network, process."""

    name: str
    """`exact_choice`, `numeric`, `yes_no`, ..."""
    version: int
    """Version of the scorer, stored with every score; increased whenever a reply could get another score."""

    def prepare_item(self, reference: str, options: Sequence[str], settings: ScorerSettings) -> ScoreResponse:
        """Return a function that scores replies to one item; the reference is parsed only once. Raises ItemError for an unusable
        reference."""
