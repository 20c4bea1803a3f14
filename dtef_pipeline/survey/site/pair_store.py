"""Every pair of segment and question with all predictions of it, in temporary tables for pages.

Segments and questions have numbers (`s`, `q`), and so has each model under one condition (`series`). Fractions are two characters each:
thousandths in base 36.
"""

from __future__ import annotations

import pandas as pd

from dtef_pipeline.boards.cells import cells_sql, has_table, parameters
from dtef_pipeline.survey.boards.noise import effective_n_sql
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.scoring.matrices import EFFECTIVE
from dtef_pipeline.survey.site.contents import QuestionPage, SegmentPage, SurveyContents
from dtef_pipeline.tables import STATUSES

PAIRS, ANSWERS, SCORED = "site_pairs", "site_answers", "site_scored"
"""Temporary tables. PAIRS: s, q, n, n_effective, circular, observed (code), apart (distance of the observed answer from the
population marginal, 0-1), ceiling, others. ANSWERS: s, q, series, snapshot, score, code (shares, then the score; or `!`, the place of a
status, and the score that the policy gives it, if any; after several draws `*`, how many could be read, `/`, how many there were).
SCORED: s, q, series, score, others, ceiling of the pairs that means are over: those of `main_series` with a score, without those whose
question defines the segment."""
_PAIR = "round, segment, question_id"
JOIN_PLACES = """JOIN site_segments USING (segment) JOIN site_questions USING (round, question_id)
    JOIN site_series USING (model_variant, context_level, condition)"""
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
        CREATE OR REPLACE TEMP VIEW {SCORED} AS SELECT s, q, series, score, others, ceiling FROM {ANSWERS} JOIN {PAIRS} USING (s, q)
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
        SELECT s::SMALLINT AS s, q::INTEGER AS q, n, {EFFECTIVE} AS n_effective, circular, {observed} AS observed, {distance} AS apart,
            ceiling, others
        FROM (SELECT {_PAIR}, n, circular, observed, population, {effective_n_sql(connection)} FROM survey_responses)
            JOIN site_segments USING (segment) JOIN site_questions USING (round, question_id)
            LEFT JOIN ({reference if has_table(connection, "reference_scores") else no_rows}) USING ({_PAIR})
        SEMI JOIN {ANSWERS} USING (s, q) ORDER BY s, q
        """


def shares(code: str) -> list[float]:
    """Return the fractions of a code."""
    return [int(code[start : start + 2], 36) / 1000 for start in range(0, len(code), 2)]
