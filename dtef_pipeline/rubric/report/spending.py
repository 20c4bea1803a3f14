"""What a blueprint cost by role: the models under test, the judges, the analysts, the embedders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum

import pandas as pd

from dtef_pipeline.report.isolated import missing, wrapping_name
from dtef_pipeline.report.markup import UNKNOWN_COST_COLUMNS, Column, dollars, fold, named, section, table, text, whole
from dtef_pipeline.report.stored_rows import StoredRow, StoredRows

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


_ALL_COSTS_HOW = (
    "What was paid for everything in these tables, by role. Each call counts once, with what it cost when it was bought. Unpriced: replies "
    "whose cost is not known, which are in no sum."
)
_ROLE_ORDER = ("candidate", "judge", "analyst", "embedder")
_ROLE_SUMS = (
    "answered",
    "calls",
    "prompt_tokens",
    "completion_tokens",
    "cost_usd",
    "unpriced",
    *(column.name for column in UNKNOWN_COST_COLUMNS),
)
_OF_ROLE, _OF_MODEL = Column("role", "Role", text), Column("named", "Model", named)
_CALL_COLUMNS = (
    Column("answered", "Answered", whole, "Conversations, judgements and summaries with a reply"),
    Column("calls", "Calls", whole),
    *_ROLE_COLUMNS[2:],
    *UNKNOWN_COST_COLUMNS,
)


def costs_section(rows: StoredRows, runs: Mapping[str, str]) -> str:
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


def all_costs_section(rows: StoredRows, runs: Mapping[str, str]) -> str:
    """The section of all that the tables rest on, by role and model, each call once; before there is such a table, of the runs shown."""
    found = rows.frame("costs", {"family": "rubric"})
    if not len(found):
        return costs_section(rows, runs)
    place = {role: at for at, role in enumerate(_ROLE_ORDER)}
    by_role = found.groupby("role", sort=False)[list(_ROLE_SUMS)].sum(min_count=1).reset_index()
    by_role = by_role.sort_values("role", key=lambda role: role.map(place).fillna(len(place)))
    total = {name: by_role[name].sum(min_count=1) for name in by_role.columns if name != "role"}
    by_role = pd.concat([by_role, pd.DataFrame([{"role": "all", **total}])], ignore_index=True)
    by_model = found.groupby(["role", "model", "model_variant"], sort=False, dropna=False)[list(_ROLE_SUMS)].sum(min_count=1)
    by_model = by_model.reset_index().sort_values(["cost_usd", "role"], ascending=[False, True], na_position="last")
    by_model = by_model.assign(named=by_model["model"].map(wrapping_name))
    body = table(by_role, (_OF_ROLE, *_CALL_COLUMNS), caption="Costs by role", row_head="role")
    apart = table(
        by_model, (_OF_ROLE, _OF_MODEL, *_CALL_COLUMNS), caption="Costs by role and model", data=by_model.drop(columns="named")
    )
    return section("costs", "Costs", _ALL_COSTS_HOW, body + fold("By model", apart))


def _spent(rows: StoredRows, name: str, runs: Mapping[str, str]) -> StoredRow | None:
    """What the rows of a table cost together, of the blueprints and snapshots given; None where it keeps no costs."""
    there = rows.columns(name)
    if not {"blueprint", "cost_usd"} <= there:
        return None
    keys = [key for key in ("blueprint", "snapshot") if key in there]
    sums = ", ".join(
        (f"sum({column})" if column in there else "NULL") + f"::{kind} AS {column}" for column, kind in _SPENT_COLUMNS.items()
    )
    asked = " WHERE analyst IS NOT NULL" if "analyst" in there else ""
    query = f"(SELECT {', '.join(keys)}, count(*) AS n, {sums}, {_UNPRICED} AS unpriced FROM {name}{asked} GROUP BY ALL)"
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
