"""Data versions, which tell Dagster which partitions are stale.

Dagster compares, for each partition, the data version of a stage's inputs with the current one. By default it gives all partitions of a run
one version, so a single changed partition would make all of them stale. Hence each partition gets its own here.
"""

import hashlib
import uuid
from collections.abc import Sequence

import dagster as dg
import pyarrow as pa

from assets.stage.dagster_internals import (
    CODE_VERSION_TAG,
    DATA_VERSION_IS_USER_PROVIDED_TAG,
    DATA_VERSION_TAG,
    DEFAULT_DATA_VERSION,
    NULL_EVENT_POINTER,
    DagsterEventBatchMetadata,
    get_input_data_version_tag,
    get_input_event_pointer_tag,
    get_step,
)
from dtef_pipeline.identity import digest
from dtef_pipeline.tables import description, strip_descriptions
from resources.warehouse import TABLES


def content_version(rows: pa.Table) -> str:
    """Return the data version of a partition: a hash of its columns and rows, 32 hexadecimal digits. Equal rows have equal versions.

    It hashes Arrow's bytes (IPC format), in a tenth of the time of hashing JSON.
    """
    # Copied row by row: a slice would keep bits of its neighbours beyond its end.
    plain = strip_descriptions(rows).replace_schema_metadata(None).combine_chunks().take(pa.array(range(len(rows)), pa.int64()))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, plain.schema) as stream:
        stream.write_table(plain)
    return hashlib.sha256(sink.getvalue()).hexdigest()[:32]


def build_observation_tags(version: str) -> dict[str, str]:
    """Return the tags of an observation of this version."""
    return {DATA_VERSION_TAG: version, DATA_VERSION_IS_USER_PROVIDED_TAG: "true"}


class Provenance:
    """The inputs of one stage of a run: its code, and the versions of its input assets at its start."""

    def __init__(self, context: dg.AssetExecutionContext, keys: Sequence[str]) -> None:
        node = context.job_def.asset_layer.asset_graph.get(context.asset_key)
        self._code_version = node.code_version or context.run.run_id
        self._parents = sorted(node.parent_keys)
        self._apply_command = get_step(context)
        # Excludes observed inputs: their readers hash the rows made from them.
        event_type = dg.DagsterEventType.ASSET_MATERIALIZATION
        self._inputs = {parent: _latest(context.instance, parent, event_type, list(keys)) for parent in self._parents}

    def tags(self, key: str, content: str | None) -> dict[str, str]:
        """Return the tags of one partition's materialization. `content`: its `content_version`, if known.

        The version of a first stage is its content's. A later one gets a new version if its code, an input or its content changes: it may
        then become stale needlessly, but never appear fresh wrongly.
        """
        inputs = {parent: self._inputs[parent].get(key, "") for parent in self._parents}
        made_from_others = any(inputs.values())
        version = digest(self._code_version, *inputs.values(), content) if made_from_others or not content else content
        tags = {CODE_VERSION_TAG: self._code_version, **build_observation_tags(version)}
        for parent, input_version in inputs.items():
            info = self._apply_command.maybe_fetch_and_get_input_asset_version_info(parent)
            tags[get_input_data_version_tag(parent)] = input_version or DEFAULT_DATA_VERSION.value
            tags[get_input_event_pointer_tag(parent)] = str(info.storage_id) if info else NULL_EVENT_POINTER
        return tags


def read_observed_versions(instance: dg.DagsterInstance, asset: dg.AssetKey, keys: Sequence[str]) -> dict[str, str]:
    """Return the last observed data version of these partitions, if any."""
    return _latest(instance, asset, dg.DagsterEventType.ASSET_OBSERVATION, list(keys))


def _latest(instance: dg.DagsterInstance, asset: dg.AssetKey, kind: dg.DagsterEventType, keys: Sequence[str]) -> dict[str, str]:
    latest = instance.event_log_storage.get_latest_tags_by_partition(asset, kind, [DATA_VERSION_TAG], asset_partitions=keys)
    return {key: tags[DATA_VERSION_TAG] for key, tags in latest.items()}


def log_together(context: dg.AssetExecutionContext, materializations: Sequence[dg.AssetMaterialization]) -> None:
    """Log materializations as one batch (DAGSTER_EVENT_BATCH_SIZE), as Dagster does with its own."""
    step = get_step(context)
    batch = str(uuid.uuid4())
    for place, materialization in enumerate(materializations, start=1):
        end = place == len(materializations)
        dg.DagsterEvent.asset_materialization(step, materialization, DagsterEventBatchMetadata(batch, end))


def column_schema(table: str, schema: pa.Schema | None = None) -> dict[str, dg.TableSchema]:
    """Return asset or materialization metadata: name, type and description of every column. `schema`: for tables without a fixed one."""
    columns = [
        dg.TableColumn(field.name, str(field.type).replace("item: ", ""), description(field))
        for field in schema or TABLES[table].schema or ()
    ]
    return {"dagster/column_schema": dg.TableSchema(columns=columns)}
