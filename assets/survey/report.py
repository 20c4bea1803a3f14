"""The report: one page for researchers, made of everything else."""

from typing import Any

import dagster as dg

from assets.preference.voted_scores import preference_scores
from assets.stage.partitions import roll_up
from assets.stage.resources import Store
from assets.survey.boards import breakdowns, comparisons, leaderboard, reliability, responsiveness, segment_gaps, survey_costs
from assets.survey.survey_drift import survey_drift
from dtef_pipeline.survey.experiments import load_experiments
from dtef_pipeline.survey.report.chapters import survey_report
from resources.settings import shipped

_MADE_OF = [
    leaderboard,
    breakdowns,
    comparisons,
    responsiveness,
    segment_gaps,
    reliability,
    survey_costs,
    dg.AssetKey("drift_checks"),
    survey_drift,
    preference_scores,
]


@dg.asset(deps=_MADE_OF, **roll_up(code_version="6", kinds={"html"}))
def report(context: dg.AssetExecutionContext, store: Store) -> dg.MaterializeResult[Any]:
    """One self-contained page for researchers: leaderboard with intervals, comparisons, gaps, drift, data quality.

    Kept as `report.html` in the warehouse; `dtef report` writes it elsewhere.
    """
    known = load_experiments(shipped("experiments"))
    page = store.warehouse.query(lambda connection: survey_report(connection, known))
    target = f"{store.warehouse.root}/report.html"
    size = store.warehouse.put(target, page.encode())
    return dg.MaterializeResult(metadata={"path": dg.MetadataValue.path(target), "bytes": size})
