"""What a run's questions can show: their number, and the smallest detectable difference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import duckdb
import numpy as np
import pandas as pd

from dtef_pipeline.asking.models import COMPUTED_SQL
from dtef_pipeline.boards.cells import has_table, policy_sql
from dtef_pipeline.boards.reliability import detectable_difference
from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.statistics.cluster_robust import MIN_CLUSTERS
from dtef_pipeline.survey.answer_scales.batteries import load_question_clusters
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.question_draw import (
    Components,
    compute_difference_deviations,
    compute_expected_degrees,
    compute_expected_error,
    describe_draw,
    estimate_variance_components,
)
from dtef_pipeline.survey.settings import SurveySettings
from dtef_pipeline.text.number_words import format_count
from resources.warehouse import Warehouse

_TABLES_OF_PAIRS = ("survey_responses", "reference_scores", "scores")
_SERIES_OF_SCORES = ["setting", "model_variant"]
_LEAST_READ = 0.5
"""Minimum parse rate at which a model's scores predict differences: unreadable responses all have the same score."""


class _Spread(NamedTuple):
    """Variance components and their source."""

    score: Components
    difference: Components
    source: str


def question_lines(warehouse: Warehouse, settings: SurveySettings) -> Iterator[str]:
    """Yield lines for each round, and for all if there are several. Yields none if surveys cannot be read; another step reports that."""
    tables = [name for name in _TABLES_OF_PAIRS if warehouse.values(name, "round")]
    if not tables:
        return

    def read(connection: duckdb.DuckDBPyConnection) -> tuple[pd.DataFrame, _Spread | None]:
        clusters = load_question_clusters(connection)
        return _add_batteries(_pairs(connection, settings), clusters), _spread(connection, settings, clusters)

    try:
        pairs, spread = warehouse.query(read, only=tables, first=())
    except WarehouseError:
        return
    for round_id, group in pairs.groupby("round", sort=False):
        yield from _lines(str(round_id), group, settings, spread)
    if len(settings.rounds) > 1:
        yield from _lines(
            f"{' and '.join(settings.rounds)} together (a question counts in each of its rounds)", pairs, settings, spread
        )


def _lines(name: str, pairs: pd.DataFrame, settings: SurveySettings, spread: _Spread | None) -> Iterator[str]:
    frame = pairs.assign(draw_order=np.where(pairs["is_sampled"], pairs["draw_order"], np.inf))
    questions = frame.groupby("question", sort=False, as_index=False).agg(
        draw_order=("draw_order", "min"), is_target=("is_target", "any"), cluster=("cluster", "first")
    )
    yield f"{name}: {describe_draw(questions, settings.sample.questions)}"
    targets = frame[frame["is_target"]]
    is_drawn = frame["draw_order"] < (settings.sample.questions or np.inf)
    sample, n_circular = frame[is_drawn & frame["is_target"]], int((is_drawn & ~frame["is_target"]).sum())
    total_text = f" of {len(targets):,}" if len(sample) < len(targets) else ""
    circular = f", and {format_count(n_circular, 'circular pair')}, which boards leave out" if n_circular else ""
    yield f"  {len(sample):,}{total_text} {'pair' if len(targets) == 1 else 'pairs'} of segment and question{circular}"
    if spread and sample["cluster"].nunique() >= MIN_CLUSTERS:
        score, difference = (compute_expected_error(component, sample) for component in (spread.score, spread.difference))
        gap = detectable_difference(difference, compute_expected_degrees(sample))
        yield f"  expected standard error: {score:.3f} of a score, {difference:.3f} of a difference of two models ({spread.source})"
        yield f"  smallest difference that is detected with 80 % power: {gap:.3f}"


def _pairs(connection: duckdb.DuckDBPyConnection, settings: SurveySettings) -> pd.DataFrame:
    """Return one row per pair of the chosen rounds and segments: `round`, `question_id`, `draw_order`, `is_target`, `is_sampled`."""
    counts = SurveyBoardOptions(segments=tuple(settings.segments)).respondents_sql or "true"
    return connection.execute(
        f"""SELECT {", ".join(KEYS.shared_item)}, draw_order, NOT circular AS is_target, segment_order < $3 AS is_sampled
            FROM survey_responses WHERE list_contains($1, round) AND (len($2) = 0 OR list_contains($2, segment)) AND {counts}
            ORDER BY list_position($1, round), draw_order""",
        [settings.rounds, settings.segments, settings.sample.segments or 2**31 - 1],
    ).df()


def _spread(connection: duckdb.DuckDBPyConnection, settings: SurveySettings, clusters: pd.DataFrame) -> _Spread | None:
    """Return the spread of language models' scores under these settings, else of baselines, or None if these have too few batteries."""
    baselines = _add_batteries(_baselines(connection, settings), clusters)
    score, difference = _components(baselines.assign(score=baselines["typical"])), _components(baselines)
    if score is None or difference is None:
        return None
    scores = _add_batteries(_model_scores(connection, settings), clusters)
    components, differences = _components(scores), _components(compute_difference_deviations(scores))
    source = "from stored scores" if components else "from scores of baselines"
    source_note = "" if bool(components) == bool(differences) else ", the difference from those of baselines"
    return _Spread(components or score, differences or difference, source + source_note)


def _baselines(connection: duckdb.DuckDBPyConnection, settings: SurveySettings) -> pd.DataFrame:
    """Return the leave-one-out marginal's score of each pair as `typical`, and its lead over the uniform baseline as `score`."""
    metric = SurveyBoardOptions().metric
    return connection.execute(
        f"""SELECT {", ".join(KEYS.pair)}, '' AS setting, '' AS model_variant,
                   coalesce(r.leave_one_out_score.{metric}, r.population_score.{metric}) AS typical, typical - uniform_score.{metric} AS score
            FROM reference_scores r JOIN survey_responses USING ({", ".join(KEYS.pair)})
            WHERE list_contains($1, round) AND NOT circular AND typical IS NOT NULL""",
        [settings.rounds],
    ).df()


def _model_scores(connection: duckdb.DuckDBPyConnection, settings: SurveySettings) -> pd.DataFrame:
    """Return models' mean scores by pair under the chosen conditions and context levels, for models with enough readable responses."""
    if not has_table(connection, "scores"):
        return pd.DataFrame(columns=[*KEYS.pair, *_SERIES_OF_SCORES, "score"])
    score = policy_sql(SurveyBoardOptions())
    return connection.execute(
        f"""SELECT {", ".join(KEYS.pair)}, condition || ' ' || context_level AS setting, model_variant, avg({score}) AS score FROM scores
            WHERE list_contains($1, round) AND list_contains($2, condition) AND list_contains($3, context_level)
                AND NOT {COMPUTED_SQL} AND NOT {KEYS.left_out}
            GROUP BY {", ".join(KEYS.pair)}, setting, model_variant HAVING avg({score}) IS NOT NULL
            QUALIFY avg(avg((status = 'ok')::DOUBLE)) OVER (PARTITION BY setting, model_variant) >= {_LEAST_READ}""",
        [settings.rounds, settings.conditions, settings.context_levels],
    ).df()


def _components(scores: pd.DataFrame) -> Components | None:
    """Return the mean of the models' variance components, or None if no model has enough batteries and several scores of a question."""
    series = [
        group
        for _, group in scores.groupby(_SERIES_OF_SCORES)
        if group["cluster"].nunique() >= MIN_CLUSTERS and group["question"].duplicated().any()
    ]
    return Components(*np.mean([estimate_variance_components(group) for group in series], axis=0)) if series else None


def _add_batteries(rows: pd.DataFrame, clusters: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with `cluster`, and with `question`, which joins round and id."""
    frame = rows.merge(clusters, on=list(KEYS.shared_item))
    return frame.assign(question=frame["round"] + "/" + frame["question_id"])
