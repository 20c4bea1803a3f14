"""What `dtef rubric remove` does; the words are in `dtef_pipeline/cli/rubric_group.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from dtef_pipeline.cli.blueprint_patterns import fitting
from dtef_pipeline.cli.opened_warehouse import open_warehouse
from dtef_pipeline.cli.ready import check_home_path, dagster_instance
from dtef_pipeline.cli.terminal_width import say
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.rubric.space import RUBRIC_SPACE
from dtef_pipeline.rubric.stored_tables import RESULTS_OF_ALL
from dtef_pipeline.text.counted import and_more, counted
from resources.blueprint_files import RubricFile, all_noted, clear_tables
from resources.gateway.progress import kept_terminal, waiting
from resources.settings import Settings
from resources.warehouse import Warehouse
from resources.written_pages import remove_pages

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
            from assets.rubric.report import PAGES_FOLDER

        with dagster_instance() as instance:
            read = warehouse.values("rubric_blueprints", "blueprint")
            known = list(dict.fromkeys([*known_blueprints(instance), *read, *notes]))
            if not known:
                raise ConfigError(f"no blueprint in {warehouse.root} yet: `dtef rubric add PATH` adds some")
            keys = fitting(known, patterns, "BLUEPRINT")
            lines = [_told(warehouse, key) for key in keys]
            remove_files(instance, warehouse, keys)
        boards_left = bool(warehouse.values("rubric_scores", "blueprint"))
        if not boards_left:
            clear_tables(warehouse, RESULTS_OF_ALL)
            remove_pages(warehouse.fs, f"{warehouse.root}/{PAGES_FOLDER}")
        warehouse.refresh_database()
    for line in [*lines, *_stays([notes[key] for key in keys if key in notes], boards_left)]:
        say(line)


def _told(warehouse: Warehouse, key: str) -> str:
    """What is known of a blueprint: `removed compass__a: 12 responses, 24 judgements in snapshots base, night-2`."""
    snapshots = warehouse.values("rubric_responses", "snapshot", **RUBRIC_SPACE.levels(key))
    if not snapshots:
        return f"removed {key}, which was never run"
    responses, judgements = (
        len(warehouse.rows(table, columns=["prompt"], **RUBRIC_SPACE.levels(key)))
        for table in ("rubric_responses", "rubric_judgements")
    )
    found = f"{counted(responses, 'response')}, {counted(judgements, 'judgement')}"
    return f"removed {key}: {found}, of {'snapshot' if len(snapshots) == 1 else 'snapshots'} {', '.join(snapshots)}"


def _stays(files: Sequence[RubricFile], boards_left: bool) -> Iterator[str]:
    """What is still there, and what is to be done about it."""
    yield "stored responses stay: a blueprint that is added again finds them, and is asked nothing that it was asked before"
    if there := [file.path for file in files if Path(file.path).is_file()]:
        yield f"files stay, and adding their folder adds them again: {and_more(there, _FILES_NAMED)}"
    if boards_left:
        yield "boards and pages follow at the next `dtef rollup --family rubric`"
    else:
        yield "nothing is scored any more: boards and pages went too"
