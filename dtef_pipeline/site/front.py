"""The front page: findings of each family, models by families, changes, drift alarms, and costs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd

from dtef_pipeline.site.content import Column, Link, Page, Prose, Section, Table, convert_to_rows
from dtef_pipeline.site.contents import FamilyEntry, SiteContents
from dtef_pipeline.site.data_page import COST_COLUMNS, describe_costs, sum_costs
from dtef_pipeline.site.drift_page import describe_drifted, describe_families
from dtef_pipeline.site.leaderboard import build_interval_chart
from dtef_pipeline.site.number_text import show
from dtef_pipeline.site.paths import FRONT_PAGE
from dtef_pipeline.text.number_words import format_count

_CHARTED, _LISTED, _LINKED = 8, 15, 8
"""Models in the chart of a family, models in the table until the reader asks for all, and pages that a family's card links to by name."""
_CHANGE_COLUMNS = (
    Column("model", "Model", "model"),
    Column("family", "Family"),
    Column("change", "Change", "signed", "Mean score of the last snapshot minus that of the one before, on the same items"),
    Column("before", "From", "code"),
    Column("snapshot", "To", "code"),
)


def build_front_page(contents: SiteContents) -> Page:
    """Build the first page of the site."""
    families = contents.families
    cards = [
        {
            "link": family.link,
            "verdict": family.content.verdict,
            "details": list(dict.fromkeys(_list_details(family))),
            "chart": build_interval_chart(family.board, family.board.measure, _CHARTED) if family.board else None,
        }
        for family in families
    ]
    sections = [
        _build_models_section(contents),
        _build_changes_section(contents),
        Section("drift", "Drift", [Prose(describe_families(contents))], describe_drifted(contents) if families else ""),
        _build_costs_section(contents),
    ]
    summary = f"{format_count(len(contents.model_paths), 'model')} evaluated in {format_count(len(families), 'family')}."
    answer = summary if families else "Nothing is evaluated yet: `dtef run` asks models and scores what they answer."
    return Page(FRONT_PAGE, "Evaluation results", answer, sections, template="front.html.j2", values={"cards": cards})


def _list_details(family: FamilyEntry) -> Iterator[Link]:
    """Yield links to the family's pages of details; of a long list one link to its table, which can be filtered."""
    for section in family.content.sections:
        for table in (block for block in section.blocks if isinstance(block, Table)):
            links = [link for row in table.rows if isinstance(link := row.get(table.columns[0].name), Link)]
            if len(links) > _LINKED:
                yield Link(f"{len(links):,} {section.title.lower()}", f"{family.link.href}#{section.id}")
            else:
                yield from links


def _build_models_section(contents: SiteContents) -> Section:
    """Build the table of models by families: score with interval and rank, the best ranks first. There is no mean over families."""
    columns = [Column("model", "Model", "model")]
    rows: dict[str, dict[str, Any]] = {name: {"model": name, "_best": math.inf} for name in contents.model_paths}
    for family in contents.families:
        title, measure = family.site.title, family.board.measure if family.board else ""
        columns.append(Column(family.name, title, "score", measure))
        if family.board and family.board.is_contest:
            columns.append(Column(f"{family.name}_rank", f"{title}: rank", "count"))
        for name, row in rows.items():
            if place := family.find_board_row(name):
                row |= {family.name: place.score, f"{family.name}_rank": place.rank}
                row["_best"] = min(row["_best"], place.rank or math.inf)
    boards = "; ".join(family.name_board(family.board) for family in contents.families if family.board)
    caption = f"Score with its 95% interval, and rank among models, on the first leaderboard of each family: {boards}"
    best_first = sorted(rows.values(), key=lambda row: row["_best"])
    return Section("models", "Models by family", [Table(caption, columns, best_first, first=_LISTED)])


def _build_changes_section(contents: SiteContents) -> Section:
    """List how the mean of each model changed between its last two snapshots, the largest change first."""
    frames = [_compute_last_changes(contents.table("drift_series", family), family) for family in contents.families]
    rows = [row for frame in frames for row in convert_to_rows(frame)]
    rows.sort(key=lambda row: -abs(row["change"]))
    answer = ""
    if rows:
        answer = f"The largest change is {show(rows[0]['change'], 'signed')}: {rows[0]['model']} in {rows[0]['family']}."
    table = Table("Change of the mean score", _CHANGE_COLUMNS, rows, first=10)
    return Section("changes", "Since the snapshot before", [table], answer)


def _compute_last_changes(series: pd.DataFrame, family: FamilyEntry) -> pd.DataFrame:
    """Return the last row of each series with two or more compared snapshots, with `family`, `change` and `before`."""
    if not len(series):
        return series
    rows = series[series["compared"].eq(True) & series["difference"].notna()]
    groups = rows.groupby(["model", "setting"], sort=False)
    rows = rows.assign(family=family.site.title, change=groups["difference"].diff(), before=groups["snapshot"].shift())
    return rows.groupby(["model", "setting"], sort=False).tail(1).dropna(subset="change")


def _build_costs_section(contents: SiteContents) -> Section:
    costs = contents.costs()
    if not len(costs):
        return Section("costs", "Cost", [])
    last = costs[costs["snapshot"] == costs.groupby("title")["snapshot"].transform("max")]
    is_first = len(last) == len(costs)
    outlook = "Another such run would cost as much." if is_first else f"To run the last snapshot again: {describe_costs(last)}"
    table = Table("By family", [Column("title", "Family"), *COST_COLUMNS], sum_costs(costs, ["title"]))
    return Section("costs", "Cost", [table], f"{describe_costs(costs)} {outlook}")
