"""Roll-ups over all rounds and segments: boards, the tests of what they show, drift, and costs."""

from functools import partial
from typing import Any

import dagster as dg
import pyarrow as pa
from pydantic import Field

from assets.stage.family_costs import build_costs_asset
from assets.stage.family_drift import FamilyDrift, build_drift_assets
from assets.stage.partitions import build_freshness_policy, markdown, roll_up
from assets.stage.resources import Store
from assets.stage.roll_up import clean, publish
from assets.stage.versions import column_schema
from dtef_pipeline.boards.cells import BoardOptions
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.statistics.seed import SEED
from dtef_pipeline.survey.answer_scales.batteries import build_question_batteries
from dtef_pipeline.survey.boards.board_rows import BOARD_SOURCES, TEXT_COLUMNS, build_published_tables
from dtef_pipeline.survey.boards.schemas import BOARD_COLUMNS
from dtef_pipeline.survey.boards.survey_boards import BREAKDOWNS
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.drift_subject import SUBJECT
from dtef_pipeline.survey.tables import METRICS
from dtef_pipeline.tables import describe_schema


class BoardConfig(dg.Config):
    """Settings of boards: the metric, intervals and segments."""

    metric: str = Field(default="js", description=f"Metric to rank by: {', '.join(METRICS)}.")
    intervals: bool = Field(default=True, description="Whether boards have intervals and ranges of ranks.")
    seed: int = Field(
        default=SEED,
        ge=0,
        description="Seed of the simulated respondents behind the sampling error in intervals.",
    )

    non_answers: bool = Field(
        default=False, description="Include segments of people who did not answer, such as party:refused."
    )

    def options(self, targets: str) -> BoardOptions:
        return SurveyBoardOptions(
            metric=self.metric, targets=targets, intervals=self.intervals, seed=self.seed, non_answers=self.non_answers
        )

    def describe_config(self) -> dict[str, Any]:
        """Return metadata."""
        return {"metric": self.metric, "intervals": self.intervals, "seed": self.seed, "non_answers": self.non_answers}


def publish_views(store: Store, config: BoardConfig, *tables: str) -> dict[str, pa.Table]:
    """Write these tables, computed from the survey's scores, and return them. Raises WarehouseError if nothing is scored yet."""
    return publish(store, BOARD_SOURCES, TEXT_COLUMNS, config.options, partial(build_published_tables, tables), "survey")


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
    rows = publish_views(store, config, "leaderboard")["leaderboard"]
    best = clean(rows)
    columns = ["rank", "model", "context_level", "score", "score_low", "score_high", "skill", "n_pairs"]
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(rows),
            "linked_batteries": len(pa.compute.unique(batteries["linked_battery"])),
            **column_schema("leaderboard", describe_schema(rows.schema, BOARD_COLUMNS)),
            **config.describe_config(),
            "board": markdown(best, [name for name in columns if name in best.column_names], n=30),
        }
    )


@dg.asset(deps=["segment_results"], **roll_up(code_version="12"))
def breakdowns(context: dg.AssetExecutionContext, config: BoardConfig, store: Store) -> dg.MaterializeResult[Any]:
    """The leaderboard by round, segment, attribute and question, the consistency over segments, and the ranks under every metric.

    The column `cut` names the breakdown of a row: `round`, `segment`, `attribute` or `question`. The asset also writes the tables
    `consistency` and `metric_ranks`.
    """
    tables = publish_views(store, config, BREAKDOWNS, "consistency", "metric_ranks")
    return dg.MaterializeResult(
        metadata={**{f"{table}_rows": len(rows) for table, rows in tables.items()}, **config.describe_config()}
    )


@dg.asset(deps=["segment_results"], **roll_up("comparisons", code_version="8"))
def comparisons(context: dg.AssetExecutionContext, config: BoardConfig, store: Store) -> dg.MaterializeResult[Any]:
    """Any two models, on the cells that both have a score for: the difference with its interval, and whether it is significant.

    The test uses whole batteries, because the segments and questions of a battery are not independent. `p_adjusted` is Holm's p over the
    rows with the same `adjusted_over`. `verdict` is `better` or `no clear difference`; `parsed_verdict` uses readable responses only.
    """
    rows = publish_views(store, config, "comparisons")["comparisons"]
    columns = ["model", "other_model", "context_level", "difference", "low", "high", "adjusted_over", "p_adjusted", "verdict"]
    return _test_table(rows, config, clean(rows), columns, better=["better"])


@dg.asset(deps=["segment_results"], **roll_up("responsiveness", code_version="7"))
def responsiveness(context: dg.AssetExecutionContext, config: BoardConfig, store: Store) -> dg.MaterializeResult[Any]:
    """Whether a model's score rises with the answers it is shown as context: one row per (model variant, condition).

    Scores are paired within (segment, question). `evidence-adapting` models do better with more context, `stereotype-holding` ones do as
    well without it. The table is empty if every model has only one context level.
    """
    rows = publish_views(store, config, "responsiveness")["responsiveness"]
    columns = ["model", "condition", "levels", "slope", "difference", "low", "high", "p_adjusted", "verdict", "parsed_verdict"]
    return _test_table(rows, config, clean(rows), columns, evidence_adapting=["evidence-adapting"])


@dg.asset(deps=["segment_results"], **roll_up("segment_gaps", code_version="1"))
def segment_gaps(context: dg.AssetExecutionContext, config: BoardConfig, store: Store) -> dg.MaterializeResult[Any]:
    """Which segments of an attribute a model predicts worse or better than the others: one row per model, attribute and segment.

    Small segments score low with any model. `expected` is the score of a segment of this size that is predicted as well as the others of its
    attribute; `deviation` is the score minus the expected one. `verdict` is `worse`, `better` or `no clear difference`, with p adjusted
    (Holm) over the segments of the attribute for that model.
    """
    rows = publish_views(store, config, "segment_gaps")["segment_gaps"]
    columns = ["model", "attribute", "segment", "context_level", "deviation", "low", "high", "p_adjusted", "verdict"]
    clean_rows = clean(rows).sort_by([("p_adjusted", "ascending")])
    return _test_table(rows, config, clean_rows, columns, significant=["worse", "better"])


@dg.asset(deps=["segment_results"], **roll_up("reliability", code_version="5"))
def reliability(context: dg.AssetExecutionContext, config: BoardConfig, store: Store) -> dg.MaterializeResult[Any]:
    """Agreement of repeated draws of the same prompt, and the smallest difference that can be detected: one row per model.

    `icc` is the share of the variance of scores that is between cells and not between draws. The table is empty if every prompt has only one
    draw; `dtef run --draws 3` requests more.
    """
    rows = publish_views(store, config, "reliability")["reliability"]
    columns = ["model", "context_level", "n_cells", "n_draws", "icc", "within_sd", "rerun_detectable", "model_detectable"]
    return _test_table(rows, config, clean(rows), columns)


survey_costs = build_costs_asset(FAMILY_BY_NAME["survey"], ["predictions"], "dtef run", group="boards")


def _test_table(
    rows: pa.Table, config: BoardConfig, selection: pa.Table, columns: list[str], **verdicts: list[str]
) -> dg.MaterializeResult[Any]:
    """Return a test's result: the number of `selection` rows with each group of `verdicts`, by metadata key, and a preview."""
    counts = {
        name: int(pa.compute.sum(pa.compute.is_in(selection["verdict"], pa.array(words))).as_py() or 0)
        for name, words in verdicts.items()
    }
    preview = markdown(selection, columns, n=20)
    return dg.MaterializeResult(
        metadata={"dagster/row_count": len(rows), **config.describe_config(), **counts, "preview": preview}
    )


survey_drift, survey_has_no_drift = build_drift_assets(
    FamilyDrift(
        subject=SUBJECT,
        code_version="11",
        details="`drift_rule` repeats the results of the stage `drift_checks` for each segment.",
        scores=("scores", "round", "dtef run"),
        group="boards",
        dependencies=("drift_checks",),
        freshness=build_freshness_policy(),
    )
)
