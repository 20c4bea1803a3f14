"""Stage 1 of the rubric family: `rubric_blueprints`."""

from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from assets.rubric.files import RUBRIC_BLUEPRINT, read, rubric_files
from assets.stage.asked import RolesConfig, asking, models_of
from assets.stage.checks import Offender, asset_check, keys_repeated, partition_verdict, read_keys
from assets.stage.partitions import PartitionRun, markdown, stage
from assets.stage.resources import Store
from assets.stage.versions import content_version
from dtef_pipeline.asking.episodes import play
from dtef_pipeline.errors import DtefError
from dtef_pipeline.rubric.blueprint_rows import BlueprintTables, blueprint_tables
from dtef_pipeline.rubric.extractions import extracted, extracting_model, extractings, extraction_rows, with_key_points
from dtef_pipeline.rubric.findings import leaves_out
from dtef_pipeline.rubric.model import Blueprint, ReadBlueprint
from dtef_pipeline.rubric.space import RUBRIC_POINT, RUBRIC_SPACE
from dtef_pipeline.rubric.summary_rows import ANALYSTS
from dtef_pipeline.rubric.tables import RUBRIC_EXTRACTIONS
from resources.blueprint_files import noted

RUBRIC_GROUP = {"group_name": "rubric"}
"""Where the stages of the family stand in the UI."""


class BlueprintsConfig(RolesConfig):
    """Whether a model adds criteria, and who."""

    extract_points: bool = Field(
        default=False,
        description="Have an analyst list the key points of each ideal answer whose prompt has no criteria; they become criteria.",
    )
    analysts: list[str] = Field(
        default=[], description=f"Who extracts: the first of these; none: the first of the collection `{ANALYSTS}`."
    )


class _File(NamedTuple):
    """A blueprint as its file has it."""

    path: str
    found: ReadBlueprint
    blueprint: Blueprint


@dg.asset(deps=[rubric_files], **{**stage(RUBRIC_BLUEPRINT, 1, "rubric_blueprints", code_version="2"), **RUBRIC_GROUP})
def rubric_blueprints(context: dg.AssetExecutionContext, config: BlueprintsConfig, store: Store) -> dg.MaterializeResult[Any]:
    """What a blueprint's file says: one row with its title, tags, models and the hash of its test.

    Beside it stand the tables `rubric_prompts` (what is asked), `rubric_criteria` (what responses are judged by) and `rubric_findings` (what
    is wrong with the file or worth knowing, with place and remedy). A file with errors fails its partition, unless it was added with
    `--skip-broken`, which leaves the broken parts out and counts them. With `extract_points` a model lists the key points of ideal answers
    without criteria (`rubric_extractions`), and these become criteria; without it nobody is asked.
    """
    run = PartitionRun(context, store)
    files = {}
    for key in run.keys:
        with run.attempt(key):
            files[key] = _file(store, key)
    extractions = _extractions(context, store, config, files)
    kept = set(store.warehouse.values("rubric_extractions", "blueprint"))
    for key, file in files.items():
        with run.attempt(key):
            points, rows = extractions.get(key, ({}, RUBRIC_EXTRACTIONS.empty_table()))
            tables = blueprint_tables(file.found, with_key_points(file.blueprint, points), file.path)
            for name, made in tables._asdict().items():
                store.warehouse.write(name, made, **RUBRIC_SPACE.levels(key))
            if len(rows) or key in kept:
                store.warehouse.write("rubric_extractions", rows, **RUBRIC_SPACE.levels(key))
            version = content_version(pa.concat_tables([_told(made) for made in tables]))
            run.done(key, {**_metadata(tables), **_metadata_of_points(rows)}, version)
    return run.result()


def _file(store: Store, key: str) -> _File:
    file = noted(store.warehouse, key)
    if file is None:
        raise DtefError(f"{key}: no file of it is known; `dtef rubric add PATH` adds it")
    return _File(file.path, *read(file))


def _extractions(
    context: dg.AssetExecutionContext, store: Store, config: BlueprintsConfig, files: Mapping[str, _File]
) -> dict[str, tuple[dict[str, tuple[str, ...]], pa.Table]]:
    """By blueprint the key points of its prompts, and the rows of `rubric_extractions`. All blueprints are asked about at once."""
    if not config.extract_points:
        return {}
    model = extracting_model(config.analysts, models_of(store))
    episodes = {key: extractings(file.blueprint, model) for key, file in files.items()}
    everyone = [one for own in episodes.values() for one in own]
    if not everyone:
        return {}
    with asking(context, store, config, [model], {model.name: len(everyone)}) as ask:
        played = iter(play(everyone, ask, store.responses.responses))
    found = {}
    for key, own in episodes.items():
        came = list(islice(played, len(own)))
        points = {one.prompt: extracted(each).points for one, each in zip(own, came, strict=True)}
        found[key] = (points, extraction_rows(own, came))
    return found


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


def _metadata_of_points(rows: pa.Table) -> dict[str, Any]:
    """Nothing where nobody was asked."""
    if not len(rows):
        return {}
    reasons = {row["values"] or "extracted": row["counts"] for row in pc.value_counts(rows["reason"]).to_pylist()}
    return {
        "extractions": dg.MetadataValue.json(reasons),
        "key_points": pc.sum(rows["n_points"]).as_py(),
        **({"cost_usd": cost} if (cost := pc.sum(rows["cost_usd"]).as_py()) is not None else {}),
    }


@asset_check(asset=rubric_blueprints, blocking=True)
def rubric_prompts_unique(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """A prompt id stands once in its blueprint."""
    return keys_repeated(context, store, "rubric_prompts", ["prompt"])


@asset_check(asset=rubric_blueprints, blocking=True)
def rubric_criteria_have_places(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """Every criterion has a place of its own: no two paths of different blocks, and no two points of a path, are taken for one."""
    return keys_repeated(context, store, "rubric_criteria", list(RUBRIC_POINT))


@asset_check(asset=rubric_blueprints)
def rubric_parts_left_out(context: dg.AssetCheckExecutionContext, store: Store) -> dg.AssetCheckResult:
    """Warns of blueprints of which broken parts were left out, as `--skip-broken` allows."""
    offenders, checked = list[Offender](), 0
    for key, rows in read_keys(store, "rubric_findings", ["level", "code", "place"]):
        checked += len(rows)
        offenders += [
            (key, f"{row['place']}: {row['code']}") for row in rows.to_pylist() if leaves_out(row["level"], row["code"])
        ]
    return partition_verdict(context, offenders, checked=checked, severity=dg.AssetCheckSeverity.WARN)
