"""Roll-ups over all rounds and segments: boards, the tests of what they show, drift, and costs."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dagster as dg
import duckdb
import pandas as pd
import pyarrow as pa
from pydantic import Field

from assets.stage.family_drift import build_drift_assets
from assets.stage.partitions import build_freshness_policy, markdown, roll_up
from assets.stage.resources import Store
from assets.stage.roll_up import build_costs_asset, publish_tables, require_scored
from assets.stage.versions import column_schema
from dtef_pipeline.boards.boards import BoardEvidence, load_evidence
from dtef_pipeline.boards.cells import TARGETS, BoardOptions, copy_into_memory, open_memory_copy
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.statistics.seed import SEED
from dtef_pipeline.survey.answer_scales.batteries import build_question_batteries
from dtef_pipeline.survey.boards.board_rows import BOARD_SOURCES, TEXT_COLUMNS, build_published_tables
from dtef_pipeline.survey.boards.schemas import BOARD_COLUMNS
from dtef_pipeline.survey.boards.survey_boards import BREAKDOWNS
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.drift_subject import SUBJECT
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.tables import METRICS
from dtef_pipeline.tables import describe_schema
from resources.warehouse import TABLES

SURVEY_FAMILY = FAMILY_BY_NAME["survey"]


class BoardConfig(dg.Config):
    """Settings of boards: the metric, intervals and segments."""

    metric: str = Field(default="js", description=f"Metric to rank by: {', '.join(METRICS)}.")
    intervals: bool = Field(default=True, description="Whether boards have intervals and ranges of ranks.")
    seed: int = Field(
        default=SEED, ge=0, description="Seed of the simulated respondents behind the sampling error in intervals."
    )
    non_answers: bool = Field(
        default=False, description="Include segments of people who did not answer, such as party:refused."
    )

    def options(self, targets: str) -> BoardOptions:
        return SurveyBoardOptions(targets=targets, **self.model_dump())


def publish_boards(store: Store, config: BoardConfig, *tables: str) -> dict[str, pa.Table]:
    """Write these tables, with clean targets and with all, and return them. Raises WarehouseError if nothing is scored yet."""
    require_scored(store, SURVEY_FAMILY)
    scores = _load_scores(store)

    def make_frames(targets: str) -> Mapping[str, pd.DataFrame]:
        options = config.options(targets)
        with open_memory_copy(scores) as connection:
            return build_published_tables(tables, connection, options, _load_run_evidence(store, connection, options))

    # About half of the work runs without Python's lock.
    with ThreadPoolExecutor(len(TARGETS)) as threads:
        frames = dict(zip(TARGETS, threads.map(make_frames, TARGETS), strict=True))
    results = {
        table: build_published_table([frames[targets][table].assign(targets=targets) for targets in TARGETS], table)
        for table in frames[TARGETS[0]]
    }
    publish_tables(store, results, family=SURVEY_FAMILY.name)
    return results


def _load_scores(store: Store) -> duckdb.DuckDBPyConnection:
    """Return the scores and their sources in memory. The roll-ups of one run share them."""
    if (tables := store.run_state.tables) is None:
        tables = store.run_state.tables = store.warehouse.connection(
            lambda connection: copy_into_memory(connection, BOARD_SOURCES, TEXT_COLUMNS, KEYS), only=BOARD_SOURCES
        )
    return tables


def _load_run_evidence(store: Store, connection: duckdb.DuckDBPyConnection, options: BoardOptions) -> BoardEvidence | None:
    """Return the data of intervals, computed once for all roll-ups of a run, or None without intervals."""
    evidence = store.run_state.evidence
    if options.intervals and options not in evidence:
        evidence[options] = load_evidence(connection, options)
    return evidence.get(options)


def build_published_table(frames: Sequence[pd.DataFrame], table: str) -> pa.Table:
    """Return the frames' rows as one table, with the columns of the table of this name; one that all families share has their columns, too."""
    schema = TABLES[table].schema
    rows = pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)
    if schema is not None and "family" in schema.names:  # for tables that also have columns of other families
        rows = rows.assign(family=SURVEY_FAMILY.name).reindex(columns=schema.names)
    elif schema is not None:
        rows = rows[schema.names]
    return pa.Table.from_pandas(rows, schema=schema, preserve_index=False).replace_schema_metadata(None)


def select_clean_rows(rows: pa.Table) -> pa.Table:
    return rows.filter(pa.compute.equal(rows["targets"], "clean"))


@dg.asset(deps=["segment_results"], **roll_up(code_version="12"))
def leaderboard(context: dg.AssetExecutionContext, config: BoardConfig, store: Store) -> dg.MaterializeResult[Any]:
    """Models ranked by their mean score over all segments and questions of all rounds, per context level.

    Each mean has its 95 % interval; `skill` places it between the leave-one-out marginal (0) and the ceiling (1); models of one `tier` cannot
    be distinguished from its first. Ranks use the score that each model is expected to have if all had the same questions. `targets` says
    whether questions that define a segment are left out (`clean`) or kept, as in the published figures (`all`). A model that scores below
    `baseline/population-marginal` does worse than a prediction that ignores the segment. The asset also writes the table
    `question_batteries`: which questions intervals count as one, over all rounds, and why.
    """
    batteries = store.warehouse.query(build_question_batteries, only=["survey_responses"])
    store.warehouse.write("question_batteries", batteries)
    rows = publish_boards(store, config, "leaderboard")["leaderboard"]
    best = select_clean_rows(rows)
    columns = ["rank", "model", "context_level", "score", "score_low", "score_high", "skill", "n_pairs"]
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(rows),
            "linked_batteries": len(pa.compute.unique(batteries["linked_battery"])),
            **column_schema("leaderboard", describe_schema(rows.schema, BOARD_COLUMNS)),
            **config.model_dump(),
            "board": markdown(best, [name for name in columns if name in best.column_names], n=30),
        }
    )


@dg.asset(deps=["segment_results"], **roll_up(code_version="12"))
def breakdowns(context: dg.AssetExecutionContext, config: BoardConfig, store: Store) -> dg.MaterializeResult[Any]:
    """The leaderboard by round, segment, attribute and question, the consistency over segments, and the ranks under every metric.

    The column `cut` names the breakdown of a row: `round`, `segment`, `attribute` or `question`. The asset also writes the tables
    `consistency` and `metric_ranks`.
    """
    tables = publish_boards(store, config, BREAKDOWNS, "consistency", "metric_ranks")
    return dg.MaterializeResult(
        metadata={**{f"{table}_rows": len(rows) for table, rows in tables.items()}, **config.model_dump()}
    )


@dg.asset(deps=["segment_results"], **roll_up("comparisons", code_version="8"))
def comparisons(context: dg.AssetExecutionContext, config: BoardConfig, store: Store) -> dg.MaterializeResult[Any]:
    """Any two models, on the cells that both have a score for: the difference with its interval, and whether it is significant.

    The test uses whole batteries, because the segments and questions of a battery are not independent. `p_adjusted` is Holm's p over the
    rows with the same `adjusted_over`. `verdict` is `better` or `no clear difference`; `parsed_verdict` uses readable responses only.
    """
    rows = publish_boards(store, config, "comparisons")["comparisons"]
    columns = ["model", "other_model", "context_level", "difference", "low", "high", "adjusted_over", "p_adjusted", "verdict"]
    return _test_table(rows, config, columns, better=["better"])


@dg.asset(deps=["segment_results"], **roll_up("responsiveness", code_version="7"))
def responsiveness(context: dg.AssetExecutionContext, config: BoardConfig, store: Store) -> dg.MaterializeResult[Any]:
    """Whether a model's score rises with the answers it is shown as context: one row per (model variant, condition).

    Scores are paired within (segment, question). `evidence-adapting` models do better with more context, `stereotype-holding` ones do as
    well without it. The table is empty if every model has only one context level.
    """
    rows = publish_boards(store, config, "responsiveness")["responsiveness"]
    columns = ["model", "condition", "levels", "slope", "difference", "low", "high", "p_adjusted", "verdict", "parsed_verdict"]
    return _test_table(rows, config, columns, evidence_adapting=["evidence-adapting"])


@dg.asset(deps=["segment_results"], **roll_up("segment_gaps", code_version="1"))
def segment_gaps(context: dg.AssetExecutionContext, config: BoardConfig, store: Store) -> dg.MaterializeResult[Any]:
    """Which segments of an attribute a model predicts worse or better than the others: one row per model, attribute and segment.

    Small segments score low with any model. `expected` is the score of a segment of this size that is predicted as well as the others of its
    attribute; `deviation` is the score minus the expected one. `verdict` is `worse`, `better` or `no clear difference`, with p adjusted
    (Holm) over the segments of the attribute for that model.
    """
    rows = publish_boards(store, config, "segment_gaps")["segment_gaps"]
    columns = ["model", "attribute", "segment", "context_level", "deviation", "low", "high", "p_adjusted", "verdict"]
    return _test_table(rows, config, columns, sort_by="p_adjusted", significant=["worse", "better"])


@dg.asset(deps=["segment_results"], **roll_up("reliability", code_version="5"))
def reliability(context: dg.AssetExecutionContext, config: BoardConfig, store: Store) -> dg.MaterializeResult[Any]:
    """Agreement of repeated draws of the same prompt, and the smallest difference that can be detected: one row per model.

    `icc` is the share of the variance of scores that is between cells and not between draws. The table is empty if every prompt has only one
    draw; `dtef run --draws 3` requests more.
    """
    rows = publish_boards(store, config, "reliability")["reliability"]
    columns = ["model", "context_level", "n_cells", "n_draws", "icc", "within_sd", "rerun_detectable", "model_detectable"]
    return _test_table(rows, config, columns)


survey_costs = build_costs_asset(SURVEY_FAMILY, ["predictions"], group="boards")


def _test_table(
    rows: pa.Table, config: BoardConfig, columns: list[str], sort_by: str = "", **verdicts: list[str]
) -> dg.MaterializeResult[Any]:
    """Return a test's result: the number of rows with clean targets and each group of `verdicts`, by metadata key, and a preview."""
    selection = select_clean_rows(rows)
    selection = selection.sort_by(sort_by) if sort_by else selection
    counts = {
        name: int(pa.compute.sum(pa.compute.is_in(selection["verdict"], pa.array(words))).as_py() or 0)
        for name, words in verdicts.items()
    }
    preview = markdown(selection, columns, n=20)
    return dg.MaterializeResult(metadata={"dagster/row_count": len(rows), **config.model_dump(), **counts, "preview": preview})


survey_drift, survey_has_no_drift = build_drift_assets(
    SURVEY_FAMILY,
    SUBJECT,
    code_version="11",
    details="`drift_rule` repeats the results of the stage `drift_checks` for each segment.",
    group="boards",
    dependencies=("drift_checks",),
    freshness=build_freshness_policy(),
)
