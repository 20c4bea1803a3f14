"""A family with three models, one of which has a hostile name, and the site of it."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from collections.abc import Mapping
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.drift.verdict_tables import DRIFT, DRIFT_SERIES
from dtef_pipeline.keys import Keys
from dtef_pipeline.site.build import build_site_files
from dtef_pipeline.site.content import Column, Estimate, Page, Section, Table
from dtef_pipeline.site.family_content import BoardRow, FamilyContent, FamilySite, RankedBoard, Reference
from dtef_pipeline.tables import COMPARISONS, COSTS

HOSTILE = "<script>alert(1)</script>\u202egnp.exe"
SCORES = {"ada": (0.9, 0.85, 0.95), "bob": (0.6, 0.5, 0.7), HOSTILE: (0.3, 0.2, 0.4)}
NIGHTS = ("2026-01-01", "2026-01-02", "2026-01-03")
KEYS = Keys(space=("list", "part"), item="item_id", noun="item", asked=("metric",), cluster="cluster")
SUBJECT = Subject("made", KEYS, lambda row: "asked", "truth", "truths", ("made_scores",))


def rows_of(schema: pa.Schema, *rows: Mapping[str, Any]) -> pa.Table:
    """Rows with null where they say nothing."""
    return pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema=schema)


def view(_: duckdb.DuckDBPyConnection) -> FamilyContent:
    rows = [
        BoardRow(name, Estimate(*score), rank, rank, rank, note="few items" if name == "bob" else "", more={"n": 10})
        for rank, (name, score) in enumerate(SCORES.items(), 1)
    ]
    rows.append(BoardRow("everybody", Estimate(0.7), is_reference=True))
    board = RankedBoard(
        "", "", "Mean score, 0-1", rows, [Reference("a perfect model", 0.98)], [Column("n", "Items", "count", always=True)]
    )
    items = pd.DataFrame(
        [
            {"model": name, "item": item, "label": f"{item} {HOSTILE}", "page": "made/items.html", "score": score[0] - at / 10}
            for name, score in SCORES.items()
            for at, item in enumerate(("x", "y"))
        ]
    )
    table = Table(
        "Items", (Column("item", "Item", "long"), Column("score", "Score", "score")), [{"item": HOSTILE, "score": 0.5}]
    )
    page = Page("made/items.html", HOSTILE, "One item.", [Section("items", "Items", [table])])
    return FamilyContent("ada is best.", [board], item_scores=items, pages=lambda: [page], method=["A mean."])


def made_site() -> FamilySite:
    return FamilySite("made", "Made up", ("made_scores",), "made_scores", view, SUBJECT, responses="made_responses")


def connected() -> duckdb.DuckDBPyConnection:
    """The tables over all families: bob drifted in the third night, and ada is better than both others."""
    connection = duckdb.connect()
    better = {"family": "made", "metric": "correct", "verdict": "better", "n_items": 2, "n_pairs": 2, "p_adjusted": 0.001}
    compared = [
        {**better, "model": "ada", "model_variant": "ada", "other_model": other, "other_variant": other}
        | {"difference": difference, "low": difference - 0.1, "high": difference + 0.1}
        for other, difference in (("bob", 0.3), (HOSTILE, 0.6))
    ]
    series = [
        {"family": "made", "model": "bob", "model_variant": "bob", "setting": "asked", "snapshot": night, "compared": True}
        | {"in_baseline": at < 2, "score": 0.6 - 0.2 * (at == 2), "difference": -0.2 * (at == 2), "n_shared": 2}
        for at, night in enumerate(NIGHTS)
    ]
    drifted = {"family": "made", "model": "bob", "model_variant": "bob", "setting": "asked", "verdict": "drift", "shift": -0.2}
    drifted |= {
        "shift_low": -0.3,
        "shift_high": -0.1,
        "n_snapshots": 3,
        "first_snapshot": NIGHTS[2],
        "reason": "it fell",
        "log10_e": 3.0,
        "gap": 0.2,
    }
    spent = {
        "family": "made",
        "role": "candidate",
        "snapshot": NIGHTS[2],
        "model": "bob",
        "model_variant": "bob",
        "answered": 6,
        "failed": 1,
    }
    spent |= {"calls": 7, "prompt_tokens": 70, "completion_tokens": 14, "cost_usd": 0.25, "unpriced": 0}
    tables = {
        "made_scores": pa.table({"score": [0.5]}),
        "comparisons": rows_of(COMPARISONS, *compared),
        "drift": rows_of(DRIFT, drifted),
        "drift_series": rows_of(DRIFT_SERIES, *series),
        "costs": rows_of(COSTS, spent),
        "made_responses": pa.table({"model": ["bob"] * 4, "model_variant": ["bob"] * 4, "latency_s": [1.0, 2.0, 4.0, None]}),
    }
    for name, table in tables.items():
        connection.register(f"_{name}", table)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM _{name}")
    return connection


def files_of(connection: duckdb.DuckDBPyConnection, *families: FamilySite) -> dict[str, str]:
    """Every file of the site by its path."""
    return dict(build_site_files(connection, families or [made_site()], {}, "Made today."))


def unpacked(script: str) -> Any:
    """The value of a data file."""
    return json.loads(gzip.decompress(b64decode(script.split('"')[3])))
