"""A run of stages without Dagster and without a server: every request is answered by a function and stored, and tables are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from assets.engine.dry_run import DryRun, Outside, dry_run
from assets.engine.stage_inputs import Shared, StageInputs
from dtef_pipeline.asking.call_plan import PlannedCalls
from dtef_pipeline.asking.embeddings import build_vector_table, hash_text, identify_embedder
from dtef_pipeline.asking.episodes import play
from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import Failure, Request, Response
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.family.run_settings import RunSettings
from dtef_pipeline.family.stage import CallPlan, EpisodePlan, Stage
from resources.gateway.budget import Usage
from resources.gateway.embedder import EmbeddingResult
from resources.responses.store import ResponseStore
from resources.settings import Settings
from resources.warehouse import Warehouse

Reply = Callable[[Request], str]
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def response_to(request: Request, text: str, finish_reason: str = "stop") -> Response:
    """A stored response."""
    model = request.model
    named = (request.key, request.prompt_id, model.name, model.variant, request.draw, request.snapshot)
    return Response(*named, text, finish_reason, None, None, 10, 5, 0.0, 0.1, 1, NOW, role=request.role)


class _Inputs(StageInputs):
    """Texts are embedded by a made-up embedder, and nothing is logged."""

    def warn(self, line: str) -> None:
        """Nobody reads it."""

    def embed(self, texts: Sequence[str], spec: ModelSpec, n_known: int) -> EmbeddingResult:
        vectors = {hash_text(text): (np.array([1.0, len(text)], np.float32), 1) for text in texts}
        return EmbeddingResult(build_vector_table(identify_embedder(spec), vectors), {}, Usage())


@dataclass
class PlainRun:
    """A state below a folder: a warehouse and a response store."""

    family: str
    stages: Sequence[Stage]
    folder: Path
    asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Requests that were answered, by role and model."""
    requests: dict[str, Request] = field(default_factory=dict)
    """By key."""

    def __post_init__(self) -> None:
        self.house = Warehouse(self.folder / "warehouse")
        self.store = ResponseStore(self.folder / "responses.sqlite")
        self.outside = Outside(self.house, Settings.read_environment(), self.store)

    def write(self, key: str, tables: Mapping[str, pa.Table], snapshot: str = "base") -> None:
        """Write tables of a partition."""
        self.inputs(key, snapshot).keep(tables)

    def run(self, key: str, settings: RunSettings, reply: Reply, stages: Sequence[Stage] | None = None) -> None:
        """Make the stages of a partition."""
        for stage in self.stages if stages is None else stages:
            inputs = self.inputs(key, settings.snapshot)
            made = stage.make(inputs, settings)
            if isinstance(made, CallPlan):
                failures = self._ask(made.requests(), reply)
                made = made.merge_with_stored(made.rows(self.store.responses(made.keys()), failures))
            elif isinstance(made, EpisodePlan):
                episodes = list(made.episodes())
                played = play(episodes, lambda requests: self._ask(requests, reply), self.store.responses)
                made = made.merge_with_stored(made.rows(episodes, played))
            assert set(made) <= {stage.name, *stage.extra_tables}, (
                "an estimate looks for tables by what a stage says that it writes"
            )
            inputs.keep(made)
        self.house.refresh_database()

    def answer(self, *responses: Response) -> None:
        self.store.add(responses)

    def estimate(self, settings: RunSettings, keys: Sequence[str], **more: Any) -> DryRun:
        given = {"stages": self.stages, **more}
        return dry_run(FAMILY_BY_NAME[self.family], settings=settings, keys=keys, outside=self.outside, **given)

    def inputs(self, key: str, snapshot: str) -> StageInputs:
        return _Inputs(self.outside, FAMILY_BY_NAME[self.family].space, key, snapshot, Shared())

    def _ask(self, requests: Sequence[Request], reply: Reply) -> dict[str, Failure]:
        known = self.store.find_known_keys(one.key for one in requests)
        new = {one.key: one for one in requests if one.key not in known}
        self.requests |= new
        self.asked.update((one.role, one.model.name) for one in new.values())
        self.store.add([response_to(one, reply(one)) for one in new.values()])
        return {}


def sums(found: DryRun) -> dict[str, PlannedCalls]:
    """The sums over the models of each role."""
    by_role: dict[str, PlannedCalls] = {}
    for row in found.counts.list_sorted_rows():
        total = by_role.setdefault(row.role, PlannedCalls(row.role, "all", row.model))
        for name in PlannedCalls.__slots__:
            if name not in ("role", "name", "model"):
                setattr(total, name, getattr(total, name) + getattr(row, name))
    return by_role
