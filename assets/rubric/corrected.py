"""Roll-up of people's labels: `rubric_corrected`."""

from typing import Any

import dagster as dg

from assets.rubric.blueprints import RUBRIC_GROUP
from assets.rubric.roll_ups import require_scored
from assets.rubric.scores import rubric_scores
from assets.stage.partitions import markdown, roll_up
from assets.stage.published import published
from assets.stage.resources import Store
from dtef_pipeline.rubric.corrected_rows import CORRECTED_READS, corrected_tables


@dg.asset(deps=[rubric_scores], **{**roll_up("rubric_corrected", code_version="1"), **RUBRIC_GROUP})
def rubric_corrected(context: dg.AssetExecutionContext, store: Store) -> dg.MaterializeResult[Any]:
    """Scores corrected by people's labels of a few drawn prompts: one row per model over all blueprints, then one per blueprint and model.

    `corrected` estimates the board's own number, had people decided every point that judges decide; its interval takes prompts for a sample of
    what might be asked, `here_low` to `here_high` is of these very prompts. Beside it stands `rubric_known_classes`, how often each judge says
    what people say. Both are empty until labels are imported (`dtef rubric labels`). No model is asked.
    """
    require_scored(store)
    labels, draws = (store.warehouse.read_or_empty(name).to_pandas() for name in ("rubric_labels", "rubric_label_draws"))
    tables = store.warehouse.query(lambda connection: corrected_tables(connection, labels, draws), only=CORRECTED_READS)
    shown = ["blueprint", "model", "judged", "corrected", "corrected_low", "corrected_high", "n_prompts_labelled", "reason"]
    of_judges = ["judge", "said", "n", "same", "near", "bias", "note"]
    return published(
        store,
        tables,
        labels=len(labels),
        corrected=markdown(tables["rubric_corrected"], shown, most=30),
        known_classes=markdown(tables["rubric_known_classes"], of_judges, most=30),
    )
