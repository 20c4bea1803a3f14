"""The settings of a family's runs, each declared once: name, type, bounds, default and description are those of a pydantic field.

The options of `dtef FAMILY run`, Dagster's run configuration, the family's section of the panel file and the manifests of the API are made
from the fields; a stage names those that it takes. An example, of a family that sets tasks:

    class TaskSettings(RunSettings):
        tasks: Annotated[list[str], Setting(option="--task", metavar="TASK|PATTERN")] = []
        \"""Only these tasks, or those that fit, as in `add_*`.\"""
        few_shot: Annotated[int, Field(ge=0, le=20)] = 0
        \"""Solved tasks that are shown first.\"""

    TASK_STAGES = {"task_items": (), "task_responses": (*ASKING_SETTINGS, "few_shot")}
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, Field, ValidationError, create_model

from dtef_pipeline.asking.calls import Draws
from dtef_pipeline.asking.daily_budget import RoleBudget, RoleName
from dtef_pipeline.asking.models import Budget, ModelSpec
from dtef_pipeline.asking.snapshot_order import require_safe
from dtef_pipeline.documents import Part, Place, format_in_one_line, format_path, member_docstrings, read_document
from dtef_pipeline.errors import ConfigError


class Door(StrEnum):
    """A place where people give settings."""

    COMMAND = "command"
    PANEL = "panel"
    API = "API"


@dataclass(frozen=True, slots=True)
class Setting:
    """How people give a field, if its name and type do not say it."""

    doors: Collection[Door] = tuple(Door)
    """Dagster's run configuration takes every setting of its stage; these need not."""
    option: str = ""
    """Of the command; empty: as the field is called."""
    metavar: str = ""
    unset: str = ""
    """What holds where nothing is given, if the default does not say it."""
    is_file: bool = False
    """The path of a file. A panel file counts it from its own folder."""


ONLY_COMMAND, ONLY_PANEL, NOT_COMMAND, NOT_API = (
    (Door.COMMAND,),
    (Door.PANEL,),
    (Door.PANEL, Door.API),
    (Door.COMMAND, Door.PANEL),
)


def make_validator(read: Callable[[Any], object], named: str = "") -> AfterValidator:
    """Return a pydantic validator from `read`, which raises ConfigError for a value that is not allowed. `named`: start of its messages."""

    def check(value: Any) -> Any:
        try:
            read(value)
        except ConfigError as error:
            raise ValueError(str(error).removeprefix(named)) from None
        return value

    return AfterValidator(check)


class RunSettings(Part):
    """Settings of every run that calls models."""

    snapshot: Annotated[str, make_validator(require_safe, "snapshot "), Setting(doors=())] = "base"
    """Snapshot to store the responses in: base, a date, or another name; a new one requests everything again."""
    max_cost_usd: Annotated[float | None, Field(ge=0), Setting(ONLY_PANEL)] = None
    """US dollars that the run may spend."""
    max_calls: Annotated[int | None, Field(ge=0), Setting(ONLY_PANEL)] = None
    """Calls that the run may send, retries included."""
    max_tokens: Annotated[int | None, Field(ge=0), Setting(doors=())] = None
    """Tokens that the run may use, of prompts and responses."""
    budgets: Annotated[dict[str, Budget], Setting(doors=())] = {}
    """By model, what the run may use of it, in place of the models file's: max_cost_usd, max_calls, max_tokens."""
    role_budgets: Annotated[dict[RoleName, RoleBudget], Setting(NOT_COMMAND)] = {}
    """By role, what the run may use of models in it: max_cost_usd, max_calls."""

    @property
    def budget(self) -> Budget:
        """The budget of the whole run."""
        return Budget(max_cost_usd=self.max_cost_usd, max_calls=self.max_calls, max_tokens=self.max_tokens)


ASKING_SETTINGS = tuple(RunSettings.model_fields)
"""The settings of every stage that asks models."""


class PartSettings(RunSettings):
    """Settings of runs that choose partitions by key and send items to models."""

    parts: Annotated[list[str], Setting(NOT_API, option="--part", metavar="KEY|PATTERN", unset="all")] = []
    """Only this partition, by its key, or those that fit a pattern."""
    models: Annotated[list[str], Setting(option="--model", unset="none; what is stored is scored")] = []
    """Model to ask: a model or collection that `dtef models` lists, or a model string of LiteLLM."""
    draws: Draws = 1
    """Number of times each item is asked."""


ASKING_ITEMS = (*ASKING_SETTINGS, "models", "draws")
"""The settings of a stage that asks items of models."""
FamilySettings = TypeVar("FamilySettings", bound=RunSettings)
Form = TypeVar("Form", bound=BaseModel)


def setting(model: type[RunSettings], name: str) -> Setting:
    """Return the field's `Setting`, or a default one."""
    return next((entry for entry in model.model_fields[name].metadata if isinstance(entry, Setting)), Setting())


@cache
def list_settings_at(model: type[RunSettings], door: Door) -> tuple[str, ...]:
    """List the settings that people may give at this door."""
    return tuple(name for name in model.model_fields if door in setting(model, name).doors)


def build_form(base: type[Form], name: str, model: type[RunSettings], names: Iterable[str]) -> type[Form]:
    """Build a pydantic model with these fields in addition to those of `base`, with the same bounds and descriptions."""
    docs, fields = member_docstrings(model), {}
    for member in names:
        field = copy(model.model_fields[member])
        field.description = docs.get(member)
        fields[member] = (field.annotation, field)
    return create_model(name, __base__=base, __doc__=base.__doc__, __module__=model.__module__, **fields)  # type: ignore[call-overload, no-any-return]


def build_settings(
    model: type[FamilySettings], values: Mapping[str, Any], format_place: Callable[[Place], str] = format_path
) -> FamilySettings:
    """Build the settings from given values and defaults. Raises ConfigError for a value that is not allowed.

    `format_place`: names the place of a value in the error.
    """
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        raise ConfigError(format_in_one_line(error, model, format_place)) from None


def option_name(model: type[RunSettings], name: str) -> str:
    """Return the option of a setting: `--context` of `context_levels`."""
    return setting(model, name).option or f"--{name.replace('_', '-')}"


def build_option_settings(model: type[FamilySettings], values: Mapping[str, Any]) -> FamilySettings:
    """Build the settings like `build_settings`, with the names of options in errors."""
    return build_settings(model, values, lambda place: option_name(model, str(place[0])) if place else "")


def load_panel_settings(path: Path, section: str, model: type[FamilySettings]) -> FamilySettings | None:
    """Load the settings of a section of a panel file, or None if the section is absent. An empty `section` is the file's top level.

    Raises ConfigError with file, line, the value and what is allowed.
    """
    names = list_settings_at(model, Door.PANEL)
    form = build_form(Part, f"{model.__name__}Panel", model, names)
    document = read_document(path, "panel file", [section] if section else names)
    if section:
        settings = document.section(section, form)
    else:  # other keys there are sections of others
        settings = document.validate_as(form, {name: value for name, value in document.values.items() if name in names})
    if settings is None:
        return None
    items = settings.model_dump(exclude_unset=True)
    files = {name: str(path.parent.absolute() / items[name]) for name in items if items[name] and setting(model, name).is_file}
    return build_settings(model, items | files)


def build_command_settings(
    model: type[FamilySettings], options: Mapping[str, Any], panel: FamilySettings | None
) -> FamilySettings:
    """Build the settings of a command from its options and from what only a panel file can set. Raises ConfigError, see `build_settings`."""
    panel_values = panel.model_dump(exclude_unset=True) if panel else {}
    only_panel = set(list_settings_at(model, Door.PANEL)) - set(list_settings_at(model, Door.COMMAND)) - set(ASKING_SETTINGS)
    return build_option_settings(
        model, {name: panel_values[name] for name in panel_values if name in only_panel} | dict(options)
    )


def budgets_of(settings: RunSettings, specs: Iterable[ModelSpec]) -> tuple[dict[str, Budget], dict[str, Budget]]:
    """Return the budgets by model name, where the run overrides the models files, and the budgets by role."""
    roles: dict[str, Budget] = {role: Budget(**budget.model_dump()) for role, budget in settings.role_budgets.items()}
    return {spec.name: spec.budget for spec in specs} | settings.budgets, roles


def run_config(settings: RunSettings, stages: Mapping[str, Iterable[str]]) -> dict[str, dict[str, Any]]:
    """Return the run configuration by stage: the snapshot, and the settings of the stage that differ from their defaults."""
    values = settings.model_dump(exclude_defaults=True, exclude_none=True) | {"snapshot": settings.snapshot}
    return {stage: {name: values[name] for name in names if name in values} for stage, names in stages.items()}
