"""The pages of the games family: an index with boards, a page per scenario, and some episodes move by move. Self-contained, no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import duckdb

from dtef_pipeline.drift.verdict_tables import DRIFT_SCHEMAS
from dtef_pipeline.games.games_paired import GAMES_PAIRED
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.personas import Persona
from dtef_pipeline.games.report.chosen_episodes import ChosenEpisode, chosen_episodes
from dtef_pipeline.games.report.episode_page import episode_page
from dtef_pipeline.games.report.index_page import games_index
from dtef_pipeline.games.report.league_rows import played_scenarios
from dtef_pipeline.games.report.scenario_page import EpisodeLink, scenario_page
from dtef_pipeline.report.page_files import INDEX_PAGE, further_page, page_names
from dtef_pipeline.report.preference_chapter import PREFERENCE_READ, preference_chapters
from dtef_pipeline.report.stored_rows import StoredRows

GAMES_PAGES_FOLDER = "games_report"
"""What the folder of the pages is called, in the warehouse and where a command writes them."""
GAME_PAGES_READ = (
    "episodes",
    "persona_results",
    "strategy_values",
    "episode_scores",
    "episode_turns",
    *DRIFT_SCHEMAS,
    *PREFERENCE_READ,
)
"""The tables that the pages are made of."""


def games_pages(
    connection: duckdb.DuckDBPyConnection,
    manifests: Mapping[str, ScenarioManifest],
    personas: Mapping[str, Persona] = MappingProxyType({}),
) -> Iterator[tuple[str, str]]:
    """(file name, HTML) of each page, `index.html` first, one at a time. Equal tables give equal pages.

    `connection` has views named as GAME_PAGES_READ; a part of a page whose table is missing says what makes it. `manifests`: the scenarios that
    are known, by name: what lies on the table is shown of episodes that play again by them. `personas`: those that are known, by id
    and version: drafts and retired ones are marked on boards. Raises ConfigError for a manifest with settings
    that its game does not take.
    """
    rows = StoredRows(connection)
    played = played_scenarios(rows, manifests, connection, personas)
    files = page_names(one.name.replace("/", "__") for one in played)
    pages = {one.name: files[one.name.replace("/", "__")] for one in played}
    voted = preference_chapters(connection, "games", GAMES_PAIRED.metrics, always=True)
    yield INDEX_PAGE, games_index(rows, played, pages, manifests, voted)
    for found in played:
        page = pages[found.name]
        episodes = _episodes(chosen_episodes(rows, found), page)
        yield page, scenario_page(rows, found, [link for link, _ in episodes])
        for link, chosen in episodes:
            yield link.page, episode_page(found, chosen, page)


def _episodes(chosen: list[ChosenEpisode], page: str) -> list[tuple[EpisodeLink, ChosenEpisode]]:
    return [(EpisodeLink(further_page(page, "episode", at), one), one) for at, one in enumerate(chosen, 1)]
