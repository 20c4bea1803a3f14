"""What manifests of all families share: their refusals, budget, models and partitions, and the plan of one Dagster run."""

from __future__ import annotations

import os
import re
import threading
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

from pydantic import Field, field_validator

from dtef_pipeline.asking.models import COMPUTED, Budget, Models, ModelSpec, strip_settings
from dtef_pipeline.asking.snapshot_order import require_safe
from dtef_pipeline.documents import Part
from dtef_pipeline.errors import ConfigError, DtefError, GatewayError, UnpricedModels
from dtef_pipeline.family.run_settings import (
    Door,
    FamilySettings,
    RunSettings,
    build_form,
    build_settings,
    list_settings_at,
    make_validator,
)
from dtef_pipeline.keys import Space
from dtef_pipeline.rubric.tables import RUBRIC_SPACE
from dtef_pipeline.text.name_matching import list_nearest
from dtef_pipeline.text.number_words import format_count
from resources.evaluations.evaluation_store import RunSpec
from resources.model_catalog import load_known_models
from resources.settings import API_ANY_MODEL, Settings

if TYPE_CHECKING:
    from resources.gateway.budget import Accounts


Entry = TypeVar("Entry", bound=Hashable)
SnapshotName = Annotated[str, make_validator(require_safe, "snapshot ")]
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


def require_unique(values: list[Entry]) -> list[Entry]:
    """For validators of lists. Raises ValueError for a repeated value."""
    if repeats := [value for value, number in Counter(values).items() if number > 1]:
        raise ValueError(f"got {repr(repeats[0])[:80]} more than once; allowed: each value only once")
    return values


MAX_PARTITIONS = 2_000
"""Largest number of partitions of one evaluation."""
MAX_VALUES = 1_000
"""Largest number of values in a list of a manifest."""
LONGEST_TEXT = 2_000
"""Largest number of characters in a text of a manifest."""
BOUND_BY_COST = "budget.max_cost_usd"
_SERVERLESS = (COMPUTED, "local/", "stored/")
"""Prefixes of computed, in-process and demo models: no provider has these names."""
_KEY_NOT_SET = "is not set"
_opening = threading.Lock()


def load_slow_packages(settings: Settings) -> None:
    """Open Dagster's home, then import LiteLLM and pandas, as pages and checks of manifests need them. Takes 5 to 15 seconds."""
    # The health check also opens Dagster's home and reports its errors; the lock prevents a concurrent import of litellm.
    with suppress(Exception):
        list_known_partitions(settings, RUBRIC_SPACE)
    for name in (
        "dtef_pipeline.site.rendering",
        "assets.qa.part_checks",
        "dtef_pipeline.rubric.analysts",
    ):
        import_module(name)
    from resources.gateway.litellm_module import load_litellm

    load_litellm()


class EvaluationRequest(Part):
    """The snapshot and the budget of a manifest."""

    snapshot: SnapshotName = "base"
    """Snapshot to store the responses in: base, a date, or another name; a new one sends every request again."""
    budget: EvaluationBudget = EvaluationBudget()

    @field_validator("*", mode="before")
    @classmethod
    def _check_size(cls, given: Any) -> Any:
        if isinstance(given, (list, dict)) and len(given) > MAX_VALUES:
            raise ValueError(f"got {format_count(len(given), 'value')}; allowed: at most {MAX_VALUES:,}")
        for text in given if isinstance(given, (list, dict)) else [given]:
            if isinstance(text, str) and len(text) > LONGEST_TEXT:
                raise ValueError(f"got a text of {format_count(len(text), 'character')}; allowed: at most {LONGEST_TEXT:,}")
        return given

    @field_validator("models", check_fields=False)
    @classmethod
    def _require_unique(cls, models: list[str]) -> list[str]:
        return require_unique(models)

    @property
    def bounds(self) -> dict[str, Any]:
        """Return the budget of all stages together, by the names of the stages' settings."""
        return self.budget.model_dump(exclude_none=True)

    def settings(self, model: type[FamilySettings]) -> FamilySettings:
        """Return the manifest's settings for the family's runs."""
        values = self.model_dump(exclude_unset=True, include=set(model.model_fields))
        return build_settings(model, values | self.bounds)


def build_manifest_model(base: type[EvaluationRequest], name: str, model: type[RunSettings]) -> type[EvaluationRequest]:
    """Build the form of a family's manifests: the fields of `base`, and the settings of runs that the API accepts."""
    names = [setting for setting in list_settings_at(model, Door.API) if setting not in base.model_fields]
    return build_form(base, name, model, names)


def list_known_partitions(settings: Settings, space: Space) -> list[str]:
    """List Dagster's partitions in the order in which they were added; empty if Dagster's home does not exist yet."""
    home = settings.dagster_home
    if not (home / "dagster.yaml").is_file():
        return []
    import dagster as dg

    with use_home(str(home)), dg.DagsterInstance.from_config(str(home)) as instance:
        return list(instance.get_dynamic_partitions(space.name))


def list_made_partitions(settings: Settings, table: str, space: Space) -> set[str]:
    """List the partitions that have rows in a table of the warehouse."""
    from resources.warehouse import Warehouse

    warehouse = Warehouse(settings.warehouse)
    firsts = warehouse.values(table, space.first)
    if not space.second:
        return set(firsts)
    return {space.key(first, sub) for first in firsts for sub in warehouse.values(table, space.second, **{space.first: first})}


@contextmanager
def use_home(home: str) -> Iterator[None]:
    """Set the environment variable that Dagster's settings file needs for its folder."""
    with _opening:
        before = os.environ.get("DAGSTER_HOME")
        os.environ["DAGSTER_HOME"] = home
        try:
            yield
        finally:
            if before is None:
                del os.environ["DAGSTER_HOME"]
            else:
                os.environ["DAGSTER_HOME"] = before


def require_offered(field: str, selector: str, models: Models, settings: Settings) -> None:
    """Raise UnfitManifest for a model string that is in no models file, unless a server setting allows it, and always for an address.

    A LiteLLM string determines where a prompt is sent, and with which of the server's credentials. Other unknown names are refused
    elsewhere.
    """
    if "://" in selector:
        raise UnfitManifest(field, f"got {selector[:80]!r}, which contains an address; allowed: names of models, without ://")
    with rejections(field):
        base = strip_settings(selector)
    names = {*models.specs, *models.collections, *(spec.model for spec in models.specs.values())}
    if "/" not in base or base in names or base.startswith(_SERVERLESS) or settings.api_any_model:
        return
    raise UnfitManifest(
        field,
        f"{base[:80]!r} is in no models file of this server; allowed: {list_nearest(base, names)}. The server's operator can add it to "
        f"the file in DTEF_MODELS, or set {API_ANY_MODEL}=1 to allow any LiteLLM string",
    )


def load_named_models(settings: Settings, field: str, selectors: Sequence[str]) -> Models:
    """Load the known models, including those of `selectors`.

    Raises UnknownName for an unknown model, and UnfitManifest for invalid settings and for what `require_offered` refuses.
    """
    from dtef_pipeline.families import COMPUTED_MODELS

    models = load_known_models(settings, COMPUTED_MODELS)
    for selector in selectors:
        require_offered(field, selector, models, settings)
        with rejections(field):
            base = strip_settings(selector)
        with rejections(field, UnknownName):
            models.resolve([selector if selector in models.specs else base])
    with rejections(field):
        models.resolve(list(selectors))
    return models


@contextmanager
def rejections(field: str, kind: type[RefusedManifest] = UnfitManifest) -> Iterator[None]:
    """Context manager: raise `kind` for this field in place of a ConfigError or GatewayError."""
    try:
        yield
    except (ConfigError, GatewayError) as error:
        raise kind(field, str(error)) from None


def require_askable(
    field: str, specs: Iterable[ModelSpec], snapshot: str, settings: Settings, accounts: Accounts | None = None
) -> list[str]:
    """Refuse what commands refuse before a run: models without a key, a provider, or a price under a limit in dollars.

    Returns a line for each sampling setting that is not sent to the provider as requested.

    Raises UnfitManifest and StoreError.
    """
    from resources.gateway.budget import Accounts
    from resources.gateway.model_checks import describe_altered_settings, refuse_early
    from resources.responses.store import ResponseStore

    if not (models := [spec for spec in specs if not spec.is_computed]):
        return []
    with ResponseStore(settings.responses_url) as store:
        try:
            refuse_early(models, snapshot, accounts or Accounts(Budget(), {}), store, os.environ, look_up_prices=True)
        except UnpricedModels as error:
            if accounts is None or accounts.run.limits.max_cost_usd is None:
                raise UnfitManifest(field, str(error)) from None
            raise UnfitManifest(
                BOUND_BY_COST,
                f"cannot be enforced without a price of {', '.join(error.names)}; allowed: null, with max_calls instead",
            ) from None
        except (ConfigError, GatewayError) as error:
            raise UnfitManifest(
                field, f"{error}{_format_alternatives(models, settings) if _KEY_NOT_SET in str(error) else ''}"
            ) from None
    return list(describe_altered_settings(models))


def _format_alternatives(models: Sequence[ModelSpec], settings: Settings) -> str:
    """List usable models to replace one without a key, among those that can be checked without LiteLLM, which takes seconds to load."""
    from dtef_pipeline.families import COMPUTED_MODELS
    from resources.gateway.model_checks import find_quick_problem

    specs = load_known_models(settings, COMPUTED_MODELS).specs
    able = [
        name
        for name, spec in specs.items()
        if (spec.api_key_env or spec.api_base or spec.is_local) and find_quick_problem(spec, os.environ) is None
    ]
    hint = f", such as {list_nearest(models[0].name, able)}" if able else ""
    return f"; allowed: a model with a key{hint}; or have the variable set on the server"


def build_runs(keys: Sequence[str], field: str) -> list[RunSpec]:
    """Build a run of the evaluation per partition. Raises UnfitManifest if there are too many."""
    if len(keys) > MAX_PARTITIONS:
        raise UnfitManifest(
            field,
            f"got {format_count(len(keys), 'partition')}; allowed: at most {MAX_PARTITIONS:,} in one evaluation",
        )
    return [RunSpec(key, {"partition": key}) for key in keys]
