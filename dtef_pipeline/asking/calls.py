"""A family's table of model calls: which requests its prompts make, and the rows that the responses become."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Failure, Request, Response
from dtef_pipeline.asking.same_texts import SEEN, Listed, SharedResponse
from dtef_pipeline.identity import request_keys
from dtef_pipeline.tables import REPLY

Ask = Callable[[Sequence[Request]], Mapping[str, Failure]]
"""Has requests answered, each key once; returns what failed for good, by request key."""
Then = Callable[[Sequence[str], Mapping[str, Failure]], Sequence[Request]]
"""Takes keys of requests that are settled now: each has a stored response or one of the failures. Returns what is to be asked because of it."""
UNKNOWN_LATENCY_S = 0.0
"""What the store has in place of the seconds of a call that was made elsewhere, where these are not known: no call takes none."""
_USAGE = ("prompt_tokens", "completion_tokens", "cost_usd")
_FROM_RESPONSE = tuple(field.name for field in fields(Response) if field.name in {column.name for column in REPLY})
_NOTHING_SHARED: Mapping[str, SharedResponse] = {}


@runtime_checkable
class AsksOnward(Protocol):
    """An `Ask` that asks on as soon as a request is settled, while others are still under way."""

    def __call__(self, requests: Sequence[Request]) -> Mapping[str, Failure]: ...

    def onward(self, requests: Sequence[Request], then: Then) -> object:
        """Have requests answered, and all that `then` makes of them, until nothing is left.

        `then` is called in the caller's thread. A request that was settled before is handed to it once more, without being asked again.
        """


@dataclass(frozen=True, slots=True)
class CallTable:
    """What a family's table of calls looks like, and how its rows follow from the family's table of prompts.

    A row is one draw of one prompt by one model variant in one snapshot. A table of prompts has the column `prompt_id`; for `requests` it has
    the columns `same_texts.SEEN`, and where the table of calls has a `blueprint_hash`, that too.
    """

    schema: pa.Schema
    """The family's own columns, and those of `tables.CALL`."""
    from_prompt: tuple[str, ...]
    """The columns that a row takes over from its prompt."""
    prompt_key: tuple[str, ...]
    """The columns that tell prompts apart: one text, and so one prompt id, can serve several items."""
    listed: Listed
    """What a prompt gives to choose from."""

    def requests(
        self,
        prompts: pa.Table,
        model: ModelSpec,
        draws: int,
        snapshot: str,
        served: Mapping[str, SharedResponse] = _NOTHING_SHARED,
    ) -> list[Request]:
        """One request per (prompt, draw), in the order of `keys`; items that share a prompt share its requests.

        `served`: requests in whose place another one of the same words is made (`same_texts.sources`).
        """
        columns = [prompts[name].to_pylist() for name in SEEN]
        first: dict[str, tuple[Any, ...]] = {}
        for row in zip(*columns, strict=True):
            first.setdefault(row[0], row)
        keys = [request_keys(first, model.variant, draw, snapshot) for draw in range(draws)]
        made: dict[str, Request] = {}
        for place, (prompt, system, user, options, reading, schema, tokens) in enumerate(first.values()):
            for draw in range(draws):
                own = keys[draw][place]
                sent, key = served.get(own, (prompt, own))
                if key not in made:
                    listed = self.listed(options, reading)
                    made[key] = Request(sent, system, user, model, draw, snapshot, listed, schema, tokens, key)
        return list(made.values())

    def keys(self, prompts: pa.Table, model: ModelSpec, draws: int, snapshot: str) -> pa.Table:
        """The rows of `draws` draws of each prompt, with all columns that are known before anyone is asked."""
        repeated = prompts.select(list(self.from_prompt)).take(pa.array(np.repeat(np.arange(len(prompts)), draws)))
        draw = list(range(draws)) * len(prompts)
        keys = [request_keys(prompts["prompt_id"].to_pylist(), model.variant, d, snapshot) for d in range(draws)]
        rows = len(repeated)
        constant = {
            "snapshot": pa.repeat(snapshot, rows),
            "model": pa.repeat(model.name, rows),
            "model_variant": pa.repeat(model.variant, rows),
            "temperature": pa.repeat(pa.scalar(model.temperature, pa.float64()), rows),
            "draw": pa.array(draw, pa.int32()),
            "request_key": pa.array(np.array(keys, dtype=object).T.ravel(), pa.string()),
        }
        for name, column in constant.items():
            repeated = repeated.append_column(name, column)
        return repeated

    def answered(
        self,
        prompts: pa.Table,
        model: ModelSpec,
        draws: int,
        snapshot: str,
        responses: pa.Table,
        failures: Mapping[str, Failure],
        served: Mapping[str, SharedResponse] = _NOTHING_SHARED,
    ) -> pa.Table:
        """The rows of a language model from the stored `responses` (any superset); a request without one is an `error` row.

        `served`, as `requests` takes it: such a row has its own prompt id, and the key under which its response is stored.
        """
        rows = _as_asked(self.keys(prompts, model, draws, snapshot), served)
        found = pc.index_in(rows["request_key"], value_set=responses["request_key"].combine_chunks())
        taken = responses.take(found)
        answered = taken["request_key"].is_valid().to_pylist()
        keys = rows["request_key"].to_pylist()
        unanswered = Failure("", "was not asked: the run ended before its turn", 0)
        errors = [None if ok else failures.get(key, unanswered) for key, ok in zip(keys, answered, strict=True)]
        columns: dict[str, Any] = {name: taken[name] for name in _FROM_RESPONSE}
        if model.is_imported:
            columns["latency_s"] = _known_latency(taken["latency_s"])
        columns["response"] = taken["text"]
        columns["call_status"] = [error.status if error else "answered" for error in errors]
        columns["error"] = [error.message if error else None for error in errors]
        columns["attempts"] = [
            error.attempts if error else attempts for error, attempts in zip(errors, taken["attempts"].to_pylist(), strict=True)
        ]
        return self.completed(rows, columns | _used_once(rows["request_key"], taken))

    def completed(self, rows: pa.Table, columns: Mapping[str, Any]) -> pa.Table:
        """The rows with the given columns added, the others null, in the table's schema."""
        known = {name: rows[name] for name in rows.column_names} | dict(columns)
        empty = [None] * len(rows)
        arrays = [
            column.cast(field.type)
            if isinstance(column := known.get(field.name, empty), pa.ChunkedArray)
            else pa.array(column, field.type)
            for field in self.schema
        ]
        return pa.table(arrays, schema=self.schema)

    def merged(self, existing: pa.Table, new: pa.Table, prompts: pa.Table) -> pa.Table:
        """All rows of a partition's snapshot: the new ones, and those kept from earlier runs whose prompt still stands.

        No earlier response is lost by a run with fewer models. Ordered by model, draw and prompt, so that equal content gives
        equal bytes.
        """
        kept = existing.filter(
            pc.and_(
                pc.invert(pc.is_in(self._row_key(existing), self._row_key(new).combine_chunks())),
                pc.is_in(existing["prompt_id"], prompts["prompt_id"].combine_chunks()),
            )
        )
        rows = pa.concat_tables([new, kept])
        place = pc.index_in(_joined(rows, self.prompt_key), value_set=_joined(prompts, self.prompt_key).combine_chunks())
        order = rows.select(["model", "model_variant", "draw"]).append_column("place", place)
        rows = rows.take(pc.sort_indices(order, [(name, "ascending") for name in order.column_names]))
        if "blueprint_hash" not in rows.column_names:
            return rows
        current = prompts["blueprint_hash"].combine_chunks().take(pa.array([0] * len(rows), pa.int64()))
        return rows.set_column(rows.schema.get_field_index("blueprint_hash"), "blueprint_hash", current)

    def _row_key(self, rows: pa.Table) -> pa.ChunkedArray:
        """Names a row of a snapshot, whichever request it stands on."""
        named = rows.select([*self.prompt_key, "model_variant"])
        return _joined(named.append_column("draw", pc.cast(rows["draw"], pa.string())), (*named.column_names, "draw"))


def _known_latency(seconds: pa.ChunkedArray) -> pa.ChunkedArray:
    """The seconds that calls made elsewhere took; null where nobody said: the store, whose column takes no null, has 0 there."""
    return pc.if_else(pc.equal(seconds, UNKNOWN_LATENCY_S), pa.scalar(None, pa.float64()), seconds)


def _as_asked(rows: pa.Table, served: Mapping[str, SharedResponse]) -> pa.Table:
    """The rows with the keys of the requests that were made for them."""
    if not served:
        return rows
    own = rows["request_key"].to_pylist()
    keys = [served[key].request_key if key in served else key for key in own]
    return rows.set_column(rows.schema.get_field_index("request_key"), "request_key", pa.array(keys, pa.string()))


def _used_once(request_keys: pa.ChunkedArray, taken: pa.Table) -> dict[str, pa.Array]:
    """Tokens and cost of each request at its first row, 0 at the other items that it serves: so that sums are right."""
    first = np.zeros(len(taken), dtype=bool)
    first[np.unique(request_keys.to_numpy(), return_index=True)[1]] = True
    again = pc.and_(pa.array(~first), taken["request_key"].is_valid())
    return {name: pc.if_else(again, pa.scalar(0, taken[name].type), taken[name]) for name in _USAGE}


def _joined(rows: pa.Table, names: Sequence[str]) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(*(rows[name] for name in names), "\x1f")
