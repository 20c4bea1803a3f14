"""What rubrics know of the files of blueprints: for `dtef rubric add`, `list` and `remove`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtef_pipeline.cli.family_verbs import FamilyFiles
from dtef_pipeline.cli.rubric import rubric_check
from dtef_pipeline.cli.rubric.rubric_check import blueprint_files, told_as_gone
from dtef_pipeline.errors import DtefError
from dtef_pipeline.rubric.blueprint.findings import TO_BE_NAMED, leaves_out
from dtef_pipeline.rubric.blueprint.named_models import read_collections
from dtef_pipeline.rubric.blueprint.reading import blueprint_id
from dtef_pipeline.rubric.roll_up_tables import RESULTS_OF_ALL
from dtef_pipeline.text.counted import and_more, counted
from resources.blueprint_files import BLUEPRINT_NOTES, RubricFile, all_noted, content_hash
from resources.warehouse import Warehouse

if TYPE_CHECKING:
    from assets.launch import Launched
    from assets.stage.noted_files import Added

_PARTS_NAMED = 5


@dataclass(frozen=True)
class _Blueprints:
    """Blueprint files as they were read; `broken`: by path why a file cannot be run."""

    warehouse: Warehouse
    paths: Sequence[Path]
    files: Sequence[RubricFile]
    broken: Mapping[str, str]
    known: list[str] = field(default_factory=list)
    """The blueprints that were known before."""
    added: list[Added] = field(default_factory=list)

    @property
    def sound(self) -> list[RubricFile]:
        return [file for file in self.files if file.path not in self.broken]

    @property
    def is_clean(self) -> bool:
        return not self.broken

    def register(self, instance: Any) -> Sequence[str]:
        from assets.rubric.files import add, known_blueprints

        self.known.extend(known_blueprints(instance))
        self.added.append(add(instance, self.warehouse, self.sound))
        return self.added[0].keys

    def lines(self, outcome: Launched | None) -> Iterator[str]:
        yield f"{counted(len(self.sound), 'blueprint')} added, {len(self.added[0].changed)} new or changed"

    def problems(self) -> Iterator[str]:
        yield from _left_out(self.warehouse, self.added[0].keys)
        yield from told_as_gone(self.warehouse, [path for path in self.paths if path.is_dir()], self.sound)
        yield from _told_broken(self.files, self.broken, set(self.known))


def _read(
    warehouse: Warehouse, paths: Sequence[Path], models_dir: Path | None, root: Path | None, skip_broken: bool
) -> list[_Blueprints]:
    files = _files(paths, models_dir, root, skip_broken)
    return [_Blueprints(warehouse, paths, files, {**_of_one_id(files), **_broken(files)})]


def _files(paths: Sequence[Path], models_dir: Path | None, root: Path | None, skip_broken: bool) -> list[RubricFile]:
    if models_dir is not None:
        read_collections(models_dir)
    folder = str(models_dir.absolute()) if models_dir else None
    return [
        RubricFile(blueprint_id(path), str(file.absolute()), folder, skip_broken, content_hash(file, models_dir))
        for file, path in dict.fromkeys(pair for path in paths for pair in blueprint_files(path, root))
    ]


def _of_one_id(files: Sequence[RubricFile]) -> dict[str, str]:
    """By path: what is wrong with files whose ids are equal; none of them is taken for the other."""
    of_id = defaultdict(list)
    for file in files:
        of_id[file.blueprint].append(file.path)
    return {
        path: f"{path}: reserved-id: the id {key} is also that of {', '.join(one for one in same if one != path)}; rename one of them"
        for key, same in of_id.items()
        if len(same) > 1
        for path in same
    }


def _broken(files: Sequence[RubricFile]) -> dict[str, str]:
    """By path: why a file cannot be run, in one line."""
    from assets.rubric.files import read

    found = {}
    for file in files:
        try:
            read(file)
        except DtefError as error:
            found[file.path] = str(error)
    return found


def _told_broken(files: Sequence[RubricFile], broken: Mapping[str, str], known: set[str]) -> Iterator[str]:
    """A line per broken file, and one that says what to do."""
    yield from (f"error: {line}" for line in broken.values())
    if not broken:
        return
    earlier = [file.blueprint for file in files if file.path in broken and file.blueprint in known]
    kept = f"; as they were before, these stay known: {and_more(earlier, _PARTS_NAMED)}" if earlier else ""
    number = f"{counted(len(broken), 'file')} with errors {'was' if len(broken) == 1 else 'were'} not added"
    yield f"{number}{kept}; `dtef rubric check` lists all that is wrong, `dtef rubric add --skip-broken` leaves broken parts out"


def _left_out(warehouse: Warehouse, keys: Sequence[str]) -> Iterator[str]:
    """A line per blueprint of which broken parts were left out, and one for those of which it is not known whom they ask."""
    nobody = []
    for key in keys:
        rows = warehouse.read_or_empty("rubric_findings", columns=["level", "code", "place"], blueprint=key).to_pylist()
        broken = [f"{row['place']} ({row['code']})" for row in rows if leaves_out(row["level"], row["code"])]
        if broken:
            yield f"warning: {key}: left out, since broken: {and_more(broken, _PARTS_NAMED)}; `dtef rubric check` says why"
        if any(row["code"] in TO_BE_NAMED for row in rows):
            nobody.append(key)
    if nobody:
        yield (
            f"warning: it is not known whom these ask: {and_more(nobody, _PARTS_NAMED)}; give the folder of collections with "
            "--models-dir, or name models with --model when you run them"
        )


def _listed(warehouse: Warehouse) -> dict[str, list[dict[str, Any]]]:
    files = {file.blueprint: file.path for file in all_noted(warehouse)}
    return {
        "blueprints": [_row(warehouse, key, files.get(key, "")) for key in warehouse.values("rubric_blueprints", "blueprint")]
    }


def _row(warehouse: Warehouse, key: str, path: str) -> dict[str, Any]:
    findings = warehouse.read_or_empty("rubric_findings", columns=["level"], blueprint=key)["level"].to_pylist()
    return {
        "blueprint": key,
        "prompts": len(warehouse.read_or_empty("rubric_prompts", columns=["prompt"], blueprint=key)),
        "criteria": len(warehouse.read_or_empty("rubric_criteria", columns=["kind"], blueprint=key)),
        "findings": dict(Counter(findings)),
        "snapshots": warehouse.values("rubric_scores", "snapshot", blueprint=key),
        "file": path,
    }


def _still_there(warehouse: Warehouse, keys: Sequence[str]) -> Iterator[str]:
    if there := [file.path for file in all_noted(warehouse) if file.blueprint in keys and not file.is_gone]:
        yield f"files stay, and adding their folder adds them again: {and_more(there, _PARTS_NAMED)}"


RUBRIC_FILES = FamilyFiles(
    noun="blueprint",
    adds="dtef rubric add PATH",
    read=_read,
    check=rubric_check.check,
    listed=_listed,
    still_there=_still_there,
    notes=BLUEPRINT_NOTES,
    counted_rows={"rubric_responses": "response", "rubric_judgements": "judgement"},
    results=RESULTS_OF_ALL,
    stage="rubric_blueprints",
    next_step="`dtef rubric run --estimate` says what asking would cost, `dtef rubric run` asks",
)
