"""Predicted against observed, for any pair that the reader chooses: the data inside the page, and the form that chooses from it.

The data are compact: fractions as two characters (thousandths in base 36), a prediction that is the same however much context was shown
once. When all of it would make the page too large, as many questions as fit are kept, with every segment of theirs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import duckdb
import pandas as pd
from scipy.special import ndtri

from dtef_pipeline.boards.cells import cells_sql, has_table, parameters
from dtef_pipeline.report.markup import Column, is_unknown, long_text, named, note, paragraph, section, table, text, whole
from dtef_pipeline.report.page_files import packed
from dtef_pipeline.report.terminal import named_apart
from dtef_pipeline.statistics.cluster_robust import CONFIDENCE
from dtef_pipeline.survey.blueprint.options import ContextLevel
from dtef_pipeline.survey.boards.noise import effective_sql
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.report.pair_texts import MOST_TEXT_BYTES, Places, middle_left_out, texts
from dtef_pipeline.survey.scoring.matrices import EFFECTIVE
from dtef_pipeline.tables import STATUSES
from dtef_pipeline.text.counted import counted

MOST_BYTES = 4_000_000
"""Of the data of pairs in one page."""
_ALL_TARGETS = SurveyBoardOptions(targets="all", non_answers=True)
_HOW_TO_READ_PAIRS = (
    "Choose a model, a question and a segment; pairs that the model was asked stand first. Bars are shares of answers. The whisker on an "
    "observed bar is its 95 % interval for "
    "a sample of n respondents (Wilson score interval): the data cannot tell a prediction inside it from the truth. Of several draws the bars "
    "are the mean of those that could be read, and the score is the mean of all draws' scores under the published policy."
)


class Way(NamedTuple):
    """A context level under a condition."""

    level: str
    condition: str


class Model(NamedTuple):
    """What a model is called in the page, and its variant."""

    name: str
    variant: str


class PairData(NamedTuple):
    """`shown`: what the script draws from. `left_out`: how many questions did not fit into the page."""

    shown: dict[str, Any]
    left_out: int


def pairs(
    connection: duckdb.DuckDBPyConnection, *, most_bytes: int = MOST_BYTES, most_text_bytes: int = MOST_TEXT_BYTES
) -> str:
    """The section: a form, the place for the chart, and the data as JSON. Without observed answers it says so."""
    if not has_table(connection, "survey_responses"):
        return section(
            "pairs", "Predicted against observed", _HOW_TO_READ_PAIRS, paragraph("No survey responses to compare with.")
        )
    data = pair_data(connection, most_bytes)
    if not data.shown["questions"]:
        return section("pairs", "Predicted against observed", _HOW_TO_READ_PAIRS, paragraph("No scored predictions yet."))
    cut = paragraph(_left_out(data.left_out, len(data.shown["questions"]))) if data.left_out else ""
    return section(
        "pairs",
        "Predicted against observed",
        _HOW_TO_READ_PAIRS,
        f"{cut}{texts(connection, _places(connection, data.shown), most_text_bytes)}{_FORM}"
        f'<script type="application/json" id="pair-data">{packed(data.shown)}</script>',
    )


def _places(connection: duckdb.DuckDBPyConnection, shown: Mapping[str, Any]) -> Places:
    return Places(
        {(question["r"], question["id"]): at for at, question in enumerate(shown["questions"])},
        {segment: at for at, segment in enumerate(shown["segments"])},
        {model.variant: at for at, model in enumerate(_models(connection))},
        {tuple(way): at for at, way in enumerate(shown["asked"])},
    )


def _left_out(left_out: int, kept: int) -> str:
    return (
        f"To keep the page small it holds {kept} of {counted(kept + left_out, 'question')}, with all their segments; the others are in the "
        "table scores of the warehouse. The numbers of pairs asked below are of all questions."
    )


_FORM = (
    '<form class="chooser" id="chooser"><label>Model<select id="pair-model"></select></label>'
    '<label class="wide">Asked<select id="pair-asked"></select></label><p class="count broad" role="status" id="pair-share"></p>'
    '<label>Search questions<input type="search" id="pair-search" placeholder="words of the question"></label>'
    '<label>Round<select id="pair-round"></select></label><p class="count broad" role="status" id="pair-found"></p>'
    '<label class="broad">Question<select id="pair-question"></select></label>'
    '<label>Segment<select id="pair-segment"></select></label></form>'
    '<div id="pair-chart" aria-live="polite"><p>This chart needs JavaScript.</p></div>'
    '<div id="pair-texts"></div><div id="pair-over" hidden><h3>The same question in all segments</h3>'
    '<label class="search">Answer<select id="pair-option"></select></label><div id="pair-segments"></div></div>'
)


def pair_data(connection: duckdb.DuckDBPyConnection, most_bytes: int) -> PairData:
    """What the script draws from. Rounds, questions and segments in a fixed order.

    `questions`: round, id, text, options, the places of segments that it defines (`c`, only where there are such), and rows of segments:
    [segment, n (null: unknown), ceiling, leave-one-out, observed, predictions, effective n where one is stated], where `;` stands
    between the predictions of two models, and `|` between those of two ways of asking, where these differ. A prediction is shares, then the
    score; or `!`, the number of a status in `statuses`, and the score that the policy gives it, if any. After several draws follow `*`, how
    many could be read, `/`, how many there were.
    `said`: of each model, the pairs that it was asked in each way; `pairs`: of each way, the pairs of the rounds in which it was used. Both
    count the questions that did not fit, too.
    """
    connection.execute("SET threads = 1")
    models, asked = _models(connection), _asked(connection)
    kept, left_out = _kept_questions(connection, len(models), len(asked), most_bytes)
    rows_of_pairs = _packed(connection, models, asked, kept)
    segments = sorted(set(rows_of_pairs["segment"]))
    place = {segment: at for at, segment in enumerate(segments)}
    questions = []
    of_question = dict(iter(rows_of_pairs.groupby(["round", "question_id"], sort=False)))
    for question in kept.to_dict("records"):
        rows = of_question.get((question["round"], question["question_id"]), rows_of_pairs[:0])
        names = ("segment", "n", "ceiling", "others", "observed", "predictions", "n_effective")
        listed = [
            [
                place[segment],
                _whole(n),
                _thousandths(c),
                _thousandths(o),
                seen,
                said,
                *([] if pd.isna(size) else [_whole(size)]),
            ]
            for segment, n, c, o, seen, said, size in zip(*(rows[name] for name in names), strict=True)
        ]
        circular = [place[segment] for segment, is_own in zip(rows["segment"], rows["circular"], strict=True) if is_own]
        marked = {"c": circular} if circular else {}
        if listed:
            head = {"r": question["round"], "id": question["question_id"], "t": question["question_text"]}
            questions.append({**head, "o": list(question["options"]), "s": listed, **marked})
    shown = {
        "z": float(ndtri((1 + CONFIDENCE) / 2)),
        "models": [model.name for model in models],
        "asked": [list(way) for way in asked],
        "segments": segments,
        "statuses": list(STATUSES),
        "questions": questions,
        **_counts(connection, models, asked),
    }
    return PairData(shown, left_out)


def _counts(connection: duckdb.DuckDBPyConnection, models: Sequence[Model], asked: Sequence[Way]) -> dict[str, Any]:
    way, pair = "context_level, condition", ", ".join(KEYS.pair)
    said = connection.execute(f"""
        SELECT model_variant, {way}, count(DISTINCT ({pair})) FROM scores SEMI JOIN survey_responses USING ({pair})
        WHERE status NOT IN ('budget', 'missing') GROUP BY ALL""").fetchall()
    there = connection.execute(f"""
        SELECT {way}, count(*) FROM survey_responses JOIN (SELECT DISTINCT round, {way} FROM scores) USING (round) GROUP BY ALL
        """).fetchall()
    of_model = {(variant, Way(level, condition)): count for variant, level, condition, count in said}
    of_way = {Way(level, condition): count for level, condition, count in there}
    return {
        "said": [[of_model.get((model.variant, one), 0) for one in asked] for model in models],
        "pairs": [of_way.get(one, 0) for one in asked],
    }


def _whole(value: Any) -> int | None:
    return None if pd.isna(value) else round(float(value))


def _thousandths(value: Any) -> int | None:
    return None if pd.isna(value) else round(1000 * float(value))


def _models(connection: duckdb.DuckDBPyConnection) -> list[Model]:
    """In the order of their names; a model of several variants is called by its variant."""
    found = named_apart(connection.execute("SELECT DISTINCT model, model_variant FROM scores ORDER BY ALL").df())
    return [Model(*both) for both in zip(found["model"], found["model_variant"], strict=True)]


def _asked(connection: duckdb.DuckDBPyConnection) -> list[Way]:
    rows = connection.execute("SELECT DISTINCT context_level, condition FROM scores").fetchall()
    return sorted((Way(*row) for row in rows), key=lambda way: (way.condition, ContextLevel(way.level).order))


def _kept_questions(
    connection: duckdb.DuckDBPyConnection, models: int, asked: int, most_bytes: int
) -> tuple[pd.DataFrame, int]:
    """The questions that fit, first of each round first, going by the bytes they take at most; and how many do not."""
    questions = connection.execute(
        """
        SELECT round, question_id, any_value(question_text) AS question_text, any_value(options) AS options,
            min(question_order) AS place, count(*) AS segments, max(len(options)) AS k
        FROM survey_responses SEMI JOIN scores USING (round, segment, question_id)
        GROUP BY round, question_id ORDER BY place, round, question_id
        """
    ).df()
    # A model of several draws says beside each prediction how many could be read of how many: `*2/2`.
    counts = connection.execute(
        "SELECT coalesce(sum(2 + 2 * length(draws::VARCHAR)), 0) FROM "
        "(SELECT count(DISTINCT draw) AS draws FROM scores GROUP BY model_variant HAVING draws > 1)"
    ).fetchall()[0][0]
    effective = f"SELECT 8 * (count({EFFECTIVE}) > 0)::INT FROM (SELECT {effective_sql(connection)} FROM survey_responses)"
    of_effective = connection.execute(effective).fetchall()[0][0]
    a_pair = 30 + of_effective + 2 * questions["k"] + asked * (models * (2 * questions["k"] + 3) + int(counts))
    size = (200 + questions["question_text"].str.len() + 40 * questions["k"] + questions["segments"] * a_pair).cumsum()
    kept = questions[size <= most_bytes].sort_values(["round", "place", "question_id"], kind="stable")
    return kept, len(questions) - len(kept)


def _packed(
    connection: duckdb.DuckDBPyConnection, models: Sequence[Model], asked: Sequence[Way], kept: pd.DataFrame
) -> pd.DataFrame:
    """One row per (round, segment, question): the observed answer and all predictions in the characters of `pair_data`.

    Draws are averaged; of several snapshots the one that the boards take counts.
    """
    connection.register(
        "_models", pd.DataFrame({"place": range(len(models)), "model_variant": [model.variant for model in models]})
    )
    connection.register("_asked", pd.DataFrame(asked, columns=["context_level", "condition"]).assign(way=range(len(asked))))
    connection.register("_kept", kept[list(KEYS.shared_item)].astype(str))
    frame = connection.execute(_packed_sql(connection), parameters(_ALL_TARGETS)).df()
    for name in ("_models", "_asked", "_kept"):
        connection.unregister(name)
    return frame


def _code(fraction: str) -> str:
    """SQL: a fraction as two characters, thousandths in base 36."""
    return f"to_base(least(greatest(round(1000 * {fraction}), 0), 1000)::INTEGER, 36, 2)"


def _packed_sql(connection: duckdb.DuckDBPyConnection) -> str:
    pair = "round, segment, question_id"
    reference = f"SELECT {pair}, ceiling.js AS ceiling, others.js AS others FROM reference_scores"
    place = f"list_position([{', '.join(repr(status) for status in STATUSES)}], status) - 1"
    given = f"CASE WHEN score IS NULL THEN '' ELSE {_code('score')} END"  # unscored is not zero
    of_option = _code("list_avg(list_transform(parsed, lambda shares: shares[option]))")
    shares = f"array_to_string(list_transform(range(1, len(parsed[1]) + 1), lambda option: {of_option}), '')"
    nothing = f"SELECT {pair}, NULL::DOUBLE AS ceiling, NULL::DOUBLE AS others FROM survey_responses"
    return f"""{cells_sql(connection, _ALL_TARGETS)}
    , answers AS (
        SELECT {pair}, context_level, condition, model_variant, draw, predicted, status, cells.score FROM cells
        JOIN (SELECT {pair}, context_level, condition, model_variant, snapshot, draw, predicted, status FROM scores)
            USING ({pair}, context_level, condition, model_variant, snapshot)
        SEMI JOIN _kept USING (round, question_id)
    ), drawn AS (
        SELECT {pair}, context_level, condition, model_variant, list(predicted ORDER BY draw) FILTER (status = 'ok') AS parsed,
            min(status) AS status, any_value(score) AS score, count(*) AS draws
        FROM answers GROUP BY ALL
    ), said AS (
        SELECT {pair}, context_level, condition, model_variant,
            coalesce({shares} || {_code("score")}, '!' || {place} || {given})
            || CASE WHEN draws > 1 THEN '*' || len(coalesce(parsed, [])) || '/' || draws ELSE '' END AS said
        FROM drawn
    ), ways AS (
        SELECT {pair}, place, CASE WHEN count(DISTINCT coalesce(said, '')) = 1 THEN any_value(coalesce(said, ''))
            ELSE string_agg(coalesce(said, ''), '|' ORDER BY way) END AS said
        FROM (SELECT DISTINCT {pair} FROM said) CROSS JOIN _models CROSS JOIN _asked
        LEFT JOIN said USING ({pair}, model_variant, context_level, condition) GROUP BY ALL
    ), predictions AS (SELECT {pair}, string_agg(said, ';' ORDER BY place) AS predictions FROM ways GROUP BY ALL)
    , reference AS ({reference if has_table(connection, "reference_scores") else nothing})
    SELECT {pair}, n, {effective_sql(connection)}, circular, reference.ceiling, reference.others,
        array_to_string(list_transform(observed, lambda x: {_code("x")}), '') AS observed, predictions
    FROM predictions JOIN survey_responses USING ({pair}) LEFT JOIN reference USING ({pair}) ORDER BY round, question_id, segment
    """


_UNREAD = ("unparseable", "wrong_length", "refused")
_MOST_REASONS, _MOST_EXAMPLES, _EXAMPLES_IN_ALL = 4, 2, 200
"""Of a model, of a reason, and in all."""
_LONGEST_EXAMPLE = 400
"""Characters of an example."""
_LONGEST_QUESTION = 90
"""Characters of a question that are in sight."""
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_EXAMPLE_COLUMNS = [
    Column("model", "Model", text),
    Column("status", "Status", text),
    Column("reason", "Reason", text),
    Column("times", "Times", whole, "Predictions of this model with this status and reason, in all snapshots"),
    Column("asked", "Question and segment", named, "Of the example, with how it was asked"),
    Column("response", "Response", named, "As the model wrote it; of a long one the middle is left out"),
]


def examples(connection: duckdb.DuckDBPyConnection) -> str:
    """Markup: for each model its most frequent reasons with examples; nothing where every response could be read."""
    if not has_table(connection, "predictions"):
        return ""
    frame = connection.execute(_examples_sql(connection)).df()
    if not len(frame):
        return ""
    frame["status"] = frame["status"].str.replace("_", " ")
    frame["response"] = [None if is_unknown(words) else middle_left_out(words, _LONGEST_EXAMPLE) for words in frame["response"]]
    shown = frame.assign(
        asked=list(map(_prompt_place, frame.to_dict("records"))), response=[raw(words) for words in frame["response"]]
    )
    caption = f"Up to {_MOST_EXAMPLES} examples of each model's {_MOST_REASONS} most frequent reasons; all responses: dtef export responses"
    return "<h3>Responses that could not be read</h3>" + table(
        shown, _EXAMPLE_COLUMNS, caption=caption, row_head="model", data=frame
    )


def _prompt_place(row: Mapping[Any, Any]) -> str:
    """Markup of an example's question, and beneath it its segment and how it was asked."""
    how = f"{row['segment']}. {row['round']}, context {row['context_level']}, {row['condition']}, snapshot {row['snapshot']}"
    return long_text(row["question"], most=_LONGEST_QUESTION) + note(how)


def raw(words: Any) -> str:
    """Markup of what a model wrote: text alone, however it is made, in a box that it cannot leave."""
    if is_unknown(words):
        return ""
    visible = _CONTROL.sub("\ufffd", words) or "(empty)"
    return f'<pre class="raw">{escape(visible)}</pre>'


_PREDICTION = f"{', '.join(KEYS.pair)}, context_level, condition, model_variant, snapshot, draw, prompt_id"
_KIND = "model_variant, status, reason"


def _examples_sql(connection: duckdb.DuckDBPyConnection) -> str:
    """Of each model its most frequent reasons, with examples from different prompts, of different questions where there are."""
    known = "SELECT round, question_id, min(question_text) AS question_text FROM survey_responses GROUP BY ALL"
    texts = known if has_table(connection, "survey_responses") else "SELECT '' AS round, '' AS question_id, '' AS question_text"
    return f"""
    WITH unread AS (
        SELECT {_PREDICTION}, model, question_order, status, coalesce(reason, '') AS reason FROM scores
        WHERE status IN {_UNREAD}
    ), kinds AS (
        SELECT {_KIND}, count(*) AS times FROM unread GROUP BY {_KIND}
        QUALIFY row_number() OVER (PARTITION BY model_variant ORDER BY times DESC, status, reason) <= {_MOST_REASONS}
    ), prompts AS (
        SELECT *, row_number() OVER (
            PARTITION BY {_KIND}, round, question_id ORDER BY segment, context_level, condition, snapshot, draw
        ) AS of_question FROM unread JOIN kinds USING ({_KIND})
        QUALIFY row_number() OVER (PARTITION BY {_KIND}, prompt_id ORDER BY snapshot, draw) = 1
    ), chosen AS (
        SELECT * FROM prompts QUALIFY row_number() OVER (
            PARTITION BY {_KIND} ORDER BY of_question, question_order, round, segment, context_level, condition
        ) <= {_MOST_EXAMPLES}
    ), texts AS ({texts})
    SELECT chosen.model, chosen.model_variant, status, reason, times, round, segment, question_id,
        coalesce(question_text, question_id) AS question, context_level, condition, snapshot, predictions.response
    FROM chosen JOIN predictions USING ({_PREDICTION}) LEFT JOIN texts USING (round, question_id)
    ORDER BY chosen.model, model_variant, times DESC, status, reason, question_order, round, segment, context_level, condition
    LIMIT {_EXAMPLES_IN_ALL}
    """
