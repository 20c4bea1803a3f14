"""Stages of the qa family that read files, look up sources, send requests to a judge under a daily budget, or run programs."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.engine.stage_assets import build_file_source, stage_assets
from assets.qa.lookups import LookUpCache, VectorCache
from assets.qa.part_checks import load_known_suites
from assets.stage.partitions import load_store_models
from assets.stage.resources import Store
from dtef_pipeline.asking.daily_budget import DailyBudget
from dtef_pipeline.asking.episodes import EpisodeResult
from dtef_pipeline.asking.models import Models
from dtef_pipeline.errors import ConfigError, DtefError
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.family.stage import (
    Check,
    EpisodePlan,
    Inputs,
    Lengths,
    Limits,
    Replies,
    Stage,
    Tables,
    make_uniqueness_check,
)
from dtef_pipeline.judging.code_checks import UNDECIDED_CHECKS
from dtef_pipeline.judging.judgement import USUAL_JUDGEMENT_TOKENS
from dtef_pipeline.qa.item_files.socioscope import INTERVIEW_LAYOUT
from dtef_pipeline.qa.item_files.suite_files import AddedFiles, read_added
from dtef_pipeline.qa.judging.arbiter import Arbiter, Arbitration, choose_arbiter, judge_snapshot
from dtef_pipeline.qa.judging.judgement_rows import (
    JUDGED_ITEM_COLUMNS,
    build_judgement_rows,
    build_skipped_rows,
    iterate_looks,
    make_verdict_stand_in,
    merge_with_other_judges,
    select_judged_items,
    select_to_judge,
)
from dtef_pipeline.qa.program import (
    Execution,
    build_execution_rows,
    load_known_verdicts,
    merge_rows_so_far,
    plan_executions,
    select_programs_to_run,
)
from dtef_pipeline.qa.prompt_rows import (
    AskSettings,
    PromptTables,
    build_item_tables,
    build_part_prompts,
    merge_with_other_conditions,
)
from dtef_pipeline.qa.settings import QA_STAGE_SETTINGS, QaSettings
from dtef_pipeline.qa.stages import QA_RESPONSES_STAGE, QA_SCORES_STAGE, resolve_part_condition
from dtef_pipeline.qa.tables import QA_DOCUMENTS, QA_EXECUTIONS, QA_JUDGEMENTS, QA_RESPONSE_KEY, QA_SPACE
from resources.notes import ITEM_NOTES, QaSource
from resources.sandbox.run import choose_level, run_checks_twice
from resources.settings import find_shipped

DATASET_PART = dg.DynamicPartitionsDefinition(name=QA_SPACE.name)

qa_files = build_file_source(
    "qa",
    DATASET_PART,
    """The file or folder of each part of a suite: one partition per part, observed when it is added (`dtef qa add`). Its data version is a
    hash of the files and of the documents added with them; if it changes, the partition of `qa_items` becomes stale at once.""",
)


_FINDINGS_SHOWN = 20
EVIDENCE_SHARE = 0.8
"""The check warns if a smaller share of the items has the evidence in a displayed chunk."""
FAILED_JUDGEMENTS = 0.02
"""Share of judgements without a score above which the check warns."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
"""Seconds between two writes of program results, doubling from the first to the second value; a killed run continues from the last write."""


def read_items(inputs: Inputs, _: QaSettings) -> Tables:
    """Read the items of a part from its files. Raises DtefError if there are none."""
    source = _open_source(inputs)
    spec = load_known_suites(source.suites).route(source.suite)
    # For interviews, a file is a part under the given name.
    part = source.part if spec.layout == INTERVIEW_LAYOUT else None
    corpus = Path(source.corpus) if source.corpus else None
    place = (source.suite, source.path, source.corpus, source.suites, part)
    files: AddedFiles = inputs.remember(place, lambda: read_added(spec, Path(source.path), corpus, part=part))
    tables = build_item_tables(source.suite, source.part, files.loaded_items, files.scorers_of)
    if not len(tables.qa_items):
        errors = files.loaded_items.errors
        raise DtefError(f"{source.key}: it has no usable item{f': {errors[0]}' if errors else ''}")
    return {**tables._asdict(), "qa_documents": _build_documents(source, files.documents)}


def _open_source(inputs: Inputs) -> QaSource:
    source = ITEM_NOTES.read(inputs.outside.warehouse, inputs.key)
    if source is None:
        raise DtefError(f"{inputs.key}: no file is registered; run `dtef qa add SUITE PATH`")
    if source.is_gone:
        raise DtefError(
            f"{source.path} no longer exists. Run `dtef qa add` with the new path of {inputs.key}, or `dtef qa remove {inputs.key}`"
        )
    return source


def _build_documents(source: QaSource, documents: pa.Table | None) -> pa.Table:
    if documents is None:
        return QA_DOCUMENTS.empty_table()
    levels = {"suite": source.suite, "part": source.part}
    columns = [
        pa.array([levels[spec.name]] * len(documents)) if spec.name in levels else documents[spec.name] for spec in QA_DOCUMENTS
    ]
    return pa.table(columns, schema=QA_DOCUMENTS)


def _findings(tables: Tables) -> Mapping[str, Any]:
    findings = tables["qa_findings"]
    columns = ["level", "file", "line", "item_id", "text", "found", "allowed"]
    return {"findings": findings.select(columns).slice(0, _FINDINGS_SHOWN)}


def _list_dropped_rows(_: Inputs, findings: pa.Table) -> Iterator[str]:
    for row in findings.filter(pc.equal(findings["level"], "error")).to_pylist():
        yield f"{row['file']}:{row['line'] or ''} {row['text']}"


def _list_unscorable_items(_: Inputs, items: pa.Table) -> Iterator[str]:
    for row in items.filter(pc.equal(pc.list_value_length(items["scorers"]), 0)).to_pylist():
        yield f"{row['item_id']}: no scorer for the type {row['type']}"


QA_ITEMS_STAGE = Stage(
    "qa_items",
    """Items of a part: one row per item, with its options, its expected answer and its scorers.

    The same step writes `qa_findings` (errors and warnings on rows of the file, with file, line, the value found and the allowed values),
    `qa_examples` (development items for prompts with examples) and `qa_documents` (chunks of the transcripts that items are about).""",
    read_items,
    after=(qa_files.key.to_user_string(),),
    checks=(
        make_uniqueness_check("qa_items", ("item_id",)),
        Check(
            "qa_rows_are_usable",
            "Warns of unusable rows of files.",
            "qa_findings",
            ("level", "file", "line", "text"),
            _list_dropped_rows,
        ),
        Check(
            "qa_items_have_scorers",
            "Warns of items whose type has no scorer.",
            "qa_items",
            ("item_id", "type", "scorers"),
            _list_unscorable_items,
        ),
    ),
    preview=("item_id", "type", "text", "options", "reference"),
    counted_columns=("type",),
    metadata=_findings,
    extra_tables=("qa_findings", "qa_examples", "qa_documents"),
    verb="ingest",
)


def make_prompts(inputs: Inputs, settings: QaSettings) -> Tables:
    """Make the prompts of a part under the settings, and again those of its other conditions, without requests to a server for them."""
    condition = resolve_part_condition(inputs, settings)
    warehouse, items = inputs.outside.warehouse, inputs.read("qa_items")
    earlier = {name: inputs.earlier(name) for name in PromptTables._fields}
    vectors, look_ups = VectorCache(warehouse, inputs.key), LookUpCache(warehouse, inputs.key)
    make = partial(build_part_prompts, items, inputs.rows("qa_examples"), inputs.rows("qa_documents"), embed=vectors)
    ask = look_ups.list_expected if inputs.is_dry else look_ups.fetch_missing
    new = make(settings.ask_settings, look_up=partial(ask, inputs.outside.settings))
    groups: dict[str, PromptTables] = {}
    others = [name for name in pc.unique(earlier["qa_prompts"]["condition"]).to_pylist() if name != condition]
    for name in others:
        # A condition that is no longer possible, such as one with too many examples, keeps its valid rows.
        with suppress(ConfigError):
            groups[name] = make(AskSettings.parse_spelling(name), look_up=look_ups.find_cached)
    groups[condition] = new
    if not inputs.is_dry:
        vectors.keep()
    return {
        name: merge_with_other_conditions(
            rows, pa.concat_tables([getattr(group, name) for group in groups.values()]), groups, items
        )
        for name, rows in earlier.items()
    }


def _compute_retrieval_means(tables: Tables) -> Mapping[str, Any]:
    hits, context = tables["qa_retrieval"], tables["qa_context"]
    means = hits.group_by("condition").aggregate([(name, "mean") for name in ("recall", "mrr", "hit")]) if len(hits) else hits
    failures = pc.unique(context.filter(pc.is_valid(context["problem"]))["item_id"])
    return {**({"retrieval": means} if len(hits) else {}), **({"n_failed_look_ups": len(failures)} if len(failures) else {})}


def _list_missed_evidence(_: Inputs, rows: pa.Table) -> Iterator[str]:
    for row in rows.group_by("condition").aggregate([("hit", "mean")]).to_pylist():
        if row["hit_mean"] < EVIDENCE_SHARE:
            yield f"{row['condition']}: {row['hit_mean']:.0%}"


QA_PROMPTS_STAGE = Stage(
    "qa_prompts",
    """Prompts: one row per item and condition (template, examples, order of options, retriever), with the messages sent to models.

    Prompts of other conditions are kept. For items about documents, `qa_context` has the retrieved chunks by rank, and `qa_retrieval` the
    retrieval scores of items with quotes.

    The result of a retrieval server (retriever `remote`) is stored, and each look-up is made only once. If it fails, the prompt is not sent
    and `qa_context` gives the reason; the prompt has no messages, or those with an earlier server's result. The next run repeats failed
    look-ups.""",
    make_prompts,
    after=("qa_items",),
    settings=QA_STAGE_SETTINGS["qa_prompts"],
    checks=(
        make_uniqueness_check("qa_prompts", ("item_id", "condition")),
        Check(
            "qa_evidence_is_retrieved",
            "Warns of parts where fewer than 80 % of the items have a chunk with the evidence among those shown.",
            "qa_retrieval",
            ("condition", "hit"),
            _list_missed_evidence,
        ),
    ),
    preview=("item_id", "condition", "prompt_id", "messages"),
    counted_columns=("condition",),
    metadata=_compute_retrieval_means,
    extra_tables=("qa_context", "qa_retrieval"),
    verb="prompt",
)


def resolve_run_arbiter(models: Models, settings: QaSettings) -> Arbiter | None:
    """Return the judge, or None if judging is off. Raises ConfigError for an unsuitable model."""
    source = Path(settings.judges) if settings.judges else find_shipped("judges.yaml")
    rate, daily = settings.sample_rate, settings.daily_budget
    return choose_arbiter(source, models, judge=settings.judge, sample_rate=rate, daily_budget=daily)


def judge_limits(store: Store, settings: QaSettings) -> Limits:
    """Return the judge's daily budget."""
    arbiter = resolve_run_arbiter(load_store_models(store), settings)
    if arbiter is None or arbiter.daily_budget is None:
        return Limits()

    def sum_spent_today() -> float:
        midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        return store.responses.sum_spent("judge", midnight)

    return Limits({"judge": DailyBudget(arbiter.daily_budget, sum_spent_today)}, settings.allow_unpriced)


def plan_judgements(inputs: Inputs, settings: QaSettings) -> EpisodePlan | Tables:
    """Plan the requests to the judge about a part's responses; no new rows if judging is off or no item needs it."""
    arbiter, label = resolve_run_arbiter(inputs.models, settings), judge_snapshot(settings.rejudge)
    items = select_judged_items(inputs.read("qa_items", JUDGED_ITEM_COLUMNS))
    if arbiter is None or not items:
        return {"qa_judgements": _merge_judgements(inputs, QA_JUDGEMENTS.empty_table(), arbiter, label)}
    responses, left_out = select_to_judge(inputs.read("qa_responses"), items, arbiter.sample_rate)
    servers = inputs.models.own_servers

    def rows(looks: Sequence[Arbitration], outcomes: Sequence[EpisodeResult]) -> Tables:
        return {"qa_judgements": build_judgement_rows(looks, outcomes, servers)}

    def written(new: Tables) -> Tables:
        judgements = pa.concat_tables([new["qa_judgements"], build_skipped_rows(left_out, items, arbiter, label, servers)])
        return {"qa_judgements": _merge_judgements(inputs, judgements, arbiter, label)}

    expected = {arbiter.model.name: len(responses) * len(arbiter.evaluators)}
    looks = partial(iterate_looks, responses, items, arbiter, label)
    specs, size = [arbiter.model] if len(responses) else [], expected[arbiter.model.name]
    return EpisodePlan(specs, expected, size, looks, rows, written, stand_in=make_verdict_stand_in)


def _merge_judgements(inputs: Inputs, new: pa.Table, arbiter: Arbiter | None, label: str) -> pa.Table:
    """Return the new rows, and other judges' rows on responses that still exist."""
    return merge_with_other_judges(inputs.earlier("qa_judgements"), new, inputs.read("qa_responses"), arbiter, label)


def _report_failed_judgements(_: Inputs, rows: pa.Table) -> Iterator[str]:
    judgements = rows.filter(pc.invert(pc.starts_with(pc.fill_null(rows["reason"], ""), "skipped")))
    n_failed = len(judgements) - judgements["reason"].null_count
    if n_failed > FAILED_JUDGEMENTS * len(judgements):
        yield f"{n_failed:,} of {len(judgements):,} judgements have no score"
    self_judgements = judgements.filter(pc.fill_null(judgements["self_judged"], False))
    for judge in pc.unique(self_judgements["judge_model"]).to_pylist():
        yield f"responses of models by the maker of their judge, {judge}"


QA_JUDGEMENTS_STAGE = Stage(
    "qa_judgements",
    """Judgements of responses that no rule can score: one row per evaluator and response, 0 to 1, with the judge's reason and raw replies.

    Judgements use the response store: the same judge never judges the same answer twice, whatever the snapshot. An unreadable reply is
    requested once more; after that the judgement is null with a reason. Responses outside the sample or over the daily budget have a row
    with that reason. Judgements by other judges are kept. Parts without judged items have no rows.""",
    plan_judgements,
    after=("qa_responses",),
    settings=QA_STAGE_SETTINGS["qa_judgements"],
    version="2",
    asks=True,
    limits=judge_limits,
    checks=(
        make_uniqueness_check("qa_judgements", (*QA_RESPONSE_KEY, "evaluator", "judge_variant", "judge_snapshot", "snapshot")),
        Check(
            "qa_judges_answer",
            "Warns if more than 2 % of the requested judgements have no score, and if judge and judged model have the same maker.",
            "qa_judgements",
            ("reason", "judge_model", "self_judged"),
            _report_failed_judgements,
        ),
    ),
    preview=("item_id", "model", "evaluator", "score", "reason", "explanation"),
    counted_columns=("judge_model", "reason"),
    replies=Replies((Lengths("qa_judgements", "judge_variant", "len(raw)"),), USUAL_JUDGEMENT_TOKENS),
    is_idle=lambda settings, models: resolve_run_arbiter(models, settings) is None,
    verb="judge",
)


def run_programs(inputs: Inputs, settings: QaSettings) -> Tables:
    """Run the programs in responses. Results are written from time to time, together with the earlier rows of unfinished programs."""
    items = inputs.read("qa_items", ["item_id", "scorers", "reference"])
    executions = plan_executions(inputs.read("qa_responses"), items, settings.timeout_s)
    if not executions:
        return {"qa_executions": QA_EXECUTIONS.empty_table()}
    return {"qa_executions": _run_checks(inputs, executions, settings)}


def _run_checks(inputs: Inputs, executions: list[Execution], settings: QaSettings) -> pa.Table:
    level = choose_level(settings.sandbox).level
    earlier = inputs.earlier("qa_executions")
    results = load_known_verdicts(earlier, level)
    pause, due = FIRST_PAUSE_S, 0.0
    tasks = select_programs_to_run(executions, results)
    for key, result in run_checks_twice(tasks, level=settings.sandbox, timeout_s=settings.timeout_s):
        if result is not None:
            results[key] = result
        if time.monotonic() >= due:
            inputs.keep({"qa_executions": merge_rows_so_far(executions, results, earlier)})
            due, pause = time.monotonic() + pause, min(2 * pause, LONGEST_PAUSE_S)
    return build_execution_rows(executions, results)


def _list_unrun_programs(_: Inputs, rows: pa.Table) -> Iterator[str]:
    undecided_rows = rows.filter(pc.is_in(rows["verdict"], pa.array(UNDECIDED_CHECKS, pa.string())))
    yield from pc.unique(undecided_rows["message"]).to_pylist()[:3]


QA_EXECUTIONS_STAGE = Stage(
    "qa_executions",
    """Results of running the code in responses: one row per response to an item with tests, with the verdict and its message.

    A program and its tests run in two isolated processes that exchange only plain data. A program that ran before at the same level is not
    run again. A program that timed out while it waited runs once more, alone, after all others, and that verdict counts. A failure of
    the sandbox is `sandbox_unavailable` or `sandbox_error` and does not count against the response. Parts without code have no rows.""",
    run_programs,
    after=("qa_responses",),
    settings=QA_STAGE_SETTINGS["qa_executions"],
    version="2",
    checks=(
        Check(
            "qa_programs_run",
            "Warns if code could not be run.",
            "qa_executions",
            ("verdict", "message"),
            _list_unrun_programs,
        ),
    ),
    preview=("item_id", "model", "draw", "verdict", "message", "isolation"),
    counted_columns=("verdict", "isolation"),
    unversioned_columns=("wall_s",),
    verb="execute",
)

QA_STAGES = (QA_ITEMS_STAGE, QA_PROMPTS_STAGE, QA_RESPONSES_STAGE, QA_JUDGEMENTS_STAGE, QA_EXECUTIONS_STAGE, QA_SCORES_STAGE)
qa_stage_assets = stage_assets(FAMILY_BY_NAME["qa"], QA_STAGES)
