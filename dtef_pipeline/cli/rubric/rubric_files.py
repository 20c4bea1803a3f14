"""The blueprint files of rubrics: for `dtef rubric add`, `check`, `list` and `remove`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtef_pipeline.cli.family_verbs import Addition, AddReport, CheckReport, FamilyFiles
from dtef_pipeline.errors import ConfigError, DtefError
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.rubric.blueprint.blueprint_rows import summarise_file
from dtef_pipeline.rubric.blueprint.findings import FINDING_LEVELS, HEADER_PLACE, UNKNOWN_MODEL_CODES, is_left_out_for
from dtef_pipeline.rubric.blueprint.model import BlueprintFinding, ParsedBlueprint
from dtef_pipeline.rubric.blueprint.named_models import read_collections
from dtef_pipeline.rubric.blueprint.reading import BLUEPRINT_SUFFIXES, is_blueprint_file, make_blueprint_id, read_blueprint
from dtef_pipeline.rubric.tables import RUBRIC_SPACE
from dtef_pipeline.text.number_words import format_count, format_plural, list_first_names
from resources.notes import BLUEPRINT_NOTES, RubricFile, content_hash, find_missing_below
from resources.plugin_functions import load_plugin_functions
from resources.warehouse import Warehouse

if TYPE_CHECKING:
    from assets.stage.file_notes import AddResult

_PARTS_NAMED, _MAX_MISSING_NAMED = 5, 10


def warn_of_gone_files(warehouse: Warehouse, folders: Sequence[Path], files: Sequence[RubricFile] = ()) -> Iterator[str]:
    """Yield a line per blueprint whose file is missing from one of the folders, with a file in `files` of the same content, if any."""
    missing_files = find_missing_below(warehouse, folders) if folders else []
    by_hash = {file.content_hash: file for file in files}
    for file in missing_files[:_MAX_MISSING_NAMED]:
        if (new := by_hash.get(file.content_hash)) is None:
            yield f"warning: {file.blueprint}: its file {file.path} no longer exists; its results stay until {file.removal}"
        else:
            yield (
                f"warning: {file.blueprint}: its file {file.path} is gone, and {new.blueprint} has the same content: a run of "
                f"{new.blueprint} finds the stored responses, and {file.removal} removes the earlier name"
            )
    if len(missing_files) > _MAX_MISSING_NAMED:
        yield f"warning: the files of {format_count(len(missing_files) - _MAX_MISSING_NAMED, 'more blueprint')} are gone"


@dataclass(frozen=True)
class CheckedFile:
    """A blueprint file and its findings."""

    file: Path
    path: str
    """Relative to the folder that ids are relative to."""
    id: str
    result: ParsedBlueprint


def _check(paths: Sequence[Path], models_dir: Path | None, root: Path | None) -> CheckReport:
    collections = read_collections(models_dir) if models_dir is not None else None
    functions = load_plugin_functions()
    pairs = dict.fromkeys(pair for path in paths for pair in blueprint_files(path, root))
    read = [
        CheckedFile(file, path, identifier, read_blueprint(file, identifier, collections, other_functions=functions))
        for file, path in pairs
        for identifier in [make_blueprint_id(path)]
    ]
    shared = _find_shared_ids((entry.id, entry.path) for entry in read)
    files = [_add_finding(entry, shared[entry.path]) if entry.path in shared else entry for entry in read]
    return CheckReport(
        {"files": [summarise_file(entry.path, entry.id, entry.result) for entry in files]},
        [*_lines(files), *_summary(files)],
        not any(finding.level == "error" for entry in files for finding in entry.result.findings),
    )


def blueprint_files(path: Path, root: Path | None) -> Iterator[tuple[Path, str]]:
    """Yield each blueprint file of a path, with its path below the folder that ids are relative to, sorted by file."""
    if not path.is_dir():
        yield path, _below(path, root or path.parent)
        return
    files = [file for file in path.rglob("*") if is_blueprint_file(file.relative_to(path)) and file.is_file()]
    if not files:
        raise ConfigError(f"{path} has no blueprints, which are files that end in {', '.join(BLUEPRINT_SUFFIXES)}")
    for file in sorted(files):
        yield file, _below(file, root or path)


def _below(file: Path, root: Path) -> str:
    try:
        return file.resolve().relative_to(root.resolve()).as_posix()
    except ValueError as error:
        raise ConfigError(f"{file} is not in {root}; allowed for --root: a folder that all files are in") from error


def _find_shared_ids(files: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return errors of files with equal ids (a.yml and a.json), whose results would be mixed, by path. `files`: ids and paths."""
    id_paths = defaultdict(list)
    for key, path in files:
        id_paths[key].append(path)
    return {
        path: f"the id {key} also belongs to {', '.join(sibling for sibling in paths if sibling != path)}; rename one of them"
        for key, paths in id_paths.items()
        if len(paths) > 1
        for path in paths
    }


def _add_finding(file: CheckedFile, text: str) -> CheckedFile:
    finding = BlueprintFinding("reserved-id", "error", HEADER_PLACE, text)
    return replace(file, result=replace(file.result, findings=(*file.result.findings, finding)))


def _lines(files: Sequence[CheckedFile]) -> Iterator[str]:
    """Yield `safety/a.yml:12: prompt 3 should[0]: error bad-point: ...`."""
    for file in files:
        for finding in file.result.findings:
            where = f"{file.file}:{finding.line}" if finding.line is not None else f"{file.file}"
            place = f"{finding.place}: " if finding.place and not finding.place.startswith("line ") else ""
            yield f"{where}: {place}{finding.level} {finding.code}: {finding.text}"


def _summary(files: Sequence[CheckedFile]) -> Iterator[str]:
    prompts = [prompt for file in files if file.result.blueprint for prompt in file.result.blueprint.prompts]
    criteria = sum(len(prompt.criteria) for prompt in prompts)
    levels = Counter(finding.level for file in files for finding in file.result.findings)
    if levels:
        yield ""
    criteria_count = f"{criteria:,} {'criterion' if criteria == 1 else 'criteria'}"
    yield f"{format_count(len(files), 'file')}, {format_count(len(prompts), 'prompt')}, {criteria_count}"
    uncountable = ("info", "unscorable")
    counts = [
        f"{levels[level]:,} {level if levels[level] == 1 or level in uncountable else format_plural(level)}"
        for level in FINDING_LEVELS
        if levels[level]
    ]
    yield f"found: {', '.join(counts) or 'nothing'}"
    broken = sum(any(finding.level == "error" for finding in file.result.findings) for file in files)
    if broken:
        yield f"{format_count(broken, 'file')} cannot be run until the errors are corrected"


def _read(
    warehouse: Warehouse, paths: Sequence[Path], models_dir: Path | None, root: Path | None, skip_broken: bool
) -> list[Addition]:
    files = _read_files(paths, models_dir, root, skip_broken)
    shared = _find_shared_ids((file.blueprint, file.path) for file in files)
    broken = {**{path: f"{path}: reserved-id: {text}" for path, text in shared.items()}, **_find_broken(files)}
    sound = [file for file in files if file.path not in broken]
    blueprints: set[str] = set()

    def add(instance: Any) -> AddResult:
        from assets.stage.file_notes import add_noted, list_partitions

        blueprints.update(list_partitions(instance, RUBRIC_SPACE))
        return add_noted(instance, warehouse, FAMILY_BY_NAME["rubric"], BLUEPRINT_NOTES, sound)

    def report(result: AddResult) -> AddReport:
        problems = (
            *_describe_left_out_parts(warehouse, result.keys),
            *warn_of_gone_files(warehouse, [path for path in paths if path.is_dir()], sound),
            *_describe_broken(files, broken, blueprints),
        )
        return AddReport([result.line("blueprint")], problems, not broken)

    return [Addition(add, report)]


def _read_files(paths: Sequence[Path], models_dir: Path | None, root: Path | None, skip_broken: bool) -> list[RubricFile]:
    if models_dir is not None:
        read_collections(models_dir)
    folder = str(models_dir.absolute()) if models_dir else None
    return [
        RubricFile(make_blueprint_id(path), str(file.absolute()), folder, skip_broken, content_hash(file, models_dir))
        for file, path in dict.fromkeys(pair for path in paths for pair in blueprint_files(path, root))
    ]


def _find_broken(files: Sequence[RubricFile]) -> dict[str, str]:
    """Return why a file cannot be run, in one line, by path."""
    from assets.rubric.stages import read

    faults = {}
    for file in files:
        try:
            read(file)
        except DtefError as error:
            faults[file.path] = str(error)
    return faults


def _describe_broken(files: Sequence[RubricFile], broken: Mapping[str, str], blueprints: set[str]) -> Iterator[str]:
    """Yield a line per broken file, and a line on what to do."""
    yield from (f"error: {line}" for line in broken.values())
    if not broken:
        return
    earlier = [file.blueprint for file in files if file.path in broken and file.blueprint in blueprints]
    note = f"; their earlier versions stay: {list_first_names(earlier, _PARTS_NAMED)}" if earlier else ""
    number = f"{format_count(len(broken), 'file')} with errors {'was' if len(broken) == 1 else 'were'} not added"
    yield f"{number}{note}; `dtef rubric check` lists all that is wrong, `dtef rubric add --skip-broken` leaves broken parts out"


def _describe_left_out_parts(warehouse: Warehouse, keys: Sequence[str]) -> Iterator[str]:
    """Yield a line per blueprint whose broken parts were left out, and a line for those whose models are unknown."""
    without_models = []
    for key in keys:
        rows = warehouse.read_or_empty("rubric_findings", columns=["level", "code", "place"], blueprint=key).to_pylist()
        broken = [f"{row['place']} ({row['code']})" for row in rows if is_left_out_for(row["level"], row["code"])]
        if broken:
            yield f"warning: {key}: left out because of errors: {list_first_names(broken, _PARTS_NAMED)}; `dtef rubric check` says why"
        if any(row["code"] in UNKNOWN_MODEL_CODES for row in rows):
            without_models.append(key)
    if without_models:
        yield (
            f"warning: these blueprints name no known models: {list_first_names(without_models, _PARTS_NAMED)}; "
            "give the folder of collections with --models-dir, or name models with --model when you run them"
        )


def _list_blueprints(warehouse: Warehouse) -> dict[str, list[dict[str, Any]]]:
    files = {file.blueprint: file.path for file in BLUEPRINT_NOTES.read_all(warehouse)}
    return {
        "blueprints": [
            _build_row(warehouse, key, files.get(key, "")) for key in warehouse.values("rubric_blueprints", "blueprint")
        ]
    }


def _build_row(warehouse: Warehouse, key: str, path: str) -> dict[str, Any]:
    findings = warehouse.read_or_empty("rubric_findings", columns=["level"], blueprint=key)["level"].to_pylist()
    return {
        "blueprint": key,
        "prompts": len(warehouse.read_or_empty("rubric_prompts", columns=["prompt"], blueprint=key)),
        "criteria": len(warehouse.read_or_empty("rubric_criteria", columns=["kind"], blueprint=key)),
        "findings": dict(Counter(findings)),
        "snapshots": warehouse.values("rubric_scores", "snapshot", blueprint=key),
        "file": path,
    }


def _describe_remaining(warehouse: Warehouse, keys: Sequence[str]) -> Iterator[str]:
    if paths := [file.path for file in BLUEPRINT_NOTES.read_all(warehouse) if file.blueprint in keys and not file.is_gone]:
        yield f"the files stay, so adding their folder adds them again: {list_first_names(paths, _PARTS_NAMED)}"


RUBRIC_FILES = FamilyFiles(
    noun="blueprint",
    adds="dtef rubric add PATH",
    read=_read,
    check=_check,
    list_tables=_list_blueprints,
    still_there=_describe_remaining,
    notes=BLUEPRINT_NOTES,
    counted_rows={"rubric_responses": "response", "rubric_judgements": "judgement"},
    stage="rubric_blueprints",
    next_step="`dtef rubric run --estimate` prints the cost, `dtef rubric run` asks the models",
)
