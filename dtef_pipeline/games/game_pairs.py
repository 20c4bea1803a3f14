"""Pairs of episodes for preference votes: of the same scenario and version, seed, seat and opponent, shown as the player's texts and the
game's replies; and the results that preference is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import duckdb
import numpy as np

from dtef_pipeline.games.contract import EXPECTED_RETURN, FORFEIT_RATE
from dtef_pipeline.games.episode_rows import OUT_OF_BUDGET, PLAYED_EPISODE
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.persona_results import ALL_OPPONENTS, PLAYED_SERIES, compute_results_of, create_latest_scores
from dtef_pipeline.preference.pairing import MetricSource, PairedSource
from dtef_pipeline.statistics.ranks import rank_numbers
from dtef_pipeline.text.amounts import describe_shortfall
from dtef_pipeline.text.number_words import format_count

if TYPE_CHECKING:
    import pandas as pd


_PLAYER_NAME = "CASE WHEN persona = '' THEN model_variant ELSE persona || '@' || model_variant END"
_GAMES_RESULTS = MetricSource(
    ("persona_results",),
    f"""
    SELECT league AS partition, scenario || ' v' || version || ': ' || metric AS metric, {_PLAYER_NAME} AS player,
           direction, mean AS value, low, high, n_episodes AS n
    FROM persona_results WHERE opponent = 'all' AND direction IN ('higher', 'lower')
    """,
)
# The rules follow the persona in one message. They are shown if some model played the item without a persona, so that no persona is visible.
GAMES_PAIRED = PairedSource(
    ("episodes", "episode_turns", "episode_prompts"),
    f"""
    WITH turns AS (
        SELECT league, scenario, episode_id, snapshot,
               list({{'said': response, 'answer': reaction}} ORDER BY turn, attempt) AS text,
               list(request_key ORDER BY turn, attempt) AS request_keys, max(served_model) AS served_model
        FROM episode_turns WHERE under_test AND call_status = 'answered' AND response IS NOT NULL
        GROUP BY league, scenario, episode_id, snapshot
    ), rules AS (
        SELECT league, scenario, version, item_id,
               [{{'role': 'user', 'text': one.text}} FOR one IN messages IF one.role = 'system'] AS rule_messages
        FROM episode_prompts WHERE persona = ''
    )
    SELECT league AS first, scenario AS second, league || '/' || scenario || '/v' || version || '/' || item_id AS item_id,
           e.model, {_PLAYER_NAME} AS player, persona, e.draw, snapshot,
           COALESCE(rules.rule_messages, []) || [one FOR one IN p.messages IF one.role <> 'system'] AS messages, turns.text, turns.request_keys,
           turns.served_model,
           e.version, e.seat, e.cluster, e.trace
    FROM episodes e
    JOIN turns USING (league, scenario, episode_id, snapshot)
    JOIN episode_prompts p USING (league, scenario, version, item_id, persona)
    LEFT JOIN rules USING (league, scenario, version, item_id)
    WHERE e.status = 'played'
    """,
    (_GAMES_RESULTS,),
)


GAME_SELECTIONS, SHARED_GAMES = "own", "shared"
"""Games in a mean: all games of the player, or only those that every shown player has."""
PLAYED_COVERAGE = "coverage"
GAMES_NOTE = "games_note"
_PLAYED_KEYS = PLAYED_SERIES.split(", ")
_PLAYED_GAMES = f"""
    SELECT DISTINCT {PLAYED_SERIES}, item_id, opponent FROM {{source}}
    WHERE metric = '{EXPECTED_RETURN}' AND status = 'scored'
"""


def add_game_coverage(
    connection: duckdb.DuckDBPyConnection, results: pd.DataFrame, snapshot: str | None = None
) -> pd.DataFrame:
    """Add to rows of `persona_results` the columns `coverage`, the share (0-1) of the games of all players in `results` that each player
    has, and `games_note`, the same in words unless it is all of them; rows of one opponent count the games against it. NaN and no words for
    a player without a game with a result. `connection` has `episode_scores`; `snapshot`: see `create_latest_scores`."""
    import pandas as pd

    source, scenario = create_latest_scores(connection, snapshot), "league, scenario, version"
    connection.register("shown_players", results[_PLAYED_KEYS].drop_duplicates())
    query = f"""
        WITH shown AS (SELECT * FROM ({_PLAYED_GAMES.format(source=source)}) SEMI JOIN shown_players USING ({PLAYED_SERIES}))
        SELECT * FROM ({_count_games_sql(PLAYED_SERIES, "n")}) JOIN ({_count_games_sql(scenario, "n_all")}) USING ({scenario}, opponent)
        WHERE opponent <> ''
    """
    counts = connection.sql(query).df()
    notes = [
        f"it played {n:,} of {format_count(n_all, 'game')}" if n < n_all else ""
        for n, n_all in counts[["n", "n_all"]].itertuples(index=False, name=None)
    ]
    coverage = counts[[*_PLAYED_KEYS, "opponent"]].assign(
        **{PLAYED_COVERAGE: counts["n"] / counts["n_all"], GAMES_NOTE: pd.Series(notes, counts.index, dtype=str)}
    )
    table = results.merge(coverage, on=[*_PLAYED_KEYS, "opponent"], how="left")
    return table.assign(**{GAMES_NOTE: table[GAMES_NOTE].fillna("")})


def _count_games_sql(keys: str, name: str) -> str:
    """Return the query of the number of games, as `name`, by `keys` and opponent, and against all opponents."""
    return (
        f"SELECT {keys}, coalesce(opponent, '{ALL_OPPONENTS}') AS opponent, count(DISTINCT item_id) AS {name} FROM shown "
        f"GROUP BY GROUPING SETS (({keys}, opponent), ({keys}))"
    )


def set_game_coverage(results: pd.DataFrame, coverage: float) -> pd.DataFrame:
    """Set the same `coverage`, 0-1 or NaN (unknown), in all rows, without a note."""
    return results.assign(**{PLAYED_COVERAGE: coverage}).assign(**{GAMES_NOTE: ""})


def compute_shared_results(
    connection: duckdb.DuckDBPyConnection, results: pd.DataFrame, snapshot: str | None = None
) -> pd.DataFrame:
    """Recompute the rows of `persona_results` of the players in `results` from only the games that all of them have in a scenario.

    A scenario without common games has no rows. `connection` has `episode_scores` and `episode_turns`; `snapshot`: see
    `create_latest_scores`.
    """
    source = create_latest_scores(connection, snapshot)
    connection.register("shown_players", results[_PLAYED_KEYS].drop_duplicates())
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE shared_scores AS
        WITH games AS (
            {_PLAYED_GAMES.format(source=source)}
        ), shown AS (
            SELECT * FROM games SEMI JOIN shown_players USING ({PLAYED_SERIES})
        ), players AS (
            SELECT league, scenario, version, count(DISTINCT (persona, model_variant)) AS n FROM shown GROUP BY ALL
        ), shared AS (
            SELECT league, scenario, version, item_id, count(*) AS n FROM shown GROUP BY ALL
        ), kept AS (
            SELECT * FROM shared SEMI JOIN players USING (league, scenario, version, n)
        )
        SELECT * FROM {source} SEMI JOIN kept USING (league, scenario, version, item_id)
            SEMI JOIN shown USING ({PLAYED_SERIES})
        """
    )
    if not connection.sql("SELECT 1 FROM shared_scores LIMIT 1").fetchall():
        return results.iloc[:0]
    return compute_results_of(connection, "shared_scores")


UNPLAYED_NOTE = "unplayed_note"
UNPLAYED_READS = ("episodes",)
"""Tables that the note reads."""


def add_unplayed_note(connection: duckdb.DuckDBPyConnection, results: pd.DataFrame) -> pd.DataFrame:
    """Add to rows of `persona_results` the column `unplayed_note`: how many episodes of the row were played, and what ended the others.

    Empty if all were played. `connection` has UNPLAYED_READS.
    """
    series = f"{PLAYED_SERIES}, snapshot"
    counts = connection.sql(
        f"""
        SELECT {series}, coalesce(opponent, '{ALL_OPPONENTS}') AS opponent, count(*) AS n,
            count(*) FILTER (status = '{PLAYED_EPISODE}') AS played, count(*) FILTER (status = '{OUT_OF_BUDGET}') AS stopped
        FROM episodes GROUP BY GROUPING SETS (({series}, opponent), ({series})) HAVING played < n
        """
    ).df()
    words = [
        describe_shortfall(n, n_played, n_stopped, n - n_played - n_stopped, ("episode", "played"))
        for n, n_played, n_stopped in counts[["n", "played", "stopped"]].itertuples(index=False, name=None)
    ]
    notes = counts.assign(**{UNPLAYED_NOTE: words}).drop(columns=["n", "played", "stopped"])
    if not len(notes):
        return clear_unplayed_note(results)
    rows = results.merge(notes, on=[*series.split(", "), "opponent"], how="left")
    return rows.assign(**{UNPLAYED_NOTE: rows[UNPLAYED_NOTE].fillna("")})


def clear_unplayed_note(results: pd.DataFrame) -> pd.DataFrame:
    """Set an empty note on unplayed episodes in all rows."""
    return results.assign(**{UNPLAYED_NOTE: ""})


FORM_FAMILY = "form"


def select_shown_versions(frame: pd.DataFrame, manifests: Mapping[str, ScenarioManifest]) -> pd.DataFrame:
    """Return the rows of each scenario's version in play, from `manifests` by id; if it has no rows, those of the latest version that has
    some.

    `frame` has the columns league, scenario and version.
    """
    current = (frame["league"] + "/" + frame["scenario"]).map({name: manifest.version for name, manifest in manifests.items()})
    versions = frame["version"].astype(float).where(frame["version"] != current, float("inf"))
    return frame[versions == versions.groupby([frame["league"], frame["scenario"]]).transform("max")]


def sort_players(frame: pd.DataFrame) -> pd.DataFrame:
    """Sort players best first within each scenario and metric, or by name if the metric has no better direction.

    Players without a mean come last; among them, those that forfeited every episode come first and share the last place, the others have no
    place.
    """
    sign = frame["direction"].map({"higher": -1.0, "lower": 1.0}).astype(float).fillna(0.0)
    keys = ["league", "scenario", "metric", "opponent", "place", "nowhere", "model", "persona", "model_variant"]
    sort_frame = frame.assign(place=sign * frame["mean"], nowhere=~has_forfeited_all(frame))
    return sort_frame.sort_values(keys, ignore_index=True).drop(columns=["place", "nowhere"])


def rank_places(frame: pd.DataFrame, mask: pd.Series[bool]) -> pd.Series[float]:
    """Rank rows by the mean within one metric, from 1, with shared places; a player without a mean that forfeited every episode is last.

    NaN if the metric has no better direction, for other rows without a mean, and for rows outside `mask`.
    """
    import pandas as pd

    direction = frame["direction"].iloc[0]
    if direction not in ("higher", "lower"):
        return pd.Series(np.nan, index=frame.index)
    means = frame["mean"].where(mask)
    places = pd.Series(rank_numbers(means, highest_first=direction == "higher"), index=frame.index)
    return places.mask(has_forfeited_all(frame) & mask, means.notna().sum() + 1.0)


def has_forfeited_all(frame: pd.DataFrame) -> pd.Series[bool]:
    """Return whether rows have no mean because the player forfeited every episode; false for metrics of form or without a better direction."""
    is_of_success = (frame["metric_family"] != FORM_FAMILY) & frame["direction"].isin(["higher", "lower"])
    return frame["mean"].isna() & (frame[FORFEIT_RATE] >= 1) & is_of_success
