"""Stage 1 of the rubric family: `rubric_blueprints`."""

from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

from assets.rubric.files import RUBRIC_BLUEPRINT, read, rubric_files
from assets.stage.checks import keys_repeated, read_keys, verdict
from assets.stage.partitions import PartitionRun, markdown, stage
from assets.stage.resources import Store
from assets.stage.versions import content_version
from dtef_pipeline.errors import DtefError
from dtef_pipeline.rubric.blueprint_rows import BlueprintTables, blueprint_tables
from dtef_pipeline.rubric.findings import leaves_out
from dtef_pipeline.rubric.space import RUBRIC_POINT, RUBRIC_SPACE
from resources.blueprint_files import noted

RUBRIC_GROUP = {"group_name": "rubric"}
"""Where the stages of the family stand in the UI."""


@dg.asset(deps=[rubric_files], **{**stage(RUBRIC_BLUEPRINT, 1, "rubric_blueprints", code_version="2"), **RUBRIC_GROUP})
def rubric_blueprints(context: dg.AssetExecutionContext, store: Store) -> dg.MaterializeResult[Any]:
    """What a blueprint's file says: one row with its title, tags, models and the hash of its test.

    Beside it stand the tables `rubric_prompts` (what is asked), `rubric_criteria` (what responses are judged by) and `rubric_findings` (what
    is wrong with the file or worth knowing, with place and remedy). A file with errors fails its partition, unless it was added with
    `--skip-broken`, which leaves the broken parts out and counts them.
    """
    run = PartitionRun(context, store)
    for key in run.keys:
        with run.attempt(key):
            tables = _tables(store, key)
            for name, rows in tables._asdict().items():
                store.warehouse.write(name, rows, **RUBRIC_SPACE.levels(key))
            run.done(key, _metadata(tables), content_version(pa.concat_tables([_told(rows) for rows in tables])))
    return run.result()


def _tables(store: Store, key: str) -> BlueprintTables:
    file = noted(store.warehouse, key)
    if file is None:
        raise DtefError(f"{key}: no file of it is known; `dtef rubric add PATH` adds it")
    found, blueprint = read(file)
    return blueprint_tables(found, blueprint, file.path)


def _told(rows: pa.Table) -> pa.Table:
    """The hash of a table's content as a table: four tables have one version."""
    return pa.table({"version": [content_version(rows)]})


def _metadata(tables: BlueprintTables) -> dict[str, Any]:
    head = tables.rubric_blueprints.to_pylist()[0]
    levels = {row["values"]: row["counts"] for row in pc.value_counts(tables.rubric_findings["level"]).to_pylist()}
    return {
        "dagster/row_count": 1,
        "title": head["title"],
        "test_hash": head["test_hash"],
        "prompts": head["n_prompts"],
        "criteria": head["n_criteria"],
        "prompts_with_ideal": head["n_ideals"],
        "models": ", ".join(head["models"]),
        "findings": dg.MetadataValue.json(levels),
        "findings_told": markdown(tables.rubric_findings, ["level", "code", "place", "text"], most=20),
        "preview": markdown(tables.rubric_criteria, ["prompt", "block", "kind", "text", "fn", "weight"], most=8),
    }


@dg.asset_check(asset=rubric_blueprints, blocking=True)
def rubric_prompts_unique(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """A prompt id stands once in its blueprint."""
    return keys_repeated(context, store, "rubric_prompts", ["prompt"])


@dg.asset_check(asset=rubric_blueprints, blocking=True)
def rubric_criteria_have_places(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """Every criterion has a place of its own: no two paths of different blocks, and no two points of a path, are taken for one."""
    return keys_repeated(context, store, "rubric_criteria", list(RUBRIC_POINT))


@dg.asset_check(asset=rubric_blueprints)
def rubric_parts_left_out(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """Warns of blueprints of which broken parts were left out, as `--skip-broken` allows."""
    offenders, checked = [], 0
    for key, rows in read_keys(context, store, "rubric_findings", ["level", "code", "place"]):
        checked += len(rows)
        offenders += [
            f"{key} {row['place']}: {row['code']}" for row in rows.to_pylist() if leaves_out(row["level"], row["code"])
        ]
    return verdict(offenders, checked=checked, severity=dg.AssetCheckSeverity.WARN)
