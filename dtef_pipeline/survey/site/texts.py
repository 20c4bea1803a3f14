"""Prompts and responses: of all pairs if there are few, else of a seeded sample."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.statistics.seed import SEED
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.site.contents import SurveyContents
from dtef_pipeline.survey.site.pair_store import ANSWERS, JOIN_PLACES
from dtef_pipeline.text.number_words import format_count

MAX_TEXT_CHARACTERS = 22_000_000
"""Maximum of the prompts and responses on all pages of segments together."""
LONGEST = 4_000
"""Characters of one text; of longer ones the middle is left out."""
_TEXTS_AT_ONCE = 5_000

Place = tuple[int, int]
"""The places of a segment and a question."""


class ResponseText(NamedTuple):
    """A response to a prompt."""

    series: int
    prompt: str
    words: str
    status: str
    reason: str
    snapshot: str
    draw: int

    def describe(self) -> str:
        status = "" if self.status == "ok" else self.status.replace("_", " ")
        draw = f"draw {self.draw + 1}" if self.draw else ""
        return " · ".join(filter(None, ["Response", status, self.reason, f"snapshot {self.snapshot}", draw]))


Texts = Mapping[Place, Sequence[ResponseText]]


class PairSample(NamedTuple):
    """The pairs whose texts the site contains, and the number of pairs with texts."""

    places: Sequence[Place]
    n_pairs: int

    @property
    def words(self) -> str:
        """A sentence about omitted texts; empty if there are none."""
        if len(self.places) == self.n_pairs:
            return ""
        return (
            f"The site contains prompts and responses of {len(self.places):,} of {format_count(self.n_pairs, 'pair')}, a random sample (seed "
            f"{SEED}). All of them: dtef export responses."
        )


def sample_pairs(contents: SurveyContents, limit: int = MAX_TEXT_CHARACTERS) -> PairSample:
    """Return pairs with the responses of every language model: as many as fit, spread evenly over the segments."""
    if not has_table(contents.connection, "predictions"):
        return PairSample([], 0)
    prompt_size = "0"
    if has_table(contents.connection, "blueprints"):
        prompt_size = '(SELECT coalesce(round(avg(length(system) + length("user"))), 0) FROM blueprints)'
    rows = contents.connection.execute(
        f"""
        WITH said AS (
            SELECT s, q, sum(least(length(response), {LONGEST}) + 60) AS size FROM predictions {JOIN_PLACES}
            WHERE NOT is_reference AND response IS NOT NULL GROUP BY ALL
        ), ranked AS (
            SELECT s, q, size + {prompt_size} AS size, md5('{SEED}/' || s || '/' || q) AS draw FROM said
        ), turns AS (SELECT *, row_number() OVER (PARTITION BY s ORDER BY draw) AS turn FROM ranked)
        SELECT s, q, sum(size) OVER (ORDER BY turn, draw ROWS UNBOUNDED PRECEDING) <= {limit} AS fits FROM turns ORDER BY s, q
        """
    ).fetchall()
    return PairSample([(s, q) for s, q, fits in rows if fits], len(rows))


def load_texts(contents: SurveyContents, places: Sequence[Place]) -> Texts:
    """Return the responses of language models on the pairs at these places, in the snapshots that count."""
    if not places or not has_table(contents.connection, "predictions"):
        return {}
    contents.connection.register("_chosen", pd.DataFrame(sorted(set(places)), columns=["s", "q"]))
    prompt = f"{', '.join(KEYS.pair)}, context_level, condition, prompt_id"
    no_rows = f'(SELECT {prompt}, NULL AS system, NULL AS "user" FROM predictions LIMIT 0)'
    blueprints = "blueprints" if has_table(contents.connection, "blueprints") else no_rows
    cell = f"{', '.join(KEYS.pair)}, context_level, condition, model_variant, snapshot, draw"
    texts, prompts = defaultdict[Place, list[ResponseText]](list), dict[str, str]()
    query = contents.connection.execute(
        f"""
        WITH asked AS (
            SELECT {cell}, prompt_id, s, q, series, response, error FROM predictions {JOIN_PLACES}
            SEMI JOIN _chosen USING (s, q) SEMI JOIN {ANSWERS} USING (s, q, series, snapshot) WHERE NOT is_reference
        ), prompts AS (
            SELECT {prompt}, any_value(system) AS system, any_value("user") AS "user"
            FROM {blueprints} SEMI JOIN asked USING ({prompt}) GROUP BY ALL
        ), unread AS (SELECT {cell}, status, reason FROM scores WHERE status <> 'ok')
        SELECT s, q, series, concat_ws(chr(10) || chr(10), system, "user"), coalesce(response, error, ''), coalesce(status, 'ok'),
            coalesce(reason, ''), snapshot, draw
        FROM asked LEFT JOIN unread USING ({cell}) LEFT JOIN prompts USING ({prompt})
        ORDER BY s, q, series, draw
        """
    )
    while rows := query.fetchmany(_TEXTS_AT_ONCE):
        for s, q, series, prompt_text, words, *details in rows:
            prompt_words = shorten_middle(prompt_text)
            shared_prompt = prompts.setdefault(prompt_words, prompt_words)
            texts[s, q].append(ResponseText(series, shared_prompt, shorten_middle(words), *details))
    return texts


def shorten_middle(text: str, limit: int = LONGEST) -> str:
    """Return the text, without its middle if it exceeds `limit` characters, because answers are at the beginning or the end."""
    if len(text) <= limit:
        return text
    tail = limit // 4
    head = limit - tail
    return f"{text[:head]} … [{format_count(len(text) - limit, 'character')} left out] … {text[-tail:]}"
