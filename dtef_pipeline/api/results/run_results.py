"""Results of the runs of evaluations, cached until their sources change."""

from __future__ import annotations

import importlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakValueDictionary

from dtef_pipeline.api.answer_schemas import column_schema
from dtef_pipeline.api.results.run_context import RunContext, UsageTotals
from dtef_pipeline.api.results.run_outcomes import build_outcomes_body

if TYPE_CHECKING:
    from dtef_pipeline.api.results.family_results import FamilyResults

_RESULTS_CLASSES = {"games": "GamesResults", "qa": "QaResults", "rubric": "RubricResults", "survey": "SurveyResults"}
"""Classes of families that need more than `FamilyResults`."""
_MAX_CACHED_MEMBERS = 500_000
"""Largest number of metrics and traces over all cached runs."""


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

    @property
    def size(self) -> int:
        """Members."""
        return len(self.metrics) + len(self.traces) + 1


def make_results(family: FamilyResults) -> Results:
    """Make the results of a run from the present tables."""
    counts, traces = family.counts(), family.traces()
    # Without rows the cost of this run is unknown; the evaluation reports the cost of its calls.
    unknown = UsageTotals(usd=None)
    cost, purchase = (family.cost(), family.run.sum_call_costs(family.request_keys())) if traces else (unknown, unknown)
    return Results(family.metrics(counts), build_outcomes_body(counts, family.unit), cost, purchase, traces)


class ResultsCache:
    """Cache of the results of the latest requested runs, which one caller at a time recomputes when their sources change."""

    def __init__(self, most: int = _MAX_CACHED_MEMBERS, make: Callable[[FamilyResults], Results] = make_results) -> None:
        """`most`: largest number of members over all cached results; those of the latest run are always cached."""
        self._most, self._make, self._lock = most, make, threading.Lock()
        self._found: OrderedDict[str, tuple[tuple[Any, ...], Results]] = OrderedDict()
        self._at_work: WeakValueDictionary[str, Any] = WeakValueDictionary()

    def get_results(self, run: RunContext) -> Results:
        """Return the results of a run."""
        run_id = run.run.run_id
        with self._lock:
            alone = self._at_work.setdefault(run_id, threading.Lock())
        with alone:
            family = load_results(run)
            stamp = run.source_stamp(family.source_tables)
            before, results = self._found.get(run_id, ((), None))
            if results is None or before != stamp:
                results = self._make(family)
            with self._lock:
                self._keep(run_id, stamp, results)
        return results

    def _keep(self, run_id: str, stamp: tuple[Any, ...], results: Results) -> None:
        self._found[run_id] = stamp, results
        self._found.move_to_end(run_id)
        size = sum(entry.size for _, entry in self._found.values())
        while size > self._most and len(self._found) > 1:
            _, (_, oldest) = self._found.popitem(last=False)
            size -= oldest.size
