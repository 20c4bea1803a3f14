"""A run of an evaluation: its plan, the place of its rows, and the outcomes of its planned requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from dtef_pipeline.asking.models import Models
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.text.amounts import describe_shortfall
from dtef_pipeline.text.number_words import format_count
from resources.evaluations.evaluation_store import Evaluation, EvaluationRun
from resources.evaluations.run_manifests import config_hash
from resources.model_catalog import load_known_models
from resources.settings import Settings

if TYPE_CHECKING:
    import pyarrow as pa

    from resources.responses.store import ResponseStore
    from resources.warehouse import Warehouse


class UsageTotals(NamedTuple):
    """Calls and their known cost: the members of `CallCosts`."""

    usd: float | None = 0.0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unpriced: int = 0
    unpriced_usd_most: float | None = None


@dataclass(frozen=True)
class RunContext:
    """A run of an evaluation, and the place of its rows."""

    evaluation: Evaluation
    run: EvaluationRun
    settings: Settings
    house: Warehouse

    @property
    def snapshot(self) -> str:
        return str(self.evaluation.plan.get("snapshot", "base"))

    def stage_config(self, stage: str) -> Mapping[str, Any]:
        """Return the configuration of a stage in the plan."""
        config: Mapping[str, Any] = self.evaluation.plan.get("config", {}).get(stage, {})
        return config

    def levels(self, table: str) -> dict[str, str]:
        """Return the levels of the run's partition, and of its snapshot if the table has snapshots."""
        from resources.warehouse import TABLES

        spec = TABLES[table]
        levels = spec.space.levels(self.run.key) if spec.space else {}
        return {**levels, "snapshot": self.snapshot} if "snapshot" in spec.levels else levels

    def rows(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the partition's rows in a table; empty if there are none yet."""
        return self.house.read_or_empty(table, columns=columns, **self.levels(table))

    def source_stamp(self, tables: Iterable[str]) -> tuple[Any, ...]:
        """Return a stamp that changes with the results: the run's files in these tables, and models, scenarios and settings."""
        from pyarrow import fs

        folders = [fs.FileSelector(self.house.folder(table, **self.levels(table)), allow_not_found=True) for table in tables]
        files = [info for folder in folders for info in self.house.fs.get_file_info(folder)]
        return (config_hash(self.settings), *((file.path, file.mtime_ns, file.size) for file in files))

    @cached_property
    def models(self) -> Models:
        """The models known at present."""
        from dtef_pipeline.families import COMPUTED_MODELS

        return load_known_models(self.settings, COMPUTED_MODELS)

    def variants(self, selectors: Iterable[str]) -> Counter[str]:
        """Count the variants of each model in the selectors, by the name in tables. An unknown selector keeps its own name."""
        models, by_variant = self.models, dict[str, str]()
        for selector in selectors:
            try:
                by_variant.update((spec.variant, spec.name) for spec in models.resolve([selector]))
            except ConfigError:
                by_variant[selector] = selector
        return Counter(by_variant.values())

    def names(self, selectors: Iterable[str]) -> set[str]:
        """Return the names in tables of the models of these selectors, and the selectors themselves."""
        texts = list(selectors)
        return {*texts, *self.variants(texts)}

    def response_finder(self) -> Callable[[Sequence[str]], pa.Table]:
        """Find the stored responses to request keys, for rows that share calls."""
        return lambda keys: self._read_store(lambda store: store.responses(keys))

    def sum_call_costs(self, keys: Iterable[str]) -> UsageTotals:
        """Sum the cost of those calls that were made in a Dagster run of this evaluation."""
        totals = self._read_store(lambda store: store.sum_call_costs(keys, self.run.queue_id))
        return UsageTotals(
            totals.cost_usd, totals.calls, totals.prompt_tokens, totals.completion_tokens, totals.unpriced, totals.most_usd
        )

    def unknown_costs(self, keys: Iterable[str]) -> pa.Table:
        """Return UNKNOWN_COSTS of these requests."""
        return self._read_store(lambda store: store.unknown_costs(keys))

    def _read_store(self, read: Callable[[ResponseStore], Any]) -> Any:
        from resources.responses.store import ResponseStore

        with ResponseStore(self.settings.responses_url) as store:
            return read(store)


ItemOutcome = Literal["answered", "failed", "skipped"]
"""`skipped`: a budget was used up before it."""
ITEM_OUTCOMES: Mapping[str, ItemOutcome] = {
    **dict.fromkeys(("answered", "played", "ok", "empty"), "answered"),
    **dict.fromkeys(("budget", "skipped_budget"), "skipped"),
}
"""Outcomes by status; any other status is a failure."""


class Unit(NamedTuple):
    """The unit that a family counts."""

    noun: str
    done: str
    """Verb for answered units, as in `were played`."""


class OutcomeCounts(NamedTuple):
    """The planned requests and their outcomes."""

    n_planned: int | None
    """None: unknown until now."""
    answered: int = 0
    failed: int = 0
    skipped: int = 0
    scored: int = 0

    def describe_missing(self, unit: Unit) -> str | None:
        """Describe how much is missing and why; None if all was answered and at least one is scored."""
        remark = f"none of {format_count(self.answered, unit.noun)} has a score" if self.answered and not self.scored else None
        return format_remarks(describe_shortfall(self.n_planned or 0, self.answered, self.skipped, self.failed, unit), remark)


def count_by_group(
    rows: Iterable[tuple[Hashable, str, bool]], plan: Mapping[Hashable, int] | None
) -> dict[Hashable, OutcomeCounts]:
    """Count by group. `rows`: group, status, and whether the row is scored. `plan`: planned rows by group; None: unknown.

    Rows beyond the plan are from other runs, and count.
    """
    outcomes: dict[Hashable, Counter[str]] = {group: Counter() for group in plan or ()}
    for group, status, is_scored in rows:
        counts = outcomes.setdefault(group, Counter())
        counts[ITEM_OUTCOMES.get(status, "failed")] += 1
        counts["scored"] += is_scored
    return {
        group: OutcomeCounts(
            max((plan or {}).get(group, 0), sum(counts[name] for name in ("answered", "failed", "skipped"))), **counts
        )
        for group, counts in outcomes.items()
    }


def build_outcomes_body(counts: Mapping[Hashable, OutcomeCounts], unit: Unit) -> dict[str, Any]:
    """Build the member `outcomes` of a run."""
    total = OutcomeCounts(None)
    if counts:
        total = OutcomeCounts(*(sum(number or 0 for number in column) for column in zip(*counts.values(), strict=True)))
    warning = (
        f"no {unit.noun} is planned here: the sample or the data of the models leaves none" if total.n_planned == 0 else None
    )
    return {"unit": unit.noun, **total._asdict(), "warning": warning or total.describe_missing(unit)}


def format_other_answers(further: int, noun: str) -> str | None:
    """Say that a value includes rows that another run of the snapshot added for the same models."""
    return (
        f"the value includes {format_count(further, f'further {noun}')} from another run of this snapshot" if further else None
    )


def format_remarks(*parts: str | None) -> str | None:
    """Join the remarks; None: there are none."""
    return "; ".join(filter(None, parts)) or None


def format_percent(share: float) -> str:
    """Format a share with two digits, so that small shares are not 0: `12 %`."""
    return f"{100 * share:.2g} %" if share < 1 else "100 %"
