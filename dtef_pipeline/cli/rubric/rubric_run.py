"""`dtef rubric run`, its estimate, and the roll-ups of rubrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from assets.engine.panel import family_panel
from dtef_pipeline.asking.embeddings import embedder_of
from dtef_pipeline.asking.models import Models
from dtef_pipeline.asking.snapshot_label import require_label, require_one_spelling, require_safe
from dtef_pipeline.cli.families import fitting
from dtef_pipeline.cli.opened_warehouse import open_warehouse, reads_tables
from dtef_pipeline.cli.planned_table import (
    mean_tokens,
    print_estimate,
    stored_in,
    stored_responses,
)
from dtef_pipeline.cli.role_budgets import budgets_given, owned_budgets, with_budgets
from dtef_pipeline.cli.started_runs import check_home_path, end_run, start_stages, unanswered_lines
from dtef_pipeline.cli.takes_settings import RunFlags
from dtef_pipeline.cli.terminal import say
from dtef_pipeline.documents import read_document
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.family.run_settings import command_settings, run_config
from dtef_pipeline.judging.call_ledger import CallLedger, UsualLengths
from dtef_pipeline.judging.judges import JudgeConfig, judge_hash
from dtef_pipeline.rubric.candidates import Candidates, candidate_names, chosen_selectors
from dtef_pipeline.rubric.extractions import FOR_KEY_POINTS, USUAL_POINTS, extracting_model, will_be_judged
from dtef_pipeline.rubric.judge_requests import chosen_judges
from dtef_pipeline.rubric.model import EXTRACTED
from dtef_pipeline.rubric.plan import EARLIER_COLUMNS, AskedBlueprint, plan
from dtef_pipeline.rubric.policy import ScoringPolicy
from dtef_pipeline.rubric.score_rows import chosen_embedder, counted_hash
from dtef_pipeline.rubric.settings import RUBRIC_PANEL_SECTION, RUBRIC_STAGE_SETTINGS, RubricSettings
from dtef_pipeline.rubric.summary_rows import MaterialTables, chosen_analysts
from dtef_pipeline.rubric.validity import UNREADABLE_FROM, UNREADABLE_REASONS
from dtef_pipeline.text.counted import and_more, counted
from dtef_pipeline.text.nearest import nearest
from resources.known_models import known_models
from resources.settings import Settings
from resources.warehouse import Warehouse


def run_warnings(warehouse: Warehouse, keys: Sequence[str], snapshot: str) -> Iterator[str]:
    """A line per model with responses that failed, that a budget ended or that are blank, and per judge with many unreadable replies."""
    responses = _rows(warehouse, "rubric_responses", ["model", "status", "error"], keys, snapshot)
    without_nan = responses.astype(object).where(responses.notna(), None)
    yield from unanswered_lines(without_nan.itertuples(index=False, name=None))
    for model, status in responses.groupby("model")["status"]:
        if empty := int((status == "empty").sum()):
            yield f"warning: {model}: {counted(empty, 'response')} of {len(status):,} blank, and so unscored"
    asked = pa.concat_tables([warehouse.read_or_empty("rubric_extractions", columns=["reason"], blueprint=key) for key in keys])
    if lacking := len(asked) - asked["reason"].null_count:
        yield f"warning: key points of {counted(lacking, 'ideal answer')} could not be extracted: similarity alone counts there"
    judged = _rows(warehouse, "rubric_judgements", ["judge", "class", "reason"], keys, snapshot)
    for judge, own in judged.groupby("judge"):
        replied = own[own["class"].notna() | own["reason"].isin(UNREADABLE_REASONS)]
        unread = int(replied["class"].isna().sum())
        if unread > UNREADABLE_FROM * len(replied):
            yield f"warning: {judge}: {unread:,} of {counted(len(replied), 'judgement')} could not be read, and count as missing"


def lines_of_taken_away(keys: Sequence[str]) -> Iterator[str]:
    """A line on the blueprints, if any, that lost their summaries and grades because no analyst was named. `keys`: their ids."""
    if keys:
        yield (
            f"warning: the summaries and grades of {counted(len(keys), 'blueprint')} ({and_more(keys, _BLUEPRINTS_NAMED)}) were of other "
            "responses, scores or criteria, or by an analyst that is not known any more, and no analyst is named, so they were taken "
            "away; `analysts: [MODEL]` in the section `rubric` of the panel file asks again, or replays what is stored"
        )


def _rows(warehouse: Warehouse, table: str, columns: list[str], keys: Sequence[str], snapshot: str) -> pd.DataFrame:
    found = [warehouse.read_or_empty(table, columns=columns, blueprint=key, snapshot=snapshot) for key in keys]
    rows: pd.DataFrame = pa.concat_tables(found).to_pandas()
    return rows


STEP_OF_FILES = "rubric_blueprints"
"""The stage that reads the files."""
_BLUEPRINTS_NAMED = 5
"""At most so many are named where there is nothing to judge of them."""


def with_panel(given: Mapping[str, Any]) -> RubricSettings:
    """The settings that options give, with what the panel file alone says of judging and scoring."""
    environment = Settings.from_environment()
    panel = family_panel(environment, RUBRIC_PANEL_SECTION, RubricSettings)
    if panel is not None:
        models = known_models(environment, COMPUTED_MODELS)
        _require_known(environment, "analysts", lambda: chosen_analysts(panel.analysts, models))
        _require_known(environment, "embedder", lambda: chosen_embedder(panel.embedder, models))
    return command_settings(RubricSettings, given, panel)


def _require_known(environment: Settings, key: str, choose: Callable[[], object]) -> None:
    """Raises ConfigError with the line of the panel file where a model of this key cannot be chosen."""
    try:
        choose()
    except ConfigError as error:
        assert environment.panel is not None
        document = read_document(environment.panel, "panel file", [RUBRIC_PANEL_SECTION])
        raise document.error((RUBRIC_PANEL_SECTION, key), str(error)) from None


def run(options: RubricSettings, beside: RunFlags) -> int:
    """The exit code: 1 where a blueprint failed or a file was left out."""
    settings = Settings.from_environment()
    check_home_path(settings)
    warehouse = open_warehouse()
    keys = chosen_blueprints(warehouse, options.blueprints)
    if beside.first == "judge":
        keys = answered_blueprints(warehouse, keys, options.snapshot)
    config = run_config(_checked(options, beside, settings, warehouse, keys), RUBRIC_STAGE_SETTINGS)
    with start_stages("rubric", keys, options.snapshot) as running:
        first = 2 if beside.first == "judge" else 0 if beside.first == "ingest" or options.extract_points else 1
        if again := [] if first == 0 else keys if options.extract_points else _with_key_points(warehouse, keys):
            running.materialize([STEP_OF_FILES], again, config)
        if not running.outcome.failures:
            from assets.launch import RUBRIC_STAGE_NAMES

            running.materialize(RUBRIC_STAGE_NAMES[first:], keys, config)
        else:
            running.done = ()
        if not beside.no_roll_ups:
            running.roll_up(warehouse)
    running.report(warehouse, "blueprint")
    for line in (*run_warnings(warehouse, keys, options.snapshot), *lines_of_taken_away(running.outcome.taken_away)):
        say(line, err=True)
    return end_run(warehouse, running.outcome)


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


def _checked(
    options: RubricSettings, beside: RunFlags, settings: Settings, warehouse: Warehouse, keys: Sequence[str]
) -> RubricSettings:
    """The options as they are run. Raises ConfigError for a label, a model, a judge or a budget that cannot be, before anything is started."""
    require_safe(options.snapshot)
    models = known_models(settings, COMPUTED_MODELS)
    asked = {*Candidates(models, options.models).names, *(models.specs if beside.first == "ingest" else ())}
    of_files: set[str] = set()
    if options.extract_points:
        asked.add(extracting_model(options.analysts, models).name)
    for key in keys:
        criteria = warehouse.rows("rubric_criteria", columns=["prompt", "kind"], blueprint=key)
        prompts = warehouse.rows("rubric_prompts", columns=["prompt", "ideal"], blueprint=key)
        head = warehouse.rows("rubric_blueprints", columns=["models", "judges"], blueprint=key).to_pylist()
        # Of a blueprint that is read now, the stage that judges finds out who does.
        is_known = bool(head) or beside.first != "ingest"
        if options.judges or (is_known and will_be_judged(prompts, criteria, extracting=options.extract_points)):
            judges = chosen_judges(options.judges, head[0]["judges"] if head else [], models, options.scale)
            asked.update(judge.model.name for judge in judges)
        if head and beside.first == "ask":
            found = warehouse.rows("rubric_findings", columns=["code"], blueprint=key)["code"].to_pylist()
            of_files.update(chosen_selectors(options.models, key, head[0]["models"], found))
    asked.update(spec.name for spec in (*chosen_analysts(options.analysts, models), chosen_embedder(options.embedder, models)))
    names = {*asked, *candidate_names(of_files, models)}
    return with_budgets(options, beside.max_cost_usd, beside.max_calls, names, models)


def chosen_blueprints(warehouse: Warehouse, patterns: Sequence[str]) -> list[str]:
    """The blueprints that fit any of the patterns (`compass__*`); all without one. Raises ConfigError for a pattern that fits none."""
    known = warehouse.values("rubric_blueprints", "blueprint")
    if not known:
        raise ConfigError(f"no blueprint in {warehouse.root} yet: `dtef rubric add PATH` adds some")
    return fitting(known, patterns, "--blueprint")


@reads_tables
def estimate(warehouse: Warehouse, options: RubricSettings, beside: RunFlags, output: str) -> None:
    settings = Settings.from_environment()
    keys = chosen_blueprints(warehouse, options.blueprints)
    models = known_models(settings, COMPUTED_MODELS)
    names = set(Candidates(models, options.models).names)
    with stored_responses(settings) as store:
        ledger = CallLedger(stored_in(store), _usual_lengths(warehouse))
        responses = 0
        for asked in _asked(warehouse, options, models, keys):
            responses += plan(asked, ledger)
            names.update(_names(asked))
    budgets = [owned_budgets(given, names, models) for given in (beside.max_cost_usd, beside.max_calls)]
    config = budgets_given(*budgets)
    lacking = sum(row.calls for row in ledger.sorted_rows() if row.planned and row.model.name.endswith(FOR_KEY_POINTS))
    told = f"{counted(lacking, 'ideal answer')} yet to be read for key points, taken to have {USUAL_POINTS} points each"
    head = f"{counted(len(keys), 'blueprint')}, {counted(responses, 'response')}, snapshot {options.snapshot}"
    print_estimate(head, ledger, config, output, [told] if lacking else [])


def _asked(warehouse: Warehouse, options: RubricSettings, models: Models, keys: Sequence[str]) -> Iterator[AskedBlueprint]:
    embedder = chosen_embedder(options.embedder, models)
    analysts = chosen_analysts(options.analysts, models)
    policy = ScoringPolicy(options.beta, options.or_paths, options.should_not_paths, embedder_of(embedder))
    extractor = extracting_model(options.analysts, models) if options.extract_points else None
    house = warehouse
    for key in keys:
        stored = house.values("rubric_responses", "snapshot", blueprint=key)
        require_one_spelling(require_label(options.snapshot, set(stored)), set(stored))
        head, prompts, criteria = (
            warehouse.rows(name, blueprint=key) for name in ("rubric_blueprints", "rubric_prompts", "rubric_criteria")
        )
        if not len(head):
            continue
        found = warehouse.rows("rubric_findings", columns=["code"], blueprint=key)
        is_judged = will_be_judged(prompts, criteria, extracting=options.extract_points)
        judges = chosen_judges(options.judges, head["judges"][0].as_py(), models, options.scale) if is_judged else ()
        yield AskedBlueprint(
            key,
            prompts,
            criteria,
            Candidates(models, chosen_selectors(options.models, key, head["models"][0].as_py(), found["code"].to_pylist())),
            judges,
            embedder,
            embedder.is_local,
            analysts,
            extractor,
            options.snapshot,
            options.draws,
            options.judge_draws,
            _earlier(warehouse, key, options.snapshot) if options.snapshot in stored else None,
            _embedded(warehouse, key, embedder_of(embedder)),
            _scored(warehouse, key, options, judges, head, policy) if analysts and options.snapshot in stored else None,
        )


def _names(asked: AskedBlueprint) -> Iterator[str]:
    """Of every model that a run asks about a blueprint."""
    yield from asked.candidates.names
    yield from (judge.model.name for judge in asked.judges)
    yield from (spec.name for spec in (asked.embedder, *asked.analysts, asked.extractor) if spec)


def _earlier(warehouse: Warehouse, key: str, snapshot: str) -> pa.Table:
    return warehouse.rows("rubric_responses", columns=EARLIER_COLUMNS, blueprint=key, snapshot=snapshot)


def _embedded(warehouse: Warehouse, key: str, embedder: str) -> frozenset[str]:
    rows = warehouse.rows("rubric_embeddings", columns=["embedder", "text_hash"], blueprint=key)
    return frozenset(rows.filter(pc.equal(rows["embedder"], embedder))["text_hash"].to_pylist())


def _scored(
    warehouse: Warehouse,
    key: str,
    options: RubricSettings,
    judges: Sequence[JudgeConfig],
    head: pa.Table,
    policy: ScoringPolicy,
) -> MaterialTables | None:
    """The tables of the snapshot, where the run would score by the same test, judges, judgements and policy; None: it would not."""
    at = {"blueprint": key, "snapshot": options.snapshot}
    runs = warehouse.rows("rubric_runs", **at)
    by = counted_hash(judge_hash(judges), labelled=False, no_own_judge=options.no_own_judge)
    as_now = [{"test_hash": head["test_hash"][0].as_py(), "judge_hash": by, "policy_hash": policy.policy_hash}]
    sources = warehouse.rows("rubric_criteria", columns=["source"], blueprint=key)["source"].to_pylist()
    # Labels may have come in since, and a run without key points takes them away.
    if (
        options.with_labels
        or (EXTRACTED in sources and not options.extract_points)
        or runs.select(list(as_now[0])).to_pylist() != as_now
    ):
        return None
    draws = pc.max(warehouse.rows("rubric_judgements", columns=["judge_draw"], **at)["judge_draw"]).as_py()
    if draws is not None and draws + 1 != options.judge_draws:
        return None
    prompts, criteria = (warehouse.rows(name, blueprint=key) for name in ("rubric_prompts", "rubric_criteria"))
    responses, scores = (warehouse.rows(name, **at) for name in ("rubric_responses", "rubric_scores"))
    return MaterialTables(head, prompts, criteria, responses, scores)


def _usual_lengths(warehouse: Warehouse) -> UsualLengths:
    """Mean tokens of what models wrote before, whatever the blueprint and snapshot."""
    return UsualLengths(
        mean_tokens(warehouse, "rubric_responses", "model_variant", "turns"),
        mean_tokens(warehouse, "rubric_judgements", "judge_variant", "len(request_keys)"),
    )
