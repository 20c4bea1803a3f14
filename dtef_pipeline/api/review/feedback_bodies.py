"""Bodies of votes in requests, and of scores and the log of actions in responses."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints

from dtef_pipeline.api.answer_schemas import AnswerBody, FamilyName, RowBody, describe_row
from dtef_pipeline.api.plans.plan import SnapshotName
from dtef_pipeline.documents import Part
from dtef_pipeline.preference.paired_source import OTHER_TOOLS
from dtef_pipeline.preference.score_columns import PREFERENCE_SCORES


class ActionRecord(AnswerBody):
    """An action of an administrator or operator."""

    place: int
    """Number, from 1."""
    user: str
    """Name of a token, or of a user on the server; empty: unknown."""
    done_at: datetime
    action: str
    """Such as pairs, void, import, export, reviewer, persona_version, scenario_status, cancel evaluation."""
    before: dict[str, Any]
    """State before the action."""
    after: dict[str, Any]
    """State after the action, or a description of the action."""


class ActionPage(AnswerBody):
    """Actions, earliest first."""

    actions: list[ActionRecord]
    next: int | None
    """Value of `after` for the next page; null: this is the last."""


class PlayerRow(RowBody):
    """Scores of a player from the votes of people, or of one judge, on the responses of a family."""

    model_config = describe_row(PREFERENCE_SCORES)


class PreferenceBoard(AnswerBody):
    """Rows of the preference board; empty until votes are rolled up."""

    scores: list[PlayerRow]
    votes_version: str
    """Version of all votes that count now; each row has the version of the votes that it was computed from."""
    note: str | None
    """Note that votes were added or voided after the rows were computed, or that there are no rows yet; null: neither."""


_Pattern = Annotated[str, StringConstraints(min_length=1, max_length=300)]
_Count = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]


def check_family(family: str) -> str:
    """For validators. Raises ValueError for an unknown family."""
    return _require_family(family, ())


def check_voted_family(family: str) -> str:
    """For validators of votes, which may also have the family of other tools' votes."""
    return _require_family(family, (OTHER_TOOLS,))


def _require_family(family: str, others: tuple[str, ...]) -> str:
    # Imported here because the families load slowly.
    from dtef_pipeline.families import FAMILIES

    names = (*(record.name for record in FAMILIES), *others)
    if family not in names:
        raise ValueError(f"got {repr(family)[:80]}; allowed: {', '.join(names)}")
    return family


class PairRequest(Part):
    """Selection of stored responses to pair, as in `dtef preference pairs`."""

    family: Annotated[FamilyName, AfterValidator(check_family)]
    pattern: Annotated[list[_Pattern], Field(max_length=100)] = []
    """Patterns of partitions; empty: all."""
    models: Annotated[list[_Pattern], Field(max_length=100)] = []
    """Names of models; empty: all."""
    snapshot: SnapshotName = "base"
    baselines: Annotated[bool, Field(strict=True)] = False
    max_pairs: _Count | None = None
    per_item: _Count | None = None
