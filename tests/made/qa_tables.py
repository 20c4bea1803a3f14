"""Tables of the qa family as a run would leave them, row by row; the suites that are made of them are in `qa_suites`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from dtef_pipeline.families import TABLES
from dtef_pipeline.qa.tables import QA_TABLES
from tests.made.qa_scores import FIRST_DAY, score_row

HOSTILE_WORDS = (
    '</script><script>window.hacked = 1</script><img src=x onerror="window.hacked = 2">\'"--><!--\u2028\u202eevil\u2066 & &amp;'
)


class QaMade:
    """Rows as they come, and the tables of them."""

    def __init__(self) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name, spec in QA_TABLES.items() if spec.levels}
        self.extra: dict[str, list[dict[str, Any]]] = {}

    def only(self, suite: str) -> QaMade:
        """Without the other suites, which take most of the time of a test of one."""
        for name, own in self.rows.items():
            self.rows[name] = [row for row in own if row["suite"] == suite]
        return self

    def add(self, table: str, **row: Any) -> None:
        self.rows[table].append(row)

    def item(self, suite: str, part: str, item_id: str, **row: Any) -> None:
        usual = {
            "type": "choice",
            "scorers": ["exact_choice"],
            "solution": "",
            "source_line": 1,
            "cluster": part,
            "truth_id": "t",
        }
        lists: dict[str, Any] = {"options": [], "quotes": [], "flags": [], "position": len(self.rows["qa_items"])}
        self.add("qa_items", suite=suite, part=part, item_id=item_id, **{**usual, **lists, **row})

    def asked(self, suite: str, part: str, item_id: str, condition: str, **row: Any) -> None:
        named = {"suite": suite, "part": part, "item_id": item_id, "condition": condition}
        self.add("qa_prompts", **named, prompt_id="p", messages=[], n_examples=0, truth_id="t", **row)

    def said(self, named: Mapping[str, Any], text: str | None, scores: Iterable[Mapping[str, Any]], **row: Any) -> None:
        """A response with its scores. `named`: suite, part, item_id, condition, model."""
        run = {"snapshot": "base", "draw": 0, "temperature": 0.0, **named}
        run["model_variant"] = f"{named['model']}[temperature=0]"
        usual = {
            "call_status": "answered",
            "finish_reason": "stop",
            "attempts": 1,
            "answered_at": FIRST_DAY,
            "request_key": "k",
        }
        self.add("qa_responses", **run, prompt_id="p", response=text, **{**usual, **row})
        for score in scores:
            given = dict(score)
            value = given.pop("score", None)
            self.rows["qa_scores"].append({**score_row(value, **run, **given), "flags": given.get("flags", [])})

    def tables(self) -> dict[str, pa.Table]:
        made = {name: pa.Table.from_pylist(rows, schema=QA_TABLES[name].schema) for name, rows in self.rows.items()}
        extra = {name: pa.Table.from_pylist(rows, schema=TABLES[name].schema) for name, rows in self.extra.items()}
        return {**made, **extra}


def changed(made: QaMade, text: Callable[[str], str], columns: Iterable[str]) -> QaMade:
    """The same with every text of these columns put through a function."""
    for rows in (*made.rows.values(), *made.extra.values()):
        for row in rows:
            row |= {name: text(row[name]) for name in columns if isinstance(row.get(name), str)}
    return made
