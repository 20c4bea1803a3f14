"""Pairs of episodes for preference votes: of the same scenario and version, seed, seat and opponent, shown as the player's texts and the
game's replies; and the results that preference is compared with."""

from __future__ import annotations

import re

from dtef_pipeline.preference.paired_source import MetricSource, PairedSource
from dtef_pipeline.preference.pairing import BlindedPair

ASKED_AGAIN = "(the same request again)"
"""Replaces paragraphs of the game that the reader has seen word for word."""
_FULL_LINE = 90
"""Minimum length of a line that may be wrapped for its length; lines of boards, cards and lists are shorter."""
_SHORTEST_REPEATED = 60
"""Minimum length of a paragraph that is left out when it is repeated."""
_LINE_OF_ITS_OWN = re.compile(r"[-*|>{\[]|[A-Z][^\n:>]{0,40}[:>] ")
"""Beginnings of lines that are never joined: items of a list, `Pot: 3 chips`, `ACTION: bid 37`, and words of another party, `B > I
offer`."""


def format_pair(pair: BlindedPair) -> BlindedPair:
    """Format two episodes of one item for readers. Linear in the length of the texts."""
    prompt_parts = {part.strip() for part in pair.prompt.split("\n\n")}
    return pair._replace(
        prompt=run_on(pair.prompt),
        run_a=_remove_repeated_parts(pair.run_a, prompt_parts),
        run_b=_remove_repeated_parts(pair.run_b, prompt_parts),
    )


def run_on(text: str) -> str:
    """Join lines that were wrapped for their length; all other line breaks stay."""
    parts: list[list[str]] = []
    before = ""
    for line in text.split("\n"):
        if parts and _is_continuation(before, line):
            parts[-1].append(line)
        else:
            parts.append([line])
        before = line
    return "\n".join(" ".join(part) for part in parts)


def _is_continuation(before: str, line: str) -> bool:
    """Return whether a sentence of the previous line continues here."""
    if len(before) < _FULL_LINE or not line or _LINE_OF_ITS_OWN.match(before) or _LINE_OF_ITS_OWN.match(line):
        return False
    return line[0].islower() if before[-1] in ".:;!?" else line[0].isalnum() or line[0] in "(`'\""


def _remove_repeated_parts(transcript: str, prompt_parts: set[str]) -> str:
    """Replace the game's paragraphs that repeat the prompt or an earlier one by a note, and join wrapped lines in the others.

    `transcript`: paragraphs, the first of each turn with `Player: ` or `Game: `. `prompt_parts`: paragraphs of the prompt that both players got.
    """
    known_parts, by_game = set(prompt_parts), False
    parts: list[str] = []
    for part in transcript.split("\n\n"):
        if part.startswith(("Player: ", "Game: ")):
            by_game = part.startswith("Game: ")
        elif by_game and len(part) >= _SHORTEST_REPEATED and part.strip() in known_parts:
            parts += [ASKED_AGAIN] if parts[-1] != ASKED_AGAIN else []
            continue
        elif by_game:
            known_parts.add(part.strip())
        parts.append(run_on(part) if by_game else part)
    return "\n\n".join(parts)


_NAMED_PLAYER = "CASE WHEN persona = '' THEN model_variant ELSE persona || '@' || model_variant END"
_GAMES_RESULTS = MetricSource(
    ("persona_results",),
    f"""
    SELECT league AS partition, scenario || ' v' || version || ': ' || metric AS metric, {_NAMED_PLAYER} AS player,
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
           e.model, {_NAMED_PLAYER} AS player, persona, e.draw, snapshot,
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
    format_pair,
)
