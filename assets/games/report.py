"""The pages of the games family: boards, a page per scenario, and episodes move by move."""

from functools import partial
from typing import Any

import dagster as dg

from assets.games.drift import games_drift
from assets.games.known_games import known_persona_versions, known_scenarios
from assets.games.results import persona_results
from assets.games.scenarios import GAMES_GROUP
from assets.preference.voted_scores import preference_scores
from assets.stage.partitions import roll_up
from assets.stage.published import published_pages
from assets.stage.resources import Store
from dtef_pipeline.games.report.pages import GAME_PAGES_READ, GAMES_PAGES_FOLDER, games_pages


@dg.asset(
    deps=[persona_results, games_drift, preference_scores], **{**roll_up(code_version="3", kinds={"html"}), **GAMES_GROUP}
)
def games_report(context: dg.AssetExecutionContext, store: Store) -> dg.MaterializeResult[Any]:
    """Self-contained pages for researchers: a board per scenario with baselines as the yardstick, and a page per scenario.

    A scenario's page has its rules, all metrics of each player, who met whom, personas by models, and how rewards scatter over seeds; some
    episodes are shown move by move. The first page says who plays worse than in earlier snapshots. Kept in the folder `games_report` of the
    warehouse, where pages that belong to nothing any more are removed; `dtef report --family games` writes the pages elsewhere.
    """
    personas = known_persona_versions(store.settings)
    pages = partial(games_pages, manifests=known_scenarios(store.settings), personas=personas)
    return published_pages(store, GAMES_PAGES_FOLDER, pages, GAME_PAGES_READ)
