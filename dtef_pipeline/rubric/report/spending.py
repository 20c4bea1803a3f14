"""What a blueprint cost by role: the models under test, the judges, the analysts, the embedders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum

import pandas as pd

from dtef_pipeline.report.markup import Column, dollars, section, table, text, whole
from dtef_pipeline.rubric.report.marks import missing
from dtef_pipeline.rubric.report.stored import RubricRows, StoredRow

_ROLE_TABLES: Mapping[str, str] = {
    "Models under test": "rubric_responses",
    "Judges": "rubric_judgements",
    "Analysts": "rubric_summaries",
    "Embedders": "rubric_embeddings",
}
_COSTS_HOW = (
    "What was paid, by role, of the runs that are shown. What the response store had already is counted with what it cost when it was "
    "bought. Unpriced: rows whose cost is not known, which are in no sum."
)
_SPENT_COLUMNS = {"prompt_tokens": "BIGINT", "completion_tokens": "BIGINT", "cost_usd": "DOUBLE"}
_SUM_DIGITS = 9
_UNPRICED = "count(*) FILTER (cost_usd IS NULL)"
_ROLE_COLUMNS = (
    Column("role", "Role", text),
    Column("n", "Rows", whole, "Responses, judgements, summaries, embedded texts"),
    Column("prompt_tokens", "Prompt tokens", whole),
    Column("completion_tokens", "Completion tokens", whole),
    Column("cost_usd", "US dollars", dollars),
    Column("unpriced", "Unpriced", whole),
)


def costs_section(rows: RubricRows, runs: Mapping[str, str]) -> str:
    """The section. `runs`: the blueprints whose costs are added up, each with its snapshot."""
    found = [
        {"role": role, **spent}
        for role, name in _ROLE_TABLES.items()
        if (spent := _spent(rows, name, runs)) is not None and spent["n"]
    ]
    if not found:
        return section(
            "costs", "Costs", _COSTS_HOW, missing("No costs yet", "`dtef rubric run` asks models and keeps what they cost")
        )
    frame = pd.DataFrame(found)
    total = {name: frame[name].sum(min_count=1) for name in frame.columns if name != "role"}
    frame = pd.concat([frame, pd.DataFrame([{"role": "All", **total}])], ignore_index=True)
    return section("costs", "Costs", _COSTS_HOW, table(frame, _ROLE_COLUMNS, caption="Costs by role", row_head="role"))


def _spent(rows: RubricRows, name: str, runs: Mapping[str, str]) -> StoredRow | None:
    """What the rows of a table cost together, of the blueprints and snapshots given; None where it keeps no costs."""
    there = rows.columns(name)
    if not {"blueprint", "cost_usd"} <= there:
        return None
    keys = [key for key in ("blueprint", "snapshot") if key in there]
    sums = ", ".join(
        (f"sum({column})" if column in there else "NULL") + f"::{kind} AS {column}" for column, kind in _SPENT_COLUMNS.items()
    )
    query = f"(SELECT {', '.join(keys)}, count(*) AS n, {sums}, {_UNPRICED} AS unpriced FROM {name} GROUP BY ALL)"
    only = dict(zip(("blueprint", "snapshot"), next(iter(runs.items())), strict=True)) if len(runs) == 1 else {}
    wanted = (*keys, "n", *_SPENT_COLUMNS, "unpriced")
    found = [
        row
        for row in rows.rows(query, wanted, only)
        if runs.get(row["blueprint"]) == row.get("snapshot", runs.get(row["blueprint"]))
    ]
    found = [row for row in found if row["blueprint"] in runs]
    return {column: _total([row[column] for row in found]) for column in ("n", *_SPENT_COLUMNS, "unpriced")}


def _total(numbers: Sequence[float | None]) -> float | None:
    """Sum of what is known, the same whatever the order of the rows; None: nothing is, of rows that there are."""
    known = [number for number in numbers if number is not None]
    return round(fsum(known), _SUM_DIGITS) if known or not numbers else None
