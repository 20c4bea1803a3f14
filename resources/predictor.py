"""The predict stage over many partitions: plan, ask, assemble.

Requests of many partitions are asked together, so that a model's concurrency is not wasted on small segments; a window bounds how many
prompts are held in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.identity import digest, round_order, split_partition_key
from dtef_pipeline.prediction.assemble import (
    answered_rows,
    baseline_rows,
    merge_predictions,
    requests_for,
    select_prompts,
)
from dtef_pipeline.prediction.baselines import PREVIOUS_ROUND, previous_answers
from dtef_pipeline.prediction.models import ModelSpec
from dtef_pipeline.prediction.request import Failure, Request
from dtef_pipeline.tables import PREDICTIONS
from resources.warehouse import Warehouse

Answer = Callable[[Sequence[Request]], Mapping[str, Failure]]
"""Has requests answered; returns what failed for good, by request key."""
Stored = Callable[[Sequence[str]], pa.Table]
"""The stored responses to request keys."""

WINDOW = 5_000
"""Requests held in memory at a time, at least one partition's."""


@dataclass(frozen=True, slots=True)
class PredictOptions:
    """What is asked. `limits`: at most so many prompts of the run for a model (by name), the same ones each time."""

    models: tuple[ModelSpec, ...]
    conditions: tuple[str, ...] = ()
    context_levels: tuple[str, ...] = ()
    questions: int | None = None
    draws: int = 1
    snapshot: str = "base"
    limits: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Plan:
    """One partition's work: rows that are known already, and what language models are still to be asked."""

    key: str
    blueprints: pa.Table
    known: list[pa.Table]
    asked: list[tuple[ModelSpec, pa.Table]]
    requests: list[Request]


class Predictor:
    """Plans partitions, has the gateway answer them, and assembles their `predictions` rows."""

    def __init__(self, warehouse: Warehouse, options: PredictOptions, answer: Answer, stored: Stored) -> None:
        self.warehouse, self.options = warehouse, options
        self._answer, self._stored = answer, stored
        self._limited: dict[str, pa.Array] = {}
        self.superseded: dict[str, int] = {}
        """By partition: rows of earlier runs whose prompt has changed since. Their responses stay in the response store."""

    def limit(self, keys: Sequence[str]) -> None:
        """Choose the prompts of the limited models over all partitions of the run: those of smallest hash, so always the same."""
        if not self.options.limits:
            return
        prompts = [prompt for key in keys for prompt in self._prompts(key)[2]["prompt_id"].to_pylist()]
        chosen = sorted(set(prompts), key=lambda prompt: digest("limit", prompt))
        self._limited = {name: pa.array(chosen[:most], pa.string()) for name, most in self.options.limits.items()}

    def plan(self, key: str) -> Plan:
        survey, blueprints, prompts = self._prompts(key)
        plan = Plan(key, blueprints, [], [], [])
        options = self.options
        for model in options.models:
            wanted = prompts
            if model.name in self._limited:
                wanted = prompts.filter(pc.is_in(prompts["prompt_id"], self._limited[model.name]))
            if model.is_baseline:
                previous = self._previous(key) if model.model == PREVIOUS_ROUND else {}
                plan.known.append(baseline_rows(wanted, survey, model, options.draws, options.snapshot, previous))
            elif len(wanted):
                plan.asked.append((model, wanted))
                plan.requests += requests_for(wanted, model, options.draws, options.snapshot)
        return plan

    def ask(self, plans: Sequence[Plan]) -> Mapping[str, Failure]:
        """Have everything of the plans answered (or replayed); returns what failed for good, by request key."""
        requests = [request for plan in plans for request in plan.requests]
        return self._answer(requests) if requests else {}

    def rows(self, plan: Plan, failures: Mapping[str, Failure]) -> pa.Table:
        """The partition's predictions in this snapshot: new rows, and those of earlier runs that still stand."""
        tables = list(plan.known)
        if plan.requests:
            responses = self._stored([request.key for request in plan.requests])
            for model, prompts in plan.asked:
                tables.append(answered_rows(prompts, model, self.options.draws, self.options.snapshot, responses, failures))
        new = pa.concat_tables(tables) if tables else PREDICTIONS.empty_table()
        round_id, segment = split_partition_key(plan.key)
        existing = self.warehouse.read_or_empty("predictions", round=round_id, segment=segment, snapshot=self.options.snapshot)
        merged = merge_predictions(existing, new, plan.blueprints)
        stands = pc.is_in(existing["prompt_id"], plan.blueprints["prompt_id"].combine_chunks())
        self.superseded[plan.key] = pc.sum(pc.cast(pc.invert(stands), pa.int64())).as_py() or 0
        return merged

    def _prompts(self, key: str) -> tuple[pa.Table, pa.Table, pa.Table]:
        round_id, segment = split_partition_key(key)
        survey = self.warehouse.read("survey_responses", round=round_id, segment=segment)
        blueprints = self.warehouse.read("blueprints", round=round_id, segment=segment)
        options = self.options
        return (
            survey,
            blueprints,
            select_prompts(
                blueprints,
                survey,
                conditions=options.conditions,
                context_levels=options.context_levels,
                questions=options.questions,
            ),
        )

    def _previous(self, key: str) -> dict[tuple[str, ...], list[float]]:
        round_id, segment = split_partition_key(key)
        earlier = [r for r in self.warehouse.rounds() if round_order(r) < round_order(round_id)]
        tables = []
        for other in earlier:
            # A file that cannot be read is the failure of its own partition, not of this one.
            with suppress(WarehouseError):
                tables.append(self.warehouse.read_or_empty("survey_responses", round=other, segment=segment))
        return previous_answers(pa.concat_tables(tables), round_id) if tables else {}


def windows(plans: Iterator[Plan]) -> Iterator[list[Plan]]:
    """Plans in groups of about WINDOW requests."""
    group: list[Plan] = []
    for plan in plans:
        group.append(plan)
        if sum(len(member.requests) for member in group) >= WINDOW:
            yield group
            group = []
    if group:
        yield group
