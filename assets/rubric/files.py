"""The files that blueprints come from: one partition each, and what is noted of it in the warehouse."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import dagster as dg
import pyarrow.fs as pafs

from assets.stage.partitions import OWNERS
from assets.stage.versions import observation_tags, observed_versions
from dtef_pipeline.errors import DtefError, WarehouseError
from dtef_pipeline.identity import digest
from dtef_pipeline.rubric.findings import leaves_out
from dtef_pipeline.rubric.model import Blueprint, ReadBlueprint
from dtef_pipeline.rubric.named_models import read_collections
from dtef_pipeline.rubric.reading import read_blueprint
from dtef_pipeline.rubric.space import RUBRIC_SPACE
from dtef_pipeline.text.counted import counted
from resources.added_functions import added_functions
from resources.warehouse import Warehouse

RUBRIC_BLUEPRINT = dg.DynamicPartitionsDefinition(name=RUBRIC_SPACE.name)
_FOLDER = "rubric_files"
_RESERVED = "reserved-id"
"""The error that is about the whole file, so that no part of it can be left out."""

rubric_files = dg.AssetSpec(
    "rubric_files",
    description="""The file of each blueprint: one partition per file, observed when it is added (`dtef rubric add`) or when the sensor
    `new_blueprint` finds it changed. Its data version is a hash of the file and of the model collections that were given with it: where it is
    newer than what `rubric_blueprints` was made from, that partition is stale at once.""",
    group_name="rubric",
    owners=OWNERS,
    kinds={"file"},
    partitions_def=RUBRIC_BLUEPRINT,
)


@dataclass(frozen=True, slots=True)
class RubricFile:
    """Where a blueprint comes from. Kept as a small JSON file in the warehouse."""

    blueprint: str
    path: str
    models_dir: str | None
    """Folder of the model collections that the file may name."""
    skip_broken: bool
    """Parts with an error are left out; otherwise such a file is not run."""
    content_hash: str


class Added(NamedTuple):
    """What adding files came to."""

    keys: list[str]
    changed: list[str]
    """Those of them that are new, or of which file or collections have changed."""


def content_hash(path: Path, models_dir: Path | None) -> str:
    """Hash of the file and of the collections that it may name."""
    parts = [path.read_bytes()]
    if models_dir is not None:
        parts += [file.read_bytes() for file in sorted(models_dir.iterdir()) if file.is_file()]
    return digest(*(hashlib.sha256(part).hexdigest() for part in parts))


def noted(warehouse: Warehouse, blueprint: str) -> RubricFile | None:
    """What is noted of a blueprint's file; None: it was never added. Raises WarehouseError when the note is broken."""
    file = _note(warehouse, blueprint)
    if warehouse.fs.get_file_info(file).type != pafs.FileType.File:
        return None
    with warehouse.fs.open_input_stream(file) as stream:
        text = stream.read()
    try:
        return RubricFile(**json.loads(text))
    except (ValueError, TypeError) as error:
        raise WarehouseError(f"{file}: cannot be read: {error}; `dtef rubric add` on the file writes it anew") from error


def read(file: RubricFile) -> tuple[ReadBlueprint, Blueprint]:
    """What the file holds now. Raises DtefError where it has errors and its broken parts were not to be left out."""
    path = Path(file.path)
    if not path.is_file():
        raise DtefError(f"{file.blueprint}: {path} is not there any more; `dtef rubric add` takes it from elsewhere")
    collections = read_collections(Path(file.models_dir)) if file.models_dir else None
    found = read_blueprint(path, file.blueprint, collections, other_functions=added_functions())
    errors = [one for one in found.findings if leaves_out(one.level, one.code)]
    whole = [one for one in errors if one.code == _RESERVED]
    if errors and (whole or not file.skip_broken):
        first = (whole or errors)[0]
        line = f":{first.line}" if first.line else ""
        raise DtefError(
            f"{path}{line}: {counted(len(errors), 'error')}, first {first.code} at {first.place or 'the file'}: {first.text}; "
            "`dtef rubric check` lists all; `dtef rubric add --skip-broken` leaves broken parts out"
        )
    if found.blueprint is None or not found.blueprint.prompts:
        raise DtefError(f"{path}: nothing in it can be asked; `dtef rubric check` says why")
    return found, found.blueprint


def add(instance: dg.DagsterInstance, warehouse: Warehouse, files: Sequence[RubricFile]) -> Added:
    """Make blueprints known: their notes, their partitions, and which of them hold something new. Done again, it changes nothing."""
    keys = [file.blueprint for file in files]
    for file in files:
        warehouse.put(_note(warehouse, file.blueprint), json.dumps(asdict(file), indent=2).encode())
    known = set(known_blueprints(instance))
    if new := [key for key in keys if key not in known]:
        instance.add_dynamic_partitions(RUBRIC_SPACE.name, new)
    return Added(keys, _observe(instance, {file.blueprint: file for file in files}))


def known_blueprints(instance: dg.DagsterInstance) -> list[str]:
    """The partitions, in the order in which they were added."""
    return list(instance.get_dynamic_partitions(RUBRIC_SPACE.name))


def _observe(instance: dg.DagsterInstance, files: Mapping[str, RubricFile]) -> list[str]:
    """Tell Dagster the data version of each file that holds something new; which those are."""
    seen = observed_versions(instance, rubric_files.key, list(files))
    changed = [key for key, file in files.items() if seen.get(key) != file.content_hash]
    for key in changed:
        instance.report_runless_asset_event(
            dg.AssetObservation(
                rubric_files.key,
                partition=key,
                metadata={"path": files[key].path, "content_hash": files[key].content_hash},
                tags=observation_tags(files[key].content_hash),
            )
        )
    return changed


def _note(warehouse: Warehouse, blueprint: str) -> str:
    return f"{warehouse.root}/{_FOLDER}/{digest(blueprint)}.json"
