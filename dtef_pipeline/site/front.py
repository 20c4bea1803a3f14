"""The front page: findings of each family, models by families, changes, drift alarms, and costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dtef_pipeline.site.content import Column, Page, Prose, Section, Table
from dtef_pipeline.site.contents import FamilyEntry, SiteContents
from dtef_pipeline.site.cost_tables import COST_COLUMNS, describe_costs, sum_costs
from dtef_pipeline.site.drift_page import describe_drifted, describe_families
from dtef_pipeline.site.leaderboard import build_interval_chart
from dtef_pipeline.site.number_text import show
from dtef_pipeline.site.paths import FRONT_PAGE
from dtef_pipeline.text.natural_order import natural_order
from dtef_pipeline.text.number_words import format_count

_CHARTED, _LISTED = 8, 15
"""Models in the chart of a family, and in the table until the reader asks for all."""
_AGAIN = Column(
    "again", "Last snapshot again", "dollars", "What the requests of the last snapshot cost: the same run would cost as much"
)


def build_front_page(contents: SiteContents) -> Page:
    """Build the first page of the site."""
    families = contents.families
    cards = [
        {
            "link": family.link,
            "verdict": family.content.verdict,
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


def _build_models_section(contents: SiteContents) -> Section:
    """Build the table of models by families: rank and score with interval. There is no mean over families."""
    columns = [Column("model", "Model", "model")]
    for family in contents.families:
        title = family.site.title
        columns += [
            Column(family.name, title, "score", family.board.measure if family.board else ""),
            *([Column(f"{family.name}_rank", f"{title}: rank", "count")] if family.board and family.board.is_contest else []),
        ]
    rows = [_build_model_row(contents, name) for name in contents.model_paths]
    rows.sort(key=lambda row: (row["_ranked"], row["_name"]))
    boards = "; ".join(family.name_board(family.board) for family in contents.families if family.board)
    caption = f"Score with its 95% interval, and rank among models, on the first leaderboard of each family: {boards}"
    return Section("models", "Models by family", [Table(caption, columns, rows, first=_LISTED)])


def _build_model_row(contents: SiteContents, name: str) -> dict[str, Any]:
    row: dict[str, Any] = {"model": name, "_name": natural_order(name)}
    ranks = []
    for family in contents.families:
        board_row = family.find_board_row(name)
        if board_row is not None:
            row[f"{family.name}_rank"], row[family.name] = board_row.rank, board_row.score
            ranks += [board_row.rank] if board_row.rank else []
    return {**row, "_ranked": min(ranks, default=10**6)}


def _build_changes_section(contents: SiteContents) -> Section:
    """List how the mean of each model changed between its last two snapshots."""
    rows = [row for family in contents.families for row in _iterate_last_changes(contents, family)]
    rows.sort(key=lambda row: -abs(row["change"]))
    columns = (
        Column("model", "Model", "model"),
        Column("family", "Family"),
        Column("change", "Change", "signed", "Mean score of the last snapshot minus that of the one before, on the same items"),
        Column("before", "From", "code"),
        Column("after", "To", "code"),
    )
    largest = rows[0] if rows else None
    answer = (
        f"The largest change is {show(largest['change'], 'signed')}: {largest['model']} in {largest['family']}."
        if largest
        else ""
    )
    return Section("changes", "Since the snapshot before", [Table("Change of the mean score", columns, rows, first=10)], answer)


def _iterate_last_changes(contents: SiteContents, family: FamilyEntry) -> Iterator[dict[str, Any]]:
    series = contents.table("drift_series", family)
    if not len(series):
        return
    rows = series[series["compared"].eq(True) & series["difference"].notna()]
    for (model, _), group in rows.groupby(["model", "setting"], sort=False):
        if len(group) > 1:
            before, after = group.iloc[-2], group.iloc[-1]
            yield {
                "model": str(model),
                "family": family.site.title,
                "change": float(after["difference"] - before["difference"]),
                "before": before["snapshot"],
                "after": after["snapshot"],
            }


def _build_costs_section(contents: SiteContents) -> Section:
    costs = contents.costs()
    if not len(costs):
        return Section("costs", "Cost", [])
    last = costs[costs["snapshot"] == costs.groupby("title")["snapshot"].transform("max")]
    repeat_costs = {row["title"]: row["cost_usd"] for row in sum_costs(last, ["title"])}
    rows = [{**row, "again": repeat_costs.get(row["title"])} for row in sum_costs(costs, ["title"])]
    table = Table("By family", [Column("title", "Family"), *COST_COLUMNS, _AGAIN], rows)
    is_first = len(last) == len(costs)
    outlook = "Another such run would cost as much." if is_first else f"To run the last snapshot again: {describe_costs(last)}"
    return Section("costs", "Cost", [table], f"{describe_costs(costs)} {outlook}")
