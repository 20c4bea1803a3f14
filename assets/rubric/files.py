"""The files of blueprints: one partition each, with a note in the warehouse."""

from collections.abc import Sequence
from pathlib import Path

import dagster as dg

from assets.engine.part_files import build_file_source
from dtef_pipeline.errors import DtefError
from dtef_pipeline.rubric.blueprint.findings import is_left_out_for
from dtef_pipeline.rubric.blueprint.model import Blueprint, BlueprintFinding, ParsedBlueprint
from dtef_pipeline.rubric.blueprint.named_models import read_collections
from dtef_pipeline.rubric.blueprint.reading import read_blueprint
from dtef_pipeline.rubric.tables import RUBRIC_SPACE
from dtef_pipeline.text.quantity_words import format_count
from resources.blueprint_files import RubricFile
from resources.plugin_functions import load_plugin_functions

RUBRIC_BLUEPRINT = dg.DynamicPartitionsDefinition(name=RUBRIC_SPACE.name)
RUBRIC_GROUP = {"group_name": "rubric"}
"""The group of the family's assets in the UI."""
_RESERVED = "reserved-id"
"""The error about a whole file, of which no part can be left out."""

rubric_files = build_file_source(
    "rubric",
    RUBRIC_BLUEPRINT,
    """The file of each blueprint: one partition per file, observed when it is added (`dtef rubric add`) or when the sensor
    `new_blueprint` finds it changed. Its data version is a hash of the file and of the model collections that were given with it: if it
    differs from the one that `rubric_blueprints` was made from, that partition is stale.""",
)


def read(file: RubricFile) -> tuple[ParsedBlueprint, Blueprint]:
    """Return the file's contents. Raises DtefError, in one line, if it has errors and its broken parts may not be left out."""
    path = Path(file.path)
    if file.is_gone:
        raise DtefError(
            f"{path} no longer exists: add {file.blueprint} from another path with `dtef rubric add`, or remove it with {file.removal}"
        )
    collections = read_collections(Path(file.models_dir)) if file.models_dir else None
    result = read_blueprint(path, file.blueprint, collections, other_functions=load_plugin_functions())
    errors = [finding for finding in result.findings if is_left_out_for(finding.level, finding.code)]
    fatal_errors = [finding for finding in errors if finding.code == _RESERVED]
    if errors and (fatal_errors or not file.skip_broken):
        raise DtefError(_format_first_error(path, fatal_errors or errors))
    if result.blueprint is None or not result.blueprint.prompts:
        raise DtefError(_format_first_error(path, errors) if errors else f"{path}: it has no usable prompt")
    return result, result.blueprint


def _format_first_error(path: Path, errors: Sequence[BlueprintFinding]) -> str:
    """Return `safety/a.yml:12: prompt 3 should[0]: bad-point: ... (and 2 more errors)`."""
    first = errors[0]
    line = f":{first.line}" if first.line else ""
    place = f" {first.place}:" if first.place and not first.place.startswith("line ") else ""
    suffix = f" (and {format_count(len(errors) - 1, 'more error')})" if len(errors) > 1 else ""
    return f"{path}{line}:{place} {first.code}: {first.text}{suffix}"
