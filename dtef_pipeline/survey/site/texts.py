"""Prompts and responses, of all pairs if there are few, else of a seeded sample; and a pair as a page shows it without scripts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.site.content import Block, Column, Link, Table, TemplateBlock
from dtef_pipeline.site.sentences import write_sentence
from dtef_pipeline.statistics.seed import SEED
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.site.contents import SENTENCES, SurveyContents
from dtef_pipeline.survey.site.pair_store import ANSWERS, JOIN_PLACES, shares
from dtef_pipeline.text.shortening import shorten

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


Texts = Mapping[Place, Sequence[ResponseText]]


class PairSample(NamedTuple):
    """The pairs whose texts the site contains, and a sentence about those that it lacks."""

    places: Sequence[Place]
    note: str


def _has_texts(contents: SurveyContents) -> bool:
    return all(has_table(contents.connection, table) for table in ("predictions", "blueprints"))


def sample_pairs(contents: SurveyContents, limit: int = MAX_TEXT_CHARACTERS) -> PairSample:
    """Return pairs with the responses of every language model: as many as fit, spread evenly over the segments."""
    if not _has_texts(contents):
        return PairSample([], "")
    rows = contents.query(f"""
        WITH prompts AS (SELECT coalesce(round(avg(length(system) + length("user"))), 0) AS size FROM blueprints),
        pairs AS (
            SELECT s, q, sum(least(length(response), {LONGEST}) + 60) + any_value(size) AS size, md5('{SEED}/' || s || '/' || q) AS draw
            FROM predictions {JOIN_PLACES} CROSS JOIN prompts WHERE NOT is_reference AND response IS NOT NULL GROUP BY s, q
        ), turns AS (SELECT *, row_number() OVER (PARTITION BY s ORDER BY draw) AS turn FROM pairs)
        SELECT s, q, sum(size) OVER (ORDER BY turn, draw ROWS UNBOUNDED PRECEDING) <= {limit} AS fits FROM turns ORDER BY s, q
        """)
    places = [(s, q) for s, q, fits in rows if fits]
    return PairSample(places, write_sentence(SENTENCES, "sample", n_shown=len(places), n_pairs=len(rows), seed=SEED))


def load_texts(contents: SurveyContents, places: Collection[Place]) -> Texts:
    """Return the responses of language models on the pairs at these places, in the snapshots that count."""
    if not places or not _has_texts(contents):
        return {}
    contents.connection.register("site_places", pd.DataFrame(sorted(set(places)), columns=["s", "q"]))
    cell = f"{', '.join(KEYS.pair)}, context_level, condition, model_variant, snapshot, draw"
    query = contents.connection.execute(f"""
        WITH asked AS (
            SELECT {cell}, prompt_id, s, q, series, response, error FROM predictions {JOIN_PLACES}
            SEMI JOIN site_places USING (s, q) SEMI JOIN {ANSWERS} USING (s, q, series, snapshot) WHERE NOT is_reference
        ), prompts AS (
            SELECT prompt_id, any_value(concat_ws(chr(10) || chr(10), system, "user")) AS prompt
            FROM blueprints SEMI JOIN asked USING (prompt_id) GROUP BY prompt_id
        ), unread AS (SELECT {cell}, status, reason FROM scores WHERE status <> 'ok')
        SELECT s, q, series, coalesce(prompt, ''), coalesce(response, error, ''), coalesce(status, 'ok'), coalesce(reason, ''),
            snapshot, draw
        FROM asked LEFT JOIN unread USING ({cell}) LEFT JOIN prompts USING (prompt_id)
        ORDER BY s, q, series, draw
        """)
    texts, prompts = defaultdict[Place, list[ResponseText]](list), dict[str, str]()
    while rows := query.fetchmany(_TEXTS_AT_ONCE):
        for s, q, series, prompt, words, *details in rows:
            short_prompt = shorten(prompt, LONGEST)
            shared_prompt = prompts.setdefault(short_prompt, short_prompt)
            texts[s, q].append(ResponseText(series, shared_prompt, shorten(words, LONGEST), *details))
    return texts


def show_pair(
    contents: SurveyContents, pair: Place, observed: str, answers: Iterable[tuple[str, str]], responses: Sequence[ResponseText]
) -> list[Block]:
    """Return observed and predicted shares of a pair, and responses with their prompt.

    `observed`: its code, as in PAIRS; `answers`: the heading and the code of each prediction, as in ANSWERS.
    """
    segment, question = contents.segments[pair[0]], contents.questions[pair[1]]
    columns = [Column("option", "Answer"), Column("observed", "Observed", "percent", always=True)]
    rows: list[dict[str, Any]] = [{"option": option} for option in question.options]
    for place, (heading, code) in enumerate([("Observed", observed), *answers]):
        name = f"predicted {place}" if place else "observed"
        columns += [Column(name, heading, "percent", always=True)] if place else []
        for row, share in zip(rows, shares(code.partition("*")[0]) if not code.startswith("!") else [], strict=False):
            row[name] = share
    values = {
        "prompt": responses[0].prompt if responses else "",
        "responses": [(contents.series[response.series].name, response) for response in responses],
        "link": Link("All models on this pair", segment.pair_page(question)),
    }
    table = Table(f"{segment.label}: {question.text} ({question.round})", columns, rows)
    return [table, TemplateBlock("survey/response.html.j2", values)]
