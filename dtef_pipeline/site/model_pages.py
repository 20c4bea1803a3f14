"""A page for each model over all families."""

from __future__ import annotations

from collections.abc import Iterator

from dtef_pipeline.report.row_reader import StoredRow
from dtef_pipeline.site.content import Block, Column, Link, Page, Section, Table
from dtef_pipeline.site.contents import FamilyEntry, SiteContents
from dtef_pipeline.site.data_page import COST_COLUMNS, describe_costs, sum_costs
from dtef_pipeline.site.drift_page import build_timelines, build_verdict_table
from dtef_pipeline.site.number_text import show_with_interval
from dtef_pipeline.site.paths import COMPARE_PAGE, MODELS_ADDRESS, state_address

_PLACE_COLUMNS = (
    Column("board", "Leaderboard"),
    Column("rank", "Rank", "count", always=True),
    Column("of", "Of", "count", always=True),
    Column("score", "Score", "score"),
    Column("note", "Note", "note"),
)
_COMPARISON_COLUMNS = (
    Column("other", "Compared with", "model"),
    Column("verdict", "Verdict", always=True),
    Column(
        "difference",
        "Difference",
        "signed",
        "Score of this model minus that of the other, with its 95% interval",
        ends=("low", "high"),
    ),
    Column("p_adjusted", "p (adjusted)", "p", more=True),
    Column("setting", "Setting"),
    Column("n_pairs", "Items", "count", more=True),
    Column("note", "Note", "note"),
)
_COST_COLUMNS = (
    Column("title", "Family"),
    Column("role", "Role"),
    *COST_COLUMNS,
    Column("latency", "Seconds per response", "number", "Median over the responses that were timed"),
)
_COMPARISONS_CAPTION = "Compared with models, then baselines; the verdict on a model leads to the items on which they differ"


def model_pages(contents: SiteContents) -> Iterator[Page]:
    """Yield the page of each model."""
    for name, path in contents.model_paths.items():
        families = [family for family in contents.families if family.find_board_row(name)]
        sections = [section for family in families for section in _build_family_sections(contents, family, name)]
        answer = " ".join(_describe_place(family, name) for family in families)
        yield Page(path, name, answer, [*sections, _build_costs_section(contents, name)], [Link("Models", MODELS_ADDRESS)])


def _describe_place(family: FamilyEntry, name: str) -> str:
    """Return `Family · Board: rank 1 of 3, 0.740 (0.712 to 0.768).`, from the first leaderboard that has the model."""
    board, row = next((board, row) for board in family.content.boards for row in board.rows if row.model == name)
    where, score = family.name_board(board), show_with_interval(row.score, "score")
    if row.rank is None:
        return f"{where}: {score}, not ranked."
    if not board.is_contest:
        return f"{where}: {score}, the only model."
    return f"{where}: rank {row.rank} of {len(board.models)}, {score}."


def _build_family_sections(contents: SiteContents, family: FamilyEntry, name: str) -> Iterator[Section]:
    places = [
        {
            "board": Link(board.title or family.site.title, f"{family.link.href}#{board.anchor}"),
            "rank": row.rank if board.is_contest else None,
            "of": len(board.models) if board.is_contest else None,
            "score": row.score,
            "note": row.note,
        }
        for board in family.content.boards
        for row in board.rows
        if row.model == name
    ]
    blocks: list[Block] = [
        Table("Rank and score", _PLACE_COLUMNS, places),
        Table(_COMPARISONS_CAPTION, _COMPARISON_COLUMNS, _list_comparisons(contents, family, name), first=15),
    ]
    is_called, rows = family.content.is_called, contents.drift[family.name]
    if drifts := [row for row in rows if row["verdict"] and is_called(name, row["plain_model"], row["model_variant"])]:
        blocks += [build_verdict_table(family, drifts), *build_timelines(contents, family, drifts)]
    yield Section(family.name, family.site.title, blocks)
    yield from map(family.name_section, family.content.build_model_sections(name))


def _list_comparisons(contents: SiteContents, family: FamilyEntry, name: str) -> list[StoredRow]:
    """List every comparison with another model or a baseline, seen from this model; models first."""
    rows = []
    for pair in contents.comparisons[family.name]:
        views = (pair, _reverse_comparison(pair))
        row = next((row for row in views if family.content.is_called(name, row["model"], row["model_variant"])), None)
        if row:
            other, verdict = family.content.name_of(row["other_model"], row["other_variant"]), row["verdict"]
            if verdict and other in contents.model_paths:
                verdict = Link(verdict, state_address(COMPARE_PAGE, a=name, b=other))
            rows.append({**row, "other": other, "setting": family.content.setting_text(row), "verdict": verdict})
    return sorted(rows, key=lambda row: row["other"] not in contents.model_paths)


def _reverse_comparison(row: StoredRow) -> StoredRow:
    """Return a comparison seen from the other model."""
    return {
        **row,
        "model": row["other_model"],
        "model_variant": row["other_variant"],
        "other_model": row["model"],
        "other_variant": row["model_variant"],
        "verdict": {"better": "worse", "worse": "better"}.get(row["verdict"], row["verdict"]),
        "difference": -row["difference"],
        "low": -row["high"],
        "high": -row["low"],
    }


def _build_costs_section(contents: SiteContents, name: str) -> Section:
    costs = contents.costs(name)
    latencies = {family.site.title: contents.latencies.get((family.name, name)) for family in contents.families}
    rows = [
        {**row, "latency": latencies[row["title"]] if row["role"] == "candidate" else None}
        for row in sum_costs(costs, ["title", "role"])
    ]
    return Section("cost", "Cost", [Table("Requests and their cost", _COST_COLUMNS, rows)], describe_costs(costs))
