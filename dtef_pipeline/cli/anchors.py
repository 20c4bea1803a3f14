"""`dtef anchors`: judge stored responses again, and show whether a judge has changed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import click

from assets.engine.settings_config import load_family_panel
from assets.stage.family_drift import panel_drift
from dtef_pipeline.asking.models import Models
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
NOTHING_TO_JUDGE_AGAIN = "nothing to judge again: no stored response has a judged score yet; `dtef {} run` makes some"


def run(family: str, options: Options) -> int:
    """Judge the anchors again. Returns 1 if the stage failed."""
    warehouse, settings = open_warehouse(), Settings.read_environment()
    check_home_path(settings)
    require_safe(options["snapshot"])
    source = family_record(family).subject.anchors
    assert source is not None, f"{family} has no anchors"
    models = load_known_models(settings, COMPUTED_MODELS)
    config, named = BUILDERS[family](options, settings, models)
    n_anchors = options["anchors"] or source.n
    of_rubric = family == "rubric"
    names = (named or _find_blueprint_judges(warehouse, n_anchors, models)) if of_rubric else {*models.specs, *named}
    budgets = parse_budgets(*(resolve_budget_owners(options[name], names, models) for name in ("max_cost_usd", "max_calls")))
    common = {"snapshot": options["snapshot"], "anchors": n_anchors, "anchor_seed": options["anchor_seed"]}
    if not warehouse.tables(["anchor_items"]) and len(warehouse.tables(source.reads)) < len(source.reads):
        raise WarehouseError(NOTHING_TO_JUDGE_AGAIN.format(family))
    if not _judge_again(warehouse, family, {**common, **config, **budgets}):
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
    if not len(rows):
        raise WarehouseError(NOTHING_TO_JUDGE_AGAIN.format(family))
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


def _find_blueprint_judges(warehouse: Warehouse, n_anchors: int, models: Models) -> set[str]:
    """Return the names of the judges of the blueprints with anchors, and if more anchors are chosen, of all with judged scores."""
    rows = warehouse.read_or_empty("anchor_items", columns=["partition"], family="rubric")
    keys = set(rows["partition"].to_pylist()[:n_anchors])
    if len(rows) < n_anchors:
        keys.update(key for key in warehouse.values("rubric_scores", "blueprint") if _has_words(warehouse, key))
    names: set[str] = set()
    for key in keys:
        heads = warehouse.read_or_empty("rubric_blueprints", columns=["judges"], blueprint=key)["judges"].to_pylist()
        with suppress(ConfigError):  # the stage reports judges that cannot be used
            names.update(judge.model.name for judge in choose_judges([], heads[0] or [] if heads else [], models))
    return names


def _has_words(warehouse: Warehouse, blueprint: str) -> bool:
    return TEXT_KIND in warehouse.read_or_empty("rubric_criteria", columns=["kind"], blueprint=blueprint)["kind"].to_pylist()


def build_rubric_config(options: Options, settings: Settings, models: Models) -> tuple[dict[str, Any], set[str]]:
    """Return the stage's configuration, and the names of the judges that the options name."""
    if options["judges_file"] is not None:
        raise ConfigError("--judges works with --family qa only; name judges of rubrics with --judge APPROACH=MODEL")
    panel = load_family_panel(settings, RUBRIC_PANEL_SECTION, RubricSettings) or RubricSettings()
    judges = list(options["judges"])
    named = choose_judges(judges, [], models, panel.scale) if judges else ()
    return {"judges": judges, "scale": panel.scale}, {judge.model.name for judge in named}


def build_qa_config(options: Options, settings: Settings, models: Models) -> tuple[dict[str, Any], set[str]]:
    """Do the same for questions, which have one judge."""
    if len(options["judges"]) > 1:
        raise ConfigError(f"--judge {', '.join(options['judges'])}: --family qa has one judge; give --judge once")
    if JUDGING_OFF in options["judges"]:
        raise ConfigError("--judge none: anchors need a judge; name a model")
    panel = load_family_panel(settings, QA_PANEL_SECTION, QaSettings)
    config = {name: getattr(panel, name) for name in ("daily_budget", "allow_unpriced")} if panel else {}
    config |= {"judge": next(iter(options["judges"]), None), "judges": options["judges_file"]}
    named = models.resolve(options["judges"]) if options["judges"] else ()
    return {name: value for name, value in config.items() if value is not None}, {spec.name for spec in named}


BUILDERS = {"rubric": build_rubric_config, "qa": build_qa_config}
