"""Stages of the qa family that need only tables, settings and responses: the responses of models and their scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.calls import CallTable
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Failure, Message, Request
from dtef_pipeline.errors import ConfigError, DtefError
from dtef_pipeline.family.stage import (
    CallPlan,
    Check,
    Inputs,
    Lengths,
    Replies,
    Stage,
    Tables,
    make_failure_check,
    make_uniqueness_check,
)
from dtef_pipeline.identity import request_keys
from dtef_pipeline.qa.item_prompts import stop_sequences
from dtef_pipeline.qa.judging.judgement_rows import build_citation_rows, load_shown_sources
from dtef_pipeline.qa.scoring import (
    PartScoring,
    group_by_response,
    list_judges,
    list_levels,
    load_asked_items,
    score_rows,
    select_formulas,
)
from dtef_pipeline.qa.settings import QA_STAGE_SETTINGS, QaSettings
from dtef_pipeline.qa.tables import QA_CITATIONS, QA_RESPONSE_KEY, QA_RESPONSES
from dtef_pipeline.qa.transcripts.retriever import REMOTE

_QA_PROMPT_KEYS = ("suite", "part", "item_id", "condition", "prompt_id")
QA_CALLS = CallTable(QA_RESPONSES, _QA_PROMPT_KEYS, ("item_id", "condition"), lambda options, reading: ())
"""The stage `qa_responses`, which reads `qa_prompts`."""


def build_qa_requests(prompts: pa.Table, model: ModelSpec, draws: int, snapshot: str) -> list[Request]:
    """Return one request per (prompt, draw); items with the same prompt share its requests.

    `prompts`: rows of `qa_prompts`; those without messages, whose look-up failed, make no request. Raises ConfigError if a prompt's id does
    not match its messages, because its response would be stored under a key that is never looked up.
    """
    prompts = prompts.filter(pc.greater(pc.list_value_length(prompts["messages"]), 0))
    columns = ["prompt_id", "messages", "response_schema", "answer_tokens", "n_examples"]
    distinct = {row["prompt_id"]: row for row in prompts.select(columns).to_pylist()}
    requests = []
    for (prompt, row), draw in product(distinct.items(), range(draws)):
        turns = [Message(message["role"], message["text"]) for message in row["messages"]]
        options: dict[str, Any] = {name: row[name] for name in ("response_schema", "answer_tokens")}
        stop = stop_sequences(row["n_examples"] or 0, len(turns))
        request = Request.build_request(turns, model, draw, snapshot, **options, stop=stop)
        if request.prompt_id != prompt:
            raise ConfigError(f"prompt {prompt}: its messages do not match its id. Make the prompts of the part again")
        requests.append(request)
    return requests


def explain_failed_look_ups(prompts: pa.Table, context: pa.Table) -> dict[str, str]:
    """Return the reason of each failed look-up by prompt id, including prompts that use earlier results. `context`: rows of `qa_context` of
    the part."""
    failed = context.filter(pc.is_valid(context["problem"])).to_pylist()
    problems = {(row["item_id"], row["condition"]): row["problem"] for row in failed}
    reasons = {}
    for row in prompts.select(["item_id", "condition", "prompt_id", "messages"]).to_pylist():
        place = row["item_id"], row["condition"]
        if not row["messages"] or place in problems:
            reasons[row["prompt_id"]] = problems.get(place, "the reason is not known")
    return reasons


def list_unsent_requests(
    look_ups: Mapping[str, str], models: Sequence[ModelSpec], draws: int, snapshot: str
) -> dict[str, Failure]:
    """Return by request key the failures of prompts that are not sent and have no stored response. `look_ups`: see
    `explain_failed_look_ups`."""
    failures = {}
    for model, draw in product(models, range(draws)):
        for key, reason in zip(request_keys(look_ups, model.variant, draw, snapshot), look_ups.values(), strict=True):
            failures[key] = Failure(key, f"was not sent, because the look-up of its sources failed: {reason}", 0)
    return failures


def build_qa_response_rows(
    prompts: pa.Table,
    models: Sequence[ModelSpec],
    draws: int,
    snapshot: str,
    responses: pa.Table,
    failures: Mapping[str, Failure],
) -> pa.Table:
    """Return the rows of `qa_responses` for these prompts and models. `responses` (a superset is allowed) and failures are keyed by request
    key."""
    tables = [QA_CALLS.build_answered_rows(prompts, model, draws, snapshot, responses, failures) for model in models]
    return pa.concat_tables([QA_RESPONSES.empty_table(), *tables])


def select_condition_prompts(prompts: pa.Table, condition: str, limit: int | None) -> pa.Table:
    """Return the prompts of one condition, at most `limit` of them: evenly spread over the part and the same in every run."""
    rows = prompts.filter(pc.equal(prompts["condition"], condition))
    if limit is None or limit >= len(rows):
        return rows
    return rows.take([index * len(rows) // limit for index in range(limit)])


READABLE_RESPONSES = 0.9
"""The check warns if a smaller share of a model's responses is readable."""


def resolve_part_condition(inputs: Inputs, settings: QaSettings) -> str:
    """Return the condition of a part under these settings."""
    types = pc.unique(inputs.read("qa_items", ["type"])["type"]).to_pylist()
    return settings.ask_settings.condition(types, about_documents=bool(len(inputs.rows("qa_documents", ["doc_id"]))))


def plan_responses(inputs: Inputs, settings: QaSettings) -> CallPlan:
    """Plan the requests to models for a part. Raises ConfigError for a computed model, and DtefError if the condition has no prompts."""
    specs = inputs.models.resolve(settings.models) if settings.models else ()
    if names := [spec.name for spec in specs if spec.is_computed]:
        raise ConfigError(
            f"model {', '.join(names)}: it is computed from survey data and takes no requests; allowed: a language model"
        )
    every = inputs.read("qa_prompts")
    condition = resolve_part_condition(inputs, settings)
    prompts = select_condition_prompts(every, condition, settings.limit)
    if not len(prompts):
        conditions = ", ".join(pc.unique(every["condition"]).to_pylist())
        raise DtefError(
            f"{inputs.key}: no prompts of condition {condition!r}; existing conditions: {conditions}. Run `qa_prompts` with the same "
            "settings first"
        )
    failed_look_ups: Mapping[str, str] = {}
    if settings.retriever == REMOTE:
        failed_look_ups = explain_failed_look_ups(prompts, inputs.rows("qa_context", ["item_id", "condition", "problem"]))
    if failed_look_ups:
        inputs.describe(n_failed_look_ups=len(failed_look_ups))
    draws, snapshot = settings.draws, settings.snapshot
    # Prompts with a failed look-up are not sent, but their stored responses count.
    make_requests = cache(lambda: [request for spec in specs for request in build_qa_requests(prompts, spec, draws, snapshot)])

    def rows(responses: pa.Table, failures: Mapping[str, Failure]) -> Tables:
        unsent = list_unsent_requests(failed_look_ups, specs, draws, snapshot)
        return {"qa_responses": build_qa_response_rows(prompts, specs, draws, snapshot, responses, {**failures, **unsent})}

    def merge_with_stored(new: Tables) -> Tables:
        return {"qa_responses": QA_CALLS.merge_rows(inputs.earlier("qa_responses"), new["qa_responses"], every)}

    count = (len(prompts) - len(failed_look_ups)) * draws
    return CallPlan(
        specs,
        {spec.name: count for spec in specs},
        count * len(specs),
        lambda: [request for request in make_requests() if request.prompt_id not in failed_look_ups],
        lambda: [request.key for request in make_requests()],
        rows,
        merge_with_stored,
    )


QA_RESPONSES_STAGE = Stage(
    "qa_responses",
    """Responses of the models: one row per (item, condition, model variant, draw) of a part and snapshot.

    Every response is committed to the response store before it is used, so a rerun continues where a run stopped and asks nothing twice. A call
    that failed for good is a row of status `error` with its message, and so is one that was not made because a look-up failed and no response of
    it is stored. Rows of models and conditions that were asked earlier stay.""",
    plan_responses,
    after=("qa_prompts",),
    settings=QA_STAGE_SETTINGS["qa_responses"],
    version="2",
    asks=True,
    checks=(
        make_uniqueness_check("qa_responses", (*QA_RESPONSE_KEY, "snapshot")),
        make_failure_check("qa_calls_succeed", "qa_responses", "call_status", "calls"),
    ),
    preview=("item_id", "condition", "model", "call_status", "finish_reason", "response"),
    counted_columns=("call_status", "model", "condition"),
    replies=Replies((Lengths("qa_responses"),)),
    verb="ask",
)


def score_part(inputs: Inputs, settings: QaSettings) -> Tables:
    """Return the scores of a part's responses, and every quotation in them."""
    items, responses = inputs.read("qa_items"), inputs.read("qa_responses")
    documents, context = inputs.rows("qa_documents"), inputs.rows("qa_context")
    judgements, executions = inputs.rows("qa_judgements"), inputs.rows("qa_executions")
    citations = (
        build_citation_rows(responses, load_shown_sources(context, documents)) if len(documents) else QA_CITATIONS.empty_table()
    )
    questions = load_asked_items(items, inputs.read("qa_prompts"))
    scoring = PartScoring(
        questions,
        select_formulas(questions.values()),
        settings.scoring,
        group_by_response(judgements),
        {name: rows[0] for name, rows in group_by_response(executions).items()},
        group_by_response(citations),
        len(documents) > 0,
        list_judges(judgements),
        list_levels(executions),
    )
    return {
        "qa_scores": score_rows(responses, items, scoring.compute_scores_of, scoring.measures(), scoring.is_outside_sample),
        "qa_citations": citations,
    }


def _summarise_mean_scores(tables: Tables) -> Mapping[str, Any]:
    rows = tables["qa_scores"]
    means = rows.group_by(["model", "condition", "metric"]).aggregate([("score", "mean"), ("score", "count")])
    return {"means": means.sort_by([("score_mean", "descending")])}


def _list_impossible_scores(_: Inputs, rows: pa.Table) -> Iterator[str]:
    outside = pc.or_(pc.less(rows["score"], 0), pc.greater(rows["score"], 1))
    silent = pc.xor(pc.equal(rows["status"], "ok"), pc.is_valid(rows["value"]))
    for row in rows.filter(pc.or_(pc.fill_null(outside, False), silent)).to_pylist():
        yield f"{row['item_id']} {row['model']}: {row['status']}, {row['value']}"


def _list_unreadable_models(_: Inputs, rows: pa.Table) -> Iterator[str]:
    frame = rows.to_pandas()
    read = frame[frame["status"].isin(["ok", "unparseable"])]
    shares = (read["status"] == "ok").groupby([read["model"], read["metric"]]).mean()
    for (model, metric), share in shares[shares < READABLE_RESPONSES].items():
        yield f"{model}, {metric}: {share:.1%} read"


QA_SCORES_STAGE = Stage(
    "qa_scores",
    """Scores of responses: one row per response, scorer and metric, 0 to 1, with the rule that read the response and its flags.

    What cannot be read has no value and the score 0. If the response is not at fault (a failed call, judge or sandbox; not in the sample),
    value and score are null, with a reason. The stage also writes `qa_citations`: every quotation of a response, looked up in the source that it
    names. The stage makes no API calls and runs no code.""",
    score_part,
    after=("qa_judgements", "qa_executions"),
    settings=QA_STAGE_SETTINGS["qa_scores"],
    version="3",
    checks=(
        make_uniqueness_check("qa_scores", (*QA_RESPONSE_KEY, "scorer", "metric", "measured_by", "snapshot")),
        Check(
            "qa_scores_have_reasons",
            "Scores are 0 to 1, and a missing value has a status that says why.",
            "qa_scores",
            ("item_id", "model", "status", "value", "score"),
            _list_impossible_scores,
            blocking=True,
        ),
        Check(
            "qa_responses_are_readable",
            "Warns if more than a tenth of a model's responses could not be read.",
            "qa_scores",
            ("model", "metric", "status"),
            _list_unreadable_models,
        ),
    ),
    preview=("item_id", "model", "metric", "status", "score", "read_by", "reason"),
    counted_columns=("status",),
    metadata=_summarise_mean_scores,
    extra_tables=("qa_citations",),
    verb="score",
)
