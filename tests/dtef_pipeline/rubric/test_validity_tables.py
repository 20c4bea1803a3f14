"""What the functions return are the columns of the tables, in their order."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dtef_pipeline.rubric import roll_up_tables as tables
from dtef_pipeline.rubric.labels.human_labels import RUBRIC_LABELS
from dtef_pipeline.rubric.labels.label_corrections import measure_known_classes
from dtef_pipeline.rubric.labels.label_sheet import build_label_items, sample_labels
from dtef_pipeline.rubric.self_preference import estimate_self_preference
from dtef_pipeline.rubric.validity import build_agreement_table, judge_table, list_disagreed_criteria
from tests.made.rubric_tables import rubric_tables

MADE = rubric_tables(judges=("s(x)", "p(y)"))
SPENT = pd.DataFrame({"judge": ["s(x)"], "calls": [9], "cost_usd": [0.5]})
ITEMS = build_label_items(MADE.responses, MADE.criteria, MADE.prompts)
SAMPLE = sample_labels(MADE.responses, MADE.criteria, MADE.prompts, n_prompts=8, seed=1)
_SAID = [(item, "CLASS_UNMET", 0.0, "A", None, datetime(2026, 1, 1), 2, "s") for item in SAMPLE.items["item"]]
LABELS = pd.DataFrame(_SAID, columns=RUBRIC_LABELS.names)


def made() -> dict[str, tuple[pd.DataFrame, pa.Schema]]:
    return {
        "agreement": (build_agreement_table(MADE.judgements, MADE.criteria), tables.RUBRIC_AGREEMENT),
        "disagreed": (
            list_disagreed_criteria(
                MADE.judgements.assign(score=np.arange(len(MADE.judgements)) * 2 // len(MADE.judgements)), MADE.criteria
            ),
            tables.RUBRIC_DISAGREED,
        ),
        "judges": (judge_table(MADE.judgements, SPENT), tables.RUBRIC_JUDGES),
        "self-preference": (estimate_self_preference(MADE.judgements, {"x": "X", "a": "X"}.get), tables.RUBRIC_SELF_PREFERENCE),
        "classes": (measure_known_classes(MADE.judgements, ITEMS, LABELS), tables.RUBRIC_KNOWN_CLASSES),
    }


@pytest.mark.parametrize(("rows", "schema"), made().values(), ids=list(made()))
def test_columns_are_those_of_the_table_in_their_order(rows: pd.DataFrame, schema: pa.Schema) -> None:
    assert len(rows)
    assert list(rows.columns) == schema.names
    table = pa.Table.from_pandas(rows.replace({np.nan: None}), schema, preserve_index=False)
    assert table.schema.equals(schema)
