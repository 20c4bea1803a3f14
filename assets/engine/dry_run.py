"""The estimate of a run: its stages plan their requests as in the run itself, but nothing is sent or written.

Stored responses are replayed. A request without a response is counted, and gets a stand-in of the usual length, so that later turns,
judgements and stages can be planned. Stages without requests run in memory if a later one reads their tables.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from math import inf
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from assets.engine.stage_inputs import Shared, StageInputs, is_first_snapshot_stage
from assets.stage.partitions import require_snapshot
from dtef_pipeline.asking.call_plan import PlannedCalls, PlannedTotals, prompt_tokens
from dtef_pipeline.asking.embeddings import hash_text, split_text_batches
from dtef_pipeline.asking.episodes import Episode, EpisodeResult, index_responses, split_into_windows
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import CANDIDATE, EMBEDDER, Message, Request, Response
from dtef_pipeline.errors import DtefError
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.family.record import Family
from dtef_pipeline.family.run_settings import RunSettings
from dtef_pipeline.family.stage import CallPlan, EpisodePlan, Forecast, Lengths, Stage, Tables, concatenate_tables
from resources.gateway.embedder import NOTHING_EMBEDDED, EmbeddingResult
from resources.model_catalog import load_known_models
from resources.responses.store import RESPONSES, ResponseStore
from resources.settings import Settings
from resources.warehouse import Warehouse

_STAND_IN_MARK = re.compile("zq[a-p]{16}")
"""A marker in stand-ins, which makes equal texts of different requests differ."""
_MARK_TOKENS = 3
_STAND_IN_WORD = " say"
"""One token by `estimate_tokens`, and about as many characters as in prose."""
_HEX_AS_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_CUT = "length"
_UNFORESEEN = Forecast()


class Outside(NamedTuple):
    """`Inputs.outside` of an estimate."""

    warehouse: Warehouse
    settings: Settings
    responses: ResponseStore


@dataclass
class DryRun:
    """The planned requests of a run."""

    counts: PlannedTotals = field(default_factory=PlannedTotals)
    sizes: Counter[str] = field(default_factory=Counter)
    """Number of results by stage: responses, judgements, episodes."""
    descriptions: defaultdict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    """Values that stages describe for partitions, by name."""
    assumed: dict[str, float] = field(default_factory=dict)
    """Assumed tokens of a reply, by name of a model without known replies."""
    foreseen: dict[str, None] = field(default_factory=dict)
    """Names of models without known replies whose stage predicts the length per request."""
    failures: dict[str, DtefError] = field(default_factory=dict)
    """Why a partition would fail. Plans up to that point count."""


def dry_run(
    family: Family,
    stages: Sequence[Stage],
    settings: RunSettings,
    keys: Sequence[str],
    outside: Outside,
    only: Mapping[str, Collection[str]] | None = None,
) -> DryRun:
    """Return the planned requests of these stages for the partitions `keys`.

    `only`: the partitions of a stage, if not all. Raises DtefError if no partition can be planned.
    """
    planner = _Planner(family, stages, settings, outside, keys, only or {})
    with planner.exit_stack:
        for key in keys:
            try:
                planner.partition(key).plan()
            except DtefError as error:
                planner.result.failures[key] = error
            del planner.partitions[key]
    if keys and len(planner.result.failures) == len(keys):
        raise planner.result.failures[keys[0]]
    return planner.result


class _Planner:
    """The shared state of an estimate's partitions."""

    def __init__(
        self,
        family: Family,
        stages: Sequence[Stage],
        settings: RunSettings,
        outside: Outside,
        keys: Sequence[str],
        only: Mapping[str, Collection[str]],
    ) -> None:
        self.family, self.settings, self.outside, self.store = family, settings, outside, outside.responses
        self.keys, self._stages, self._only = keys, stages, only
        self.partitions: dict[str, _Partition] = {}
        """Partitions whose tables may be kept in memory."""
        self.models = load_known_models(outside.settings, COMPUTED_MODELS)
        self.result, self.exit_stack = DryRun(), ExitStack()
        self.shared = {stage.name: Shared() for stage in stages}
        for shared in self.shared.values():
            self.exit_stack.push(shared.exit_stack)
        self.makers = {table: stage for stage in stages for table in (stage.name, *stage.extra_tables)}
        self.asking = {stage.name for stage in stages if stage.asks_models and not stage.is_idle(settings, self.models)}
        self.read_later = _read_by_asking(stages, self.asking)
        self._lengths: dict[str, dict[str, float]] = {}

    def partition(self, key: str) -> "_Partition":
        """Return the partition, with its tables so far."""
        if key not in self.partitions:
            stages = [stage for stage in self._stages if key in self._only.get(stage.name, self.keys)]
            self.partitions[key] = _Partition(self, key, stages)
        return self.partitions[key]

    def row(self, stage: Stage, request: Request, forecast: Forecast = _UNFORESEEN) -> PlannedCalls:
        behind_name = stage.replies.name_suffix + forecast.name_suffix
        return self.result.counts.row(request.role, request.model, behind_name)

    def estimate_reply_tokens(self, stage: Stage, request: Request, forecast: Forecast = _UNFORESEEN) -> float:
        """Return the usual number of tokens of a reply to the request."""
        if stage.name not in self._lengths:
            self._lengths[stage.name] = compute_mean_lengths(self.outside.warehouse, stage.replies.lengths)
        usual = self._lengths[stage.name].get(request.model.variant + forecast.setting)
        if usual is None:
            usual = self._assume_tokens(stage, request, forecast)
        return min(float(usual), _estimate_max_tokens(request))

    def _assume_tokens(self, stage: Stage, request: Request, forecast: Forecast) -> float:
        """Return the same without known replies, and record the assumption."""
        name = self.row(stage, request, forecast).name
        if forecast.usual_tokens is not None:
            self.result.foreseen[name] = None
            return forecast.usual_tokens
        if stage.replies.usual_tokens is None:
            return request.answer_tokens or 0
        self.result.assumed[name] = stage.replies.usual_tokens
        return stage.replies.usual_tokens


def _read_by_asking(stages: Sequence[Stage], asking: Collection[str]) -> set[str]:
    """Return the stages whose tables a later one of `asking` may read, directly or through others."""
    names: set[str] = set()
    for stage in reversed(stages):
        if stage.name in asking or stage.name in names:
            names.update(stage.after)
    return names


class _DryInputs(StageInputs):
    """`Inputs` of an estimate: tables planned so far take precedence over the warehouse."""

    is_dry = True

    def __init__(self, partition: "_Partition", stage: Stage) -> None:
        planner = partition.planner
        shared = planner.shared[stage.name]
        super().__init__(planner.outside, planner.family.space, partition.key, planner.settings.snapshot, shared)
        self._partition, self._stage, self.models = partition, stage, planner.models

    @property
    def all_keys(self) -> Sequence[str]:
        return self._partition.planner.keys

    def at(self, key: str) -> "_DryInputs":
        return _DryInputs(self._partition.planner.partition(key), self._stage)

    def read(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        result = self._partition.table(table)
        return super().read(table, columns) if result is None else result.select(list(columns or result.column_names))

    def rows(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        result = self._partition.table(table)
        return super().rows(table, columns) if result is None else result.select(list(columns or result.column_names))

    def keep(self, tables: Tables) -> None:
        """Do nothing: estimates write nothing."""

    def warn(self, line: str) -> None:
        """Do nothing: warnings are for runs."""

    def describe(self, **metadata: Any) -> None:
        for name, value in metadata.items():
            self._partition.planner.result.descriptions[name].append(value)

    def embed(self, texts: Sequence[str], spec: ModelSpec, n_known: int) -> EmbeddingResult:
        """Count the texts. Those without a vector stay without one."""
        row = self._partition.planner.result.counts.row(EMBEDDER, spec)
        row.planned += n_known + len(texts)
        row.requests += n_known + len(texts)
        row.replayed += n_known
        if texts and not spec.is_local:
            calls, messages = len(split_text_batches(sorted(texts, key=hash_text))), [Message("user", text) for text in texts]
            tokens = prompt_tokens(messages)
            row.send(tokens, 0, calls)
            row.may_send(tokens + self._partition.longer(messages), 0, calls)
        return NOTHING_EMBEDDED


class _Partition:
    """One partition: its stages' tables so far, pending ones, and their counts."""

    def __init__(self, planner: _Planner, key: str, stages: Sequence[Stage]) -> None:
        self.planner, self.key, self._stages = planner, key, stages
        self._tables: dict[str, pa.Table] = {}
        self._waiting: dict[str, Callable[[], Tables]] = {
            stage.name: partial(self._make_tables, stage) for stage in stages if stage.name not in planner.asking
        }
        """Functions that make a stage's tables when they are first read, by stage."""
        self._longer: dict[str, float] = {}
        """Tokens that a reply may have beyond those of its stand-in, by the stand-in's mark."""

    def plan(self) -> None:
        """Plan the stages one after the other."""
        for stage in self._stages:
            if stage.name not in self.planner.asking:
                continue
            with stage.context():
                if is_first_snapshot_stage(stage):
                    warehouse, snapshot = self.planner.outside.warehouse, self.planner.settings.snapshot
                    require_snapshot(warehouse, stage.name, self.planner.family.space, [self.key], snapshot)
                result = self._make(stage)
                if isinstance(result, CallPlan):
                    self._waiting[stage.name] = self._plan_calls(stage, result)
                elif isinstance(result, EpisodePlan):
                    self._waiting[stage.name] = self._plan_episodes(stage, result)
                else:
                    self._tables |= result

    def _make(self, stage: Stage) -> Tables | EpisodePlan | CallPlan:
        return stage.make(_DryInputs(self, stage), self.planner.settings)

    def _make_tables(self, stage: Stage) -> Tables:
        tables = self._make(stage)
        assert not isinstance(tables, (EpisodePlan, CallPlan)), f"{stage.name} is not a stage that asks"
        return tables

    def table(self, name: str) -> pa.Table | None:
        """Return a table of these stages, or None to use the warehouse's."""
        stage = self.planner.makers.get(name)
        if stage is not None and (make := self._waiting.pop(stage.name, None)) is not None:
            try:
                with stage.context():
                    self._tables |= make()
            except DtefError:
                self._waiting[stage.name] = make  # the next reader fails as well
                raise
        return self._tables.get(name)

    def longer(self, messages: Sequence[Message]) -> float:
        """Return the tokens by which a prompt is longer if its stand-ins are as long as replies can be."""
        if not self._longer:
            return 0.0
        return sum(self._longer.get(mark, 0.0) for message in messages for mark in _STAND_IN_MARK.findall(message.text))

    def _plan_calls(self, stage: Stage, plan: CallPlan) -> Callable[[], Tables]:
        """Count the requests, and return the function that makes the tables."""
        self.planner.result.sizes[stage.name] += plan.size
        requests, forecasts = list(plan.requests()), plan.foresee()
        stored_keys = self.planner.store.find_known_keys(request.key for request in requests)
        for request in requests:
            reply = forecasts.get(request.key, _UNFORESEEN)
            if self.count(stage, request, reply, is_stored=request.key in stored_keys):
                self.may_send(self.planner.row(stage, request, reply), request)

        def make() -> Tables:
            lacking = [call for call in requests if call.key not in stored_keys]
            stand_ins = [_make_response(call, self.make_stand_in(stage, call)) for call in lacking]
            responses = pa.concat_tables([self.planner.store.responses(plan.keys()), _build_response_table(stand_ins)])
            return plan.merge_with_stored(plan.rows(responses, {}))

        return make

    def _plan_episodes(self, stage: Stage, plan: EpisodePlan) -> Callable[[], Tables]:
        """Play the episodes, count their requests, and return the function that makes the tables."""
        self.planner.result.sizes[stage.name] += plan.size
        playing, parts = _Playing(self, stage, plan), [plan.rows((), ())]
        for episodes in split_into_windows(plan.episodes(), stage.at_a_time):
            outcomes = playing.play(episodes)
            if stage.name in self.planner.read_later:
                parts.append(plan.rows(episodes, outcomes))
        playing.close()
        return lambda: plan.merge_with_stored(concatenate_tables(parts))

    def count(self, stage: Stage, request: Request, forecast: Forecast = _UNFORESEEN, *, is_stored: bool) -> bool:
        """Count a planned request, and return whether it is sent and was not counted before."""
        row, is_new = self.planner.row(stage, request, forecast), self.planner.result.counts.is_new(request.key)
        row.planned += 1
        row.requests += is_new
        row.replayed += is_new and is_stored
        if not is_new or is_stored:
            return False
        row.send(prompt_tokens(request.conversation), self.planner.estimate_reply_tokens(stage, request, forecast))
        return True

    def may_send(self, row: PlannedCalls, request: Request, longer: float = inf, reply_tokens: float = 0.0) -> None:
        """Count a call with the longest prompt and reply. `longer`: see `EpisodePlan.longer_at_most`; `reply_tokens`: of the last reply."""
        messages = request.conversation
        tokens = prompt_tokens(messages) + min(self.longer(messages), longer)
        row.may_send(tokens + reply_tokens, _estimate_max_tokens(request))

    def make_stand_in(self, stage: Stage, request: Request) -> str:
        """Return a text of the usual length, unique to the request."""
        usual, mark = self.planner.estimate_reply_tokens(stage, request), f"zq{request.key[:16].translate(_HEX_AS_LETTERS)}"
        self._longer[mark] = _estimate_max_tokens(request) - usual
        return mark + _STAND_IN_WORD * max(0, round(usual) - _MARK_TOKENS)


class _PlayedRequest(NamedTuple):
    episode: Episode
    played: EpisodeResult
    request: Request


class _Playing:
    """The episodes of a stage and a partition: stored replies are followed, others replaced by stand-ins."""

    def __init__(self, partition: _Partition, stage: Stage, plan: EpisodePlan) -> None:
        self._partition, self._stage, self._plan, self._planner = partition, stage, plan, partition.planner
        self._most = plan.most_calls() if plan.most_calls else None
        self._sent: dict[str, Request] = {}
        """Requests that are sent and whose follow-ups are not counted yet, by key."""

    def play(self, episodes: Sequence[Episode]) -> list[EpisodeResult]:
        """Play episodes to their ends, one request of each at a time."""
        outcomes = [EpisodeResult() for _ in episodes]
        going = list(zip(episodes, outcomes, strict=True))
        while going:
            calls = []
            for episode, outcome in going:
                if (request := episode.next(outcome.responses)) is not None:
                    calls.append(_PlayedRequest(episode, outcome, request))
                else:
                    self._count_further(episode, outcome)
            going = self._answer(calls)
        return outcomes

    def close(self) -> None:
        """Count the most calls, if the plan gives them for whole episodes."""
        for spec, calls, prompt, reply in self._most.total() if self._most else ():
            self._planner.result.counts.row(CANDIDATE, spec).may_send(prompt, reply, calls)

    def _answer(self, calls: Sequence[_PlayedRequest]) -> list[tuple[Episode, EpisodeResult]]:
        """Count these requests and add their replies. Returns the episodes that continue."""
        responses = index_responses(self._planner.store.responses([call.request.key for call in calls]))
        going = []
        for call in calls:
            reply = responses.get(call.request.key)
            is_sent = self._partition.count(self._stage, call.request, is_stored=reply is not None)
            if reply is not None:
                call.played.responses.append(reply)
                going.append((call.episode, call.played))
            elif self._add_stand_in(call, is_sent=is_sent):
                going.append((call.episode, call.played))
        return going

    def _add_stand_in(self, call: _PlayedRequest, *, is_sent: bool) -> bool:
        """Add a stand-in, and return whether the episode continues."""
        episode, outcome, request = call
        if self._most is not None:
            self._most.add(episode, request)
        elif is_sent:
            self._partition.may_send(self._planner.row(self._stage, request), request, self._plan.longer_at_most)
            self._sent[request.key] = request
        usual = self._partition.make_stand_in(self._stage, request)
        text = self._plan.stand_in(episode, request, usual)
        outcome.responses.append(_make_response(request, usual if text is None else text))
        if text is None:
            self._count_further(episode, outcome)
        return text is not None

    def _count_further(self, episode: Episode, outcome: EpisodeResult) -> None:
        """Count the request that a finished episode would send if its last reply, a stand-in, were truncated and unreadable."""
        last = self._sent.pop(outcome.responses[-1].request_key, None) if outcome.responses else None
        if last is None:
            return
        if (request := episode.next([*outcome.responses[:-1], _make_response(last, "", _CUT)])) is not None:
            is_shown = sum(message.role == "assistant" for message in request.conversation) >= len(outcome.responses)
            row, reply_tokens = self._planner.row(self._stage, last), _estimate_max_tokens(last) if is_shown else 0.0
            self._partition.may_send(row, request, self._plan.longer_at_most, reply_tokens)


def _make_response(request: Request, text: str, finish_reason: str | None = None) -> Response:
    model = request.model
    fields = (request.key, request.prompt_id, model.name, model.variant, request.draw, request.snapshot)
    return Response(*fields, text, finish_reason, None, None, None, None, None, 0.0, 1, _EPOCH, role=request.role)


def _estimate_max_tokens(request: Request) -> float:
    return inf if request.max_tokens is None else float(request.max_tokens)


def _build_response_table(responses: Sequence[Response]) -> pa.Table:
    """Return the responses as a table (see `ResponseStore.responses`)."""
    return pa.table(
        [pa.array([getattr(reply, column.name) for reply in responses], column.type) for column in RESPONSES], schema=RESPONSES
    )


def compute_mean_lengths(warehouse: Warehouse, lengths: Iterable[Lengths]) -> dict[str, float]:
    """Return mean tokens of a reply by model variant, over all partitions and snapshots; the last table with the variant counts."""
    means: dict[str, float] = {}
    for source in lengths:
        if warehouse.tables([source.table]):
            sql = (_SQL_OF_ROWS if source.replies else _SQL_OF_REQUESTS).format(**source._asdict())
            rows = warehouse.query(partial(_query_rows, sql), only=[source.table])
            means |= {str(name): float(mean) for name, mean in rows}
    return means


def _query_rows(sql: str, connection: duckdb.DuckDBPyConnection) -> list[Any]:
    return connection.execute(sql).fetchall()


# Rows without tokens are left out: their replies belong to another row, or have unknown length.
_SQL_OF_ROWS = """
SELECT {variant}, sum(completion_tokens) / sum({replies}) FROM {table} WHERE completion_tokens > 0 AND {replies} > 0 GROUP BY 1
"""
# A request counts once; rows that share it have 0 tokens except the first. Replies of 0 tokens count, and requests with unknown
# tokens are left out.
_SQL_OF_REQUESTS = """
SELECT variant, avg(tokens) FROM (
    SELECT {variant} AS variant, request_key, max(completion_tokens) AS tokens FROM {table} WHERE call_status = 'answered'
    GROUP BY ALL HAVING tokens > 0 OR count(*) = count(completion_tokens)
) GROUP BY ALL
"""
