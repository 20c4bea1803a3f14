"""Everything that is published of the scores, by view: boards with intervals and tiers, and the tables of statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import duckdb
import pandas as pd

from dtef_pipeline.aggregation import boards
from dtef_pipeline.aggregation.boards import Evidence, board, load_evidence
from dtef_pipeline.aggregation.cells import BoardOptions, has_table, load_cells, scores_of_this_version
from dtef_pipeline.aggregation.comparisons import comparisons, tiers
from dtef_pipeline.aggregation.consistency import consistency_components
from dtef_pipeline.aggregation.gaps import gaps
from dtef_pipeline.aggregation.reliability import reliability
from dtef_pipeline.aggregation.responsiveness import context_shown, responsiveness
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.prediction.baselines import POPULATION_MARGINAL
from dtef_pipeline.tables import CORRECTED, METRICS

Connection = duckdb.DuckDBPyConnection
READ = ("scores", "survey_responses", "reference_scores", "blueprints")
"""Tables that views are made of; `scores` must be there, the others say more."""
_HELD = "held"
_CODED = (
    "round",
    "segment",
    "question_id",
    "context_level",
    "condition",
    "model",
    "model_variant",
    "snapshot",
    "attribute",
    "value",
)
"""Text columns of `scores` that repeat: as codes they are grouped and sorted several times faster."""
_COLUMNS = {
    "scores": (*_CODED, "draw", "status", "circular", "predicted", *METRICS, *CORRECTED),
    "survey_responses": ("round", "segment", "question_id", "scale", "dont_know", "observed", "others", "n"),
    "reference_scores": ("*",),
    "blueprints": ("round", "segment", "question_id", "context_level", "condition", "context_included"),
}
_SEEN = "contains the segments' own answers: it can come near the ceiling or pass it"
_PARTLY = 0.5
"""Coverage below which a rank comes with a caution."""
_MODEL = ["model", "model_variant", "context_level", "condition"]


@scores_of_this_version()
def hold(connection: Connection) -> None:
    """Copies into memory what views read of the tables READ, for `held`: files are read once for all views.

    `connection` has them as views, `scores` at least. Of a million scores the copy takes about 200 MB.
    """
    connection.execute(f"CREATE SCHEMA {_HELD}")
    for table, columns in _COLUMNS.items():
        if not has_table(connection, table):
            continue
        coded = _CODED if table == "scores" else ()
        for name in coded:
            # In the order of the text, which is that of the codes.
            connection.execute(f"CREATE TYPE {_HELD}.{name}_code AS ENUM (SELECT DISTINCT {name} FROM {table} ORDER BY ALL)")
        chosen = ", ".join(f"{name}::{_HELD}.{name}_code AS {name}" if name in coded else name for name in columns)
        connection.execute(f"CREATE TABLE {_HELD}.{table} AS SELECT {chosen} FROM {table}")


@contextmanager
def held(connection: Connection) -> Iterator[Connection]:
    """A connection to what `hold` copied, to be used as one to the tables themselves."""
    with connection.cursor() as own:
        own.execute(f"SET search_path = '{_HELD}'")
        yield own


def view(connection: Connection, by: str, options: BoardOptions, evidence: Evidence | None = None) -> pd.DataFrame:
    """The rows of a view under the options; `evidence` is what `load_evidence` made of the same options, if it was needed before.

    Boards are those of `boards.board`, `overall` with each model's `tier`, `consistency` ranked by its variance component; of the others
    see `published`. With `options.resamples` 0 nothing is resampled: boards have no intervals, tiers and components. Raises ConfigError for an
    unknown view.
    """
    if by not in ALL_VIEWS:
        raise ConfigError(f"view {by!r}: allowed: {', '.join(ALL_VIEWS)}")
    if by in STATISTICS:
        return STATISTICS[by](connection, options, evidence)
    if not options.resamples or by == "metric":
        return board(connection, by, options, evidence)
    evidence = evidence or load_evidence(connection, options)
    frame = board(connection, by, options, evidence)
    if by == "overall":
        frame.insert(1, "tier", tiers(frame, comparisons(evidence.cells, replace(options, resamples=0))))
    if by == "consistency":
        frame = _by_component(frame, consistency_components(evidence.cells, options))
    if "note" in frame:
        frame["note"] = [
            _with_caution(*row) for row in zip(frame["note"], frame["model"], frame["coverage"], frame["rank"], strict=True)
        ]
    return frame.assign(resamples=options.resamples, seed=options.seed)


def _with_caution(note: str, model: str, coverage: float, rank: Any) -> str:
    """A board's note, with what a reader of the row should know besides."""
    cautions = [_SEEN] if model == POPULATION_MARGINAL else []
    if coverage < _PARTLY and pd.notna(rank):
        cautions.append(
            f"has a score for {coverage:.0%} of the pairs: its rank supposes the same lead over the marginal on the others"
        )
    return "; ".join(filter(None, [note, *cautions]))


def _by_component(frame: pd.DataFrame, components: pd.DataFrame) -> pd.DataFrame:
    """The consistency board ranked by what is left of the spread between segments when sample sizes are accounted for."""
    frame = frame.merge(components.astype(dict.fromkeys(_MODEL, str)), on=_MODEL, how="left")
    asked = frame.groupby(["context_level", "condition"], sort=False)
    frame["rank"] = asked["segment_sd_true"].rank(method="min").astype("Int64")
    order = frame.assign(group=asked.ngroup()).sort_values(["group", "rank", "model", "model_variant"], na_position="last")
    return frame.loc[order.index].reset_index(drop=True)


def _comparisons(connection: Connection, options: BoardOptions, evidence: Evidence | None) -> pd.DataFrame:
    cells, noise = evidence or load_evidence(connection, options)
    return comparisons(cells, options, noise.score if noise else None)


def _responsiveness(connection: Connection, options: BoardOptions, evidence: Evidence | None) -> pd.DataFrame:
    cells, noise = evidence or load_evidence(connection, options)
    return responsiveness(cells, context_shown(connection), options, noise.score if noise else None)


def gap_tables(connection: Connection, options: BoardOptions, evidence: Evidence | None) -> dict[str, pd.DataFrame]:
    """`gaps` and `question_gaps`, which are made together."""
    cells = evidence.cells if evidence else load_cells(connection, options)
    whole, of_questions = gaps(connection, cells, options)
    return {"gaps": whole, "question_gaps": of_questions}


def _reliability(connection: Connection, options: BoardOptions, evidence: Evidence | None) -> pd.DataFrame:
    return reliability(connection, options)


STATISTICS: Mapping[str, Callable[[Connection, BoardOptions, Evidence | None], pd.DataFrame]] = {
    "comparisons": _comparisons,
    "context": _responsiveness,
    "gaps": lambda *given: gap_tables(*given)["gaps"],
    "question-gaps": lambda *given: gap_tables(*given)["question_gaps"],
    "reliability": _reliability,
}
"""Views that are no boards."""
ALL_VIEWS = (*boards.ALL_VIEWS, *STATISTICS)
