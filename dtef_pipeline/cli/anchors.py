"""`dtef anchors`: judge stored responses again, and show whether a judge has changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click
import pyarrow.compute as pc

from assets.engine.settings_config import load_family_panel
from assets.stage.family_drift import panel_drift
from dtef_pipeline.asking.snapshot_order import require_safe
from dtef_pipeline.boards.named_boards import TableLayout
from dtef_pipeline.cli.families import family_record
from dtef_pipeline.cli.stage_runs import (
    check_home_path,
    open_dagster_instance,
    parse_budgets,
    print_usage,
    report_run_end,
    resolve_budget_owners,
)
from dtef_pipeline.cli.terminal import print_rows, say
from dtef_pipeline.cli.warehouse_access import open_warehouse, reads_tables
from dtef_pipeline.drift.judge_verdicts import judge_drift
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.qa.judging.arbiter import JUDGING_OFF
from dtef_pipeline.qa.settings import QA_PANEL_SECTION, QaSettings
from dtef_pipeline.rubric.blueprint.model import TEXT_KIND
from dtef_pipeline.rubric.episodes import choose_judges
from dtef_pipeline.rubric.rubric_drift import NOTHING_TO_JUDGE_AGAIN
from dtef_pipeline.rubric.settings import RUBRIC_PANEL_SECTION, RubricSettings
from dtef_pipeline.text.number_words import format_count
from resources.gateway.progress import keep_terminal
from resources.model_catalog import load_known_models
from resources.settings import Settings
from resources.warehouse import Warehouse

_JUDGES_LAYOUT = TableLayout(
    (
        *("judge", "evaluator", "verdict", "shift", "interval"),
        *("first_snapshot", "n_snapshots", "n_items", "latest_snapshot", "reason"),
    ),
    ("judge", "evaluator", "verdict", "shift"),
    ("latest_snapshot", "reason"),
    "shift",
    ends=("shift_low", "shift_high"),
)
Options = Mapping[str, Any]
"""Options of the command, by name."""


@dataclass(frozen=True, slots=True)
class FamilyAnchors:
    """The anchor settings of a family."""

    with_panel: Callable[[Options, Settings], Options]
    """Returns the options, completed with the panel file's judge settings."""
    judges: Callable[[Options, Settings, Warehouse], set[str]]
    """Returns the names of the judges. Raises ConfigError or WarehouseError for problems that must be fixed first."""


def run(family: str, options: Options) -> int:
    """Judge the anchors again. Returns 1 if the stage failed."""
    warehouse, settings = open_warehouse(), Settings.read_environment()
    check_home_path(settings)
    require_safe(options["snapshot"])
    source = family_record(family).subject.anchors
    assert source is not None, f"{family} has no anchors"
    options = ANCHORED[family].with_panel({**options, "anchors": options["anchors"] or source.n}, settings)
    names = ANCHORED[family].judges(options, settings, warehouse)
    costs, calls = (
        resolve_budget_owners(options[name], names, load_known_models(settings, COMPUTED_MODELS))
        for name in ("max_cost_usd", "max_calls")
    )
    config = {name: value for name, value in options.items() if name not in ("max_cost_usd", "max_calls") and value is not None}
    if not _judge_again(warehouse, family, {**config, **parse_budgets(costs, calls)}):
        return 1
    say(f"`dtef anchors --family {family} --results` shows which judges have changed")
    return 0


def _judge_again(warehouse: Warehouse, family: str, config: Options) -> bool:
    """Run the stage, and print its failures or what the snapshot now holds. Return whether it succeeded."""
    stage, snapshot = f"{family}_anchors", config["snapshot"]
    with keep_terminal():
        from assets.launch import materialize
        from assets.stage.partitions import SNAPSHOT_TAG
        from assets.stage.resources import command

        with open_dagster_instance() as instance, command([]) as running:
            outcome = materialize(
                instance, [stage], [], {stage: config}, {**running.tags, SNAPSHOT_TAG: snapshot}, family=family
            )
    print_usage(running.gateway.usage_by_role if running.gateway else {})
    report_run_end(warehouse, outcome)
    if outcome.failures:
        return False
    rows = warehouse.read("anchors", columns=["anchor", "score"], family=family, snapshot=snapshot)
    n_anchors, empty = len(set(rows["anchor"].to_pylist())), rows["score"].null_count
    missing = f", {empty:,} without a score" if empty else ""
    click.echo(f"{format_count(n_anchors, 'anchor')}, {format_count(len(rows), 'judgement')} in snapshot {snapshot}{missing}")
    return True


@reads_tables
def show(warehouse: Warehouse, family: str, output: str) -> None:
    """Print a row per judge. Raises WarehouseError if nothing was judged again."""
    judgements, subject = warehouse.rows("anchors", family=family), family_record(family).subject
    if not len(judgements):
        raise WarehouseError(f"no anchors of {family} in {warehouse.root} yet: `dtef anchors --family {family}` makes them")
    options = panel_drift(Settings.read_environment(), warehouse)
    frame = judge_drift(subject, judgements, options).to_pandas().drop(columns="family")
    print_rows(_JUDGES_LAYOUT, frame, output, (), "judge_drift")


def _add_scale(options: Options, settings: Settings) -> Options:
    if options["judges_file"] is not None:
        raise ConfigError("--judges works with --family qa only; name judges of rubrics with --judge APPROACH=MODEL")
    options = {name: value for name, value in options.items() if name != "judges_file"}
    panel = load_family_panel(settings, RUBRIC_PANEL_SECTION, RubricSettings) or RubricSettings()
    return {**options, "judges": list(options["judges"]), "scale": panel.scale}


def _find_rubric_judges(options: Options, settings: Settings, warehouse: Warehouse) -> set[str]:
    models = load_known_models(settings, COMPUTED_MODELS)
    rows = warehouse.read_or_empty("anchor_items", columns=["partition"], family="rubric")
    keys = rows["partition"].to_pylist()[: options["anchors"]]
    blueprints = warehouse.values("rubric_scores", "blueprint") if len(keys) < options["anchors"] else []
    names: set[str] = set()
    refusal = None
    for key in dict.fromkeys([*keys, *(blueprint for blueprint in blueprints if _has_words(warehouse, blueprint))]):
        head = warehouse.read_or_empty("rubric_blueprints", columns=["judges"], blueprint=key)["judges"].to_pylist()
        try:
            judges = choose_judges(options["judges"], head[0] if head else [], models, options["scale"])
        except ConfigError as error:
            if key in keys:
                raise
            refusal = error  # no anchor of this blueprint may be chosen
        else:
            names.update(judge.model.name for judge in judges)
    if not names:
        raise refusal or WarehouseError(NOTHING_TO_JUDGE_AGAIN)
    return names


def _has_words(warehouse: Warehouse, blueprint: str) -> bool:
    kinds = warehouse.read_or_empty("rubric_criteria", columns=["kind"], blueprint=blueprint)["kind"]
    return bool(pc.any(pc.equal(kinds, TEXT_KIND)).as_py())


def _add_judge_settings(options: Options, settings: Settings) -> Options:
    if len(options["judges"]) > 1:
        raise ConfigError(f"--judge {', '.join(options['judges'])}: --family qa has one judge; give --judge once")
    judge_options = {"judge": next(iter(options["judges"]), None), "judges": options["judges_file"]}
    panel = load_family_panel(settings, QA_PANEL_SECTION, QaSettings)
    budget_settings = {name: getattr(panel, name) for name in ("daily_budget", "allow_unpriced")} if panel else {}
    return {**{name: value for name, value in options.items() if name != "judges_file"}, **judge_options, **budget_settings}


def _find_qa_judges(options: Options, settings: Settings, warehouse: Warehouse) -> set[str]:
    if options["judge"] == JUDGING_OFF:
        raise ConfigError("--judge none: anchors need a judge; name a model")
    if not warehouse.values("qa_judgements", "suite") and "qa" not in warehouse.values("anchor_items", "family"):
        raise WarehouseError("nothing to judge again: no answer was judged yet; `dtef qa run` with a judge does it")
    models = load_known_models(settings, COMPUTED_MODELS)
    if options["judge"]:
        models.resolve([options["judge"]])
    return set(models.specs)


ANCHORED = {
    "rubric": FamilyAnchors(_add_scale, _find_rubric_judges),
    "qa": FamilyAnchors(_add_judge_settings, _find_qa_judges),
}
