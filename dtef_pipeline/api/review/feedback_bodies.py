"""What votes look like when they are sent, and scores of votes and the log of actions in answers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints

from dtef_pipeline.api.answer_schemas import AnswerBody, FamilyName, RowBody, describe_row
from dtef_pipeline.api.plans.plan import validate_snapshot
from dtef_pipeline.documents import Part
from dtef_pipeline.preference.paired_csv import ELSEWHERE
from dtef_pipeline.preference.score_columns import PREFERENCE_SCORES


class NotedAction(AnswerBody):
    """Something that an administrator or operator did."""

    place: int
    """Counts from 1."""
    who: str
    """The name of a token, or of a user on the server; empty: not known."""
    done_at: datetime
    what: str
    """Such as pairs, void, import, export, reviewer, persona_version, scenario_status, cancel evaluation."""
    before: dict[str, Any]
    """What was there before."""
    after: dict[str, Any]
    """What was there afterwards, or what was done."""


class PageOfActions(AnswerBody):
    """Actions, the first first."""

    actions: list[NotedAction]
    next: int | None
    """What to give as `after` for those that follow; null: these are all."""


class PlayerRow(RowBody):
    """A player by the votes of people, or of one judge, on the responses of a family."""

    model_config = describe_row(PREFERENCE_SCORES, never_null=("family", "partition", "reviewer_kind", "player"))


class PreferenceBoard(AnswerBody):
    """The rows of the preference board; none before votes were rolled up."""

    scores: list[PlayerRow]
    votes_version: str
    """That of all votes that count now; each row has that of the votes which it was made of."""
    note: str | None
    """That votes have come, or were voided, since the rows were made, or that none were made of them yet; null: neither is so."""


_Pattern = Annotated[str, StringConstraints(min_length=1, max_length=300)]
_Count = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]


def check_family(family: str) -> str:
    """For validators. Raises ValueError for a name of none."""
    from dtef_pipeline.families import FAMILIES

    return _require_one_of([record.name for record in FAMILIES], family)


def check_voted_family(family: str) -> str:
    """Likewise, for votes: those of other tools have a family of their own."""
    from dtef_pipeline.families import FAMILIES

    return _require_one_of([*(record.name for record in FAMILIES), ELSEWHERE], family)


def _require_one_of(names: list[str], family: str) -> str:
    if family not in names:
        raise ValueError(f"got {repr(family)[:80]}; allowed: {', '.join(names)}")
    return family


class PairsWanted(Part):
    """Which stored responses are paired, as of `dtef preference pairs`."""

    family: Annotated[FamilyName, AfterValidator(check_family)]
    only: Annotated[list[_Pattern], Field(max_length=100)] = []
    """Patterns of partitions; none: all."""
    models: Annotated[list[_Pattern], Field(max_length=100)] = []
    """Names of models; none: all."""
    snapshot: Annotated[str, AfterValidator(validate_snapshot)] = "base"
    baselines: Annotated[bool, Field(strict=True)] = False
    most: _Count | None = None
    per_item: _Count | None = None
