"""What `dtef report --family games` does; the words are in `dtef_pipeline/cli/games_report_group.py`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from assets.games.known_games import known_persona_versions, known_scenarios
from dtef_pipeline.cli.opened_warehouse import reads_tables
from dtef_pipeline.cli.written_report import write_report
from dtef_pipeline.games.report.pages import GAME_PAGES_READ, games_pages
from resources.settings import Settings
from resources.warehouse import Warehouse


@reads_tables
def report(warehouse: Warehouse, out: Path) -> None:
    """Write the pages into a folder, which is made; say where they are."""
    settings = Settings.from_environment()
    pages = partial(games_pages, manifests=known_scenarios(settings), personas=known_persona_versions(settings))
    write_report(warehouse, out, pages, GAME_PAGES_READ)
