"""The files of assembled families: each is a partition, loaded by the first stage."""

from inspect import cleandoc
from pathlib import Path

import dagster as dg

from assets.stage.partitions import OWNERS
from dtef_pipeline.errors import DtefError
from dtef_pipeline.family.record import Family, load_parts
from dtef_pipeline.family.run_settings import RunSettings
from dtef_pipeline.family.stage import Inputs, Stage, Tables, make_uniqueness_check
from resources.part_files import open_part_notes


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
        checks=(
            make_uniqueness_check(
                f"{family.first_table}_unique",
                "Each item occurs once in its partition.",
                family.first_table,
                (family.scores.item,),
            ),
        ),
    )


def all_stages(family: Family) -> tuple[Stage, ...]:
    """Return all stages of an assembled family, beginning with its files."""
    return (load_stage(family), *family.stages())
