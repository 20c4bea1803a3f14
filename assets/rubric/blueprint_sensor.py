"""The sensor `new_blueprint`: watches a folder of blueprints, and adds and runs each new or changed file once."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import dagster as dg

from assets.engine.settings_config import load_family_panel
from assets.rubric.stages import read
from assets.stage.file_notes import add_noted, list_partitions
from assets.stage.partitions import build_partition_tags
from assets.stage.resources import Store
from dtef_pipeline.errors import DtefError
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.family.run_settings import run_config
from dtef_pipeline.identity import digest
from dtef_pipeline.rubric.blueprint.findings import UNKNOWN_MODEL_CODES
from dtef_pipeline.rubric.blueprint.model import ParsedBlueprint
from dtef_pipeline.rubric.blueprint.reading import is_blueprint_file, make_blueprint_id
from dtef_pipeline.rubric.settings import RUBRIC_PANEL_SECTION, RUBRIC_STAGE_SETTINGS, RubricSettings
from dtef_pipeline.rubric.tables import RUBRIC_SPACE
from dtef_pipeline.text.number_words import list_first_names
from resources.notes import BLUEPRINT_NOTES, RubricFile, content_hash
from resources.settings import Settings
from resources.sources import compute_fingerprint, is_still_arriving

MODELS_FOLDER = "models"
"""The subfolder of the watched one with model collections instead of blueprints."""
_MAX_BLUEPRINTS_LISTED = 5
_MAX_PROBLEMS_LISTED = 3


@dataclass(frozen=True, slots=True)
class FileObservation:
    """The state of one file, stored in the sensor's cursor."""

    stamp: str
    """Hash of the size and modification time of the file and of the model collections."""
    done: bool = False
    """Whether nothing is left to do until the stamp changes."""
    trouble: str = ""
    """Why the file cannot be run."""


class BlueprintFolder:
    """One tick: the state of the folder now and at the previous tick."""

    def __init__(self, context: dg.SensorEvaluationContext, store: Store, folder: Path) -> None:
        self._context, self._store, self._folder = context, store, folder
        # A faulty panel fails the tick before anything is added, which the next tick would skip as done.
        environment = Settings.read_environment()
        self._panel = load_family_panel(environment, RUBRIC_PANEL_SECTION, RubricSettings) or RubricSettings()
        models = folder / MODELS_FOLDER
        self._models_dir = models if models.is_dir() else None
        self._before = {name: FileObservation(**fields) for name, fields in json.loads(context.cursor or "{}").items()}
        self.now: dict[str, FileObservation] = {}
        self._stamps: dict[str, str] = {}

    def requests(self) -> list[dg.RunRequest]:
        """Return the run of all new or changed blueprints; empty if there are none."""
        collections = compute_fingerprint(self._models_dir) if self._models_dir else ""
        owners: dict[str, str] = {}
        new_files: list[RubricFile] = []
        for file in self._files():
            name = file.relative_to(self._folder).as_posix()
            owner = owners.setdefault(make_blueprint_id(name), name)
            if (new := self._check_file(file, name, collections, owner)) is not None:
                new_files.append(new)
        if not new_files:
            return []
        result = add_noted(self._context.instance, self._store.warehouse, FAMILY_BY_NAME["rubric"], BLUEPRINT_NOTES, new_files)
        changed_files = [file for file in new_files if file.blueprint in result.changed]
        return [self._request(changed_files)] if changed_files else []

    @property
    def cursor(self) -> str:
        return json.dumps({name: asdict(observation) for name, observation in self.now.items()})

    @property
    def reason(self) -> str:
        """The reason why there is nothing to run."""
        waiting = [name for name, observation in self.now.items() if not observation.done and not observation.trouble]
        broken = [observation.trouble for observation in self.now.values() if observation.trouble]
        arriving = f"; waiting until it stops changing: {list_first_names(waiting, _MAX_BLUEPRINTS_LISTED)}" if waiting else ""
        unusable = f"; cannot be run: {list_first_names(broken, _MAX_PROBLEMS_LISTED)}" if broken else ""
        return f"no new, complete file in {self._folder}{arriving}{unusable}"

    def _files(self) -> Iterator[Path]:
        for file in sorted(self._folder.rglob("*")):
            below = file.relative_to(self._folder)
            if below.parts[0] != MODELS_FOLDER and is_blueprint_file(below) and file.is_file():
                yield file

    def _check_file(self, file: Path, name: str, collections: str, owner: str) -> RubricFile | None:
        """Return the file if it is unchanged since the last tick, can be run and must be added."""
        before = self._before.get(name)
        try:
            stamp = digest(compute_fingerprint(file), collections)
            arriving = is_still_arriving(file)
        except OSError as error:
            self._record_result(name, FileObservation("", trouble=f"{file}: {error.strerror}"))
            return None
        if before is None or before.stamp != stamp or arriving:
            self.now[name] = FileObservation(stamp)
            return None
        if before.done:
            self.now[name] = before
            return None
        return self._prepare_file(file, name, owner, before)

    def _prepare_file(self, file: Path, name: str, owner: str, before: FileObservation) -> RubricFile | None:
        key = make_blueprint_id(name)
        try:
            if owner != name:
                raise DtefError(f"{file}: {owner} has the same id {key} and is used instead: rename one of the two")
            earlier = BLUEPRINT_NOTES.read(self._store.warehouse, key)
            folder = str(self._models_dir.absolute()) if self._models_dir else None
            skips = earlier is not None and earlier.skip_broken
            rubric_file = RubricFile(key, str(file.absolute()), folder, skips, content_hash(file, self._models_dir))
            self._require_models(file, read(rubric_file)[0])
        except (DtefError, OSError) as error:
            self._record_result(name, replace(before, done=isinstance(error, DtefError), trouble=str(error)))
            return None
        self.now[name] = replace(before, done=True, trouble="")
        # Content that a file is changed back to was run before, with other results since.
        self._stamps[key] = before.stamp
        return rubric_file

    def _record_result(self, name: str, observation: FileObservation) -> None:
        """Store the state, and log its trouble as an error if it is new."""
        before = self._before.get(name)
        if before is None or before.trouble != observation.trouble:
            self._context.log.error(observation.trouble)
        self.now[name] = observation

    def _require_models(self, path: Path, blueprint: ParsedBlueprint) -> None:
        if not self._panel.models and any(finding.code in UNKNOWN_MODEL_CODES for finding in blueprint.findings):
            problem = next(finding.text for finding in blueprint.findings if finding.code in UNKNOWN_MODEL_CODES)
            raise DtefError(
                f"{path}: its models are unknown: {problem}; put the collection into {self._folder / MODELS_FOLDER}, or list models in the "
                f"panel's section `{RUBRIC_PANEL_SECTION}`"
            )

    def _request(self, files: list[RubricFile]) -> dg.RunRequest:
        """Return one run of all new files. Its key depends on these files, so a repeated request starts no second run."""
        keys = [file.blueprint for file in files]
        self._context.log.info(f"new or changed: {', '.join(keys)}")
        return dg.RunRequest(
            run_key=digest(*(f"{file.blueprint}:{file.content_hash}:{self._stamps[file.blueprint]}" for file in files)),
            tags=build_partition_tags(list_partitions(self._context.instance, RUBRIC_SPACE), keys),
            run_config={
                "ops": {name: {"config": config} for name, config in run_config(self._panel, RUBRIC_STAGE_SETTINGS).items()}
            },
        )


@dg.sensor(
    job_name="rubric_pipeline",
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.STOPPED,
    description="Watches the folder DTEF_BLUEPRINTS: adds and runs a new or changed blueprint once its file is unchanged for two ticks. "
    "The panel's section `rubric` gives the models and the budget. Each tick lists files that cannot be run and why; they do "
    "not stop the others. Deleting a file deletes no result. Off by default.",
)
def new_blueprint(context: dg.SensorEvaluationContext, store: Store) -> dg.SensorResult | dg.SkipReason:
    """Watch the folder DTEF_BLUEPRINTS. Its subfolder `models` contains the model collections that blueprints may name."""
    folder = Settings.read_environment().blueprints
    if folder is None or not folder.is_dir():
        named = "the folder is not set" if folder is None else f"the folder {folder} does not exist"
        return dg.SkipReason(f"{named} (DTEF_BLUEPRINTS)")
    watcher = BlueprintFolder(context, store, folder)
    requests = watcher.requests()
    reason = None if requests else dg.SkipReason(watcher.reason)
    return dg.SensorResult(run_requests=requests, cursor=watcher.cursor, skip_reason=reason)
