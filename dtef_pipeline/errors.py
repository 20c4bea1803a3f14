"""Every error that a user can meet, in one tree:

DtefError
├── SourceError      a file of observations or items cannot be read: where, the value, what is allowed
│   └── SurveyError  the same for a survey: the error that adapters raise
├── ConfigError      a model, collection, option or run setting is not usable
├── WarehouseError   a table or partition that a stage needs does not exist or cannot be read
│   ├── UnreadableFile  a table file cannot be read: which, why, and the command that rebuilds it
│   └── StoreError   the response store, or a file of stored responses, cannot be read or written
│       └── NewerSchema  newer code wrote its tables
├── NameLeak         a text that must not name a model still does, so it is not sent
├── BallotError      a vote cannot be accepted: which field, the value, what is allowed
│   ├── UnknownPair  the pair does not exist
│   ├── DuplicateVote  the reviewer has already voted on the pair; the first vote stays
│   ├── UnknownVote  no vote has that id
│   └── VoidedAlready  the vote is void already
├── UnknownEvaluation    no evaluation, or run of one, has that id
├── IdempotencyConflict  the key belongs to another manifest
├── GatewayError     models cannot be called at all (before the first call)
│   └── UnpricedModels  a limit in dollars cannot hold, because models have no price
└── Interrupted      the user stopped a run; the responses so far are stored
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

FileFault = Literal["damaged", "other columns", "refused"]


class DtefError(Exception):
    """An error that the user can fix; the message says how."""


class ConfigError(DtefError):
    """A model, collection, option or run setting is not usable."""


class WarehouseError(DtefError):
    """A table or partition that a stage needs does not exist or cannot be read."""


class UnreadableFile(WarehouseError):
    """A table file cannot be read.

    `kind`: it is damaged, has other columns than the table, or the system refuses access. `remade_by`: the command that rebuilds it.
    """

    def __init__(self, path: str, reason: str, kind: FileFault = "damaged", remade_by: str = "") -> None:
        self.path, self.reason, self.kind, self.remade_by = path, reason, kind, remade_by
        super().__init__(f"cannot read {path}: {reason}" + (f"; this makes it again: {remade_by}" if remade_by else ""))


class StoreError(WarehouseError):
    """The response store, or a file of stored responses, cannot be read or written."""


class NewerSchema(StoreError):
    """Newer code wrote the tables."""


class BallotError(DtefError):
    """A vote cannot be accepted.

    `faults`: (field, the value and what is allowed) per faulty field; empty if no single field is at fault.
    """

    def __init__(self, message: str, faults: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(message)
        self.faults = faults


class UnknownPair(BallotError):
    """The pair of a vote does not exist."""


class DuplicateVote(BallotError):
    """The reviewer has already voted on the pair; the first vote stays."""


class UnknownVote(BallotError):
    """No vote has that id."""


class VoidedAlready(BallotError):
    """The vote is void already."""


class UnknownEvaluation(DtefError):
    """No evaluation, or run of one, has that id."""


class EvaluationEnded(DtefError):
    """An evaluation that has ended cannot be cancelled."""


class IdempotencyConflict(DtefError):
    """The idempotency key belongs to another request."""


class GatewayError(DtefError):
    """Models cannot be called at all, because a key or a package is missing."""


class UnpricedModels(GatewayError):
    """A limit in dollars cannot hold, because the prices of the models `names` are unknown."""

    def __init__(self, message: str, names: Sequence[str]) -> None:
        super().__init__(message)
        self.names = names


class NameLeak(DtefError):
    """A text that must not name a model, maker or provider still does."""


class Interrupted(DtefError):
    """The user stopped a run. The responses so far are stored."""


class SourceError(DtefError):
    """A whole source, such as a file of observed answers, cannot be used.

    `where` is a file (with a 1-based `line` if one is at fault), `arrived` the value found there, `allowed` what would be
    accepted. The message reads `file:line: problem; got ...; allowed: ...`.
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
    """A whole survey cannot be used."""
