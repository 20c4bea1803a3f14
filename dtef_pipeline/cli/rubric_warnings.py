"""What a run of blueprints warns of: models that did not answer, judges whose replies could not be read, summaries that went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd
import pyarrow as pa

from dtef_pipeline.cli.unanswered import unanswered_lines
from dtef_pipeline.rubric.validity import UNREADABLE_FROM, UNREADABLE_REASONS
from dtef_pipeline.text.counted import and_more, counted
from resources.warehouse import Warehouse

_BLUEPRINTS_NAMED = 5
"""The most blueprints that a line names."""


def run_warnings(warehouse: Warehouse, keys: Sequence[str], snapshot: str) -> Iterator[str]:
    """A line per model with responses that failed, that a budget ended or that are blank, and per judge with many unreadable replies."""
    responses = _rows(warehouse, "rubric_responses", ["model", "status", "error"], keys, snapshot)
    without_nan = responses.astype(object).where(responses.notna(), None)
    yield from unanswered_lines(without_nan.itertuples(index=False, name=None))
    for model, status in responses.groupby("model")["status"]:
        if empty := int((status == "empty").sum()):
            yield f"warning: {model}: {counted(empty, 'response')} of {len(status):,} blank, and so unscored"
    asked = pa.concat_tables([warehouse.read_or_empty("rubric_extractions", columns=["reason"], blueprint=key) for key in keys])
    if lacking := len(asked) - asked["reason"].null_count:
        yield f"warning: key points of {counted(lacking, 'ideal answer')} could not be extracted: similarity alone counts there"
    judged = _rows(warehouse, "rubric_judgements", ["judge", "class", "reason"], keys, snapshot)
    for judge, own in judged.groupby("judge"):
        replied = own[own["class"].notna() | own["reason"].isin(UNREADABLE_REASONS)]
        unread = int(replied["class"].isna().sum())
        if unread > UNREADABLE_FROM * len(replied):
            yield f"warning: {judge}: {unread:,} of {counted(len(replied), 'judgement')} could not be read, and count as missing"


def lines_of_taken_away(keys: Sequence[str]) -> Iterator[str]:
    """A line on the blueprints, if any, that lost their summaries and grades because no analyst was named. `keys`: their ids."""
    if keys:
        yield (
            f"warning: the summaries and grades of {counted(len(keys), 'blueprint')} ({and_more(keys, _BLUEPRINTS_NAMED)}) were of other "
            "responses, scores or criteria, or by an analyst that is not known any more, and no analyst is named, so they were taken "
            "away; `analysts: [MODEL]` in the section `rubric` of the panel file asks again, or replays what is stored"
        )


def _rows(warehouse: Warehouse, table: str, columns: list[str], keys: Sequence[str], snapshot: str) -> pd.DataFrame:
    found = [warehouse.read_or_empty(table, columns=columns, blueprint=key, snapshot=snapshot) for key in keys]
    rows: pd.DataFrame = pa.concat_tables(found).to_pandas()
    return rows
