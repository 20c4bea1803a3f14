"""What is asked of parts of suites, on a night or once: the settings that a panel file and other manifests share."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from dtef_pipeline.asking.draws import Draws
from dtef_pipeline.asking.role_budgets import RoleBudget, RoleName
from dtef_pipeline.documents import Part
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.qa.conditions import MOST_SHOTS
from dtef_pipeline.qa.space import QA_SPACE
from dtef_pipeline.qa.transcripts.metadata import written_filter
from dtef_pipeline.text.nearest import nearest

QA_PANEL_SECTION = "qa"
_SHOWN_AS = ("template", "few_shot", "few_shot_as", "order", "retriever", "k", "filter")
_ARBITER_SET = ("judge", "daily_budget", "allow_unpriced")
_CODE_RUN = ("sandbox", "timeout_s", "trust_answers")
_SCORED_AS = ("strict", "penalty", "senses")


class QaAsked(Part):
    """What is asked of parts of suites, on a night or once. The settings are those of `dtef qa run`."""

    suites: list[str] = []  # noqa: RUF012 - pydantic copies it
    """Names, or patterns with * and ?."""
    parts: list[str] = []  # noqa: RUF012 - pydantic copies it
    """Parts of these suites (`college_*`), or suite and part (`mmlu/*`)."""
    models: list[str] = []  # noqa: RUF012 - pydantic copies it
    draws: Draws = 1
    limit: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """At most so many items of each part, spread over it: the same ones every night."""
    template: Literal["letters", "parens", "cot"] = "letters"
    few_shot: Annotated[int, Field(ge=0, le=MOST_SHOTS)] = 0
    few_shot_as: Literal["message", "turns"] = "message"
    order: Literal["file", "rotated-1", "rotated-2", "rotated-3"] = "file"
    retriever: Literal["bm25", "embedding", "hybrid", "remote"] = "bm25"
    k: Annotated[int, Field(ge=1, le=1_000)] = 10
    filter: list[str] = []  # noqa: RUF012 - pydantic copies it
    """Metadata that the documents must have, KEY=VALUE each."""
    judge: Annotated[str, Field(min_length=1)] | None = None
    """In place of that of judges.yaml; `none`: nobody judges."""
    sample_rate: Annotated[float, Field(ge=0, le=1)] | None = None
    daily_budget: Annotated[float, Field(ge=0)] | None = None
    allow_unpriced: list[str] = []  # noqa: RUF012 - pydantic copies it
    """Judges that are asked under a daily budget though their price is not known."""
    timeout_s: Annotated[float, Field(ge=0.1)] | None = None
    strict: bool | None = None
    penalty: Annotated[float, Field(ge=0, le=1)] | None = None
    senses: Literal["first", "all"] | None = None
    role_budgets: dict[RoleName, RoleBudget] = {}  # noqa: RUF012 - pydantic copies it
    """What a run may use of all models in one role; judging anchors is judging."""

    @field_validator("filter")
    @classmethod
    def _can_be_read(cls, given: list[str]) -> list[str]:
        try:
            written_filter(given)
        except ConfigError as error:
            raise ValueError(str(error).removeprefix("filter: ")) from None
        return given

    @property
    def bounds(self) -> dict[str, Any]:
        """What all stages may use together, by the names of the stages' settings."""
        return {}

    @property
    def names_parts(self) -> bool:
        return bool(self.suites or self.parts)

    def chosen(self, known: Sequence[str]) -> list[str]:
        """The parts of the panel among those `known`, in their order. Raises ConfigError for a pattern that none fits."""
        if not known or not self.names_parts:
            return []
        called = (f"{QA_PANEL_SECTION}.suites:", f"{QA_PANEL_SECTION}.parts:")
        return parts_that_fit(known, self.suites, self.parts, given_as=called)

    def run_config(self, snapshot: str) -> dict[str, dict[str, Any]]:
        """Configuration of each stage, by its name."""
        of_snapshot, asking = {"snapshot": snapshot}, self._asking(snapshot)
        shown = self._told(_SHOWN_AS)
        return {
            "qa_prompts": shown,
            "qa_responses": {**asking, **shown, "models": self.models, "draws": self.draws, **self._told(("limit",))},
            "qa_judgements": {**asking, **self._arbiter(), **self._told(("sample_rate",))},
            "qa_executions": {**of_snapshot, **self._told(_CODE_RUN)},
            "qa_scores": {**of_snapshot, **self._told(_SCORED_AS)},
        }

    def _arbiter(self) -> dict[str, Any]:
        """Who judges, as all stages that ask the judge are told."""
        return self._told(_ARBITER_SET)

    def _asking(self, snapshot: str) -> dict[str, Any]:
        """What all stages that ask are told."""
        roles = {role: budget.model_dump(exclude_none=True) for role, budget in self.role_budgets.items()}
        return {"snapshot": snapshot, **self.bounds, **({"role_budgets": roles} if roles else {})}

    def _told(self, names: Sequence[str]) -> dict[str, Any]:
        """Those of the settings that have a value, by name; an empty list is none."""
        return {name: value for name, value in self.model_dump(include=set(names), exclude_none=True).items() if value != []}


def parts_that_fit(
    known: Sequence[str], suites: Sequence[str], parts: Sequence[str], *, given_as: tuple[str, str] = ("--suite", "--part")
) -> list[str]:
    """The parts among those `known` whose suite fits any pattern of `suites` and that fit any of `parts`, in their order; all without patterns.

    A pattern of parts is a name (`college_*`), or has its suite before it (`mmlu/*`). Raises ConfigError for a pattern that fits none;
    `given_as`: what the patterns of suites and of parts are called where they are given.
    """
    of_suites = set(_fitting(list(dict.fromkeys(QA_SPACE.split(key)[0] for key in known)), suites, given_as[0]))
    among = [key for key in known if QA_SPACE.split(key)[0] in of_suites]
    return _fitting(among, [one if "/" in one else f"*/{one}" for one in parts], given_as[1])


def _fitting(known: Sequence[str], patterns: Sequence[str], given_as: str) -> list[str]:
    for pattern in patterns:
        if not any(fnmatchcase(one, pattern) for one in known):
            raise ConfigError(f"{given_as} {pattern!r} fits none; known: {nearest(pattern, known)}")
    return [one for one in known if not patterns or any(fnmatchcase(one, pattern) for pattern in patterns)]
