"""Plans of evaluations for any family, made from the family's settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import Field, create_model

from dtef_pipeline.api.plans.plan import (
    EvaluationRequest,
    PlannedEvaluation,
    Refusals,
    UnknownName,
    build_manifest_model,
    build_runs,
    list_known_partitions,
    list_made_partitions,
    load_named_models,
    rejections,
    require_askable,
)
from dtef_pipeline.asking.models import Budget, Models, ModelSpec
from dtef_pipeline.documents import Part
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.family.run_settings import RunSettings, run_config
from dtef_pipeline.keys import Space
from dtef_pipeline.text.name_matching import filter_by_patterns
from dtef_pipeline.text.number_words import list_first_names
from resources.gateway.budget import Accounts
from resources.settings import Settings

if TYPE_CHECKING:
    from resources.warehouse import Warehouse


class ResolvedNames(NamedTuple):
    """The resolved names of a manifest."""

    models: Models
    """All known models."""
    keys: list[str]
    """Named partitions."""


@dataclass(frozen=True)
class FamilyPlans:
    """Plans of a family. Families that need more have a class of their own."""

    name: str
    space: Space
    settings_type: type[RunSettings]
    stages: Mapping[str, Sequence[str]]
    """Settings by stage in the order of the pipeline; the first stage makes the items of a partition."""
    items: str
    """Table with one row per item, made by the first stages."""
    answers: str
    """First table with snapshots."""
    fields: tuple[str, ...] = ("partitions",)
    """Fields of a manifest that name partitions."""
    select: Callable[[Any, Sequence[str]], list[str]] | None = None
    """Selects the partitions that settings name among the known ones; None: patterns of the first field."""
    nothing_added: str = "nothing of this family has been added on this server yet"
    own_form: type[EvaluationRequest] | None = None

    @cached_property
    def form(self) -> type[Part]:
        """Return the form of a manifest: partitions, and the settings of the family's runs that the API accepts."""
        if self.own_form is not None:
            return self.own_form
        members: dict[str, Any] = {
            "family": (Literal[self.name], ...),
            self.fields[0]: (Annotated[list[str], Field(min_length=1, description="Keys, or patterns with * and ?.")], ...),
        }
        base = create_model(f"{self.name.capitalize()}Manifest", __base__=EvaluationRequest, **members)
        return build_manifest_model(base, f"{self.name.capitalize()}Evaluation", self.settings_type)

    def plan(self, manifest: EvaluationRequest, server: Settings) -> PlannedEvaluation:
        """Plan the stages from the first one that has not made all partitions.

        Raises UnknownName for unknown partitions and models, and UnfitManifest for invalid models and settings.
        """
        # It brings Dagster, which the API starts without.
        from assets.stage.partitions import require_snapshot

        values, settings = manifest.model_dump(), self.build_settings(manifest)
        named = self.resolve_names(values, settings, server)
        runs = build_runs(named.keys, self.fields[0])
        with rejections("snapshot"):
            require_snapshot(self.warehouse(server), self.answers, self.space, named.keys, settings.snapshot)
        warnings = self.require_askable(settings, named, server)
        all_made = list_made_partitions(server, self.items, self.space).issuperset(named.keys)
        config = self.config(settings, named, all_made)
        return PlannedEvaluation(
            f"{self.name}_pipeline", self.space.name, named.keys, config, settings.snapshot, runs, warnings=warnings
        )

    def refuse_names(self, values: Mapping[str, Any], server: Settings) -> None:
        """Raises RefusedManifest with all unknown names in the well-formed fields of a manifest."""
        self.resolve_names(values, self.settings_type.model_construct(**values), server)

    def resolve_names(self, values: Mapping[str, Any], settings: Any, server: Settings) -> ResolvedNames:
        """Raises RefusedManifest with all invalid names of models and partitions. Without names, no partition is selected."""
        refusals, keys = Refusals(), list[str]()
        with refusals.collect():
            models = load_named_models(server, "models", values.get("models") or ())
        self.require_judges(refusals, settings, server)
        if any(values.get(field) for field in self.fields):
            with refusals.collect():
                keys = self._choose_partitions(values, settings, server)
        refusals.raise_all()
        return ResolvedNames(models, keys)

    def _choose_partitions(self, values: Mapping[str, Any], settings: Any, server: Settings) -> list[str]:
        """Return the partitions that a manifest names. Raises UnknownName, also if Dagster knows none."""
        if not (keys := list_known_partitions(server, self.space)):
            partitions = list_made_partitions(server, self.items, self.space)
            other_home = (
                f"the warehouse of this server has {list_first_names(sorted(partitions), 3)}, but Dagster's home does not: they were "
                "added with another DAGSTER_HOME, or it was reset. The server's operator must add them again"
            )
            raise UnknownName(self.fields[0], other_home if partitions else self.nothing_added)
        try:
            if self.select is None:
                return filter_by_patterns(keys, values[self.fields[0]], f"{self.fields[0]}:")
            return self.select(settings, keys)
        except ConfigError as error:
            field, _, message = str(error).partition(": ")
            raise UnknownName(field.rpartition(".")[2], message) from None

    def require_judges(self, refusals: Refusals, settings: Any, server: Settings) -> None:
        """Check the names of judges and other auxiliary models; errors are collected."""

    def build_settings(self, manifest: EvaluationRequest) -> Any:
        """Return the settings of a manifest's run."""
        return manifest.settings(self.settings_type)

    def config(self, settings: Any, named: ResolvedNames, all_made: bool) -> Mapping[str, Mapping[str, Any]]:
        """Return the configuration of the stages that run. `all_made`: whether the first stage has already made all partitions."""
        return run_config(settings, self.choose_stages(settings, all_made))

    def choose_stages(self, settings: Any, all_made: bool) -> Mapping[str, Sequence[str]]:
        """Return the stages that run, with their settings."""
        first, *_ = self.stages
        return {name: names for name, names in self.stages.items() if not (all_made and name == first)}

    def require_askable(self, settings: Any, named: ResolvedNames, server: Settings) -> list[str]:
        """Refuse models that cannot be used; returns the warnings of `manifest_base.require_askable`."""
        with rejections("models"):
            specs = named.models.resolve(list(getattr(settings, "models", ())))
        return self.require_within_budget({"models": specs}, settings, server)

    def require_within_budget(self, specs: Mapping[str, Sequence[ModelSpec]], settings: Any, server: Settings) -> list[str]:
        """Return the warnings of `require_askable` for models by the field that names them; all share the budget of the run."""
        budget = Accounts(Budget(max_cost_usd=settings.max_cost_usd), {})
        return [
            line for field, group in specs.items() for line in require_askable(field, group, settings.snapshot, server, budget)
        ]

    @staticmethod
    def warehouse(server: Settings) -> Warehouse:
        from resources.warehouse import Warehouse

        return Warehouse(server.warehouse)
