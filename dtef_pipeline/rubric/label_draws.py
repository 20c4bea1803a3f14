"""Draws of prompts to be labelled, as they are kept: which there were, which count, and which labels are new."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import pandas as pd
import pyarrow as pa

from dtef_pipeline.identity import digest
from dtef_pipeline.rubric.human_labels import RUBRIC_LABELS, with_history
from dtef_pipeline.rubric.label_sheet import LabelSample
from dtef_pipeline.rubric.label_tables import RUBRIC_LABEL_DRAWS, RUBRIC_LABEL_ITEMS

_DRAW_DIGITS = 12
_OF_A_LABEL = ["item", "author"]
_SAID_OF_IT = ["class", "reason"]


def draw_id(sample: LabelSample) -> str:
    """Hash of what was drawn, from what, with which chances: the same draw of the same tables has the same one."""
    of_prompts = sample.drawn.sort_values(["blueprint", "prompt"], kind="stable").to_numpy().tolist()
    return digest("label draw", of_prompts, sorted(sample.items["item"].tolist()))[:_DRAW_DIGITS]


def with_draw(draws: pa.Table, items: pa.Table, sample: LabelSample, drawn_at: datetime) -> tuple[pa.Table, pa.Table]:
    """`rubric_label_draws` and `rubric_label_items` with one draw more; each as it was, where it has this draw already."""
    name = draw_id(sample)
    if name not in set(draws["draw_id"].to_pylist()):
        more = sample.drawn.assign(draw_id=name, drawn_at=drawn_at, imported=False)
        draws = pa.concat_tables([draws, as_table(more, RUBRIC_LABEL_DRAWS)])
    if name not in set(items["draw_id"].to_pylist()):  # also where their file was lost
        items = pa.concat_tables([items, as_table(sample.items.assign(draw_id=name), RUBRIC_LABEL_ITEMS)])
    return draws, items


def imported(draws: pa.Table, names: Collection[str]) -> pa.Table:
    """`rubric_label_draws` in which the draws of these names count from now on."""
    flags = [
        was or name in names for was, name in zip(draws["imported"].to_pylist(), draws["draw_id"].to_pylist(), strict=True)
    ]
    at = draws.schema.get_field_index("imported")
    return draws.set_column(at, draws.schema.field(at), pa.array(flags, pa.bool_()))


def draws_of(items: pa.Table, labelled: Collection[str]) -> set[str]:
    """The draws whose sheets have any of these items: for sheets that do not say themselves which draw they are of."""
    wanted = set(labelled)
    return {name for name, item in zip(items["draw_id"].to_pylist(), items["item"].to_pylist(), strict=True) if item in wanted}


def new_labels(known: pd.DataFrame, more: pd.DataFrame) -> pd.DataFrame:
    """The labels of `more` that say something else than what its author last said of the item: a sheet imported again brings none.

    Both: columns of RUBRIC_LABELS.
    """
    last, now = (_latest(part) for part in (known, more))
    both = now.merge(last[[*_OF_A_LABEL, *_SAID_OF_IT]], "left", _OF_A_LABEL, suffixes=("", "_before"))
    same = [
        (one if pd.notna(one) else None) == (before if pd.notna(before) else None)
        for name in _SAID_OF_IT
        for one, before in zip(both[name], both[f"{name}_before"], strict=True)
    ]
    unchanged = both.loc[[a and b for a, b in zip(same[: len(both)], same[len(both) :], strict=True)], _OF_A_LABEL]
    marked = more.merge(unchanged, "left", _OF_A_LABEL, indicator="known")
    return pd.DataFrame(marked.loc[marked["known"] == "left_only", RUBRIC_LABELS.names]).reset_index(drop=True)


def label_rows(known: pa.Table, more: pd.DataFrame) -> pa.Table:
    """`rubric_labels` with the new ones of `more`; as it was where there are none."""
    new = new_labels(known.to_pandas(), more)
    return as_table(with_history(known.to_pandas(), new), RUBRIC_LABELS) if len(new) else known


def as_table(rows: pd.DataFrame, schema: pa.Schema) -> pa.Table:
    """The columns of the schema; NaN becomes null."""
    return pa.table([pa.array(rows[one.name], one.type, from_pandas=True) for one in schema], schema=schema)


def _latest(labels: pd.DataFrame) -> pd.DataFrame:
    ordered = labels.sort_values(["imported_at", "line"], kind="stable")
    return ordered.drop_duplicates(_OF_A_LABEL, keep="last")
