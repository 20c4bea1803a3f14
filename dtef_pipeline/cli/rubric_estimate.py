"""What `dtef rubric run --estimate` does: the run is counted and priced. Asks no model and writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.embeddings import embedder_of
from dtef_pipeline.asking.models import Budget, Models
from dtef_pipeline.asking.snapshot_label import require_label, require_one_spelling
from dtef_pipeline.cli.budget_lines import budget_lines
from dtef_pipeline.cli.estimate import stored_responses
from dtef_pipeline.cli.opened_warehouse import reads_tables
from dtef_pipeline.cli.planned_table import (
    lines_of_run_budgets,
    lines_of_sent,
    mean_tokens,
    planned_frame,
    planned_usage,
    print_planned,
    stored_in,
)
from dtef_pipeline.cli.role_budgets import with_owners
from dtef_pipeline.cli.rubric_run import RubricOptions, chosen_blueprints
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.judging.call_ledger import (
    CallLedger,
    PlannedCalls,
    UsualLengths,
)
from dtef_pipeline.judging.judges import JudgeConfig, judge_hash
from dtef_pipeline.report.terminal import render
from dtef_pipeline.rubric.candidates import Candidates, chosen_selectors
from dtef_pipeline.rubric.extractions import FOR_KEY_POINTS, USUAL_POINTS, extracting_model, will_be_judged
from dtef_pipeline.rubric.judge_requests import chosen_judges
from dtef_pipeline.rubric.model import EXTRACTED
from dtef_pipeline.rubric.plan import EARLIER_COLUMNS, AskedBlueprint, plan
from dtef_pipeline.rubric.policy import ScoringPolicy
from dtef_pipeline.rubric.score_rows import chosen_embedder, counted_hash
from dtef_pipeline.rubric.summary_rows import MaterialTables, chosen_analysts
from dtef_pipeline.text.counted import counted
from resources.known_models import known_models
from resources.settings import Settings
from resources.warehouse import Warehouse


@reads_tables
def estimate(warehouse: Warehouse, options: RubricOptions, output: str) -> None:
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
    config = with_owners(options, names, models).config()["rubric_responses"]
    rows = [row for row in ledger.sorted_rows() if row.planned]
    frame = planned_frame(rows)
    if output != "table":
        click.echo(render(frame, output))
        return
    click.echo(f"{counted(len(keys), 'blueprint')}, {counted(responses, 'response')}, snapshot {options.snapshot}\n")
    lacking = sum(row.calls for row in rows if row.model.name.endswith(FOR_KEY_POINTS))
    told = f"{counted(lacking, 'ideal answer')} yet to be read for key points, taken to have {USUAL_POINTS} points each"
    print_planned(frame, [*([told] if lacking else []), *_lines_of_budgets(config, rows, frame), *lines_of_sent(rows)])


def _asked(warehouse: Warehouse, options: RubricOptions, models: Models, keys: Sequence[str]) -> Iterator[AskedBlueprint]:
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
    warehouse: Warehouse, key: str, options: RubricOptions, judges: Sequence[JudgeConfig], head: pa.Table, policy: ScoringPolicy
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


def _lines_of_budgets(config: Mapping[str, Any], rows: Sequence[PlannedCalls], frame: pd.DataFrame) -> Iterator[str]:
    """How the budgets of the run, of its roles and of its models compare with the estimate."""
    yield from lines_of_run_budgets(config, frame)
    names = [row.model.name.removesuffix(FOR_KEY_POINTS) for row in rows]
    of_files = {name: row.model.budget for name, row in zip(names, rows, strict=True)}
    for name, budget in of_files.items():
        chosen = Budget.model_validate(config["budgets"][name]) if name in config["budgets"] else budget
        yield from budget_lines(f"{name}: ", chosen, planned_usage(frame[[one == name for one in names]]))
