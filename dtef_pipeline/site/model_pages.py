"""A page for each model over all families, and their list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from dtef_pipeline.site.content import Block, Column, Estimate, Link, Page, Section, Table, convert_to_rows
from dtef_pipeline.site.contents import FamilyEntry, SiteContents
from dtef_pipeline.site.cost_tables import COST_COLUMNS, describe_costs, sum_costs
from dtef_pipeline.site.drift_page import build_timelines, build_verdict_table
from dtef_pipeline.site.number_text import show_with_interval
from dtef_pipeline.site.paths import COMPARE_PAGE, state_address
from dtef_pipeline.text.number_words import format_count

MODELS_PAGE = "models/index.html"
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
    Column("difference", "Difference", "signed", "Score of this model minus that of the other, with its 95% interval"),
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
_VERDICT_GUIDE = (
    "Verdicts rest on the adjusted p, and not on the interval alone. Holm's correction is made within three groups: comparisons with other "
    "models, those with the baseline that models should beat, and those with the other baselines. So the same difference with the same "
    "interval can have two verdicts, if it is in two groups."
)
_OPPOSITE = {"better": "worse", "worse": "better"}


def model_pages(contents: SiteContents) -> Iterator[Page]:
    """Yield the list of models, then the page of each."""
    yield _list_of_models(contents)
    for name, path in contents.model_paths.items():
        yield _build_model_page(contents, name, path)


def _list_of_models(contents: SiteContents) -> Page:
    columns = [
        Column("model", "Model", "model"),
        *(Column(family.name, family.name_board(family.board), "score") for family in contents.families),
    ]
    rows: list[dict[str, Any]] = []
    for name in contents.model_paths:
        scores = {family.name: row.score for family in contents.families if (row := family.find_board_row(name))}
        rows.append({"model": name, **scores})
    section = Section("models", "All models", [Table("Score on each family's first leaderboard", columns, rows, search=True)])
    return Page(MODELS_PAGE, "Models", f"{format_count(len(rows), 'model')} were evaluated.", [section])


def _build_model_page(contents: SiteContents, name: str, path: str) -> Page:
    families = [family for family in contents.families if family.find_board_row(name)]
    sections = [section for family in families for section in _build_family_sections(contents, family, name)]
    answer = " ".join(_describe_places(family, name) for family in families)
    crumbs = [Link("Models", MODELS_PAGE)]
    return Page(path, name, answer, [*sections, _build_costs_section(contents, name)], crumbs)


def _describe_places(family: FamilyEntry, name: str) -> str:
    row = family.find_board_row(name)
    assert row is not None, f"{name} is on no board of {family.name}"
    score = show_with_interval(row.score, "score")
    board = next(board for board in family.content.boards if row in board.rows)
    where = family.name_board(board)
    if row.rank is None:
        return f"{where}: {score}, not ranked."
    return (
        f"{where}: {score}, the only model."
        if not board.is_contest
        else f"{where}: rank {row.rank} of {len(board.models)}, {score}."
    )


def _build_family_sections(contents: SiteContents, family: FamilyEntry, name: str) -> Iterator[Section]:
    places = []
    for board in family.content.boards:
        for row in board.rows:
            if row.model == name:
                title = Link(board.title or family.site.title, f"{family.link.href}#{board.anchor}")
                ranks = {"rank": row.rank, "of": len(board.models)} if board.is_contest else {}
                places.append({"board": title, **ranks, "score": row.score, "note": row.note})
    comparisons = _build_comparisons_table(contents, family, name)
    note = _VERDICT_GUIDE if comparisons.rows and "adjusted_over" in comparisons.rows[0] else ""
    blocks: list[Block] = [Table("Rank and score", _PLACE_COLUMNS, places), comparisons]
    pairs = zip(contents.drift[family.name]["model"].to_pylist(), contents.drift_rows[family.name], strict=True)
    if drifts := [row for model, row in pairs if name in (model, row["model"]) and row["verdict"]]:
        blocks += [build_verdict_table(family, drifts), *build_timelines(contents, family, drifts)]
    yield Section(family.name, family.site.title, blocks, guide=note)
    yield from map(family.name_section, family.content.build_model_sections(name))


def _build_comparisons_table(contents: SiteContents, family: FamilyEntry, name: str) -> Table:
    """List every comparison with another model or a baseline, seen from this model."""
    rows = []
    for pair in convert_to_rows(contents.comparisons(family.name)):
        if family.content.is_called(name, pair["model"], pair["model_variant"]):
            rows.append(_build_comparison_row(family, pair, "other", 1))
        elif family.content.is_called(name, pair["other_model"], pair["other_variant"]):
            rows.append(_build_comparison_row(family, pair, "model", -1))
    for row in rows:
        if row["verdict"] and row["other"] in contents.model_paths:
            row["verdict"] = Link(row["verdict"], state_address(COMPARE_PAGE, a=name, b=row["other"]))
    rows.sort(key=lambda row: row["other"] not in contents.model_paths)
    caption = "Compared with models, then baselines; the verdict on a model leads to the items on which they differ"
    return Table(caption, _COMPARISON_COLUMNS, rows, first=15)


def _build_comparison_row(family: FamilyEntry, row: dict[str, Any], side: str, sign: int) -> dict[str, Any]:
    ends = [None if pd.isna(row[name]) else sign * row[name] for name in ("difference", "low", "high")]
    low, high = ends[1:] if sign > 0 else ends[:0:-1]
    verdict = row["verdict"] if sign > 0 else _OPPOSITE.get(row["verdict"], row["verdict"])
    model, variant = (row["other_model"], row["other_variant"]) if side == "other" else (row["model"], row["model_variant"])
    rival = family.content.name_of(model, variant)
    return {
        **row,
        "other": rival,
        "setting": family.content.setting_text(row),
        "verdict": verdict,
        "difference": Estimate(ends[0], low, high),
    }


def _build_costs_section(contents: SiteContents, name: str) -> Section:
    costs = contents.costs(name)
    took = {entry.site.title: contents.latencies[entry.name].get(name) for entry in contents.families}
    rows = [
        {**row, "latency": took[row["title"]] if row["role"] == "candidate" else None}
        for row in sum_costs(costs, ["title", "role"])
    ]
    return Section("cost", "Cost", [Table("Requests and their cost", _COST_COLUMNS, rows)], describe_costs(costs))
