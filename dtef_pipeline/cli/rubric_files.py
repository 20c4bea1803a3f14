"""`dtef rubric add` and `dtef rubric remove`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from dtef_pipeline.cli.families import remove_parts, stored_family
from dtef_pipeline.cli.opened_warehouse import open_warehouse, say_skipped
from dtef_pipeline.cli.rubric_check import blueprint_files, told_as_gone
from dtef_pipeline.cli.rubric_run import STEP_OF_FILES
from dtef_pipeline.cli.started_runs import check_home_path, dagster_instance
from dtef_pipeline.cli.terminal import say
from dtef_pipeline.errors import DtefError
from dtef_pipeline.rubric.findings import TO_BE_NAMED, leaves_out
from dtef_pipeline.rubric.named_models import read_collections
from dtef_pipeline.rubric.reading import blueprint_id
from dtef_pipeline.rubric.stored_tables import RESULTS_OF_ALL
from dtef_pipeline.text.counted import and_more, counted
from resources.blueprint_files import RubricFile, all_noted, content_hash
from resources.gateway.progress import kept_terminal, waiting
from resources.settings import Settings
from resources.warehouse import Warehouse

_PARTS_NAMED = 5


def add(paths: Sequence[Path], models_dir: Path | None, root: Path | None, skip_broken: bool) -> int:
    """The exit code: 1 where a file has errors and was not added."""
    check_home_path(Settings.from_environment())
    with kept_terminal():
        with waiting("reading blueprints"):
            from assets.launch import OF_BLUEPRINTS, materialize  # takes seconds, in which something is to be seen
            from assets.rubric.files import add as add_files
            from assets.rubric.files import known_blueprints

            files = _files(paths, models_dir, root, skip_broken)
            broken = {**_of_one_id(files), **_broken(files)}
            sound = [file for file in files if file.path not in broken]
        warehouse = open_warehouse(new=True)
        with dagster_instance() as instance:
            known = set(known_blueprints(instance))
            added = add_files(instance, warehouse, sound)
            outcome = materialize(instance, [STEP_OF_FILES], added.keys, {}, space=OF_BLUEPRINTS) if sound else None
    failures = outcome.failures if outcome else ()
    if outcome:
        say_skipped(outcome, warehouse)
    click.echo(f"{counted(len(sound), 'blueprint')} added, {len(added.changed)} new or changed")
    told = [*_left_out(warehouse, added.keys), *told_as_gone(warehouse, [path for path in paths if path.is_dir()], sound)]
    for line in [*told, *_told_broken(files, broken, known), *(f"error: {failure}" for failure in failures)]:
        say(line, err=True)
    if not (failures or broken):
        say("`dtef rubric run --estimate` says what asking would cost, `dtef rubric run` asks")
    return 1 if failures or broken else 0


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


_FILES_NAMED = 5


def remove(patterns: Sequence[str]) -> None:
    """Take the blueprints that fit away, and say what went and what stays."""
    check_home_path(Settings.from_environment())
    warehouse = open_warehouse()
    notes = {file.blueprint: file for file in all_noted(warehouse)}
    with kept_terminal():
        with waiting("looking at what is known"):
            import assets.launch  # noqa: F401 - takes seconds, and keeps Dagster's own warnings from the terminal
            from assets.rubric.files import known_blueprints
            from assets.rubric.files import remove as remove_files

        keys = remove_parts(
            warehouse,
            stored_family("rubric"),
            patterns,
            noun="blueprint",
            adds="dtef rubric add PATH",
            known=lambda instance: [
                *known_blueprints(instance),
                *warehouse.values("rubric_blueprints", "blueprint"),
                *notes,
            ],
            take_away=remove_files,
            counted_rows={"rubric_responses": "response", "rubric_judgements": "judgement"},
            results=RESULTS_OF_ALL,
        )
    if there := [notes[key].path for key in keys if key in notes and Path(notes[key].path).is_file()]:
        say(f"files stay, and adding their folder adds them again: {and_more(there, _FILES_NAMED)}")
