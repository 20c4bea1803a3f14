"""What `dtef rubric run` does, and `dtef rollup` with rubrics; the words are in `dtef_pipeline/cli/rubric_group.py`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from assets.rubric.panel_part import panel_or_usual
from dtef_pipeline.asking.snapshot_label import require_safe
from dtef_pipeline.cli.blueprint_patterns import fitting
from dtef_pipeline.cli.opened_warehouse import open_warehouse, say_skipped
from dtef_pipeline.cli.ready import check_home_path, dagster_instance
from dtef_pipeline.cli.role_budgets import budgets_given, with_owners
from dtef_pipeline.cli.rubric_warnings import lines_of_taken_away, run_warnings
from dtef_pipeline.cli.started_runs import roll_up, rolled_up, say_used
from dtef_pipeline.cli.terminal_width import say
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.judging.classes import USUAL_SCALE
from dtef_pipeline.rubric.candidates import Candidates, candidate_names, chosen_selectors
from dtef_pipeline.rubric.extractions import extracting_model, will_be_judged
from dtef_pipeline.rubric.judge_requests import chosen_judges
from dtef_pipeline.rubric.model import EXTRACTED
from dtef_pipeline.rubric.score_rows import chosen_embedder
from dtef_pipeline.rubric.summary_rows import chosen_analysts
from dtef_pipeline.text.counted import and_more, counted
from dtef_pipeline.text.nearest import nearest
from resources.gateway.progress import kept_terminal
from resources.known_models import known_models
from resources.settings import Settings
from resources.warehouse import Warehouse

if TYPE_CHECKING:
    from assets.launch import Launched

STEP_OF_FILES = "rubric_blueprints"
"""The stage that reads the files."""
_BLUEPRINTS_NAMED = 5
"""At most so many are named where there is nothing to judge of them."""


@dataclass(frozen=True)
class RubricOptions:
    """Options of `dtef rubric run`."""

    blueprints: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    analysts: Sequence[str] = ()
    embedder: str | None = None
    draws: int = 1
    judge_draws: int = 1
    scale: int = USUAL_SCALE
    snapshot: str = "base"
    beta: float = 0.35
    or_paths: str = "document"
    should_not_paths: str = "worst"
    extract_points: bool = False
    no_own_judge: bool = False
    with_labels: bool = False
    max_cost_usd: tuple[str, ...] = ()
    max_calls: tuple[str, ...] = ()
    first: str = "ask"
    """The stage that the run begins with: ingest, ask or judge."""
    no_roll_ups: bool = False
    consistent_champions: bool = False

    def config(self) -> dict[str, dict[str, Any]]:
        """Run configuration by asset name."""
        of_snapshot = {"snapshot": self.snapshot}
        asking = {**of_snapshot, **budgets_given(self.max_cost_usd, self.max_calls)}
        embedder = {"embedder": self.embedder} if self.embedder else {}
        policy = {"beta": self.beta, "or_paths": self.or_paths, "should_not_paths": self.should_not_paths}
        analysts = list(self.analysts)
        return {
            STEP_OF_FILES: {**asking, "extract_points": True, "analysts": analysts} if self.extract_points else {},
            "rubric_responses": {**asking, "models": list(self.models), "draws": self.draws},
            "rubric_judgements": {**asking, "judges": list(self.judges), "judge_draws": self.judge_draws, "scale": self.scale},
            "rubric_embeddings": {**asking, **embedder},
            "rubric_points": {**of_snapshot, "no_own_judge": self.no_own_judge, "with_labels": self.with_labels},
            "rubric_scores": {**of_snapshot, **policy, **embedder, "no_own_judge": self.no_own_judge},
            "rubric_summaries": {**asking, "analysts": analysts},
        }


def with_switches(**given: Any) -> RubricOptions:
    """The options of the command line, with what the panel file says of judging and scoring."""
    return RubricOptions(**given, **panel_or_usual(Settings.from_environment()).switches)


def run(options: RubricOptions) -> int:
    """The exit code: 1 where a blueprint failed or a file was left out."""
    settings = Settings.from_environment()
    check_home_path(settings)
    warehouse = open_warehouse()
    keys = chosen_blueprints(warehouse, options.blueprints)
    if options.first == "judge":
        keys = answered_blueprints(warehouse, keys, options.snapshot)
    config = _checked(options, settings, warehouse, keys).config()
    started = time.monotonic()
    with kept_terminal():
        from assets.launch import RUBRIC_STAGE_NAMES, Launched
        from assets.stage.partitions import SNAPSHOT_TAG
        from assets.stage.shared_gateway import command

        with dagster_instance() as instance, command(keys) as running:
            tags = {**running.tags, SNAPSHOT_TAG: options.snapshot}
            first = 2 if options.first == "judge" else 0 if options.first == "ingest" or options.extract_points else 1
            outcome, done = Launched((), ()), tuple[str, ...]()
            if again := [] if first == 0 else keys if options.extract_points else _with_key_points(warehouse, keys):
                outcome += materialize_blueprints(instance, [STEP_OF_FILES], again, config, tags)
            if not outcome.failures:
                stages = materialize_blueprints(instance, RUBRIC_STAGE_NAMES[first:], keys, config, tags)
                outcome, done = outcome + stages, stages.done
            if not options.no_roll_ups and warehouse.values("rubric_scores", "blueprint"):
                outcome += _roll_ups(instance)
            used = running.gateway.used if running.gateway else {}
    say_skipped(outcome, warehouse)
    say_used(used)
    for line in (*run_warnings(warehouse, keys, options.snapshot), *lines_of_taken_away(outcome.taken_away)):
        say(line, err=True)
    all_of = f"{len(done):,} of " if len(done) < len(keys) else ""
    click.echo(f"{all_of}{counted(len(keys), 'blueprint')}, snapshot {options.snapshot}, {time.monotonic() - started:.1f} s")
    for failure in outcome.failures:
        say(f"error: {failure}", err=True)
    return 1 if outcome.failures or warehouse.skipped else 0


def answered_blueprints(warehouse: Warehouse, keys: Sequence[str], snapshot: str) -> list[str]:
    """The blueprints with responses in the snapshot; the others are named. Raises ConfigError where none has any."""
    snapshots = {key: warehouse.values("rubric_responses", "snapshot", blueprint=key) for key in keys}
    answered = [key for key in keys if snapshot in snapshots[key]]
    lacking = and_more([key for key in keys if key not in answered], _BLUEPRINTS_NAMED)
    if not answered:
        known = {one for found in snapshots.values() for one in found}
        raise ConfigError(f"snapshot {snapshot!r}: no responses of {lacking}; known: {nearest(snapshot, known)}")
    if lacking:
        say(f"warning: not judged, since snapshot {snapshot} has no responses of them: {lacking}", err=True)
    return answered


def _with_key_points(warehouse: Warehouse, keys: Sequence[str]) -> list[str]:
    """The blueprints with criteria that a model extracted in an earlier run: a run without the switch takes them out."""
    sources = {key: warehouse.rows("rubric_criteria", columns=["source"], blueprint=key)["source"] for key in keys}
    return [key for key, found in sources.items() if EXTRACTED in found.to_pylist()]


def _checked(options: RubricOptions, settings: Settings, warehouse: Warehouse, keys: Sequence[str]) -> RubricOptions:
    """The options as they are run. Raises ConfigError for a label, a model, a judge or a budget that cannot be, before anything is started."""
    require_safe(options.snapshot)
    models = known_models(settings, COMPUTED_MODELS)
    asked = {*Candidates(models, options.models).names, *(models.specs if options.first == "ingest" else ())}
    of_files: set[str] = set()
    if options.extract_points:
        asked.add(extracting_model(options.analysts, models).name)
    for key in keys:
        criteria = warehouse.rows("rubric_criteria", columns=["prompt", "kind"], blueprint=key)
        prompts = warehouse.rows("rubric_prompts", columns=["prompt", "ideal"], blueprint=key)
        head = warehouse.rows("rubric_blueprints", columns=["models", "judges"], blueprint=key).to_pylist()
        # Of a blueprint that is read now, the stage that judges finds out who does.
        is_known = bool(head) or options.first != "ingest"
        if options.judges or (is_known and will_be_judged(prompts, criteria, extracting=options.extract_points)):
            judges = chosen_judges(options.judges, head[0]["judges"] if head else [], models, options.scale)
            asked.update(judge.model.name for judge in judges)
        if head and options.first == "ask":
            found = warehouse.rows("rubric_findings", columns=["code"], blueprint=key)["code"].to_pylist()
            of_files.update(chosen_selectors(options.models, key, head[0]["models"], found))
    asked.update(spec.name for spec in (*chosen_analysts(options.analysts, models), chosen_embedder(options.embedder, models)))
    return with_owners(options, {*asked, *candidate_names(of_files, models)}, models)


def rollup() -> int:
    """The exit code: 1 where a roll-up failed, or a file was left out."""
    return rolled_up("rubric_scores", "dtef rubric run", _roll_ups)


def chosen_blueprints(warehouse: Warehouse, patterns: Sequence[str]) -> list[str]:
    """The blueprints that fit any of the patterns (`compass__*`); all without one. Raises ConfigError for a pattern that fits none."""
    known = warehouse.values("rubric_blueprints", "blueprint")
    if not known:
        raise ConfigError(f"no blueprint in {warehouse.root} yet: `dtef rubric add PATH` adds some")
    return fitting(known, patterns)


def materialize_blueprints(
    instance: Any,
    names: Sequence[str],
    keys: Sequence[str],
    config: Mapping[str, Mapping[str, Any]],
    tags: Mapping[str, str] | None = None,
) -> Launched:
    from assets.launch import OF_BLUEPRINTS, materialize

    return materialize(instance, names, keys, config, tags, space=OF_BLUEPRINTS)


def _roll_ups(instance: Any) -> Launched:
    """All of them."""
    from assets.launch import RUBRIC_ROLL_UP_NAMES

    return roll_up(instance, RUBRIC_ROLL_UP_NAMES, {})
