"""Every pair of segment and question with all predictions of it, in temporary tables for pages.

Segments and questions have numbers (`s`, `q`), and so has each model under one condition (`series`). Fractions are two characters each:
thousandths in base 36.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pandas as pd

from dtef_pipeline.asking.models import is_computed
from dtef_pipeline.boards.cells import cells_sql, has_table, parameters
from dtef_pipeline.survey.boards.asking_settings import Setting
from dtef_pipeline.survey.boards.noise import effective_n_sql
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.scoring.matrices import EFFECTIVE
from dtef_pipeline.survey.site.contents import SurveyContents
from dtef_pipeline.tables import STATUSES

PAIRS, ANSWERS = "site_pairs", "site_answers"
"""Temporary tables. PAIRS: s, q, n, n_effective, circular, observed (code), apart (distance of the observed answer from the
population marginal, 0-1), ceiling, others. ANSWERS: s, q, series, snapshot, score, code (shares, then the score; or `!`, the place of a
status, and the score that the policy gives it, if any; after several draws `*`, how many could be read, `/`, how many there were)."""
_PAIR = "round, segment, question_id"
ANSWERS_AT_ONCE = 900_000
JOIN_PLACES = """JOIN _segments USING (segment) JOIN _questions USING (round, question_id)
    JOIN _series USING (model_variant, context_level, condition)"""
"""SQL: joins predictions with the places of their segments, questions and series."""


class Series(NamedTuple):
    """A model at one context level and condition."""

    name: str
    variant: str
    setting: Setting

    @property
    def is_reference(self) -> bool:
        return is_computed(self.variant)


def store_pairs(contents: SurveyContents) -> list[Series]:
    """Create PAIRS and ANSWERS on the connection; return the series by their places, settings in the order of the leaderboards."""
    series = _list_all_series(contents)
    register_places(contents, series)
    _store_answers(contents)
    contents.connection.execute(f"CREATE OR REPLACE TEMP TABLE {PAIRS} AS {_build_pairs_sql(contents)}")
    return series


def register_places(contents: SurveyContents, series: Sequence[Series]) -> None:
    """Register the places of segments, questions and series by their names: see JOIN_PLACES."""
    frames = {
        "_segments": pd.DataFrame([(s.id, s.place) for s in contents.segments.values()], columns=["segment", "s"]),
        "_questions": pd.DataFrame(
            [(q.round, q.id, q.place) for q in contents.questions.values()], columns=["round", "question_id", "q"]
        ),
        "_series": pd.DataFrame(
            [(place, item.variant, *item.setting, item.is_reference) for place, item in enumerate(series)],
            columns=["series", "model_variant", "context_level", "condition", "is_reference"],
        ),
    }
    for name, frame in frames.items():
        contents.connection.register(name, frame)


def _store_answers(contents: SurveyContents) -> None:
    """Store the answers, a few rounds at a time, because the lists of all rounds take too much memory."""
    columns = "s SMALLINT, q INTEGER, series SMALLINT, snapshot VARCHAR, score DOUBLE, code VARCHAR"
    contents.connection.execute(f"CREATE OR REPLACE TEMP TABLE {ANSWERS} ({columns})")
    for rounds in _group_rounds(contents):
        options = SurveyBoardOptions(metric=contents.metric, targets="all", rounds=rounds)
        contents.connection.execute(f"INSERT INTO {ANSWERS} {_build_answers_sql(contents, options)}", parameters(options))


def _group_rounds(contents: SurveyContents) -> Iterator[tuple[str, ...]]:
    """Yield the rounds in groups of at most ANSWERS_AT_ONCE predictions, or of one round."""
    sizes = contents.connection.execute("SELECT round, count(*) FROM scores GROUP BY round ORDER BY round").fetchall()
    group, total = list[str](), 0
    for round, size in sizes:
        if group and total + size > ANSWERS_AT_ONCE:
            yield tuple(group)
            group, total = [], 0
        group, total = [*group, round], total + size
    if group:
        yield tuple(group)


def _list_all_series(contents: SurveyContents) -> list[Series]:
    rows = contents.connection.execute(
        "SELECT DISTINCT model_variant, context_level, condition FROM scores ORDER BY ALL"
    ).fetchall()
    items = [
        Series(contents.names.get(variant, variant), variant, Setting(level, condition)) for variant, level, condition in rows
    ]
    place = {setting: index for index, setting in enumerate(contents.settings)}
    return sorted(items, key=lambda series: (place.get(series.setting, len(place)), series.is_reference, series.name))


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
            JOIN _segments USING (segment) JOIN _questions USING (round, question_id)
            LEFT JOIN ({reference if has_table(connection, "reference_scores") else no_rows}) USING ({_PAIR})
        SEMI JOIN {ANSWERS} USING (s, q) ORDER BY s, q
        """


def shares(code: str) -> list[float]:
    """Return the fractions of a code."""
    return [int(code[start : start + 2], 36) / 1000 for start in range(0, len(code), 2)]
