"""Shared parts of the stages of a partition space, and isolation of failing partitions in a run."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

import dagster as dg
import pyarrow as pa

from assets.stage.call_counts import CallsOfStage
from assets.stage.dagster_internals import (
    HIDDEN_TAG_PREFIX,
    LOGS_NOTHING,
    RANGE_END,
    RANGE_START,
    log_run_event,
    log_step_failure,
)
from assets.stage.resources import Store
from assets.stage.versions import Provenance, column_schema, log_together
from dtef_pipeline.asking.models import Models
from dtef_pipeline.asking.snapshot_order import require_one_spelling, require_snapshot_name
from dtef_pipeline.errors import DtefError
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.keys import Space
from dtef_pipeline.text.number_words import format_count
from resources.evaluations.evaluation_calls import CallCounts, StageCalls
from resources.evaluations.evaluation_store import QUEUE_TAG
from resources.failures import add_remedy, describe_error, format_one_line, links, parse_error_chain
from resources.gateway.progress import PartsProgress, format_progress
from resources.model_catalog import load_known_models
from resources.responses.processes import Process
from resources.settings import Settings
from resources.warehouse import TABLES, Warehouse

FAILED_TAG, FAILED_RUN_TAG = "dtef/failed_partitions", "dtef/failed_partitions_run"
PROCESS_TAG = f"{HIDDEN_TAG_PREFIX}dtef_process"
"""The process of a run started by a command, as JSON; such a command makes its own roll-ups. Read only by `process_of`."""
SNAPSHOT_TAG = "dtef/snapshot"
"""A run's snapshot, shown in the list of runs."""

MODELS_TAG = "dtef/models"
"""A run's models, or players of games."""
_MAX_TAGGED = 10
"""Most names in a tag; further ones are counted."""

FAILED_BECAUSE = "reasons"
"""Metadata key of a stage's failure: why each of its partitions failed."""

CHOSEN_TAG = "dtef/partitions"
"""Tag of a run over a range: its partitions, if they are not the whole range."""
OWNERS = ["team:data-engineering"]


_PARTITION_SPACES = list({spec.space.name: spec.space for spec in TABLES.values() if spec.space}.values())


class StageName(NamedTuple):
    """The name of a stage in logs and messages, and its number in its pipeline."""

    pipeline: str
    number: int
    verb: str


STAGES: dict[str, StageName] = {}
"""Stage names by asset."""


def get_stage_verb(asset: str) -> str:
    """Return `predict` for the asset `predictions`, and the name of any other asset as it is."""
    return STAGES[asset].verb if asset in STAGES else asset


LATE, VERY_LATE = timedelta(hours=36), timedelta(hours=60)
"""After one and two missed nights; a night may begin late and take ten hours."""


def build_freshness_policy(settings: Settings | None = None) -> dg.FreshnessPolicy | None:
    """Return the freshness policy of an asset of the nightly run: a warning after one missed night, a failure after two.

    Returns None without a panel (DTEF_PANEL), since nothing runs at night then. Dagster checks the newest materialization of any partition.
    """
    panel = (settings or Settings.read_environment()).panel
    return dg.FreshnessPolicy.time_window(warn_window=LATE, fail_window=VERY_LATE) if panel else None


def roll_up(
    table: str | None = None,
    *,
    code_version: str,
    group: str = "boards",
    kinds: Set[str] = frozenset({"duckdb", "parquet"}),
) -> dict[str, Any]:
    """Return the asset settings of a roll-up: common ones, and the columns of its table, if these are fixed."""
    return {
        "owners": OWNERS,
        "group_name": group,
        "kinds": set(kinds),
        "code_version": code_version,
        "metadata": column_schema(table) if table else {},
    }


def process_of(run: dg.DagsterRun) -> Process | None:
    """Return the process of the command that started the run, or None if Dagster did or it is unknown."""
    # Dagster copies the tag to a re-execution, which no command started.
    tag = "" if run.parent_run_id else run.tags.get(PROCESS_TAG, "")
    return Process(**json.loads(tag)) if tag.startswith("{") else None


_AT_ONCE = 50
"""Partitions that a stage locks at a time: few enough to take seconds."""
One = TypeVar("One")


def split_into_batches(items: Sequence[One]) -> Iterator[Sequence[One]]:
    return (items[start : start + _AT_ONCE] for start in range(0, len(items), _AT_ONCE))


class PartitionRun:
    """One stage's work over the partitions of a run: a key that fails is left out of later stages, the others continue.

    Good keys are materialized regardless of the others. A key that failed in an earlier stage of the same run is skipped. The last stage of
    the run raises `dg.Failure` naming every failed key, so that only the run and those keys are marked as failed.
    """

    def __init__(self, context: dg.AssetExecutionContext, store: Store) -> None:
        self.context, self._store = context, store
        self._failed_before = read_failed_partitions(context)
        self._chosen = select_partitions(context)
        self.keys = [key for key in self._chosen if key not in self._failed_before]
        self._provenance = Provenance(context, self.keys)
        tag_run(context, self._chosen)
        self._failures: dict[str, str] = {}
        self._done: dict[str, dg.AssetMaterialization] = {}
        self._began = time.monotonic()
        self._events = StageEvents(context, store)
        self._progress = PartsProgress(f"{self._title()}: partitions", len(self.keys), context.log.info)
        self._progress.announce(f"{self._title()}: {format_count(len(self.keys), 'partition')}")

    def _title(self) -> str:
        """Return `predict (stage 3 of 6)`."""
        asset = str(self.context.asset_key.to_user_string())
        if (stage := STAGES.get(asset)) is None:
            return asset
        count = sum(other.pipeline == stage.pipeline for other in STAGES.values())
        return f"{stage.verb} (stage {stage.number} of {count})"

    @contextmanager
    def attempt(self, key: str) -> Iterator[None]:
        """Work on one key. An error is logged and affects only this key."""
        try:
            yield
        except Exception as error:
            self._failures[key] = format_one_line(links(error))
            self.context.log.error(f"{key}: {self._failures[key]}", exc_info=not isinstance(error, DtefError))
            self._settle(key, self._failures[key])

    def _settle(self, key: str, failure_reason: str | None = None) -> None:
        self._events.item(key, self._n_settled, len(self.keys), failure_reason)
        self._progress(self._n_settled)

    @property
    def _n_settled(self) -> int:
        return len({*self._done, *self._failures})

    def done(self, key: str, metadata: Mapping[str, Any], content: str | None = None) -> None:
        """Record that the key is written. `content`: the `content_version` of its rows, if known."""
        tags = self._provenance.tags(key, content)
        self._done[key] = dg.AssetMaterialization(self.context.asset_key, partition=key, metadata=metadata, tags=tags)
        self._settle(key)

    def result(self) -> dg.MaterializeResult[Any]:
        """Return the asset's result. Raises dg.Failure if keys failed and no later stage of the run can report them."""
        self._progress.close()
        log_together(self.context, list(self._done.values()))
        self._log_summary()
        before = {key: self._store.run_state.failed.get(key, "failed in an earlier stage") for key in self._failed_before}
        failures = {**before, **self._failures}
        self._store.run_state.failed.update(self._failures)
        if failures:
            self._report(failures)
        return dg.MaterializeResult(metadata={LOGS_NOTHING: True})

    def _log_summary(self) -> None:
        """Log one line: partitions done and failed, rows and seconds."""
        counts = [
            entry.metadata["dagster/row_count"].value for entry in self._done.values() if "dagster/row_count" in entry.metadata
        ]
        rows = sum(count for count in counts if isinstance(count, int))
        details = [
            *([f"{len(self._failures):,} failed"] if self._failures else []),
            format_count(rows, "row"),
            f"{time.monotonic() - self._began:.1f} s",
        ]
        head = f"{get_stage_verb(self.context.asset_key.to_user_string())}: partitions done"
        summary = format_progress(head, len(self._done), len(self.keys), details)
        self.context.log.info(summary)
        self._progress.announce(summary)

    def _report(self, failures: Mapping[str, str]) -> None:
        # Dagster copies a run's tags to its re-execution, which must retry these keys: hence the run's own id.
        tags = {FAILED_TAG: "\n".join(sorted(failures)), FAILED_RUN_TAG: self.context.run.run_id}
        self.context.instance.add_run_tags(self.context.run.run_id, tags)
        message = add_remedy(format_failures(failures, len(self._chosen)))
        metadata = {"failed": dg.MetadataValue.json(sorted(failures)), FAILED_BECAUSE: dg.MetadataValue.json(dict(failures))}
        if not self._done or self._is_last_stage():
            raise dg.Failure(message, metadata=metadata, allow_retries=False)
        if self._failures:
            # The run continues, but its log marks this step as failed, so that a re-execution "from failure" begins here.
            log_step_failure(self.context, message, metadata)

    def _is_last_stage(self) -> bool:
        graph = self.context.job_def.asset_layer.asset_graph
        run_keys = self.context.job_def.asset_layer.executable_asset_keys
        return not any(
            key in run_keys and graph.get(key).is_partitioned
            for key in graph.get(self.context.asset_key).child_keys
            if key in run_keys
        )


def tag_run(context: dg.AssetExecutionContext, keys: Sequence[str]) -> None:
    """Tag the run with its subject: first levels of its partitions, snapshot and models.

    Only the stage sees all runs: a backfill or a click takes no tags of a job.
    """
    config: Mapping[str, Any] = context.op_execution_context.op_config or {}
    partitions = context.assets_def.partitions_def
    space = next(
        candidate
        for candidate in _PARTITION_SPACES
        if isinstance(partitions, dg.DynamicPartitionsDefinition) and candidate.name == partitions.name
    )
    levels = {
        f"dtef/{space.first}s": list(dict.fromkeys(space.levels(key)[space.first] for key in keys)),
        SNAPSHOT_TAG: [config["snapshot"]] if config.get("snapshot") else [],
        MODELS_TAG: config.get("models") or config.get("players") or [],
    }
    tags = {name: _format_some(values) for name, values in levels.items() if values}
    if new := {name: value for name, value in tags.items() if context.run.tags.get(name) != value}:
        context.instance.add_run_tags(context.run.run_id, new)


def _format_some(names: Sequence[str]) -> str:
    remaining = len(names) - _MAX_TAGGED
    return ", ".join(names[:_MAX_TAGGED]) + (f" and {remaining} more" if remaining > 0 else "")


def format_failures(failures: Mapping[str, str], total: int) -> str:
    """Return which of the run's partitions failed, and why."""
    note = ", the others are done" if len(failures) < total else ""
    reasons = "; ".join(f"{key} ({reason})" for key, reason in sorted(failures.items()))
    return f"{len(failures)} of {format_count(total, 'partition')} failed{note}: {reasons}"


def parse_partition_failures(failure: Any) -> Mapping[str, str] | None:
    """Return why each partition failed, by key, or None if a step failed as a whole."""
    failure_metadata = failure.user_failure_data.metadata.get(FAILED_BECAUSE) if failure.user_failure_data else None
    return (
        failure_metadata.value
        if isinstance(failure_metadata, dg.JsonMetadataValue) and isinstance(failure_metadata.value, dict)
        else None
    )


def describe_stage_failure(failure: Any, run: dg.DagsterRun, home: str) -> str:
    """Describe the failure of a whole stage. `home`: the folder of Dagster's storage."""
    if failure.user_failure_data and failure.user_failure_data.description:
        return str(failure.user_failure_data.description)
    chain = list(parse_error_chain(failure.error))
    if description := describe_error(chain, home):
        return description
    tags = run.tags
    part = " to ".join(dict.fromkeys(tags[name] for name in (RANGE_START, RANGE_END) if name in tags))
    return (
        f"{f'{part}: ' if part else ''}{format_one_line(chain, home)}; details are in the log of run {run.run_id} (`dtef ui`)"
    )


def select_partitions(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext) -> list[str]:
    """Return the partitions of a run. Dagster selects only ranges; keys of the range that the tag does not name are excluded."""
    tag = context.run.tags.get(CHOSEN_TAG)
    selection = set(tag.split("\n")) if tag else None
    return [key for key in context.partition_keys if selection is None or key in selection]


def read_failed_partitions(context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext) -> set[str]:
    """Return keys that failed in an earlier stage of this run. A re-execution begins with the failed stage and retries them."""
    run = context.instance.get_run_by_id(context.run.run_id)
    tags = run.tags if run else {}
    is_own_run = tags.get(FAILED_RUN_TAG) == context.run.run_id
    return set(tags[FAILED_TAG].split("\n")) if is_own_run and tags.get(FAILED_TAG) else set()


def markdown(rows: pa.Table, columns: Sequence[str], *, n: int = 5) -> dg.MarkdownMetadataValue:
    """Return the first rows as a small markdown table."""
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    lines += ["| " + " | ".join(_format_cell(row[name]) for name in columns) + " |" for row in rows.slice(0, n).to_pylist()]
    return dg.MetadataValue.md("\n".join(lines))


def _format_cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, list):
        return ", ".join(_format_cell(item) for item in value)
    text = "" if value is None else str(value).replace("|", "\\|").replace("\n", " ")
    return text if len(text) <= 80 else text[:77] + "..."


PROGRESS_INTERVAL_S = 2.0


class StageEvents:
    """Writes the progress of one stage to Dagster's event log, if the run belongs to an evaluation.

    An event that cannot be stored only causes a warning in the log.
    """

    def __init__(self, context: dg.AssetExecutionContext, store: Store) -> None:
        self._context = context
        self._stage = context.asset_key.to_user_string()
        self._is_told = QUEUE_TAG in context.run.tags
        self._reply_places = 0.0
        store.run_state.call_listener = CallsOfStage(self._report_progress, self._report_calls) if self._is_told else None

    def item(self, key: str, n_done: int, total: int, reason: str | None = None) -> None:
        """Record that a partition is done, or failed for a reason. `n_done`: the number of the stage's settled partitions."""
        status = {"status": "done"} if reason is None else {"status": "failed", "reason": reason}
        self._emit_event(f"{key} is {status['status']}", {"key": key, "done": n_done, "n_planned": total, **status})

    def _report_progress(self, counts: CallCounts, total: int) -> None:
        """Report the number of answered requests, at long intervals since events are stored permanently."""
        if time.monotonic() - self._reply_places < PROGRESS_INTERVAL_S:
            return
        self._reply_places = time.monotonic()
        progress_data = {"answered": counts.answered, "failed": counts.failed, "skipped": counts.skipped, "n_planned": total}
        self._emit_event(f"{counts.answered:,} of {total:,} requests are answered", progress_data)

    def _report_calls(self, calls: StageCalls) -> None:
        """Report the outcomes of all requests so far, at the end of each block of requests."""
        if calls.counts.n_requests:
            self._emit_event(
                f"{calls.counts.answered:,} of {calls.counts.n_requests:,} requests were answered", calls.build_json()
            )

    def _emit_event(self, message: str, data: Mapping[str, Any]) -> None:
        if not self._is_told:
            return
        try:
            log_run_event(self._context, f"{self._stage}: {message}", {"stage": self._stage, **data})
        except Exception as error:  # the stage must continue without the event
            self._context.log.warning(f"an event could not be stored: {error}")


def split_ranges(known_keys: Sequence[str], keys: Sequence[str]) -> Iterator[list[str]]:
    """Yield the wanted keys in groups of neighbours in `known_keys`, each selectable as one range."""
    remaining, group = set(keys), list[str]()
    for key in known_keys:
        if key in remaining:
            group.append(key)
        elif group:
            yield group
            group = []
    if group:
        yield group


def build_range_tags(keys: Sequence[str]) -> dict[str, str]:
    """Return run tags that select a range of neighbouring partitions."""
    return {RANGE_START: keys[0], RANGE_END: keys[-1]}


def build_partition_tags(known_keys: Sequence[str], keys: Sequence[str]) -> dict[str, str]:
    """Return run tags that select `keys`, in any order: their range in `known_keys`, and the selection in it if there are gaps."""
    groups = list(split_ranges(known_keys, keys))
    ordered_keys = [key for group in groups for key in group]
    return {**build_range_tags(ordered_keys), **({CHOSEN_TAG: "\n".join(ordered_keys)} if len(groups) > 1 else {})}


def require_snapshot(warehouse: Warehouse, table: str, space: Space, keys: Sequence[str], snapshot: str) -> None:
    """Raise ConfigError for a label that is new to these partitions and not allowed, or differs from one of theirs only in case.

    `table`: the partitions' table of responses.
    """
    labels = {label for key in keys for label in warehouse.values(table, "snapshot", **space.levels(key))}
    require_one_spelling(require_snapshot_name(snapshot, labels), labels)


PlanT = TypeVar("PlanT")
"""A stage's plan for a partition."""


def load_store_models(store: Store) -> Models:
    """Return the shipped models, and those of DTEF_MODELS."""
    return load_known_models(store.settings, COMPUTED_MODELS)


def split_batches(plans: Sequence[PlanT], sizes: Sequence[int], limit: int) -> Iterator[list[PlanT]]:
    """Yield plans in order, in groups of total size up to `limit`; a larger plan has its own group."""
    group: list[PlanT] = []
    total = 0
    for plan, size in zip(plans, sizes, strict=True):
        if group and total + size > limit:
            yield group
            group, total = [], 0
        group.append(plan)
        total += size
    if group:
        yield group
