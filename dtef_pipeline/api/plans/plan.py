"""The plan made from an evaluation's manifest: one Dagster run over chosen partitions, and the runs that its results list separately."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import Field

from dtef_pipeline.asking.snapshot_name import require_safe
from dtef_pipeline.documents import Part
from dtef_pipeline.errors import DtefError
from resources.evaluations.evaluation_store import RunSpec

Entry = TypeVar("Entry", bound=Hashable)
_SHELL_HINT = re.compile(r" \(`dtef [^)]*\)|[;:] `dtef [^`]*` \w+ (some|one|those there are)")
_SHELL_OPTIONS = re.compile(r"--(analyst|judge|model|opponent) ")
_MAX_REFUSALS = 20


def strip_commands(message: str) -> str:
    """Remove commands from a message, for readers without a shell."""
    return _SHELL_HINT.sub("", message)


class BodyFault(NamedTuple):
    """An error in a field of a request, or in a part of it; without a path, in the whole form."""

    path: str
    message: str

    def is_of(self, field: str) -> bool:
        return self.path == field or self.path.startswith((f"{field}.", f"{field}["))


class RefusedManifest(DtefError):
    """A manifest that is refused.

    `path`: the invalid part; `further`: other errors. The message names no commands, because its reader may have no shell, and no options:
    `--judge X` is `judges: X`.
    """

    def __init__(self, path: str, message: str, extra: Sequence[BodyFault] = ()) -> None:
        self.message = _SHELL_OPTIONS.sub(r"\1s: ", strip_commands(message.removeprefix(f"{path}: ")))
        self.faults = [BodyFault(path, self.message), *extra]
        super().__init__("; ".join(f"{fault.path}: {fault.message}" for fault in self.faults))


class UnknownName(RefusedManifest):
    """It names something that does not exist: status 404."""


class NotApproved(RefusedManifest):
    """It names a persona that is not approved: status 409."""


class UnfitManifest(RefusedManifest):
    """It requests something impossible: status 422."""


class EvaluationBudget(Part):
    """The budget of an evaluation, over all its runs and stages."""

    max_cost_usd: Annotated[float, Field(ge=0, le=1_000_000)] | None = None
    max_calls: Annotated[int, Field(ge=0, le=1_000_000_000)] | None = None


class PlannedEvaluation(NamedTuple):
    """The plan of a manifest."""

    job: str
    """Dagster job whose stages run."""
    space: str
    """Name of the partitions definition."""
    keys: Sequence[str]
    """Partitions of the space."""
    config: Mapping[str, Mapping[str, Any]]
    """Configuration of the stages that run, in the order of the pipeline."""
    snapshot: str
    runs: Sequence[RunSpec]
    new_keys: bool = False
    """Whether partitions that Dagster does not know yet are added."""
    warnings: Sequence[str] = ()
    """Sampling settings that are not sent to the provider as requested."""

    def build_plan_json(self) -> dict[str, Any]:
        """Return the stored form of an evaluation's plan."""
        base = {name: value for name, value in self._asdict().items() if name not in ("runs", "warnings")}
        warnings = {"warnings": list(self.warnings)} if self.warnings else {}
        return {
            **base,
            **warnings,
            "keys": list(self.keys),
            "config": {stage: dict(options) for stage, options in self.config.items()},
        }


class Refusals:
    """Collects the errors of independent parts of a manifest, to report them all at once."""

    def __init__(self) -> None:
        self._found: list[RefusedManifest] = []

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Context manager: keep a RefusedManifest for later."""
        try:
            yield
        except RefusedManifest as error:
            self._found.append(error)

    def take_until_full(self, items: Iterable[Entry]) -> Iterator[Entry]:
        """Yield the values until there are as many errors as are reported."""
        return takewhile(lambda _: len(self._found) < _MAX_REFUSALS, items)

    @property
    def faults(self) -> list[BodyFault]:
        return [fault for refusal in self._found for fault in refusal.faults]

    def raise_all(self) -> None:
        """Raise all of them as one error, of their own kind if all have one, else UnfitManifest; does nothing without errors."""
        if self._found:
            kinds = {type(refusal) for refusal in self._found}
            first, *extra = self.faults[:_MAX_REFUSALS]
            raise (kinds.pop() if len(kinds) == 1 else UnfitManifest)(*first, extra)


def validate_snapshot(name: str) -> str:
    """For validators of manifests. Raises ValueError."""
    try:
        return require_safe(name)
    except DtefError as error:
        raise ValueError(str(error)) from None


def require_unique(values: list[Entry]) -> list[Entry]:
    """For validators of lists. Raises ValueError for a repeated value."""
    if repeats := [value for value, number in Counter(values).items() if number > 1]:
        raise ValueError(f"got {repr(repeats[0])[:80]} more than once; allowed: each value only once")
    return values
