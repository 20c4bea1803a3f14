"""A setting is declared once: the command, Dagster's run configuration, the panel file and the API take and refuse the same values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

import click
import pytest
import yaml
from click.testing import CliRunner
from pydantic import ValidationError

from assets.engine.settings_config import build_stage_config
from dtef_pipeline.api.plans.plan import EvaluationRequest, build_manifest_model
from dtef_pipeline.cli.settings_command import TakesSettings, split_given
from dtef_pipeline.documents import member_docstrings
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import FAMILIES
from dtef_pipeline.family.run_settings import (
    Door,
    RunSettings,
    build_settings,
    list_settings_at,
    load_panel_settings,
    run_config,
    setting,
)
from dtef_pipeline.survey.blueprint.options import CONDITION_WORDS, FORMATS, TASKS
from dtef_pipeline.survey.settings import SurveySettings
from dtef_pipeline.survey.tables import METRICS

MODELS = {one.name: one.settings for one in FAMILIES}


class Tried(NamedTuple):
    """A value that is tried at every door."""

    family: str
    name: str
    value: Any
    is_allowed: bool


def values() -> Iterator[Tried]:
    """Of every number its bounds and what lies just beyond them; of every choice each of its words and another one."""
    for family, model in MODELS.items():
        for name, field in model.model_fields.items():
            step = 1 if int in (field.annotation, *get_args(field.annotation)) else 0.001
            for one in field.metadata:
                for bound, beyond in (("ge", -step), ("le", step)):
                    if (limit := getattr(one, bound, None)) is not None:
                        yield Tried(family, name, limit, is_allowed=True)
                        yield Tried(family, name, limit + beyond, is_allowed=False)
            if get_origin(field.annotation) is Literal:
                yield from (Tried(family, name, word, is_allowed=True) for word in get_args(field.annotation))
                yield Tried(family, name, "nothing-like-it", is_allowed=False)


def given_to_command(model: type[RunSettings], name: str, value: Any, folder: Path) -> object:
    """By the option of the command, as a user spells it."""
    given: list[dict[str, Any]] = []

    @click.command(cls=TakesSettings, settings=f"{model.__module__}.{model.__name__}", chosen=[name])
    def command(**options: Any) -> None:
        given.append(split_given(options)[0])

    flag = setting(model, name).option or f"--{name.replace('_', '-')}"
    if CliRunner().invoke(command, [flag, str(value)]).exit_code:
        raise ConfigError("refused")
    return build_settings(model, given[0])


def given_to_dagster(model: type[RunSettings], name: str, value: Any, folder: Path) -> object:
    """By the configuration of a run."""
    config = build_stage_config(model, "stage", [name])
    return build_settings(model, config(**{name: value}).model_dump())


def given_to_panel(model: type[RunSettings], name: str, value: Any, folder: Path) -> object:
    """By the section of a panel file."""
    path = folder / "panel.yaml"
    path.write_text(yaml.safe_dump({"own": {name: value}}), encoding="utf-8")
    return load_panel_settings(path, "own", model)


def given_to_api(model: type[RunSettings], name: str, value: Any, folder: Path) -> object:
    """By a manifest."""
    return build_manifest_model(EvaluationRequest, "Own", model)(**{name: value}).settings(model)


DOORS: dict[str, tuple[Door | None, Callable[[type[RunSettings], str, Any, Path], object]]] = {
    "command": (Door.COMMAND, given_to_command),
    "Dagster": (None, given_to_dagster),
    "panel": (Door.PANEL, given_to_panel),
    "API": (Door.API, given_to_api),
}


@pytest.mark.parametrize("tried", list(values()), ids=lambda one: f"{one.family} {one.name} {one.value}")
def test_every_door_takes_and_refuses_the_same_values(tried: Tried, tmp_path: Path) -> None:
    """`k: 5000` was accepted by the command and refused by the API."""
    model = MODELS[tried.family]
    for door, give in DOORS.values():
        if door is not None and tried.name not in list_settings_at(model, door):
            continue
        if tried.is_allowed:
            found = give(model, tried.name, tried.value, tmp_path)
            assert getattr(found, tried.name) == tried.value, give.__doc__
        else:
            with pytest.raises((ConfigError, ValidationError)):
                give(model, tried.name, tried.value, tmp_path)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_every_setting_can_be_given_somewhere_and_is_described(model: type[RunSettings]) -> None:
    config = build_stage_config(model, "stage", model.model_fields)
    assert [name for name, field in config.model_fields.items() if not field.description] == []


def test_run_configuration_has_the_snapshot_and_what_is_not_as_usual() -> None:
    model = MODELS["qa"]
    given = build_settings(model, {"k": 3, "few_shot": 0, "budgets": {"m": {"max_calls": 3}}})
    stages = {"first": ("snapshot", "budgets", "k"), "second": ("k", "few_shot")}
    assert run_config(given, stages) == {
        "first": {"snapshot": "base", "budgets": {"m": {"max_calls": 3}}, "k": 3},
        "second": {"k": 3},
    }


def test_the_survey_s_settings_know_all_words_of_conditions_and_all_metrics() -> None:
    described = member_docstrings(SurveySettings)["conditions"]
    assert [word for word in (*TASKS, *FORMATS, *CONDITION_WORDS) if word not in described] == []
    assert get_args(SurveySettings.model_fields["metric"].annotation) == METRICS


def test_keys_at_the_top_of_a_panel_are_the_survey_s_and_others_are_left_to_others(tmp_path: Path) -> None:
    path = tmp_path / "panel.yaml"
    path.write_text("draws: 2\nqa: {draws: 3}\ncontext_levels: [0, all]\n", encoding="utf-8")
    found = load_panel_settings(path, "", SurveySettings)
    assert found == SurveySettings(draws=2, context_levels=["0", "all"])


@pytest.mark.parametrize("name", ["max_calls", "budgets", "snapshot"])
def test_a_budget_or_label_that_is_none_is_refused(name: str) -> None:
    refused = {"max_calls": -1, "budgets": {"m": {"max_calls": -1}}, "snapshot": "a/b"}
    with pytest.raises(ConfigError, match=name):
        build_settings(MODELS["qa"], {name: refused[name]})
