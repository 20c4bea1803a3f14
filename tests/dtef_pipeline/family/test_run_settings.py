"""A setting is declared once: the command, Dagster's run configuration, the panel file and the API take and refuse the same values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import EntryPoint
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, NamedTuple, get_args, get_origin

import click
import duckdb
import pandas as pd
import pyarrow as pa
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
from dtef_pipeline.family import plugins
from dtef_pipeline.family.item_scores import BY_PART, OVERALL, compute_item_boards
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
from tests.made import spelling_family
from tests.made.spelling_family import SCORES, SPELLING

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


SPELLED = "tests.made.spelling_family:SPELLING"


def families(name: str, value: str, monkeypatch: pytest.MonkeyPatch, taken: tuple[str, ...] = ("qa",)) -> object:
    point = EntryPoint(name, value, plugins.FAMILY_GROUP)
    monkeypatch.setattr(plugins, "find_plugin_points", lambda: {name: point})
    return plugins.load_plugin_families(taken)


def test_a_family_is_the_record_that_its_entry_point_names(monkeypatch: pytest.MonkeyPatch) -> None:
    assert families("spelling", SPELLED, monkeypatch) == (SPELLING,)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("spelling", "tests.made.no_such_file:SPELLING", "cannot be loaded: ModuleNotFoundError"),
        ("spelling", "tests.made.spelling_family:SPACE", "allowed: a Family called spelling"),
        ("writing", SPELLED, "allowed: a Family called writing"),
    ],
)
def test_what_is_no_such_record_is_reported_with_its_name(
    name: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=f"the family {name} of an unknown package.*{message}"):
        families(name, value, monkeypatch)


def test_tables_of_others_and_a_name_that_is_taken_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="whose name is none of spelling"):
        families("spelling", SPELLED, monkeypatch, taken=("spelling",))
    table = SPELLING.tables["spelling_words"]
    monkeypatch.setattr(spelling_family, "SPELLING", replace(SPELLING, tables={**SPELLING.tables, "qa_items": table}))
    with pytest.raises(ConfigError, match="tables called spelling_"):
        families("spelling", SPELLED, monkeypatch)


Row = dict[str, Any]


def row(model: str, item: int, score: float | None, **given: Any) -> Row:
    usual = {
        "language": "en",
        "list": "common",
        "snapshot": "base",
        "item_id": str(item),
        "cluster": "",
        "prompt_id": f"p{item}",
        "truth_id": f"t{item}",
        "model": model,
        "model_variant": f"{model}[temperature=0]",
        "temperature": 0.0,
        "draw": 0,
        "metric": "correct",
        "status": "error" if score is None else "ok",
        "score": score,
        "answered_at": datetime(2026, 1, 1, tzinfo=UTC),
    }
    return {**usual, **given}


def boards(rows: list[Row]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The board and the comparisons."""
    schema = SPELLING.all_tables[SPELLING.board].schema
    assert schema is not None
    with duckdb.connect() as connection:
        connection.register("spelling_scores", pa.Table.from_pylist(rows, SCORES))
        made = compute_item_boards(connection, "spelling", "spelling_scores", SPELLING.space, SPELLING.scores, schema)
    return made[SPELLING.board].to_pandas(), made["comparisons"].to_pandas()


def of_cut(board: pd.DataFrame, cut: str) -> list[Row]:
    return [dict(one) for _, one in board[board["cut"] == cut].iterrows()]


def test_a_mean_is_over_items_and_draws_of_an_item_count_once() -> None:
    rows = [row("m", item, float(item % 2)) for item in range(6)]
    rows += [row("m", 0, 1.0, draw=draw) for draw in (1, 2)]
    (found,) = of_cut(boards(rows)[0], OVERALL)
    assert found["score"] == pytest.approx(fmean([2 / 3, 1, 0, 1, 0, 1]))
    assert (found["n_items"], found["n_clusters"], found["n_total"], found["n_parts"]) == (6, 6, 8, 1)


def test_items_of_one_number_in_two_lists_are_two_and_a_topic_of_two_lists_is_one_cluster() -> None:
    rows = [row("m", item, 1.0, list=name, cluster=topic) for name in ("a", "b") for item, topic in enumerate(["", "", "x"])]
    board, _ = boards(rows)
    (found,) = of_cut(board, OVERALL)
    assert (found["n_items"], found["n_clusters"], found["n_parts"]) == (6, 5, 2)
    assert [(one["list"], one["n_items"]) for one in of_cut(board, BY_PART)] == [("a", 3), ("b", 3)]


def test_of_each_list_the_latest_snapshot_counts_that_scored_half_of_the_items() -> None:
    whole = [row("m", item, 0.0, snapshot="2026-01-01") for item in range(4)]
    later = [row("m", item, 1.0, snapshot="2026-01-02") for item in range(4)]
    stopped = [row("m", 0, 0.5, snapshot="2026-01-03")]
    (found,) = of_cut(boards([*whole, *later, *stopped])[0], OVERALL)
    assert (found["score"], list(found["snapshots"])) == (1.0, ["2026-01-02"])


def test_a_model_without_nine_tenths_of_the_items_has_no_rank_and_a_failed_call_is_in_no_mean() -> None:
    rows = [row("whole", item, 0.5) for item in range(10)] + [row("part", item, 1.0) for item in range(8)]
    rows += [row("part", item, None) for item in (8, 9)]
    by_model = {one["model"]: one for one in of_cut(boards(rows)[0], OVERALL)}
    assert by_model["whole"]["rank"] == 1
    part = by_model["part"]
    assert (part["score"], part["n_failed"], part["coverage"]) == (1.0, 2, pytest.approx(0.8))
    assert pd.isna(part["rank"])
    assert part["note"] == "not ranked: it has scores for 8 of 10 items, at least 9 of 10 are needed"


def test_two_models_are_compared_on_the_items_that_both_have() -> None:
    rows = [row("good", item, 1.0) for item in range(12)] + [row("bad", item, float(item < 3)) for item in range(10)]
    _, compared = boards(rows)
    (found,) = compared.to_dict("records")
    assert (found["family"], found["model"], found["other_model"], found["n_items"]) == ("spelling", "good", "bad", 10)
    assert found["difference"] == pytest.approx(1 - 3 / 10)


def test_without_a_score_boards_are_empty() -> None:
    board, compared = boards([row("m", 1, None)])
    (found,) = of_cut(board, OVERALL)
    assert pd.isna(found["score"])
    assert not len(compared)
