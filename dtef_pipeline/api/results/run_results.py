"""What a run of an evaluation came to: metrics, costs and traces, made of the tables by the code that publishes the boards."""

from __future__ import annotations

import importlib
import math
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast
from weakref import WeakValueDictionary

from dtef_pipeline.api.results.run_outcomes import OUTCOME_UNITS, OutcomeCounts, outcomes_told
from dtef_pipeline.asking.models import Models
from dtef_pipeline.errors import ConfigError
from resources.evaluations.evaluation_store import Evaluation, EvaluationRun
from resources.evaluations.run_manifests import config_hash
from resources.known_models import known_models
from resources.settings import Settings

if TYPE_CHECKING:
    import pyarrow as pa

    from dtef_pipeline.boards.used_calls import FamilyCalls
    from resources.warehouse import Warehouse

_RESULTS_MADE_OF: Mapping[str, tuple[str, ...]] = {
    "games": ("episode_scores", "episode_turns", "episodes"),
    "qa": ("qa_scores", "qa_responses", "qa_judgements", "qa_prompts", "qa_items"),
    "rubric": (
        *("rubric_scores", "rubric_responses", "rubric_judgements", "rubric_summaries", "rubric_extractions", "rubric_prompts"),
        *("rubric_blueprints", "rubric_runs"),
    ),
    "survey": ("scores", "predictions", "reference_scores", "survey_responses", "blueprints"),
}
"""By family, the tables that results are made of. The module of a family is loaded when a result is asked for: it loads what computes them."""
_MOST_KEPT_MEMBERS = 500_000
"""Metrics and traces of all runs whose results are kept."""


class FamilyResults(Protocol):
    """What the module of a family has."""

    def counts_of(self, asked: RunAsked) -> dict[Hashable, OutcomeCounts]:
        """What was asked for and what came, by the names that tell models, and ways of asking them, apart."""

    def metrics_of(self, asked: RunAsked, counts: Mapping[Hashable, OutcomeCounts]) -> list[dict[str, Any]]:
        """A member for each model and metric, as `measured` makes it. `counts`: those of `counts_of`."""

    def cost_of(self, asked: RunAsked) -> Spent:
        """What the calls cost that the rows of the run rest on, each once."""

    def request_keys_of(self, asked: RunAsked) -> set[str]:
        """The keys of the calls that the rows of the run rest on."""

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
    unpriced_usd_most: float | None = None
    """US dollars that these may have cost at most; None: there are none, or no price is known."""


class RunAsked(NamedTuple):
    """A run of an evaluation, and where its rows are."""

    evaluation: Evaluation
    run: EvaluationRun
    settings: Settings
    house: Warehouse

    @property
    def snapshot(self) -> str:
        return str(self.evaluation.plan.get("snapshot", "base"))

    def told(self, stage: str) -> Mapping[str, Any]:
        """The configuration of a stage."""
        found: Mapping[str, Any] = self.evaluation.plan.get("config", {}).get(stage, {})
        return found

    def levels(self, table: str) -> dict[str, str]:
        """Of the run's partition, and of its snapshot where the table is kept by snapshots."""
        from resources.warehouse import TABLES

        spec = TABLES[table]
        levels = spec.space.levels(self.run.key) if spec.space else {}
        return {**levels, "snapshot": self.snapshot} if "snapshot" in spec.levels else levels

    def rows(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of the run in a table; none where nothing was made yet."""
        return self.house.read_or_empty(table, columns=columns, **self.levels(table))

    def written(self, tables: Iterable[str]) -> tuple[Any, ...]:
        """What tells whether results are still what they were: the run's files in these tables, and models, scenarios and settings."""
        from pyarrow import fs

        folders = [fs.FileSelector(self.house.folder(one, **self.levels(one)), allow_not_found=True) for one in tables]
        files = [found for folder in folders for found in self.house.fs.get_file_info(folder)]
        return (config_hash(self.settings), *((one.path, one.mtime_ns, one.size) for one in files))

    @property
    def models(self) -> Models:
        """The models that are known now."""
        return _models_of(self.settings, _stamp(self.settings.models))

    def computed(self, selectors: Iterable[str]) -> set[str]:
        """The names of those of these models that are computed, and not asked."""
        found = set[str]()
        for selector in selectors:
            with suppress(ConfigError):
                found.update(spec.name for spec in self.models.resolve([selector]) if spec.is_computed)
        return found

    def names(self, selectors: Iterable[str]) -> set[str]:
        """The names that models have in tables which these selectors stand for. One that is not known any more is taken for a name."""
        models, found = self.models, set[str]()
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

    def bought(self, keys: Iterable[str]) -> Spent:
        """What those of the calls cost that were answered in a Dagster run of this evaluation."""
        from resources.responses.store import ResponseStore

        with ResponseStore(self.settings.responses_url) as store:
            found = store.bought(keys, self.run.queue_id)
        return Spent(found.cost_usd, found.calls, found.prompt_tokens, found.completion_tokens, found.unpriced, found.most_usd)

    def unknown_costs(self, keys: Iterable[str]) -> pa.Table:
        """UNKNOWN_COSTS of these requests."""
        from resources.responses.store import ResponseStore

        with ResponseStore(self.settings.responses_url) as store:
            return store.unknown_costs(keys)


def _stamp(path: Path | None) -> tuple[str, int, int] | None:
    try:
        status = path.stat() if path else None
    except OSError:
        return None
    return (str(path), status.st_mtime_ns, status.st_size) if status else None


@lru_cache(maxsize=4)
def _models_of(settings: Settings, stamp: object) -> Models:
    """`stamp`: of the file of models, which is read again when it changes."""
    from dtef_pipeline.families import COMPUTED_MODELS

    return known_models(settings, COMPUTED_MODELS)


class Results(NamedTuple):
    """All that is shown of a run."""

    metrics: list[dict[str, Any]]
    outcomes: dict[str, Any]
    cost: Spent
    bought: Spent
    """Of these calls, those that were answered in a Dagster run of this evaluation."""
    traces: list[str]

    @property
    def size(self) -> int:
        """Members."""
        return len(self.metrics) + len(self.traces) + 1


def results_of_run(asked: RunAsked) -> Results:
    """All that is shown of a run, made of the tables as they are now."""
    family = results_for(asked.evaluation.family)
    counts, traces = family.counts_of(asked), family.traces_of(asked)
    # What was bought for rows that are not there yet is nobody's cost: the evaluation as a whole knows it.
    cost, bought = (
        (family.cost_of(asked), asked.bought(family.request_keys_of(asked))) if traces else (Spent(usd=None), Spent(usd=None))
    )
    outcomes = outcomes_told(counts, OUTCOME_UNITS[asked.evaluation.family])
    return Results(family.metrics_of(asked, counts), outcomes, cost, bought, traces)


class ResultsKept:
    """The results of the runs that were asked for last: made again when something that they are made of changes, and by one caller at a time."""

    def __init__(self, most: int = _MOST_KEPT_MEMBERS, made: Callable[[RunAsked], Results] = results_of_run) -> None:
        """`most`: members of all results that are kept; those of the last run are, however many."""
        self._most, self._made, self._lock = most, made, threading.Lock()
        self._found: OrderedDict[str, tuple[tuple[Any, ...], Results]] = OrderedDict()
        self._at_work: WeakValueDictionary[str, Any] = WeakValueDictionary()

    def of(self, asked: RunAsked) -> Results:
        """Those of a run."""
        run_id = asked.run.run_id
        with self._lock:
            alone = self._at_work.setdefault(run_id, threading.Lock())
        with alone:
            written = asked.written(_RESULTS_MADE_OF[asked.evaluation.family])
            before, found = self._found.get(run_id, ((), None))
            if found is None or before != written:
                found = self._made(asked)
            with self._lock:
                self._keep(run_id, written, found)
        return found

    def _keep(self, run_id: str, written: tuple[Any, ...], found: Results) -> None:
        self._found[run_id] = written, found
        self._found.move_to_end(run_id)
        size = sum(one.size for _, one in self._found.values())
        while size > self._most and len(self._found) > 1:
            _, (_, dropped) = self._found.popitem(last=False)
            size -= dropped.size


def results_for(family: str) -> FamilyResults:
    """The module of a family."""
    return cast(FamilyResults, importlib.import_module(f"{__name__}_{family}"))


def resolved(models: Models, selectors: Iterable[str]) -> Counter[str]:
    """How many variants of each model the selectors stand for, by the name in tables. One that is not known any more stands for itself."""
    found: dict[str, str] = {}
    for selector in selectors:
        try:
            found.update((spec.variant, spec.name) for spec in models.resolve([selector]))
        except ConfigError:
            found[selector] = selector
    return Counter(found.values())


def spent_on(asked: RunAsked, family: FamilyCalls, rows: Mapping[str, pa.Table], keys: Iterable[str]) -> Spent:
    """What the calls cost that these rows of the family's tables rest on, whose request keys are `keys`."""
    import duckdb

    from dtef_pipeline.boards.costs import count_calls_once, spent_in_all

    with duckdb.connect() as connection:
        for table, own in rows.items():
            connection.register(table, own)
        count_calls_once(connection, family, asked.stored(), asked.unknown_costs(keys))
        found = spent_in_all(connection)
    usd = 0.0 if found["cost_usd"] is None and not found["calls"] else found["cost_usd"]
    unpriced, most = max(found["unpriced"], found["unknown_cost_attempts"]), found["unknown_cost_usd_most"]
    return Spent(usd, found["calls"], found["prompt_tokens"], found["completion_tokens"], unpriced, most)


def measured(
    model: str, metric: str, value: Any, n: tuple[int, int | None], ends: tuple[Any, Any], reason: Any, **further: Any
) -> dict[str, Any]:
    """A member of `metrics`. `n`: what the value is a mean over, and over what it was to be. NaN and NA are None."""
    number, low, high = map(in_json, (value, *ends))
    why = in_json(reason) or (None if number is not None else "there is no score")
    n_known, n_asked = (None if one is None else int(one) for one in n)
    told = {"model": model, "metric": metric, "value": number, "n": n_known, "n_asked": n_asked, "low": low, "high": high}
    return {**told, "reason": why, **further}


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
