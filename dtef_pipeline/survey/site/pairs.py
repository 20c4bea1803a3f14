"""Every pair of segment and question: all predictions of it in temporary tables, prompts and responses, and what pages show of it.

Segments and questions have numbers (`s`, `q`), and so has each model under one condition (`series`). Fractions are two characters each:
thousandths in base 36. Prompts and responses are those of all pairs if there are few, else of a seeded sample.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import pandas as pd
from scipy.special import ndtri

from dtef_pipeline.boards.cells import cells_sql, has_table, parameters
from dtef_pipeline.site.content import Block, Column, DataFile, Link, Section, Table, TemplateBlock
from dtef_pipeline.site.sentences import write_sentence
from dtef_pipeline.statistics.cluster_robust import CONFIDENCE
from dtef_pipeline.statistics.seed import SEED
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.site.contents import GUIDES, SENTENCES, QuestionPage, SegmentPage, SurveyContents
from dtef_pipeline.tables import STATUSES
from dtef_pipeline.text.shortening import shorten

PAIRS, ANSWERS, SCORED = "site_pairs", "site_answers", "site_scored"
"""Temporary tables. PAIRS: s, q, n, n_effective, circular, observed (code), apart (distance of the observed answer from the
population marginal, 0-1), ceiling, others. ANSWERS: s, q, series, snapshot, score, code (shares, then the score; or `!`, the place of a
status, and the score that the policy gives it, if any; after several draws `*`, how many could be read, `/`, how many there were).
SCORED: s, q, series, score, others, ceiling of the pairs that means are over: those of `main_series` with a score, without those whose
question defines the segment."""
_PAIR = "round, segment, question_id"
_JOIN_PAIRS = "JOIN site_segments USING (segment) JOIN site_questions USING (round, question_id)"
JOIN_PLACES = f"{_JOIN_PAIRS} JOIN site_series USING (model_variant, context_level, condition)"
"""SQL: joins predictions with the places of their segments, questions and series."""


def store_pairs(contents: SurveyContents) -> None:
    """Create PAIRS, ANSWERS and SCORED, and the tables of places that JOIN_PLACES names."""
    connection = contents.connection
    connection.register("site_segments", pd.DataFrame(contents.segments, columns=SegmentPage._fields))
    connection.register("site_questions", pd.DataFrame(contents.questions, columns=QuestionPage._fields))
    connection.register("site_series", pd.DataFrame(contents.series).assign(series=range(len(contents.series))))
    columns = "s SMALLINT, q INTEGER, series SMALLINT, snapshot VARCHAR, score DOUBLE, code VARCHAR"
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {ANSWERS} ({columns})")
    # A round at a time, because the lists of all rounds take too much memory.
    for (round,) in contents.query("SELECT DISTINCT round FROM scores ORDER BY round"):
        options = SurveyBoardOptions(metric=contents.metric, targets="all", rounds=(round,))
        connection.execute(f"INSERT INTO {ANSWERS} {_build_answers_sql(contents, options)}", parameters(options))
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {PAIRS} AS {_build_pairs_sql(contents)}")
    connection.execute(f"""
        CREATE OR REPLACE TEMP TABLE {SCORED} AS SELECT s, q, series, score, others, ceiling FROM {ANSWERS} JOIN {PAIRS} USING (s, q)
        WHERE score IS NOT NULL AND NOT circular AND list_contains({contents.main_series}, series)
        """)


def _build_code_sql(fraction: str) -> str:
    """Return SQL for a fraction as two characters."""
    return f"to_base(least(greatest(round(1000 * {fraction}), 0), 1000)::INTEGER, 36, 2)"


def _build_answers_sql(contents: SurveyContents, options: SurveyBoardOptions) -> str:
    place = f"list_position([{', '.join(repr(status) for status in STATUSES)}], status) - 1"
    score_code = f"CASE WHEN score IS NULL THEN '' ELSE {_build_code_sql('score')} END"  # unscored is not zero
    option_code = _build_code_sql("list_avg(list_transform(parsed, lambda shares: shares[option]))")
    shares = f"array_to_string(list_transform(range(1, len(parsed[1]) + 1), lambda option: {option_code}), '')"
    draws = "CASE WHEN n_total > 1 THEN '*' || n_ok || '/' || n_total ELSE '' END"
    expressions = ("list(predicted ORDER BY draw) FILTER (status = 'ok') AS parsed", "min(status) AS status")
    return f"""{cells_sql(contents.connection, options, expressions)}
        SELECT s::SMALLINT AS s, q::INTEGER AS q, series::SMALLINT AS series, snapshot, score,
            coalesce({shares} || {_build_code_sql("score")}, '!' || {place} || {score_code}) || {draws} AS code
        FROM cells {JOIN_PLACES} WHERE status NOT IN ('budget', 'missing') ORDER BY s, q, series
        """


def _build_pairs_sql(contents: SurveyContents) -> str:
    connection, metric = contents.connection, contents.metric
    observed = f"array_to_string(list_transform(observed, lambda x: {_build_code_sql('x')}), '')"
    distance = "list_sum(list_transform(list_zip(observed, population), lambda x: abs(x[1] - x[2]))) / 2"
    no_rows = f"SELECT {_PAIR}, NULL::DOUBLE AS ceiling, NULL::DOUBLE AS others FROM survey_responses LIMIT 0"
    reference = f"SELECT {_PAIR}, ceiling.{metric} AS ceiling, leave_one_out_score.{metric} AS others FROM reference_scores"
    return f"""
        SELECT s::SMALLINT AS s, q::INTEGER AS q, n, n_effective, circular, {observed} AS observed, {distance} AS apart,
            ceiling, others
        FROM (SELECT {_PAIR}, n, circular, observed, population, n_effective FROM survey_responses)
            {_JOIN_PAIRS}
            LEFT JOIN ({reference if has_table(connection, "reference_scores") else no_rows}) USING ({_PAIR})
        SEMI JOIN {ANSWERS} USING (s, q) ORDER BY s, q
        """


def shares(code: str) -> list[float]:
    """Return the fractions of a code."""
    return [int(code[start : start + 2], 36) / 1000 for start in range(0, len(code), 2)]


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
    # Prompts are read apart: sorted with the responses, each would be copied for all of its responses.
    prompt_rows = contents.query(f"""
        SELECT prompt_id, any_value(concat_ws(chr(10) || chr(10), system, "user"))
        FROM blueprints {_JOIN_PAIRS} SEMI JOIN site_places USING (s, q) GROUP BY prompt_id
        """)
    prompts = {prompt_id: shorten(prompt, LONGEST) for prompt_id, prompt in prompt_rows}
    query = contents.connection.execute(f"""
        WITH asked AS (
            SELECT {cell}, prompt_id, s, q, series, response, error FROM predictions {JOIN_PLACES}
            SEMI JOIN site_places USING (s, q) SEMI JOIN {ANSWERS} USING (s, q, series, snapshot) WHERE NOT is_reference
        ), unread AS (SELECT {cell}, status, reason FROM scores WHERE status <> 'ok')
        SELECT s, q, series, prompt_id, coalesce(response, error, ''), coalesce(status, 'ok'), coalesce(reason, ''), snapshot, draw
        FROM asked LEFT JOIN unread USING ({cell}) ORDER BY s, q, series, draw
        """)
    texts = defaultdict[Place, list[ResponseText]](list)
    while rows := query.fetchmany(_TEXTS_AT_ONCE):
        for s, q, series, prompt_id, words, *details in rows:
            texts[s, q].append(ResponseText(series, prompts.get(prompt_id, ""), shorten(words, LONGEST), *details))
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


Kind = Literal["segment", "question"]
_MODELS_SAMPLED = 5
"""Maximum number of models of a pair that the page itself shows, the best first, with one response."""
SHARED_DATA = "survey/pairs.js"
SCRIPT = "survey.js"


@dataclass(frozen=True)
class PairPages:
    """The data of predictions, and the pairs that have texts."""

    contents: SurveyContents
    texts: Texts
    note: str
    """Says which pairs have texts; empty if all have."""

    def section(self, kind: Kind, place: int) -> Section:
        """Return the section of a segment's or question's page in which the reader selects the other."""
        pair = self._openings[kind].get(place)
        values = {
            "data": SHARED_DATA,
            "what": kind,
            "place": place,
            "asked": "" if kind == "segment" else ",".join(map(str, self._segments_by_question.get(place, ()))),
            "first": "" if pair is None else pair[kind == "segment"],
            "note": self.note,
            "sample": [] if pair is None else self._samples[pair],
        }
        template = TemplateBlock("survey/pairs.html.j2", values)
        return Section("pairs", "Predicted and observed shares", [template], guide=write_sentence(GUIDES, "pairs"))

    @cached_property
    def _segments_by_question(self) -> dict[int, list[int]]:
        return dict(self.contents.query(f"SELECT q, list(s ORDER BY s) FROM {PAIRS} GROUP BY q"))

    @cached_property
    def _openings(self) -> dict[Kind, dict[int, Place]]:
        """By segment and by question, the pair that its page opens with: if possible one with texts, or that a model was asked."""
        rows = self.contents.query(f"""
            SELECT s, q, bool_and(is_reference) FROM {ANSWERS} JOIN site_series USING (series) SEMI JOIN {PAIRS} USING (s, q)
            GROUP BY s, q ORDER BY q, s
            """)
        last_first = sorted(rows, key=lambda row: (row[:2] not in self.texts, row[2]))[::-1]
        return {"segment": {s: (s, q) for s, q, _ in last_first}, "question": {q: (s, q) for s, q, _ in last_first}}

    @cached_property
    def _samples(self) -> Mapping[Place, Sequence[Block]]:
        """What pages show of each pair in `_openings` without scripts: the best predictions on the first leaderboard, and a response."""
        places = {pair for pairs in self._openings.values() for pair in pairs.values()}
        self.contents.connection.register("site_places", pd.DataFrame(sorted(places), columns=["s", "q"]))
        rows = self.contents.query(f"""
            SELECT s, q, any_value(observed), coalesce(list([name, code] ORDER BY score DESC, series) FILTER (
                NOT is_reference AND list_contains({self.contents.main_series}, series) AND NOT starts_with(code, '!')
            ), []) FROM {ANSWERS} JOIN site_series USING (series) JOIN {PAIRS} USING (s, q) SEMI JOIN site_places USING (s, q) GROUP BY s, q
            """)
        return {
            (s, q): show_pair(self.contents, (s, q), observed, answers[:_MODELS_SAMPLED], self.texts.get((s, q), ())[:1])
            for s, q, observed, answers in rows
        }

    def files(self) -> Iterator[DataFile]:
        """Yield the data that all pages share, then a file for each segment, and its texts."""
        contents = self.contents
        shared = {
            "segments": [[s.label, s.page] for s in contents.segments],
            "questions": [[q.round, q.text, q.options, q.page] for q in contents.questions],
            "series": [[s.name, contents.settings.index(s.setting), s.is_reference] for s in self.contents.series],
            "settings": [[contents.title(setting), "/".join(setting)] for setting in contents.settings],
            "statuses": [status.replace("_", " ") for status in STATUSES],
            "z": float(ndtri((1 + CONFIDENCE) / 2)),
        }
        yield DataFile(SHARED_DATA, shared)
        for segment in contents.segments:
            path = segment.page.removesuffix(".html")
            texts = {q: responses for (s, q), responses in self.texts.items() if s == segment.s}
            yield DataFile(f"{path}.js", {"pairs": self._build_pairs(segment.s), "texts": sorted(texts)})
            if texts:
                yield DataFile(f"{path}-texts.js", _build_texts(texts))

    def _build_pairs(self, s: int) -> list[list[Any]]:
        """Return for each question its place, respondents, the size for intervals, thousandths of ceiling and marginal, whether it defines
        the segment, the observed answer, and a code for each series, empty if there is none.
        """
        thousandths = ", ".join(f"TRY_CAST(round(1000 * {name}) AS INTEGER)" for name in ("ceiling", "others"))
        rows = self.contents.query(
            f"""
            SELECT q, n, TRY_CAST(round(coalesce(n_effective, n)) AS INTEGER), {thousandths}, circular::INTEGER, observed, codes
            FROM {PAIRS} JOIN (SELECT s, q, map(list(series), list(code)) AS codes FROM {ANSWERS} WHERE s = ? GROUP BY s, q) USING (s, q)
            ORDER BY q
            """,
            s,
        )
        return [[*values, [codes.get(place, "") for place in range(len(self.contents.series))]] for *values, codes in rows]


def _build_texts(question_texts: Mapping[int, Sequence[ResponseText]]) -> dict[str, Any]:
    """Return each prompt once, and each question's responses: place of the series, of the prompt, words, status, reason, snapshot, draw."""
    prompts = dict[str, int]()
    responses = {
        str(q): [[text.series, prompts.setdefault(text.prompt, len(prompts)), *text[2:]] for text in texts]
        for q, texts in question_texts.items()
    }
    return {"prompts": list(prompts), "said": responses}
