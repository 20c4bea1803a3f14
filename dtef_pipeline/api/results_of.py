"""What a run of an evaluation came to: metrics, costs and traces, made of the tables by the code that publishes the boards."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.keys import Space
from resources.evaluations import Evaluation, EvaluationRun
from resources.known_models import known_models
from resources.settings import Settings

if TYPE_CHECKING:
    import pyarrow as pa

    from resources.warehouse import Warehouse

_MODULES: Mapping[str, str] = {
    "games": "dtef_pipeline.api.results_of_games",
    "qa": "dtef_pipeline.api.results_of_qa",
    "rubric": "dtef_pipeline.api.results_of_rubric",
    "survey": "dtef_pipeline.api.results_of_survey",
}
"""Loaded when a result is asked for: they load what computes statistics."""


class FamilyResults(Protocol):
    """What the module of a family has."""

    def metrics_of(self, asked: RunAsked) -> list[dict[str, Any]]:
        """A member for each model and metric: `model`, `metric`, `value` (None: see `reason`), `n`, `low`, `high`, `reason`, and what else tells."""

    def cost_of(self, asked: RunAsked) -> Spent:
        """What the calls cost that the rows of the run rest on, each once."""

    def traces_of(self, asked: RunAsked) -> list[str]:
        """The ids of all traces, sorted."""

    def trace_of(self, asked: RunAsked, trace_id: str) -> dict[str, Any] | None:
        """What was asked and answered, as JSON; None: it is no trace of the run."""


class Spent(NamedTuple):
    """Calls, and what is known of their cost."""

    usd: float | None = 0.0
    """Sum of the known costs; None: no call has a known one."""
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unpriced: int = 0
    """Calls whose cost is not known."""


class RunAsked(NamedTuple):
    """A run of an evaluation, and where its rows are."""

    evaluation: Evaluation
    run: EvaluationRun
    settings: Settings
    house: Warehouse

    @property
    def snapshot(self) -> str:
        return str(self.evaluation.plan["snapshot"])

    def told(self, stage: str) -> Mapping[str, Any]:
        """The configuration of a stage."""
        found: Mapping[str, Any] = self.evaluation.plan["config"].get(stage, {})
        return found

    def rows(self, table: str, space: Space, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of the run's partition, of its snapshot where the table is kept by snapshots; none where nothing was made yet."""
        from resources.warehouse import TABLES

        levels = space.levels(self.run.key)
        if "snapshot" in TABLES[table].levels:
            levels["snapshot"] = self.snapshot
        return self.house.read_or_empty(table, columns=columns, **levels)

    def names(self, selectors: Iterable[str], computed: Mapping[str, int | None] | None = None) -> set[str]:
        """The names that models have in tables which these selectors stand for. One that is not known any more is taken for a name."""
        models, found = known_models(self.settings, computed or {}), set[str]()
        for selector in selectors:
            found.add(selector)
            try:
                found.update(spec.name for spec in models.resolve([selector]))
            except ConfigError:
                continue
        return found

    def of_models(self, rows: pa.Table, names: Iterable[str]) -> pa.Table:
        """The rows of models of these names."""
        import pyarrow as pa
        import pyarrow.compute as pc

        return rows.filter(pc.is_in(rows["model"].cast(pa.string()), pa.array(sorted(names), pa.string())))

    def stored(self) -> Callable[[Sequence[str]], pa.Table]:
        """Finds the stored responses to request keys, where rows share some of their calls."""
        from resources.responses.store import ResponseStore

        def found(keys: Sequence[str]) -> pa.Table:
            with ResponseStore(self.settings.responses_url) as store:
                return store.responses(keys)

        return found


def results_for(family: str) -> FamilyResults:
    """The module of a family."""
    return cast(FamilyResults, importlib.import_module(_MODULES[family]))


def spent_in(rows: Iterable[Mapping[str, Any]]) -> Spent:
    """The sum of rows with `calls`, `prompt_tokens`, `completion_tokens`, `cost_usd` (None: not known) and `unpriced`."""
    found = list(rows)
    calls = sum(int(row["calls"] or 0) for row in found)
    costs = [row["cost_usd"] for row in found if row["cost_usd"] is not None and not math.isnan(row["cost_usd"])]
    prompt, completion, unpriced = (
        sum(int(row[name] or 0) for row in found) for name in ("prompt_tokens", "completion_tokens", "unpriced")
    )
    return Spent(math.fsum(costs) if costs or not calls else None, calls, prompt, completion, unpriced)


def measured(model: str, metric: str, value: Any, n: Any, ends: tuple[Any, Any], reason: Any, **further: Any) -> dict[str, Any]:
    """A member of `metrics`. NaN and NA are None."""
    number, low, high = map(in_json, (value, *ends))
    why = in_json(reason) or (None if number is not None else "there is no score")
    return {"model": model, "metric": metric, "value": number, "n": int(n), "low": low, "high": high, "reason": why, **further}


def in_json(value: Any) -> Any:
    """The value as JSON has it: times as text, what is no number as None."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): in_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [in_json(one) for one in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    return in_json(value.item()) if hasattr(value, "item") else None


_OF_RESPONSE_AS_IT_IS = (
    *("model", "model_variant", "temperature", "draw", "snapshot", "prompt_id", "finish_reason", "served_model"),
    *("prompt_tokens", "completion_tokens", "cost_usd", "latency_s", "attempts", "answered_at"),
)


def response_told(row: Mapping[str, Any], status: str, text: str, reason: str) -> dict[str, Any]:
    """The part of a trace that is about the response; the other arguments name the columns that say so."""
    own = {name: in_json(row.get(name)) for name in _OF_RESPONSE_AS_IT_IS}
    return {**own, "status": row[status], "text": row[text], "reason": row[reason]}
