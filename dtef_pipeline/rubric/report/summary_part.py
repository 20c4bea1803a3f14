"""The executive summary of a blueprint: what an analyst, itself a language model, found in a run."""

from __future__ import annotations

import re
from html import escape
from typing import Any

import pandas as pd

from dtef_pipeline.report.isolated import inline, missing
from dtef_pipeline.report.markup import estimate, fold, is_unknown, section
from dtef_pipeline.report.stored_rows import StoredRow, StoredRows
from dtef_pipeline.rubric.report.blueprint_run import BlueprintRun
from dtef_pipeline.rubric.report.marks import Heat, HeatRow, heat_table, mean
from dtef_pipeline.rubric.report.score_grid import model_anchor

_SUMMARY_HOW = (
    "Written by a language model that was shown the responses without the names of models, makers and providers. Names were put in "
    "afterwards. It is one reader's opinion; the scores above do not depend on it."
)
_HEADINGS = {
    "key_finding": "Key findings",
    "strength": "Strengths",
    "weakness": "Weaknesses",
    "pattern": "Patterns",
    "topic": "Topics",
}
_SUMMARY_WANTED = ("analyst", "status", "reason", "findings", "share")
_GRADE_EDGES = tuple(range(1, 10))


def summary_section(rows: StoredRows, run: BlueprintRun) -> str:
    found = (
        []
        if run.snapshot is None
        else rows.rows("rubric_summaries", _SUMMARY_WANTED, {"blueprint": run.id, "snapshot": run.snapshot})
    )
    if not found:
        made = missing("No summary of this run", "`dtef rubric run` with an analyst makes rubric_summaries and rubric_grades")
        return section("summary", "Executive summary", _SUMMARY_HOW, made)
    written = [row for row in found if not is_unknown(row["analyst"])]
    if not written:
        return section(
            "summary", "Executive summary", _SUMMARY_HOW, f"<p>No summary of this run: {inline(found[0]['reason'])}.</p>"
        )
    found = written
    body = "".join(_summary(run, row, several=len(found) > 1) for row in found)
    return section("summary", "Executive summary", _SUMMARY_HOW, body + _grades(rows, run))


def _summary(run: BlueprintRun, row: StoredRow, *, several: bool) -> str:
    by = "" if is_unknown(row["analyst"]) else f'<p class="count">By {inline(row["analyst"])}.</p>'
    why = (
        ""
        if row["status"] in (None, "ok")
        else f'<p class="flagged">{escape(str(row["status"]))}: {escape(str(row["reason"] or ""))}</p>'
    )
    cut = (
        ""
        if is_unknown(row["share"]) or row["share"] >= 1
        else f'<p class="count">The analyst was shown {row["share"]:.0%} of each text.</p>'
    )
    groups: dict[str, list[str]] = {}
    for finding in row["findings"] or ():
        groups.setdefault(str(finding["kind"]), []).append(_linked(run, str(finding["text"] or "")))
    order = [*_HEADINGS, *(kind for kind in groups if kind not in _HEADINGS)]
    parts = "".join(_group(kind, groups[kind]) for kind in order if kind in groups)
    return fold(f"Summary by {inline(row['analyst'])}", why + cut + parts, is_open=True) if several else by + why + cut + parts


def _group(kind: str, items: list[str]) -> str:
    listed = "".join(f'<li dir="auto">{item}</li>' for item in items)
    return f'<h4>{escape(_HEADINGS.get(kind, kind))}</h4><ul class="findings">{listed}</ul>'


def _linked(run: BlueprintRun, words: str) -> str:
    """The text, with a link to its scores for each model that it names."""
    if not run.called:
        return escape(words)
    names = "|".join(re.escape(name) for name in sorted(run.called, key=len, reverse=True))
    parts, end = [], 0
    for match in re.finditer(rf"(?<![\w/.-])(?:{names})(?![\w/-]|\.\w)", words):
        parts += [
            escape(words[end : match.start()]),
            f'<a href="#{model_anchor(run, run.called[match[0]])}">{escape(match[0])}</a>',
        ]
        end = match.end()
    return "".join((*parts, escape(words[end:])))


def _grades(rows: StoredRows, run: BlueprintRun) -> str:
    """Dimensions against models: the mean over analysts, the reasons when pointed at."""
    found = pd.DataFrame(
        rows.rows(
            "rubric_grades", ("model", "dimension", "grade", "reasoning"), {"blueprint": run.id, "snapshot": run.snapshot}
        )
    )
    if not len(found):
        return ""
    found["model"] = [run.called.get(name, name) for name in found["model"]]
    place = {name: at for at, name in enumerate(run.models)}
    models = sorted(found["model"].unique(), key=lambda name: (place.get(name, len(place)), name))
    cells = dict(list(found.groupby(["dimension", "model"], sort=False)))
    lines = [
        HeatRow(inline(dimension), [_grade(cells.get((dimension, model)), model) for model in models])
        for dimension in dict.fromkeys(found["dimension"])
    ]
    return fold(
        "Grades from 1 to 10",
        heat_table("Grades of dimensions, 1 to 10, higher is better", "Dimension", models, lines, _GRADE_EDGES),
    )


def _grade(own: Any, model: str) -> Heat | None:
    if own is None:
        return None
    value = mean(own["grade"])
    reasons = " ".join(str(one) for one in own["reasoning"] if not is_unknown(one))
    return Heat(value, f"{model}: {estimate(value)}. {reasons}")
