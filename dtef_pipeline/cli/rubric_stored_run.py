"""A blueprint, a snapshot, a prompt and models that a user names, found in the tables, or the nearest names in an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import pyarrow.compute as pc

from dtef_pipeline.asking.snapshot_order import in_order
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.report.stored_rows import StoredRows
from dtef_pipeline.rubric.report.blueprint_run import BlueprintRun, read_run
from dtef_pipeline.rubric.report.stored import ByPrompt
from dtef_pipeline.text.nearest import nearest
from dtef_pipeline.text.printable import printable
from resources.warehouse import Warehouse

_TABLES_OF_A_RUN = (
    *("rubric_blueprints", "rubric_prompts", "rubric_criteria", "rubric_findings", "rubric_runs", "rubric_responses"),
    *("rubric_judgements", "rubric_points", "rubric_similarities", "rubric_scores", "rubric_summaries", "rubric_grades"),
)
_ORDER_OF_JUDGEMENTS = ("prompt", "model", "model_variant", "temperature", "system_index", "draw", "block", "path", "position")


def require_blueprint(warehouse: Warehouse, blueprint: str) -> None:
    """Raises where the blueprint has no scores, with the nearest that have."""
    scored = warehouse.values("rubric_scores", "blueprint")
    if not scored:
        raise WarehouseError(f"no rubric_scores in {warehouse.root} yet: `dtef rubric run` makes them")
    if blueprint not in scored:
        known = warehouse.values("rubric_blueprints", "blueprint")
        remedy = f"it has no scores yet: `dtef rubric run --blueprint {blueprint}` makes them" if blueprint in known else ""
        raise ConfigError(f"blueprint {blueprint!r}: {remedy or f'there is none; known: {nearest(blueprint, scored)}'}")


def scored_snapshots(warehouse: Warehouse, blueprint: str) -> list[str]:
    """The snapshots in which a blueprint is scored, the earliest first."""
    times: dict[str, Any] = {}
    for snapshot in warehouse.values("rubric_scores", "snapshot", blueprint=blueprint):
        rows = warehouse.rows("rubric_responses", columns=["answered_at"], blueprint=blueprint, snapshot=snapshot)
        times[snapshot] = pc.min(rows["answered_at"]).as_py() if len(rows) else None
    return in_order(times)


def known_snapshot(blueprint: str, snapshot: str | None, known: Sequence[str]) -> str:
    """The snapshot that was named, else the latest. Raises ConfigError for one that has no scores of the blueprint."""
    if snapshot is None:
        return known[-1]
    if snapshot not in known:
        raise ConfigError(f"snapshot {snapshot!r}: no scores of {blueprint}; known: {nearest(snapshot, known)}")
    return snapshot


def stored_run(warehouse: Warehouse, blueprint: str, snapshot: str | None) -> BlueprintRun:
    """Everything that is kept of a blueprint in a snapshot, by default its latest. Raises ConfigError for a name that is not known."""
    require_blueprint(warehouse, blueprint)
    chosen = known_snapshot(blueprint, snapshot, scored_snapshots(warehouse, blueprint))
    run: BlueprintRun = warehouse.query(
        lambda connection: read_run(StoredRows(connection), blueprint, chosen), only=_TABLES_OF_A_RUN, first=[blueprint]
    )
    return run


def whole_judgements(warehouse: Warehouse, blueprint: str, snapshot: str) -> ByPrompt:
    """Every judgement of a run, with the replies as they came."""
    rows = warehouse.rows("rubric_judgements", blueprint=blueprint, snapshot=snapshot)
    order = [(name, "ascending") for name in (*_ORDER_OF_JUDGEMENTS, "judge", "judge_draw")]
    return ByPrompt(rows.take(pc.sort_indices(rows, order)))


def require_models(models: Sequence[str], known: Sequence[str]) -> None:
    """Raises ConfigError for a model that has no response."""
    for model in models:
        if model not in known:
            raise ConfigError(f"--model {model!r}: no response of it; known: {nearest(model, known)}")


def printable_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with texts that a terminal can be shown."""
    shown = frame.map(lambda value: printable(value) if isinstance(value, str) else value)
    return shown.set_axis([printable(str(name)) for name in frame], axis=1)
