"""The plan made from an evaluation's manifest: one Dagster run over chosen partitions, and the runs that its results list separately."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import Field

from dtef_pipeline.asking.snapshot_label import require_safe
from dtef_pipeline.documents import Part
from dtef_pipeline.errors import DtefError
from resources.evaluations.evaluation_store import RunSpec

Listed = TypeVar("Listed", bound=Hashable)
_FOR_SHELLS = re.compile(r" \(`dtef [^)]*\)|[;:] `dtef [^`]*` \w+ (some|one|those there are)")
_OPTIONS_OF_SHELLS = re.compile(r"--(analyst|judge|model|opponent) ")
_MOST_REFUSALS_TOLD = 20


def strip_commands(message: str) -> str:
    """A message for those who may have no shell."""
    return _FOR_SHELLS.sub("", message)


class BodyFault(NamedTuple):
    """What is wrong with a field of what was sent, or with a part of it; without a path, with the whole form."""

    path: str
    message: str

    def is_of(self, field: str) -> bool:
        return self.path == field or self.path.startswith((f"{field}.", f"{field}["))


class RefusedManifest(DtefError):
    """A manifest that is not carried out.

    `path`: its part that is at fault; `further`: what else is wrong. The message names no command, as its reader may have no shell, and no
    option: `--judge X` is `judges: X`.
    """

    def __init__(self, path: str, message: str, further: Sequence[BodyFault] = ()) -> None:
        self.message = _OPTIONS_OF_SHELLS.sub(r"\1s: ", strip_commands(message.removeprefix(f"{path}: ")))
        self.faults = [BodyFault(path, self.message), *further]
        super().__init__("; ".join(f"{fault.path}: {fault.message}" for fault in self.faults))


class UnknownName(RefusedManifest):
    """It names what is not there: answered with 404."""


class NotApproved(RefusedManifest):
    """It names a persona that nobody approved: answered with 409."""


class UnfitManifest(RefusedManifest):
    """It names what cannot be done so: answered with 422."""


class EvaluationBudget(Part):
    """What an evaluation may use in all, over all its runs and stages."""

    max_cost_usd: Annotated[float, Field(ge=0, le=1_000_000)] | None = None
    max_calls: Annotated[int, Field(ge=0, le=1_000_000_000)] | None = None


class PlannedEvaluation(NamedTuple):
    """A manifest as it will be carried out."""

    job: str
    """The Dagster job whose stages are run."""
    space: str
    """The partitions definition."""
    keys: Sequence[str]
    """Partitions of the space."""
    config: Mapping[str, Mapping[str, Any]]
    """By stage in the order of the pipeline, its configuration: these stages are run."""
    snapshot: str
    asked: Sequence[RunSpec]
    new_keys: bool = False
    """Whether partitions that Dagster does not know yet are made."""
    warnings: Sequence[str] = ()
    """Sampling settings that are not sent to a provider as they were asked for."""

    def build_plan_json(self) -> dict[str, Any]:
        """What is stored as the plan of an evaluation."""
        base = {name: value for name, value in self._asdict().items() if name not in ("asked", "warnings")}
        warnings = {"warnings": list(self.warnings)} if self.warnings else {}
        return {**base, **warnings, "keys": list(self.keys), "config": {stage: dict(one) for stage, one in self.config.items()}}


class Refusals:
    """Collects the refusals of independent parts of a manifest, so that they are all reported at once."""

    def __init__(self) -> None:
        self._found: list[RefusedManifest] = []

    @contextmanager
    def kept(self) -> Iterator[None]:
        """A RefusedManifest inside is kept for later."""
        try:
            yield
        except RefusedManifest as error:
            self._found.append(error)

    def take_until_full(self, items: Iterable[Listed]) -> Iterator[Listed]:
        """These one by one, until there are as many faults as are reported."""
        return takewhile(lambda _: len(self._found) < _MOST_REFUSALS_TOLD, items)

    @property
    def faults(self) -> list[BodyFault]:
        return [fault for refusal in self._found for fault in refusal.faults]

    def raise_all(self) -> None:
        """Raises all of them as one error: of their own kind where they are of one, else UnfitManifest; nothing where nothing was refused."""
        if self._found:
            kinds = {type(refusal) for refusal in self._found}
            first, *further = self.faults[:_MOST_REFUSALS_TOLD]
            raise (kinds.pop() if len(kinds) == 1 else UnfitManifest)(*first, further)


def validate_snapshot(label: str) -> str:
    """For validators of manifests. Raises ValueError."""
    try:
        return require_safe(label)
    except DtefError as error:
        raise ValueError(str(error)) from None


def require_unique(values: list[Listed]) -> list[Listed]:
    """For validators of lists. Raises ValueError for what occurs twice."""
    if twice := [value for value, number in Counter(values).items() if number > 1]:
        raise ValueError(f"got {repr(twice[0])[:80]} more than once; allowed: each once")
    return values
