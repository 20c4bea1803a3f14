"""The manifest of a scenario, `scenarios/<league>/<scenario>.yaml`: its rules in words, its limits, and its weights."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, field_validator

from dtef_pipeline.documents import Part, read_document
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import select_versions_in_play

SEVERITY_WEIGHTS = {"low": 1, "medium": 3, "high": 10}
"""Weight of a violation in the weighted rate of red flags."""
ScenarioName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,40}/[a-z0-9][a-z0-9-]{0,60}$")]
ScenarioStatus = Literal["experimental", "production", "retired"]
"""Statuses, from first to last."""
Sentence = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Weight = Annotated[float, Field(ge=0)]


class EvaluationWeights(Part):
    """Weights of a scenario: of metrics in its composite score, and of people's votes."""

    algorithmic: dict[str, Weight] = {}
    """Weights by metric in the arithmetic mean of normalised metrics; empty: there is no composite score."""
    human: Weight = 0


class Seeds(Part):
    """Default seeds: `count` seeds from `first` on."""

    first: Annotated[int, Field(ge=0)] = 1
    count: Annotated[int, Field(ge=1)]


class ScenarioManifest(Part):
    """One scenario as its authors wrote it."""

    id: ScenarioName
    version: Annotated[int, Field(ge=1)]
    """Version; a new one is needed when the wording of rules, the limits or the engine change, because episodes of two versions are never
    averaged."""
    status: ScenarioStatus
    description: Sentence
    """Description in one sentence, for choosing scenarios."""
    rules: Sentence
    """Rules, shown to every player word for word."""
    constraints: list[Sentence] = []
    """What players must not do; each entry continues `You must not` and starts in lower case."""
    reply_format: Sentence
    """Form of a reply, shown to every player."""
    seats: Annotated[list[Sentence], Field(min_length=1, max_length=8)]
    seeds: Seeds
    opponents: list[str] = []
    """Baselines that every player plays against, without `baseline/`; empty: the scenario has one seat."""
    turn_limit: Annotated[int, Field(ge=1, le=1000)]
    retries: Annotated[int, Field(ge=0, le=10)] = 2
    """Number of further texts that a player may write in one turn after texts that were not moves."""
    on_illegal: Literal["forfeit", "default"]
    show_legal: bool = False
    """Whether observations list the legal commands."""
    severities: dict[str, Literal["low", "medium", "high"]] = {}
    """Severity of each kind of violation, by its flag."""
    adapter: ScenarioName | None = None
    """Id of another scenario whose engine is used, such as `negotiation/allocation`; none: the scenario's own."""
    settings: dict[str, str | int | float | bool] = {}
    """Settings of the engine, such as `items: 4`."""
    evaluation: EvaluationWeights = EvaluationWeights()

    @field_validator("seats")
    @classmethod
    def _check_distinct_seats(cls, seats: list[str]) -> list[str]:
        if len(set(seats)) < len(seats):
            raise ValueError(f"got {', '.join(seats)}; allowed: each once")
        return seats

    @property
    def adapter_name(self) -> str:
        """Name of the entry point that makes the scenario."""
        return self.adapter or self.id

    @property
    def league(self) -> str:
        return self.id.split("/")[0]

    @property
    def scenario(self) -> str:
        return self.id.split("/")[1]

    @property
    def key_columns(self) -> dict[str, str | int]:
        """League, scenario and version, by column of tables."""
        return {"league": self.league, "scenario": self.scenario, "version": self.version}


def read_manifest(path: Path) -> ScenarioManifest:
    """Read the manifest in a file. Raises ConfigError for errors, with file and line, and if the id does not match the file's path."""
    document = read_document(path, "scenario", tuple(ScenarioManifest.model_fields))
    manifest = document.validate_as(ScenarioManifest)
    if manifest.id != f"{path.parent.name}/{path.stem}":
        raise document.error(("id",), f"got {manifest.id}; allowed: {path.parent.name}/{path.stem}, the path of the file")
    return manifest


def read_manifests(folder: Path) -> dict[str, ScenarioManifest]:
    """Read all manifests below a folder, `<league>/<scenario>.yaml`, by id. Raises ConfigError for the first invalid one."""
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder; allowed: one with <league>/<scenario>.yaml")
    return {manifest.id: manifest for manifest in map(read_manifest, sorted(folder.glob("*/*.yaml")))}


def select_manifests_in_play(versions: Iterable[ScenarioManifest]) -> dict[str, ScenarioManifest]:
    """Return the version in play of each scenario, by id, in the order of ids: the latest that is not experimental, or the latest if all
    are.
    """
    return select_versions_in_play(versions, "experimental")
