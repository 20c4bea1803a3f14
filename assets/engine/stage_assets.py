"""The assets of a family's stages, built from their records. Each run processes partitions separately, so that a faulty one fails alone."""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from inspect import cleandoc
from pathlib import Path
from typing import Any, NamedTuple

import dagster as dg
import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from assets.engine.asking import answer_calls, asking
from assets.engine.settings_config import takes_settings
from assets.engine.stage_inputs import Shared, StageContext, StageInputs, is_first_snapshot_stage
from assets.stage.checks import Offender, asset_check, partition_verdict, read_keys
from assets.stage.partitions import (
    OWNERS,
    STAGES,
    PartitionRun,
    StageName,
    build_freshness_policy,
    markdown,
    require_snapshot,
    split_batches,
    split_into_batches,
)
from assets.stage.resources import Store
from assets.stage.versions import column_schema, content_version
from dtef_pipeline.asking.calls import Ask
from dtef_pipeline.asking.episodes import play, play_by_key, split_into_windows
from dtef_pipeline.asking.request import Request
from dtef_pipeline.errors import DtefError
from dtef_pipeline.family.record import Family, load_parts
from dtef_pipeline.family.run_settings import RunSettings
from dtef_pipeline.family.stage import (
    CallPlan,
    Check,
    EpisodePlan,
    Inputs,
    Limits,
    Stage,
    Tables,
    concatenate_tables,
    make_uniqueness_check,
)
from resources.notes import open_part_notes
from resources.settings import Settings
from resources.warehouse import TABLES


class _PartitionPlan(NamedTuple):
    """The requests for one partition."""

    inputs: StageInputs
    plan: EpisodePlan | CallPlan


def stage_assets(family: Family, stages: Sequence[Stage]) -> list[dg.AssetsDefinition | dg.AssetChecksDefinition]:
    """Return the assets of all stages of a family in order, each followed by its checks."""
    partitions = dg.DynamicPartitionsDefinition(name=family.space.name)
    assets: list[dg.AssetsDefinition | dg.AssetChecksDefinition] = []
    for number, step in enumerate(stages, start=1):
        STAGES[step.name] = StageName(family.space.name, number, step.verb or step.name)
        asset = _build_asset(family, step, number, partitions)
        assets += [asset, *(_check(family, step, asset, check) for check in step.checks)]
    return assets


def _build_asset(family: Family, stage: Stage, number: int, partitions: dg.DynamicPartitionsDefinition) -> dg.AssetsDefinition:
    limit = Settings.read_environment().partitions_per_run

    def compute(context: dg.AssetExecutionContext, settings: RunSettings, store: Store) -> dg.MaterializeResult[Any]:
        run = _StageRun(family, stage, context, settings, store)
        with run.shared.exit_stack:
            return run.ask_for_all() if stage.asks else run.make_all()

    function = takes_settings(family.settings, stage.name, stage.settings)(compute)
    with warnings.catch_warnings():
        # Suppresses Dagster's beta warning on single-run backfills for every stage.
        warnings.simplefilter("ignore", dg.BetaWarning)
        asset: dg.AssetsDefinition = dg.asset(
            name=stage.name,
            deps=[dg.AssetKey(name) for name in stage.after],
            description=cleandoc(stage.description),
            freshness_policy=build_freshness_policy() if stage.nightly else None,
            partitions_def=partitions,
            # All stages use the same policy, so that a run takes its partitions through all of them: one run for each range of
            # neighbouring partitions, or at most so many partitions per run.
            backfill_policy=dg.BackfillPolicy.multi_run(limit) if limit else dg.BackfillPolicy.single_run(),
            output_required=False,
            owners=OWNERS,
            group_name=family.name,
            kinds={"litellm", "parquet"} if stage.asks_models else {"parquet"},
            tags={"stage": str(number)},
            op_tags={"dagster/priority": str(-number)},  # stages that could run next run in the order of their numbers
            code_version=stage.version,
            metadata=column_schema(stage.name),
        )(function)
    return asset


class _StageRun:
    """A stage's work on the partitions of a run."""

    def __init__(
        self, family: Family, stage: Stage, context: dg.AssetExecutionContext, settings: RunSettings, store: Store
    ) -> None:
        self.family, self.stage, self.context, self.settings, self.store = family, stage, context, settings, store
        self.run = PartitionRun(context, store)
        self.shared = StageContext(context, store, settings, self.run.keys)
        self.by_snapshot, self.snapshot = "snapshot" in TABLES[stage.name].levels, stage.snapshot(settings)

    def make_all(self) -> dg.MaterializeResult[Any]:
        """Make the tables of each partition, without requests."""
        for keys in split_into_batches(self.run.keys):
            with self.store.writing(self.stage.name, keys) if self.stage.is_exclusive else nullcontext():
                self._make({key: self._inputs(key) for key in keys})
        return self.run.result()

    def _make(self, inputs: Mapping[str, StageInputs]) -> None:
        together = self._make_together(list(inputs.values()))
        for key, partition in inputs.items():
            with self.run.attempt(key), self.stage.context():
                result = together.get(key) or self.stage.make(partition, self.settings)
                assert not isinstance(result, (EpisodePlan, CallPlan)), f"{self.stage.name} is not a stage that asks"
                self._write(partition, result)

    def _make_together(self, inputs: Sequence[StageInputs]) -> Mapping[str, Tables]:
        """Return tables by key, or nothing if one of several partitions fails: each is then made separately, to attribute errors."""
        try:
            return self.stage.make_together(inputs, self.settings) if self.stage.make_together else {}
        except duckdb.InterruptException:  # a Ctrl-C during a query
            raise
        except Exception:
            return {}

    def ask_for_all(self) -> dg.MaterializeResult[Any]:
        """Send the requests of all partitions, small ones together, and write their tables."""
        parts = []
        for key in self.run.keys:
            with self.run.attempt(key), self.stage.context():
                if is_first_snapshot_stage(self.stage):
                    require_snapshot(self.store.warehouse, self.stage.name, self.family.space, [key], self.settings.snapshot)
                inputs = self._inputs(key)
                result = self.stage.make(inputs, self.settings)
                if isinstance(result, (EpisodePlan, CallPlan)):
                    parts.append(_PartitionPlan(inputs, result))
                else:
                    self._write(inputs, result)
        with self._open_ask(parts) as ask:
            for group in split_batches(parts, [part.plan.size for part in parts], self.stage.at_a_time):
                self._answer(group, ask)
        return self.run.result()

    def _inputs(self, key: str) -> StageInputs:
        return StageInputs(self.store, self.family.space, key, self.snapshot, self.shared)

    def _open_ask(self, parts: Sequence[_PartitionPlan]) -> AbstractContextManager[Ask]:
        """Open a function that sends requests, within the budgets of the run and the limits of the stage."""
        specs = list({spec.variant: spec for part in parts for spec in part.plan.models}.values())
        expected: Counter[str] = Counter()
        for part in parts if self.stage.expected is None else ():
            expected.update(part.plan.expected)
        if self.stage.expected and parts:
            expected.update(self.stage.expected(parts[0].inputs, self.settings))
        limits = self.stage.limits(self.store, self.settings) if self.stage.limits else Limits()
        return asking(self.context, self.store, self.settings, specs, expected, limits)

    def _answer(self, group: Sequence[_PartitionPlan], ask: Ask) -> None:
        """Send the requests of these partitions, and write their tables."""
        self._answer_calls([part for part in group if isinstance(part.plan, CallPlan)], ask)
        episodes = [part for part in group if isinstance(part.plan, EpisodePlan)]
        together = self._make_rows_together(episodes, ask)
        for part in episodes:
            key = part.inputs.key
            with self.run.attempt(key), self.stage.context():
                assert isinstance(part.plan, EpisodePlan)
                new = together.get(key) or self._make_rows_alone(part.plan, ask)
                with self.store.writing(self.stage.name, [key]):
                    self._write(part.inputs, part.plan.merge_with_stored(new))

    def _answer_calls(self, group: Sequence[_PartitionPlan], ask: Ask) -> None:
        """Do the same for partitions whose requests are sent at once."""
        requests, keys, able = list[Sequence[Request]](), list[str](), list[_PartitionPlan]()
        for part in group:
            with self.run.attempt(part.inputs.key):
                assert isinstance(part.plan, CallPlan)
                requests.append(part.plan.requests())
                keys += part.plan.keys()
                able.append(part)
        responses, failures = answer_calls(requests, keys, ask, self.store.responses.responses)
        for batch in split_into_batches(able):
            with self.store.writing(self.stage.name, [part.inputs.key for part in batch]):
                for part in batch:
                    with self.run.attempt(part.inputs.key), self.stage.context():
                        assert isinstance(part.plan, CallPlan)
                        self._write(part.inputs, part.plan.merge_with_stored(part.plan.rows(responses, failures)))

    def _make_rows_together(self, group: Sequence[_PartitionPlan], ask: Ask) -> dict[str, Tables]:
        """Return the new rows of a group of partitions, by key: all requests are sent together, so that slow ones overlap.

        Returns nothing for a single partition, or if one of several fails: each is then tried separately, so that errors are reported for
        the right one. No request is repeated, since responses are stored.
        """
        if len(group) < 2:
            return {}
        try:
            plans = {part.inputs.key: part.plan for part in group if isinstance(part.plan, EpisodePlan)}
            episodes = {key: list(plan.episodes()) for key, plan in plans.items()}
            outcomes = play_by_key(episodes, ask, self.store.responses.responses)
            return {key: plan.rows(episodes[key], outcomes[key]) for key, plan in plans.items()}
        except Exception:
            return {}

    def _make_rows_alone(self, plan: EpisodePlan, ask: Ask) -> Tables:
        """Return the new rows of a partition, window by window."""
        windows = [plan.rows((), ())]
        for episodes in split_into_windows(plan.episodes(), self.stage.at_a_time):
            windows.append(plan.rows(episodes, play(episodes, ask, self.store.responses.responses)))
        return concatenate_tables(windows)

    def _write(self, inputs: StageInputs, tables: Tables) -> None:
        inputs.keep(tables)
        version = None if self.stage.follows else self._version(tables)
        self.run.done(inputs.key, self._describe_tables(tables, inputs.metadata), version)

    def _version(self, tables: Tables) -> str:
        version = content_version(tables[self.stage.name].drop_columns(list(self.stage.unversioned_columns)))
        versions = [content_version(tables[name]) for name in self.stage.versioned_tables]
        return content_version(pa.table({"version": [version, *versions]})) if versions else version

    def _describe_tables(self, tables: Tables, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Return a partition's metadata for Dagster: row counts, values of some columns, tokens and dollars, and the first rows."""
        rows = tables[self.stage.name]
        snapshot = {"snapshot": self.snapshot} if self.by_snapshot and self.snapshot else {}
        row_counts = {f"{name}_rows": len(table) for name, table in tables.items() if name != self.stage.name}
        counts = {
            name: dg.MetadataValue.json({str(row["values"]): row["counts"] for row in pc.value_counts(rows[name]).to_pylist()})
            for name in self.stage.counted_columns
        }
        extras = {name: _format_metadata_value(value) for name, value in {**self.stage.metadata(tables), **metadata}.items()}
        preview = {"preview": markdown(rows, self.stage.preview)} if self.stage.preview else {}
        return {"dagster/row_count": len(rows), **snapshot, **row_counts, **counts, **_sum_usage(tables), **extras, **preview}


def _sum_usage(tables: Tables) -> dict[str, Any]:
    """Return tokens and dollars of the first table that has them."""
    rows = next((table for table in tables.values() if "completion_tokens" in table.schema.names), None)
    if rows is None:
        return {}
    tokens = sum(pc.sum(rows[name]).as_py() or 0 for name in ("prompt_tokens", "completion_tokens"))
    cost = pc.sum(rows["cost_usd"]).as_py()
    return {"tokens": tokens, **({} if cost is None else {"cost_usd": cost})}


def _format_metadata_value(value: Any) -> Any:
    """Return a value for Dagster's display: tables as markdown, lists and mappings as JSON."""
    if isinstance(value, pa.Table):
        return markdown(value, value.schema.names, n=len(value))
    return dg.MetadataValue.json(value) if isinstance(value, (list, dict)) else value


def _check(family: Family, stage: Stage, asset: dg.AssetsDefinition, check: Check) -> dg.AssetChecksDefinition:
    severity = dg.AssetCheckSeverity.ERROR if check.blocking or check.is_error else dg.AssetCheckSeverity.WARN

    def compute(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
        offenders, n_rows = list[Offender](), 0
        run_config: Any = context.run.run_config  # empty if the run has only the check
        config, shared = run_config.get("ops", {}).get(stage.name, {}).get("config", {}), Shared()
        for key, rows in read_keys(store, check.table, check.columns):
            n_rows += len(rows)
            inputs = StageInputs(store, family.space, key, shared=shared)
            inputs.stage_config = config
            offenders += [(key, finding) for finding in check.find(inputs, rows)]
        return partition_verdict(context, offenders, n_checked=n_rows, severity=severity)

    compute.__doc__ = check.description
    return asset_check(asset=asset, blocking=check.blocking, name=check.name)(compute)


def build_file_source(name: str, partitions: dg.PartitionsDefinition[str], description: str) -> dg.AssetSpec:
    """Return the source `NAME_files`: the files of partitions, observed when they are added."""
    return dg.AssetSpec(
        f"{name}_files",
        description=cleandoc(description),
        group_name=name,
        owners=OWNERS,
        kinds={"file"},
        partitions_def=partitions,
    )


def load_stage(family: Family) -> Stage:
    """Return the first stage: the rows of a partition from its file."""

    def load(inputs: Inputs, _: RunSettings) -> Tables:
        note = open_part_notes(family.name).read(inputs.outside.warehouse, inputs.key)
        if note is None:
            raise DtefError(f"{inputs.key}: no file of it is known; `dtef {family.name} add PATH` adds it")
        path = Path(note.path)
        if not path.is_file():
            raise DtefError(f"{path} no longer exists: `dtef {family.name} add` adds {inputs.key} from another path")
        parts = inputs.remember(path, lambda: load_parts(family, path))
        if inputs.key not in parts:
            raise DtefError(f"{path} no longer has {inputs.key}; it has: {', '.join(parts) or 'nothing'}")
        return {family.first_table: parts[inputs.key].rows}

    return Stage(
        family.first_table,
        f"The items of each {family.part}: one row per item of its file, which `dtef {family.name} add` added; "
        "a partition whose file has changed since is stale.",
        load,
        after=(f"{family.name}_files",),
        checks=(make_uniqueness_check(family.first_table, (family.scores.item,)),),
    )


def all_stages(family: Family) -> tuple[Stage, ...]:
    """Return all stages of an assembled family, beginning with its files."""
    return (load_stage(family), *family.stages())
