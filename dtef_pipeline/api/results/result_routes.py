"""Results of the runs of an evaluation: state, metrics, costs, and all texts."""

from __future__ import annotations

import importlib
import re
import threading
from bisect import bisect_right
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple
from urllib.parse import quote

import pyarrow as pa
from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import ConfigDict

from dtef_pipeline.api.access import OperatorToken
from dtef_pipeline.api.answer_schemas import AnswerBody, FamilyName, RowBody, column_schema, describe_row, make_optional
from dtef_pipeline.api.etags import TAGGED, build_tagged_response
from dtef_pipeline.api.problems import Problem
from dtef_pipeline.api.queue.evaluation_progress import compute_progress
from dtef_pipeline.api.queue.queue_routes import CallCosts, RunState, build_run_body
from dtef_pipeline.api.results.run_context import RunContext, UsageTotals, build_outcomes_body
from dtef_pipeline.api.services import ServicesDep
from dtef_pipeline.errors import UnknownEvaluation
from dtef_pipeline.games.tables import EPISODE_TURNS, EPISODES
from dtef_pipeline.tables import CALL
from resources.evaluations.evaluation_store import round_dollars

if TYPE_CHECKING:
    from dtef_pipeline.api.results.family_results import FamilyResults


_TRACED_COLUMNS = (
    *("model", "model_variant", "temperature", "draw", "snapshot", "prompt_id", "finish_reason", "served_model"),
    *("prompt_tokens", "completion_tokens", "cost_usd", "latency_s", "attempts", "answered_at"),
)


class _RunTrace(RowBody):
    trace_id: str
    run_id: str


class ConversationMessage(AnswerBody):
    """A message of a conversation."""

    role: str
    """system, user or assistant."""
    text: str


class GameTurn(RowBody):
    """A text of a model in an episode, opponents included."""

    model_config = describe_row(EPISODE_TURNS)


class GameTrace(_RunTrace):
    """A whole episode: a game as one player played it."""

    model_config = describe_row(EPISODES)

    opening: list[ConversationMessage]
    """Messages before the first text of the player; empty: another seat moves first, or the messages are no longer stored."""
    turns: list[GameTurn]
    """In the order of play."""


class RunResponse(_RunTrace):
    """A response of a model with its scores."""

    model_config = describe_row(pa.schema(CALL), _TRACED_COLUMNS)

    status: str
    """answered or ok: there is a response; empty: it is blank; error, missing or budget: there is none, see `reason`."""
    text: str | None
    """Text of the response; null: there is none."""
    reason: str | None
    """Why there is no response."""


class ItemTrace(RunResponse):
    """A response with its rows in other tables of the family, without the columns that it has itself."""

    scores: list[dict[str, Any]]
    """Its scores: per question, item and metric, or per criterion."""


class JudgedTrace(ItemTrace):
    """A response that judges may have judged."""

    judgements: list[dict[str, Any]]
    """The judges' verdicts."""


class RubricTrace(JudgedTrace):
    """A response to a prompt of a blueprint. Scores and judgements are empty if other judges have judged since."""

    prompt: str
    """Id of the prompt, unique within its blueprint."""
    system_index: int | None
    """Place of the system prompt in the prompt's list, from 0."""
    transcript: list[ConversationMessage] | None
    """The whole conversation, with requests and responses."""
    remark: str | None
    """Why there are no scores: other judges have judged the response since. Null: the verdicts of its own judges exist."""


TraceBody = GameTrace | RubricTrace | JudgedTrace | ItemTrace
"""By the family of the run."""


_RESULTS_CLASSES = {"games": "GamesResults", "qa": "QaResults", "rubric": "RubricResults", "survey": "SurveyResults"}
"""Classes of families that need more than `FamilyResults`."""
_MAX_CACHED_RUNS = 20


def load_results(run: RunContext) -> FamilyResults:
    """Return the results of a run. The module of the family, which loads large packages, is imported here."""
    return _load_results_class(run.evaluation.family)(run)


def _load_results_class(family: str) -> type[FamilyResults]:
    module = f"run_results_{family}" if family in _RESULTS_CLASSES else "family_results"
    source = importlib.import_module(f"dtef_pipeline.api.results.{module}")
    results_class: type[FamilyResults] = getattr(source, _RESULTS_CLASSES.get(family, "FamilyResults"))
    return results_class


def add_board_columns(schema: dict[str, Any]) -> None:
    """Add the columns of the families' boards to the schema of a metric, with the tables' descriptions."""
    from dtef_pipeline.families import TABLES

    columns: dict[str, dict[str, Any]] = {}
    for family in _RESULTS_CLASSES:
        results_class = _load_results_class(family)
        for name in results_class.board_columns:
            schema_of_board = TABLES[results_class.board].schema
            assert schema_of_board is not None, results_class.board
            details = column_schema(schema_of_board.field(name))
            entry = columns.setdefault(name, details | {"description": ""})
            entry["description"] += f"{'; ' if entry['description'] else ''}{details['description']} ({family})"
    schema["properties"] |= {name: column for name, column in columns.items() if name not in schema["properties"]}


class Results(NamedTuple):
    """The results of a run."""

    metrics: list[dict[str, Any]]
    outcomes: dict[str, Any]
    cost: UsageTotals
    call_costs: UsageTotals
    """Cost of the calls that a Dagster run of this evaluation made."""
    traces: list[str]


def make_results(family: FamilyResults) -> Results:
    """Make the results of a run from the present tables."""
    counts, traces = family.counts(), family.traces()
    # Without rows the cost of this run is unknown; the evaluation reports the cost of its calls.
    unknown = UsageTotals(usd=None)
    cost, purchase = (family.cost(), family.run.sum_call_costs(family.request_keys())) if traces else (unknown, unknown)
    return Results(family.metrics(counts), build_outcomes_body(counts, family.unit), cost, purchase, traces)


_results_lock = threading.Lock()
_run_locks: dict[str, threading.Lock] = {}
_latest_results: dict[str, tuple[tuple[Any, ...], Results]] = {}
"""By run id, the latest requested last: the stamp of their sources, and the results."""


def load_run_results(run: RunContext) -> Results:
    """Return the results of a run. They are computed again only if its sources have changed; concurrent callers share one computation."""
    family, run_id = load_results(run), run.run.run_id
    with _results_lock:
        run_lock = _run_locks.setdefault(run_id, threading.Lock())
    with run_lock:
        stamp = run.source_stamp(family.source_tables)
        before, results = _latest_results.get(run_id, (None, None))
        if results is None or before != stamp:
            results = make_results(family)
        with _results_lock:
            _latest_results.pop(run_id, None)
            _latest_results[run_id] = stamp, results
            if len(_latest_results) > _MAX_CACHED_RUNS:
                oldest = next(iter(_latest_results))
                del _latest_results[oldest]
                _run_locks.pop(oldest, None)
    return results


RUN_PATH = "/api/evaluations/{run_id}"
MAX_TRACES = 200
_RUN_ID = re.compile(r"[0-9a-f]{1,64}")
_LONGEST_TRACE_ID = 200

router = APIRouter()


class RunMetric(AnswerBody):
    """A metric of a model. Only some families have the fields after `remark`, most of which are columns of their boards."""

    model_config = ConfigDict(json_schema_extra=add_board_columns)

    model: str
    metric: str
    value: float | None
    """null: see `reason`."""
    n: int
    """Number of units in the mean: episodes, items, prompts or predicted pairs with a score."""
    n_requested: int | None
    """Value of `n` if all requests had a scored response; null: unknown."""
    low: float | None
    """Lower end of the 95 % interval."""
    high: float | None
    """Upper end of the 95 % interval."""
    reason: str | None
    """Why there is no value or no interval."""
    remark: str | None
    """Notes on the value: missing responses, unreadable ones, or moves made for the model; null: none."""
    direction: Literal["higher", "lower", "none"] = make_optional()
    """Better direction."""
    n_responses: int = make_optional()
    """Responses with a score (rubric)."""


class RunCost(CallCosts):
    """Cost of the calls behind the rows of a run, whoever paid for them; each counts once.

    If two runs of an evaluation share a call, both include its cost. Before a run has rows, `usd` is null; `call_costs` in the evaluation's
    last event has its total.
    """

    call_costs: CallCosts
    """Calls made for this evaluation while it ran; the others were stored before."""


class OutcomeTotals(AnswerBody):
    """Outcomes of a run's planned requests, over all its models."""

    unit: Literal["episode", "response", "prediction"]
    """The counted unit."""
    n_planned: int | None
    """Planned number; null: unknown until the prompts are made."""
    answered: int
    """Finished episodes, or responses received."""
    failed: int
    """Failed, or without data to predict from."""
    skipped: int
    """Left out because a budget was used up."""
    scored: int
    """With a score in at least one metric."""
    warning: str | None
    """What is missing, in words; null: nothing."""


class TracePage(AnswerBody):
    """URIs of traces in the order of their ids, and the URI of the next page."""

    traces: list[str]
    traces_next: str | None
    """Null: this is the last page."""


class RunOutcome(TracePage, RunState):
    """Results of a run so far."""

    queue_id: str
    """Id of its evaluation."""
    family: FamilyName
    snapshot: str
    """Label of its rows."""
    outcomes: OutcomeTotals
    metrics: list[RunMetric]
    cost: RunCost


def run_context(run_id: str, services: ServicesDep) -> RunContext:
    """Return a run with the place of its rows. Raises UnknownEvaluation."""
    from resources.warehouse import Warehouse

    if not _RUN_ID.fullmatch(run_id):
        raise UnknownEvaluation(f"unknown evaluation run {run_id[:80]!r}")
    evaluation, run = services.evaluations.run(run_id)
    return RunContext(evaluation, run, services.settings, Warehouse(services.settings.warehouse))


RunDep = Annotated[RunContext, Depends(run_context)]


@router.get(RUN_PATH, response_model=RunOutcome, **TAGGED)
def read_run(request: Request, services: ServicesDep, holder: OperatorToken, context: RunDep) -> Response:
    """Results of a run so far. `value` is null, with a reason, if nothing is scored; `traces_next` is the next page of traces."""
    evaluation, run = context.evaluation, context.run
    events = services.evaluations.events(run.queue_id)
    state = compute_progress(evaluation, events).runs[run.run_id]
    results = load_run_results(context)
    body = {
        **build_run_body(run, state),
        "queue_id": run.queue_id,
        "family": evaluation.family,
        "snapshot": context.snapshot,
        "outcomes": results.outcomes,
        "metrics": results.metrics,
        "cost": {**_build_cost_body(results.cost), "call_costs": _build_cost_body(results.call_costs)},
        **_build_page(context, results.traces, "", MAX_TRACES),
    }
    return build_tagged_response(request, body)


def _build_cost_body(usage: UsageTotals) -> dict[str, Any]:
    return {**usage._asdict(), "usd": round_dollars(usage.usd)}


@router.get(f"{RUN_PATH}/traces", response_model=TracePage, **TAGGED)
def list_traces(
    request: Request,
    holder: OperatorToken,
    context: RunDep,
    after: Annotated[str, Query(max_length=_LONGEST_TRACE_ID)] = "",
    limit: Annotated[int, Query(ge=1, le=MAX_TRACES)] = MAX_TRACES,
) -> Response:
    """The URIs of traces in the order of their ids, starting after `after`."""
    return build_tagged_response(request, _build_page(context, load_run_results(context).traces, after, limit))


@router.get(f"{RUN_PATH}/traces/{{trace_id}}", response_model=TraceBody, **TAGGED)
def read_trace(request: Request, holder: OperatorToken, context: RunDep, trace_id: str) -> Response:
    """A trace: for games a whole episode with its turns, otherwise a prompt with its response and scores."""
    return build_tagged_response(request, load_trace(context, trace_id))


def load_trace(context: RunContext, trace_id: str) -> dict[str, Any]:
    """Load a trace of the run. Raises Problem if it does not exist."""
    trace = load_results(context).trace(trace_id) if len(trace_id) <= _LONGEST_TRACE_ID else None
    if trace is None:
        raise Problem(404, f"the run {context.run.run_id} has no trace {trace_id[:80]!r}")
    return {"trace_id": trace_id, "run_id": context.run.run_id, **trace}


def build_trace_uri(run_id: str, trace_id: str) -> str:
    """Return the URI of a trace."""
    return f"/api/evaluations/{run_id}/traces/{quote(trace_id, safe='')}"


def _build_page(context: RunContext, traces: list[str], after: str, limit: int) -> dict[str, Any]:
    """Return at most `limit` URIs, and the URI of the next page (None: there is none)."""
    run_id = context.run.run_id
    later = traces[bisect_right(traces, after) :]
    is_last = len(later) <= limit
    return {
        "traces": [build_trace_uri(run_id, trace_id) for trace_id in later[:limit]],
        "traces_next": None
        if is_last
        else f"/api/evaluations/{run_id}/traces?after={quote(later[limit - 1], safe='')}&limit={limit}",
    }
