"""Drift detection for the games family: how models play the same items in successive snapshots, in addition to the documented rule.

A series is a model variant as one persona against one opponent, under one metric on 0-1, over all scenarios. Chips, points and moves have
no bounds, so no threshold of a share fits them and they are not watched. Changed rules, another version of a scenario or another first
prompt count as different items. Baselines always play alike; if one does not, the engine changed.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pandas as pd

from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.games.contract import ILLEGAL_RATE, SUCCESS_RATE
from dtef_pipeline.games.entrants import AS_ITSELF
from dtef_pipeline.games.personas import BASELINE_PREFIX
from dtef_pipeline.keys import Keys

NO_OPPONENT_LABEL = "nobody"
"""Opponent in drift tables for scenarios with one seat."""
_WATCHED_FAMILIES = ("efficacy", "expected value", "social")
"""The first of these metric families with a metric on 0-1 is watched in a scenario."""
GAMES_WATCHED_KEYS = Keys(
    space=("league", "scenario"),
    item="item_id",
    noun="item",
    asked=("persona", "opponent", "metric"),
    cluster="cluster",
    cluster_noun="seed",
    score_again="play those scenarios again with `dtef games run`",
)
_WATCHED_METRICS = f"""
    CREATE OR REPLACE TEMP TABLE watched_metrics AS
    WITH bounded AS (
        SELECT league, scenario, metric, bool_or(weight IS NOT NULL) AS is_weighed,
            min(list_position({list(_WATCHED_FAMILIES)}, metric_family)) AS place
        FROM episode_scores WHERE unit_scale AND unit = 'share' AND metric_family <> 'form' AND value IS NOT NULL GROUP BY ALL
    )
    SELECT league::VARCHAR AS league, scenario::VARCHAR AS scenario, metric FROM bounded
    QUALIFY is_weighed OR row_number() OVER (
        PARTITION BY league, scenario ORDER BY place NULLS LAST, metric <> '{SUCCESS_RATE}', metric
    ) = 1
"""
_FORM_OF_PLAY = f"""
    CREATE OR REPLACE TEMP TABLE form_of_play AS
    SELECT episode_id, bool_or(metric = 'turns' AND numerator IS NOT NULL) AS is_played,
        coalesce(sum(numerator) FILTER (metric IN ('{ILLEGAL_RATE}', 'refused_rate')), 0) = 0 AS is_clean
    FROM episode_scores GROUP BY ALL
"""
_FIRST_PROMPTS = """
    CREATE OR REPLACE TEMP TABLE first_prompts AS
    SELECT episode_id, arg_min(prompt_id, (turn, attempt, seat)) AS prompt_id FROM episode_turns GROUP BY ALL
"""
_WATCHED_EPISODES = f"""
    CREATE OR REPLACE TEMP TABLE scores AS
    SELECT league::VARCHAR AS league, scenario::VARCHAR AS scenario, version::VARCHAR AS test,
        scenario || '/' || item_id AS item_id,
        coalesce(nullif(persona, ''), '{AS_ITSELF}') AS persona, coalesce(nullif(opponent, ''), '{NO_OPPONENT_LABEL}') AS opponent,
        metric, model, model_variant, snapshot::VARCHAR AS snapshot, temperature, draw, cluster,
        CASE direction WHEN 'lower' THEN 1 - value ELSE value END AS score,
        CASE WHEN NOT is_played THEN 'error' WHEN is_clean THEN 'ok' ELSE 'unparseable' END AS status,
        prompt_id, truth_id, answered_at
    FROM episode_scores SEMI JOIN watched_metrics USING (league, scenario, metric)
        JOIN form_of_play USING (episode_id) LEFT JOIN first_prompts USING (episode_id)
    WHERE NOT starts_with(model, '{BASELINE_PREFIX}') AND (value IS NOT NULL OR NOT is_played)
"""
_SERVED_PLAY = f"""
    CREATE OR REPLACE TEMP TABLE predictions AS
    SELECT DISTINCT scores.league, scores.persona, scores.opponent, scores.metric, scores.model, scores.model_variant, scores.snapshot,
        served_model, fingerprint
    FROM scores JOIN (
        SELECT DISTINCT league::VARCHAR AS league, scenario || '/' || item_id AS item_id,
            coalesce(nullif(persona, ''), '{AS_ITSELF}') AS persona, model, model_variant,
            snapshot::VARCHAR AS snapshot, served_model, fingerprint
        FROM episode_turns WHERE under_test
    ) AS served USING (league, item_id, persona, model, model_variant, snapshot)
"""
_MOVED_BASELINES = f"""
    SELECT league || '/' || scenario || ' ' || model || ', ' || metric || ' of ' || item_id AS series,
        min(value) AS least, max(value) AS most
    FROM episode_scores
    WHERE starts_with(model, '{BASELINE_PREFIX}') AND (opponent = '' OR starts_with(opponent, '{BASELINE_PREFIX}'))
    GROUP BY league, scenario, version, truth_id, model, metric, item_id
    HAVING count(DISTINCT value) > 1 ORDER BY series
"""


def _load_seeds(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """Load the deal of each item: all seats, opponents and draws of a scenario's seed are one cluster."""
    return connection.execute(
        "SELECT DISTINCT league, item_id, league || '/' || scenario || '/' || scores.cluster AS cluster FROM scores ORDER BY ALL"
    ).df()


GAMES_WATCHED = Subject(
    family="games",
    keys=GAMES_WATCHED_KEYS,
    describe_setting=lambda row: f"persona {row['persona']} against {row['opponent']}, {row['metric']}",
    truth="rules",
    truths="rules",
    reads=("episode_scores", "episode_turns"),
    statements=(_WATCHED_METRICS, _FORM_OF_PLAY, _FIRST_PROMPTS, _WATCHED_EPISODES, _SERVED_PLAY),
    clusters=_load_seeds,
    reason_left_out="had too few comparable items",
)
"""Drift of item scores; an item is for example `kuhn/17/0/baseline/random` of the league poker."""


def find_moved_baselines(connection: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """Return a line per baseline, metric and item whose value differs between snapshots, within one version of a scenario under equal
    rules.

    Games between baselines never vary, so the engine, the baseline or a formula changed without a new version of the scenario. `connection`
    has `episode_scores`.
    """
    for series_text, lowest, highest in connection.execute(_MOVED_BASELINES).fetchall():
        yield f"{series_text}: {lowest:g} in one snapshot, {highest:g} in another"
