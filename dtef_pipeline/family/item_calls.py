"""The call plan of a stage that sends each item as one request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from dtef_pipeline.asking.calls import CallTable
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Failure, Message, Request
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.family.run_settings import PartSettings
from dtef_pipeline.family.stage import CallPlan, Inputs, Tables
from dtef_pipeline.identity import compute_messages_id

AskItem = Callable[[Mapping[str, Any]], Sequence[Message]]
"""What a model is asked of an item, given its row."""


def plan_items(
    inputs: Inputs, settings: PartSettings, table: str, schema: pa.Schema, items: pa.Table, ask: AskItem
) -> CallPlan:
    """Plan one request per model, item and draw, and build the rows of `table` from the responses and the rows of earlier runs.

    `schema`: schema of the table: the item columns including `item_id`, and those of `tables.CALL`. Raises ConfigError if a model is a
    baseline.
    """
    specs = inputs.models.resolve(settings.models) if settings.models else ()
    if names := [spec.name for spec in specs if spec.is_computed]:
        raise ConfigError(
            f"model {', '.join(names)}: it is computed from answers of people; allowed: a model that can be called"
        )
    calls = _ItemCalls(inputs, settings, specs, table, schema, items, [tuple(ask(row)) for row in items.to_pylist()])
    size = len(items) * settings.draws
    expected = {spec.name: size for spec in specs}
    return CallPlan(specs, expected, size * len(specs), lambda: calls.requests, calls.keys, calls.rows, calls.merge_with_stored)


@dataclass(frozen=True)
class _ItemCalls:
    inputs: Inputs
    settings: PartSettings
    specs: Sequence[ModelSpec]
    table: str
    schema: pa.Schema
    items: pa.Table
    messages: Sequence[tuple[Message, ...]]
    """Of each item."""

    @cached_property
    def requests(self) -> list[Request]:
        settings = self.settings
        batch = (
            Request.build_request(messages, spec, draw, settings.snapshot)
            for spec in self.specs
            for messages in self.messages
            for draw in range(settings.draws)
        )
        return list({request.key: request for request in batch}.values())

    @cached_property
    def _prompts(self) -> pa.Table:
        ids = [compute_messages_id((message.role, message.text) for message in messages) for messages in self.messages]
        return self.items.append_column("prompt_id", pa.array(ids, pa.string()))

    @cached_property
    def _calls(self) -> CallTable:
        columns = tuple(name for name in self._prompts.column_names if name in self.schema.names)
        return CallTable(self.schema, columns, ("item_id",), lambda options, reading: ())

    def keys(self) -> list[str]:
        return [request.key for request in self.requests]

    def rows(self, responses: pa.Table, failures: Mapping[str, Failure]) -> Tables:
        draws, snapshot, prompts = self.settings.draws, self.settings.snapshot, self._prompts
        tables = (self._calls.build_answered_rows(prompts, spec, draws, snapshot, responses, failures) for spec in self.specs)
        return {self.table: pa.concat_tables([self.schema.empty_table(), *tables])}

    def merge_with_stored(self, new: Tables) -> Tables:
        """Return the new rows together with the stored rows of other models."""
        earlier = self.inputs.earlier(self.table)
        before = self.schema.empty_table() if earlier is None else earlier
        return {self.table: self._calls.merge_rows(before, new[self.table], self._prompts)}
