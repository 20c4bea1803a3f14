"""Episodes as they may stand in pairs: of one scenario and version, seed, seat and opponent. What is read of one is what its player wrote, and
what the game answered; and the results that preference can be compared with."""

from __future__ import annotations

from dtef_pipeline.games.laid_out import laid_out
from dtef_pipeline.preference.paired_source import MetricSource, PairedSource

_NAMED_PLAYER = "CASE WHEN persona = '' THEN model_variant ELSE persona || '@' || model_variant END"
_GAMES_RESULTS = MetricSource(
    ("persona_results",),
    f"""
    SELECT league AS partition, scenario || ' v' || version || ': ' || metric AS metric, {_NAMED_PLAYER} AS player,
           direction, mean AS value, low, high, n_episodes AS n
    FROM persona_results WHERE opponent = 'all' AND direction IN ('higher', 'lower')
    """,
)
# The rules stand behind the persona in one message. They are shown where some model played the item as itself, so that no persona can be read.
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
        SELECT league, scenario, version, item_id, [{{'role': 'user', 'text': one.text}} FOR one IN messages IF one.role = 'system'] AS told
        FROM episode_prompts WHERE persona = ''
    )
    SELECT league AS first, scenario AS second, league || '/' || scenario || '/v' || version || '/' || item_id AS item_id,
           e.model, {_NAMED_PLAYER} AS player, persona, e.draw, snapshot,
           COALESCE(rules.told, []) || [one FOR one IN p.messages IF one.role <> 'system'] AS messages, turns.text, turns.request_keys,
           turns.served_model,
           e.version, e.seat, e.cluster, e.trace
    FROM episodes e
    JOIN turns USING (league, scenario, episode_id, snapshot)
    JOIN episode_prompts p USING (league, scenario, version, item_id, persona)
    LEFT JOIN rules USING (league, scenario, version, item_id)
    WHERE e.status = 'played'
    """,
    (_GAMES_RESULTS,),
    laid_out,
)
