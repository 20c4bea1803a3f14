"""`dtef rubric check`, and what commands say of known blueprints whose file is gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dtef_pipeline.cli.family_verbs import Checked
from dtef_pipeline.errors import ConfigError, DtefError
from dtef_pipeline.rubric.blueprint.file_summary import file_summary
from dtef_pipeline.rubric.blueprint.findings import FINDING_LEVELS, HEADER_PLACE
from dtef_pipeline.rubric.blueprint.model import BlueprintFinding, ReadBlueprint
from dtef_pipeline.rubric.blueprint.named_models import read_collections
from dtef_pipeline.rubric.blueprint.reading import BLUEPRINT_SUFFIXES, blueprint_id, is_blueprint_file, read_blueprint
from dtef_pipeline.text.counted import counted, plural
from resources.added_functions import added_functions
from resources.blueprint_files import NOTES_FOLDER, RubricFile, gone_below
from resources.settings import Settings

if TYPE_CHECKING:
    from resources.warehouse import Warehouse


_GONE_NAMED = 10


def told_as_gone(warehouse: Warehouse, folders: Sequence[Path], there: Sequence[RubricFile] = ()) -> Iterator[str]:
    """A line per blueprint whose file stood in one of the folders, with the file `there` that holds the same, if one does."""
    gone = gone_below(warehouse, folders) if folders else []
    same = {file.content_hash: file for file in there}
    for file in gone[:_GONE_NAMED]:
        if (new := same.get(file.content_hash)) is None:
            yield f"warning: {file.blueprint}: its file {file.path} is gone; it stays known with its results: {file.removal} takes it away"
        else:
            yield (
                f"warning: {file.blueprint}: its file {file.path} is gone, and {new.blueprint} holds the same: a run of "
                f"{new.blueprint} finds the stored responses, and {file.removal} takes the earlier name away"
            )
    if len(gone) > _GONE_NAMED:
        yield f"warning: the files of {counted(len(gone) - _GONE_NAMED, 'more blueprint')} are gone"


def told_by_check(folders: Sequence[Path]) -> Iterator[str]:
    """The same where there is a warehouse with notes of blueprints; else nothing."""
    place = Settings.from_environment().warehouse
    if not folders or ("://" not in place and not (Path(place) / NOTES_FOLDER).is_dir()):
        return
    from resources.warehouse import Warehouse

    try:
        yield from told_as_gone(Warehouse(place), folders)
    except (DtefError, OSError) as error:
        yield f"warning: it is not known which blueprints were added from here: {error}"


@dataclass(frozen=True)
class CheckedFile:
    """A blueprint file and what was found in it."""

    file: Path
    path: str
    """Below the folder that ids are counted from."""
    id: str
    read: ReadBlueprint


def check(paths: Sequence[Path], models_dir: Path | None, root: Path | None) -> Checked:
    """What was found in the files."""
    collections = read_collections(models_dir) if models_dir is not None else None
    added = added_functions()
    found = dict.fromkeys(pair for path in paths for pair in blueprint_files(path, root))
    checked = _with_shared_ids(
        [
            CheckedFile(file, path, identifier, read_blueprint(file, identifier, collections, other_functions=added))
            for file, path in found
            for identifier in [blueprint_id(path)]
        ]
    )
    return Checked(
        {"files": [file_summary(one.path, one.id, one.read) for one in checked]},
        [*_lines(checked), *_summary(checked)],
        not any(finding.level == "error" for one in checked for finding in one.read.findings),
        told_by_check([path for path in paths if path.is_dir()]),
    )


def blueprint_files(path: Path, root: Path | None) -> Iterator[tuple[Path, str]]:
    """Each blueprint file of a path, with its path below the folder that ids are counted from, in the order of these."""
    if not path.is_dir():
        yield path, _below(path, root or path.parent)
        return
    files = [file for file in path.rglob("*") if is_blueprint_file(file.relative_to(path)) and file.is_file()]
    if not files:
        raise ConfigError(f"{path} has no blueprints; allowed: a folder with files that end in {', '.join(BLUEPRINT_SUFFIXES)}")
    for file in sorted(files):
        yield file, _below(file, root or path)


def _below(file: Path, root: Path) -> str:
    try:
        return file.resolve().relative_to(root.resolve()).as_posix()
    except ValueError as error:
        raise ConfigError(f"{file} is not in {root}; allowed for --root: a folder that all files are in") from error


def _with_shared_ids(checked: list[CheckedFile]) -> list[CheckedFile]:
    """Files of one id (a.yml and a.json) are told so: their results could not be told apart."""
    files = Counter(one.id for one in checked)
    return [one if files[one.id] == 1 else _of_shared_id(one, checked) for one in checked]


def _of_shared_id(one: CheckedFile, checked: list[CheckedFile]) -> CheckedFile:
    others = ", ".join(other.path for other in checked if other.id == one.id and other is not one)
    text = f"the id {one.id} is also that of {others}; rename one of them"
    finding = BlueprintFinding("reserved-id", "error", HEADER_PLACE, text)
    return replace(one, read=replace(one.read, findings=(*one.read.findings, finding)))


def _lines(checked: Sequence[CheckedFile]) -> Iterator[str]:
    """`safety/a.yml:12: prompt 3 should[0]: error bad-point: ...`"""
    for one in checked:
        for finding in one.read.findings:
            where = f"{one.file}:{finding.line}" if finding.line is not None else f"{one.file}"
            place = f"{finding.place}: " if finding.place and not finding.place.startswith("line ") else ""
            yield f"{where}: {place}{finding.level} {finding.code}: {finding.text}"


def _summary(checked: Sequence[CheckedFile]) -> Iterator[str]:
    prompts = [prompt for one in checked if one.read.blueprint for prompt in one.read.blueprint.prompts]
    criteria = sum(len(prompt.criteria) for prompt in prompts)
    levels = Counter(finding.level for one in checked for finding in one.read.findings)
    if levels:
        yield ""
    yield f"{counted(len(checked), 'file')}, {counted(len(prompts), 'prompt')}, {criteria:,} criteria"
    told = (_told(level, levels[level]) for level in FINDING_LEVELS if levels[level])
    yield f"found: {', '.join(told) or 'nothing'}"
    broken = sum(any(finding.level == "error" for finding in one.read.findings) for one in checked)
    if broken:
        yield f"{counted(broken, 'file')} cannot be run until the errors are mended"


def _told(level: str, number: int) -> str:
    return f"{number:,} {level if number == 1 or level in ('info', 'unscorable') else plural(level)}"
