"""Drift of each model as a whole: `model_drift`, and the verdicts that are sent to another system."""

from typing import Any

import dagster as dg
import pyarrow as pa

from assets.stage.checks import asset_check
from assets.stage.drift_told import counted_verdicts, drift_result, send_verdicts, told_result, with_told
from assets.stage.freshness import nightly_freshness
from assets.stage.partitions import markdown, roll_up
from assets.survey.drift import drift_checks
from assets.survey.moved_questions import named
from assets.survey.panel_file import require_known_in_drift
from assets.survey.store import SurveyStore
from dtef_pipeline.drift.headline import headline
from dtef_pipeline.drift.models import ModelDrift
from dtef_pipeline.drift.models import model_drift as drift_of_models
from dtef_pipeline.drift.verdict_text import by_verdict
from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.report.charts import as_markdown_image, drift_lines
from dtef_pipeline.survey.drift_subject import SUBJECT
from dtef_pipeline.survey.report.terms import NAMES

_PREVIEWED_VERDICTS = [
    "verdict",
    "night_verdict",
    "model",
    "context_level",
    "n_snapshots",
    "shift",
    "shift_low",
    "shift_high",
    "first_snapshot",
]
_MOST_PANELS = 12


@dg.asset(deps=[drift_checks], freshness_policy=nightly_freshness(), **roll_up("model_drift", code_version="9"))
def model_drift(context: dg.AssetExecutionContext, store: SurveyStore) -> dg.MaterializeResult[Any]:
    """Whether a model's responses moved between nights, over all its rounds and segments: one row per (model variant, context level, condition).

    `drift` means that the documented rule flags the series and that there is strong evidence of a shift, however often one looks; `watch` that
    the rule alone does. Both are of this model, beside the other models of the same nights; `night_verdict` says whether all of them moved
    together. `changes` tells what else changed then: how many responses could be parsed, the model that served, prompts, the survey.
    The timeline behind it is the table `drift_series`. A verdict that is new is sent to the webhook, if there is one.
    """
    if not store.warehouse.values("scores", "round"):
        raise WarehouseError("no scores yet: materialize the stages of a round first")
    require_known_in_drift(store.settings, lambda: store.models, store.warehouse)
    options = store.panel.drift.options
    found = store.warehouse.query(
        lambda connection: drift_of_models(connection, SUBJECT, options), only=["scores", "predictions", "survey_responses"]
    )
    checks = with_told(store, "model_drift", named(store.warehouse, found.checks), SUBJECT)
    store.warehouse.write("model_drift", checks)
    store.warehouse.write("drift_series", found.series)
    store.warehouse.refresh_database()
    sent = send_verdicts(context, store, "model_drift", checks, SUBJECT, store.panel.drift.tell, found.order)
    ranked = pa.Table.from_pylist(sorted(checks.to_pylist(), key=by_verdict(SUBJECT.keys)), checks.schema)
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(checks),
            "headline": headline(checks, SUBJECT),
            **counted_verdicts(checks),
            "models": markdown(ranked, _PREVIEWED_VERDICTS, most=30),
            "webhook": sent,
            **_plot(ranked, found),
        }
    )


@asset_check(asset=model_drift)
def no_model_drift(store: SurveyStore) -> dg.AssetCheckResult:
    """Fails for a model that drifted, warns of one to watch, unless the panel's `severity` says otherwise."""
    rows = store.warehouse.read("model_drift")
    return drift_result(rows, len(rows), store.panel.drift.severity, SUBJECT)


@asset_check(asset=model_drift)
def verdicts_were_told(store: SurveyStore) -> dg.AssetCheckResult:
    """Warns while the webhook has not accepted a verdict that was due to be sent; it is sent again with the next `model_drift`."""
    return told_result(store, "model_drift", SUBJECT, store.panel.drift.tell)


def _plot(ranked: pa.Table, found: ModelDrift) -> dict[str, Any]:
    """The timelines of the series that one would look at first."""
    first = ranked.slice(0, _MOST_PANELS).to_pandas()
    keys = list(SUBJECT.keys.series)
    series = found.series.to_pandas().merge(first[keys], on=keys)
    return {"timeline": dg.MetadataValue.md(as_markdown_image(drift_lines(series, NAMES, first)))} if len(series) else {}
