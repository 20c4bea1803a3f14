"""Lists of blueprints: all of them, and those of each tag with a leaderboard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from dtef_pipeline.rubric.site.rubric_rows import RubricRows
from dtef_pipeline.rubric.site.small_boards import describe_best_model, ranked_board
from dtef_pipeline.site.content import Column, Link, Page, Section, Table, convert_to_rows, is_unknown
from dtef_pipeline.site.family_view import RankedBoard
from dtef_pipeline.site.leaderboard import board_block
from dtef_pipeline.site.paths import board_page
from dtef_pipeline.text.quantity_words import format_count

RUBRIC_CRUMB = Link("Rubrics", board_page("rubric"))
_LIST_COLUMNS = (
    Column("blueprint", "Blueprint", "long"),
    Column("tags", "Tags", more=True),
    Column("n_models", "Models", "count", "Models with a score", always=True),
    Column("mean", "Mean", "score", "Mean score of its models, 0-1"),
    Column("spread", "Spread", "score", "Score of the best model minus that of the worst"),
    Column("best", "Best", "model"),
    Column("n_prompts", "Prompts", "count", more=True),
    Column("n_criteria", "Criteria", "count", more=True),
    Column("snapshot", "Run", "code", more=True),
    Column("n_errors", "Errors", "count", "Findings for which a part of the file was left out", more=True),
)
_TAG_COLUMNS = (
    Column("tag", "Tag"),
    Column("n_blueprints", "Blueprints", "count", always=True),
    Column("best", "Best model", "model"),
    Column("score", "Its score", "score"),
    Column("n_models", "Models", "count"),
)


def build_blueprint_list(rows: RubricRows) -> Section:
    """List all blueprints, with links to their pages."""
    list_rows = [_build_list_row(rows, name) for name in rows.about]
    scored_rows = [row for row in list_rows if not is_unknown(row["mean"])]
    answer = f"{format_count(len(list_rows), 'blueprint')}, {len(scored_rows)} with scores."
    if len(scored_rows) > 1:
        hardest, easiest = (choose(scored_rows, key=lambda row: row["mean"]) for choose in (min, max))
        answer += f" Hardest is {hardest['blueprint'].text} ({hardest['mean']:.2f}), "
        answer += f"easiest {easiest['blueprint'].text} ({easiest['mean']:.2f})."
    return Section("blueprints", "Blueprints", [_list_table(list_rows)], answer)


def _list_table(list_rows: list[dict[str, Any]]) -> Table:
    return Table("Blueprints, by the run that their pages show", _LIST_COLUMNS, list_rows, search=True)


def _build_list_row(rows: RubricRows, blueprint: str) -> dict[str, Any]:
    details = rows.about[blueprint]
    models = run_scores(rows, blueprint)
    scored_models = models[models["hybrid"].notna()]
    return {
        **details,
        "blueprint": rows.link(blueprint),
        "tags": [rows.tag_link(str(tag)) for tag in details["tags"] or ()],
        "n_models": len(scored_models),
        "mean": float(scored_models["hybrid"].mean()) if len(scored_models) else None,
        "spread": float(scored_models["hybrid"].max() - scored_models["hybrid"].min()) if len(scored_models) > 1 else None,
        "best": str(scored_models["model"].iloc[0]) if len(scored_models) else None,
        "snapshot": rows.runs.get(blueprint),
    }


def run_scores(rows: RubricRows, blueprint: str) -> pd.DataFrame:
    """Return the models' scores in a blueprint's shown run, best first."""
    if not len(rows.scores):
        return pd.DataFrame(columns=["model", "hybrid"])
    is_current = (rows.scores["blueprint"] == blueprint) & (rows.scores["snapshot"] == rows.runs.get(blueprint))
    return rows.scores[is_current].sort_values(["hybrid", "model"], ascending=[False, True])


def build_tag_list(rows: RubricRows) -> Section:
    """List all tags, with links to their pages and their best models."""
    tag_rows: list[dict[str, Any]] = []
    for tag, blueprints in rows.tags.items():
        ranked = _build_tag_board(rows, tag).rows
        best = ranked[0] if ranked else None
        tag_rows.append(
            {
                "tag": rows.tag_link(tag),
                "n_blueprints": len(blueprints),
                "best": best and best.model,
                "score": best and best.score,
                "n_models": len(ranked),
            }
        )
    tag_rows.sort(key=lambda row: -row["n_blueprints"])
    answer = f"{format_count(len(tag_rows), 'tag')}; the most frequent is {tag_rows[0]['tag'].text}." if tag_rows else ""
    return Section("tags", "Tags", [Table("Tags of blueprints", _TAG_COLUMNS, tag_rows, first=15)], answer)


def _build_tag_board(rows: RubricRows, tag: str) -> RankedBoard:
    """Return the scored models of a tag, ranked or not, best first."""
    part_rows = rows.select_part_rows("tag", tag)
    scored_rows = part_rows[part_rows["score"].notna()].sort_values(["score", "model"], ascending=[False, True])
    return ranked_board(f"Mean score over the blueprints tagged {tag}", convert_to_rows(scored_rows), "Blueprints")


def build_tag_pages(rows: RubricRows) -> Iterator[Page]:
    """Yield the page of each tag: its leaderboard and its blueprints."""
    for tag, blueprints in rows.tags.items():
        ranked = _build_tag_board(rows, tag)
        # The board of one blueprint is on its own page.
        board = [board_block(ranked)] if len(blueprints) > 1 else []
        sections = [
            Section("board", "Leaderboard", board),
            Section("blueprints", "Blueprints", [_list_table([_build_list_row(rows, name) for name in blueprints])]),
        ]
        answer = f"{format_count(len(blueprints), 'blueprint')}. {describe_best_model(ranked)}"
        yield Page(rows.tag_link(tag).href, f"Tag: {tag}", answer, sections, crumbs=[RUBRIC_CRUMB])
