"""Every error a user can meet, one tree:

DtefError
├── SourceError      a file of truths or tasks cannot be read: where, what arrived, what is allowed
│   └── SurveyError  the same, of a survey: the name that adapters raise
├── ConfigError      a model, collection, option or run setting is not usable
├── WarehouseError   a table or partition that a stage needs is not there, or is not readable
│   ├── UnreadableFile  a file of a table cannot be read: which, why, and the command that makes it again
│   └── StoreError   the response store, or a file of stored responses, cannot be read or written
│       └── NewerSchema  newer code wrote its tables
├── NameLeak         a text that must name no model still names one, so that it is not sent
├── BallotError      a vote cannot be taken as it is: which field, what arrived, what is allowed
│   ├── UnknownPair  it is on a pair that is not there
│   ├── DuplicateVote  the reviewer has voted on the pair already; the first vote stays
│   ├── UnknownVote  there is no vote of that id
│   └── VoidedAlready  the vote counts no more already
├── UnknownEvaluation    there is no evaluation, or run of one, of that id
├── IdempotencyConflict  a key stands for another manifest already
├── GatewayError     language models cannot be asked at all (before the first call)
│   └── UnpricedModels  a limit in dollars cannot be kept of models without a price
└── Interrupted      the user stopped a run; the responses so far are kept
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

FileFault = Literal["damaged", "other columns", "refused"]


class DtefError(Exception):
    """Something the user can mend; the message alone is enough to do so."""


class ConfigError(DtefError):
    """A model, collection, option or run setting is not usable."""


class WarehouseError(DtefError):
    """A table or partition that a stage needs is not there or is not readable."""


class UnreadableFile(WarehouseError):
    """A file of a table cannot be read.

    `kind`: it is damaged, has other columns than the table, or the system refuses to read it. `remade_by`: the command that makes it again.
    """

    def __init__(self, path: str, reason: str, kind: FileFault = "damaged", remade_by: str = "") -> None:
        self.path, self.reason, self.kind, self.remade_by = path, reason, kind, remade_by
        super().__init__(f"cannot read {path}: {reason}" + (f"; this makes it again: {remade_by}" if remade_by else ""))


class StoreError(WarehouseError):
    """The response store, or a file of stored responses, cannot be read or written."""


class NewerSchema(StoreError):
    """Newer code wrote the tables."""


class BallotError(DtefError):
    """A vote cannot be taken as it is.

    `faults`: (field, what arrived there and what is allowed) of each field at fault; empty where no field is.
    """

    def __init__(self, message: str, faults: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.faults = faults


class UnknownPair(BallotError):
    """A vote is on a pair that is not there."""


class DuplicateVote(BallotError):
    """The reviewer has voted on the pair already; the first vote stays."""


class UnknownVote(BallotError):
    """There is no vote of that id."""


class VoidedAlready(BallotError):
    """The vote counts no more already."""


class UnknownEvaluation(DtefError):
    """There is no evaluation, or run of one, of that id."""


class EvaluationEnded(DtefError):
    """An evaluation that has ended cannot be cancelled."""


class IdempotencyConflict(DtefError):
    """A key that says which requests are the same stands for another one already."""


class GatewayError(DtefError):
    """Language models cannot be asked at all: a missing key, a missing package."""


class UnpricedModels(GatewayError):
    """A limit in dollars cannot be kept: the prices of models (`names`) are not known."""

    def __init__(self, message: str, names: Sequence[str]) -> None:
        super().__init__(message)
        self.names = names


class NameLeak(DtefError):
    """A text that must name no model, maker or provider still names one."""


class Interrupted(DtefError):
    """The user stopped a run. What was answered is kept."""


class SourceError(DtefError):
    """A fault of a whole source, such as a file that people's answers are read from: nothing of it is used.

    `where` is a file (with `line`, 1-based, when one is to blame), `arrived` what was found there, `allowed` what would have
    been accepted. The message reads `file:line: problem; got ...; allowed: ...`.
    """

    def __init__(
        self,
        problem: str,
        *,
        where: str,
        line: int | None = None,
        arrived: object = None,
        allowed: Iterable[object] | str | None = None,
    ) -> None:
        self.problem, self.where, self.line, self.arrived = problem, where, line, arrived
        self.allowed = allowed if allowed is None or isinstance(allowed, str) else ", ".join(str(a) for a in allowed)
        place = f"{where}:{line}" if line is not None else where
        message = f"{place}: {problem}"
        if arrived is not None:
            message += f"; got {arrived!r}"
        if self.allowed is not None:
            message += f"; allowed: {self.allowed}"
        super().__init__(message)


class SurveyError(SourceError):
    """A survey-level fault: nothing of the survey is used."""
