"""A family's call table: the requests made from prompts, and the rows made from responses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Annotated, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Failure, Request, Response
from dtef_pipeline.asking.request_list import PROMPT_COLUMNS, ListOptions, RequestsOfModel, SharedResponse
from dtef_pipeline.identity import request_keys
from dtef_pipeline.tables import REPLY

Ask = Callable[[Sequence[Request]], Mapping[str, Failure]]
"""Sends requests, each key once, and returns the final failures by request key."""
PlanFollowUps = Callable[[Sequence[str], Mapping[str, Failure]], Sequence[Request]]
"""Takes the keys of requests that are settled (each has a stored response or one of the failures), and returns their follow-up requests."""
USAGE = (*("prompt_tokens", "completion_tokens", "cost_usd", "unknown_cost_attempts", "unknown_cost_usd_most"),)
"""Columns with a request's total in its first row and 0 in its other rows."""
OF_FAILURES = ("attempts", "cost_usd", "unknown_cost_attempts", "unknown_cost_usd_most")
"""Columns that a failed request takes from its failure."""
FROM_RESPONSE = tuple(field.name for field in fields(Response) if field.name in {column.name for column in REPLY})
"""Columns that call tables copy from the fields of a response."""
STORED_COLUMNS = ("request_key", "text", *FROM_RESPONSE)
"""Columns of stored responses that call tables contain."""
_NOT_SENT = Failure("", "was not sent: the run ended first", 0)
_NOTHING_SHARED: Mapping[str, SharedResponse] = {}


@runtime_checkable
class AskWithFollowUps(Protocol):
    """An `Ask` that sends follow-up requests as soon as a request is settled, while others are in flight."""

    def __call__(self, requests: Sequence[Request]) -> Mapping[str, Failure]: ...

    def ask_until_done(self, requests: Sequence[Request], follow_up: PlanFollowUps) -> object:
        """Send the requests, and all that `follow_up` returns, until none is left.

        `follow_up` is called in the caller's thread. A request that is already settled is passed to it again without being sent again.
        """


class ModelCalls(NamedTuple):
    """The rows and requests of a model for a table of prompts."""

    rows: pa.Table
    """One per prompt and draw, with all columns that are known before a request is sent."""
    requests: RequestsOfModel


@dataclass(frozen=True, slots=True)
class CallTable:
    """The layout of a family's call table, and how its rows follow from the family's table of prompts.

    A row is one draw of one prompt by one model variant in one snapshot. A table of prompts has the column `prompt_id`, for `requests` the
    columns `request_list.PROMPT_COLUMNS`, and a `blueprint_hash` if the call table has one.
    """

    schema: pa.Schema
    """The family's own columns, and those of `tables.CALL`."""
    prompt_columns: tuple[str, ...]
    """Columns that a row copies from its prompt."""
    prompt_key: tuple[str, ...]
    """Columns that distinguish prompts; one text, and so one prompt id, can serve several items."""
    list_options: ListOptions
    """Returns the options that a prompt offers."""

    def plan_calls(
        self,
        prompts: pa.Table,
        model: ModelSpec,
        draws: int,
        snapshot: str,
        sources: Mapping[str, SharedResponse] = _NOTHING_SHARED,
    ) -> ModelCalls:
        """Return the rows and requests of a language model; items that share a prompt share its requests.

        `sources`: requests that are replaced by another one with the same text (see `request_list.sources`). Such a row has its own prompt
        id and the key of the request that is sent for it.
        """
        own_keys = _request_keys(prompts["prompt_id"].to_pylist(), model, draws, snapshot)
        keys = [sources[key].request_key if key in sources else key for key in own_keys] if sources else own_keys
        factory = partial(self._make_requests, prompts, model, draws, snapshot, keys, sources)
        requests = RequestsOfModel(model, list(dict.fromkeys(keys)), factory)
        return ModelCalls(self._rows(prompts, model, draws, snapshot, keys), requests)

    def _make_requests(
        self,
        prompts: pa.Table,
        model: ModelSpec,
        draws: int,
        snapshot: str,
        keys: Sequence[str],
        sources: Mapping[str, SharedResponse],
        selection: Sequence[str],
    ) -> list[Request]:
        """Return the requests of `selection`, a part of `keys`, which has one key per row."""
        first = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
        sent_as = {source.request_key: source.prompt_id for source in sources.values()}
        places = [divmod(first[key], draws) for key in selection]
        rows = prompts.select(list(PROMPT_COLUMNS)).take(pa.array([row for row, _ in places], pa.int64()))
        columns = [rows[name].to_pylist() for name in PROMPT_COLUMNS]
        requests = []
        for key, (_, draw), (prompt, system, user, options, reading, schema, tokens) in zip(
            selection, places, zip(*columns, strict=True), strict=True
        ):
            prompt_id, texts = sent_as.get(key, prompt), self.list_options(options, reading)
            requests.append(Request(prompt_id, system, user, model, draw, snapshot, texts, schema, tokens, key))
        return requests

    def keys(self, prompts: pa.Table, model: ModelSpec, draws: int, snapshot: str) -> pa.Table:
        """Return the rows of `draws` draws of each prompt, with all columns that are known before a request is sent."""
        keys = _request_keys(prompts["prompt_id"].to_pylist(), model, draws, snapshot)
        return self._rows(prompts, model, draws, snapshot, keys)

    def _rows(self, prompts: pa.Table, model: ModelSpec, draws: int, snapshot: str, keys: Sequence[str]) -> pa.Table:
        table = prompts.select(list(self.prompt_columns))
        if draws > 1:
            table = table.take(pa.array(np.repeat(np.arange(len(prompts)), draws)))
        rows = len(table)
        columns = {
            **dict(zip(table.column_names, table.columns, strict=True)),
            "snapshot": pa.repeat(snapshot, rows),
            "model": pa.repeat(model.name, rows),
            "model_variant": pa.repeat(model.variant, rows),
            "temperature": pa.repeat(pa.scalar(model.temperature, pa.float64()), rows),
            "draw": pa.array(np.tile(np.arange(draws, dtype=np.int32), len(prompts))),
            "request_key": pa.array(keys, pa.string()),
        }
        return pa.table(columns)

    def build_answered_rows(
        self,
        prompts: pa.Table,
        model: ModelSpec,
        draws: int,
        snapshot: str,
        responses: pa.Table,
        failures: Mapping[str, Failure],
    ) -> pa.Table:
        """Return the rows of a language model (see `settle_rows`)."""
        return self.settle_rows(self.keys(prompts, model, draws, snapshot), responses, failures)

    def settle_rows(self, rows: pa.Table, responses: pa.Table, failures: Mapping[str, Failure]) -> pa.Table:
        """Complete the rows with the stored `responses` (any superset, columns STORED_COLUMNS); a request without one has its failure's status,
        or `error`.
        """
        # Combined into one chunk, because the cost of the following steps is per chunk.
        rows, responses = rows.combine_chunks(), responses.combine_chunks()
        places = pc.index_in(rows["request_key"], value_set=responses["request_key"].combine_chunks())
        replies = responses.select(list(STORED_COLUMNS)).take(places)
        columns: dict[str, Any] = {name: replies[name] for name in FROM_RESPONSE}
        columns["response"] = replies["text"]
        columns |= _count_usage_once(rows["request_key"], replies)
        return self.complete_rows(rows, columns | _find_statuses(rows["request_key"], replies, failures, columns))

    def complete_rows(self, rows: pa.Table, columns: Mapping[str, Any]) -> pa.Table:
        """Return the rows with the given columns added, in the table's schema; other columns are null."""
        values = {name: rows[name] for name in rows.column_names} | dict(columns)
        arrays = [_convert_column(values.get(field.name), field.type, len(rows)) for field in self.schema]
        return pa.table(arrays, schema=self.schema)

    def merge_rows(self, existing: pa.Table, new: pa.Table, prompts: pa.Table) -> pa.Table:
        """Return all rows of a partition's snapshot: the new ones, and earlier ones whose prompt still exists.

        A run with fewer models loses no earlier response. Ordered by model, variant, draw and prompt, so that equal content gives equal
        bytes.
        """
        old_rows = existing.filter(self._is_still_valid(existing, new, prompts)) if len(existing) else existing
        rows = pa.concat_tables([new, old_rows]).combine_chunks() if len(old_rows) else new
        place = pc.index_in(
            _join_columns(rows, self.prompt_key), value_set=_join_columns(prompts, self.prompt_key).combine_chunks()
        )
        order = rows.select(["model", "model_variant", "draw"]).append_column("place", place)
        rows = rows.take(pc.sort_indices(order, [(name, "ascending") for name in order.column_names]))
        if "blueprint_hash" not in rows.column_names:
            return rows
        current = prompts["blueprint_hash"].combine_chunks().take(pa.array([0] * len(rows), pa.int64()))
        return rows.set_column(rows.schema.get_field_index("blueprint_hash"), "blueprint_hash", current)

    def _is_still_valid(self, existing: pa.Table, new: pa.Table, prompts: pa.Table) -> pa.ChunkedArray:
        """Return for each row whether its prompt still exists and no new row replaces it."""
        is_replaced = pc.is_in(self._build_row_key(existing), self._build_row_key(new).combine_chunks())
        return pc.and_(pc.invert(is_replaced), pc.is_in(existing["prompt_id"], prompts["prompt_id"].combine_chunks()))

    def _build_row_key(self, rows: pa.Table) -> pa.ChunkedArray:
        """Return the key of each row in a snapshot, independent of its request."""
        named = rows.select([*self.prompt_key, "model_variant"])
        return _join_columns(named.append_column("draw", pc.cast(rows["draw"], pa.string())), (*named.column_names, "draw"))


def _request_keys(prompt_ids: Sequence[str], model: ModelSpec, draws: int, snapshot: str) -> list[str]:
    """Return the keys of all draws of each prompt, prompt by prompt."""
    distinct = list(dict.fromkeys(prompt_ids))
    by_draw = [request_keys(distinct, model.variant, draw, snapshot) for draw in range(draws)]
    if draws == 1 and len(distinct) == len(prompt_ids):
        return by_draw[0]
    prompt_keys = dict(zip(distinct, zip(*by_draw, strict=True), strict=True))
    return [key for prompt in prompt_ids for key in prompt_keys[prompt]]


def _convert_column(values: Any, kind: pa.DataType, rows: int) -> pa.Array | pa.ChunkedArray:
    """Return the values as a column of type `kind`, or nulls if `values` is None."""
    if values is None:
        return pa.nulls(rows, kind)
    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        return pa.array(values, kind)
    return values if values.type == kind else values.cast(kind)


def _find_statuses(
    request_keys: pa.ChunkedArray, replies: pa.Table, failures: Mapping[str, Failure], columns: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the columns of status, error and attempts, and of the cost of calls without a response."""
    lacking = np.flatnonzero(replies["request_key"].is_null().to_numpy())
    if not len(lacking):
        return {"call_status": pa.repeat("answered", len(replies))}
    statuses = ["answered"] * len(replies)
    errors: list[str | None] = [None] * len(replies)
    counts = {name: columns[name].to_pylist() for name in OF_FAILURES}
    seen_keys = set[str]()
    for place, key in zip(lacking.tolist(), request_keys.take(pa.array(lacking)).to_pylist(), strict=True):
        failure = failures.get(key, _NOT_SENT)
        statuses[place], errors[place], counts["attempts"][place] = failure.status, failure.message, failure.attempts
        if key not in seen_keys:
            seen_keys.add(key)
            for name in OF_FAILURES[1:]:
                counts[name][place] = getattr(failure, name)
    return {"call_status": statuses, "error": errors, **counts}


def _count_usage_once(request_keys: pa.ChunkedArray, replies: pa.Table) -> dict[str, pa.Array]:
    """Return tokens and cost of each request at its first row and 0 at its other rows, so that sums are right."""
    places = request_keys.combine_chunks().dictionary_encode()
    if len(places.dictionary) == len(replies):
        return {}
    first = np.zeros(len(replies), dtype=bool)
    first[np.unique(places.indices.to_numpy(), return_index=True)[1]] = True
    repeats = pc.and_(pa.array(~first), replies["request_key"].is_valid())
    return {name: pc.if_else(repeats, pa.scalar(0, replies[name].type), replies[name]) for name in USAGE}


def _join_columns(rows: pa.Table, names: Sequence[str]) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(*(rows[name] for name in names), "\x1f")


MAX_DRAWS = 1_000
"""Maximum draws of one prompt or judgement, because all draws of a partition are in memory together."""
Draws = Annotated[int, Field(ge=1, le=MAX_DRAWS)]
