"""Values of models as rows of a table: all values of one run, or the first value of each model in the first runs of an evaluation."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dtef_pipeline.api.pages.part_words import metric_words, part_words, persona_words, way_words
from dtef_pipeline.api.queue.evaluation_progress import EvaluationView
from dtef_pipeline.api.results.result_routes import results_kept, run_context
from dtef_pipeline.api.results.run_outcomes import format_remarks
from dtef_pipeline.api.services import Services

if TYPE_CHECKING:
    from dtef_pipeline.site.content import Table

RUNS_WITH_VALUES = 8
"""Largest number of runs whose values are shown on an evaluation's page, because results of many runs take long."""
_MODELS_SHOWN = 5
_log = logging.getLogger(__name__)


def main_values(services: Services, view: EvaluationView) -> Table | None:
    """Return the first value of each model in each of the first runs of a finished evaluation, one row per run and condition."""
    if not view.is_over:
        return None
    from dtef_pipeline.site.content import Column, Estimate, Link, Table

    family = view.evaluation.family
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    models: dict[str, str] = {}
    for run in view.evaluation.runs[:RUNS_WITH_VALUES]:
        for item in _select_first_metrics(services, run.run_id):
            names = {
                "persona": ", ".join(persona_words([run.asks["persona"]])) if "persona" in run.asks else "",
                "way": way_words(family, item),
                "metric": metric_words(family, item["metric"]),
            }
            link = Link(part_words(family, run.key), f"runs/{run.run_id}")
            row = rows.setdefault((run.run_id, *names.values()), {"run": link, **names})
            row[models.setdefault(item["model"], f"model {len(models)}")] = Estimate(item["value"], item["low"], item["high"])
    named = [Column(*entry) for entry in (("run", "Partition"), ("persona", "Persona"), ("way", "Asked"))]
    named.append(Column("metric", "Metric", always=True))
    of_models = [Column(name, model, "score", more=at >= _MODELS_SHOWN) for at, (model, name) in enumerate(models.items())]
    caption = "The first value of each model, with its 95% interval; the page of each run has all values"
    return Table(caption, [*named, *of_models], list(rows.values()), first=24) if rows else None


def _select_first_metrics(services: Services, run_id: str) -> list[Mapping[str, Any]]:
    """Return the first metric with a value for each model and condition. None if the tables cannot be read, so that the rest of the page is
    shown."""
    try:
        metrics = results_kept.get_results(run_context(run_id, services)).metrics
    except Exception:
        _log.exception("the values of the run %s cannot be read", run_id)
        return []
    first: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for item in metrics:
        if item["value"] is not None:
            first.setdefault((item["model"], item.get("context_level"), item.get("condition")), item)
    return list(first.values())


def build_value_rows(family: str, metrics: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Build the metrics of a run as rows of a table."""
    from dtef_pipeline.site.content import Estimate

    return [
        {
            "model": item["model"],
            "metric": metric_words(family, item["metric"]),
            "way": way_words(family, item),
            "value": Estimate(item["value"], item["low"], item["high"]),
            "n": f"{item['n']:,}" if item["n_asked"] in (None, item["n"]) else f"{item['n']:,} of {item['n_asked']:,}",
            "note": format_remarks(item["reason"], item["remark"]) or "",
        }
        for item in metrics
    ]
