"""Lists of blueprints: all of them, and those of each tag with a leaderboard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dtef_pipeline.rubric.board import MIN_BLUEPRINTS, TEST_TAG
from dtef_pipeline.rubric.hybrid import ScoringPolicy, compute_hybrid_at, find_crossing
from dtef_pipeline.rubric.run_comparison import describe_unlike_runs, select_averaged_runs
from dtef_pipeline.rubric.site.rubric_rows import RubricRows, build_ranked_board, describe_best_model
from dtef_pipeline.site.content import Column, Fold, Link, Page, Section, Table, TemplateBlock, convert_to_rows, is_unknown
from dtef_pipeline.site.family_content import RankedBoard
from dtef_pipeline.site.leaderboard import board_block
from dtef_pipeline.site.paths import board_page
from dtef_pipeline.text.number_words import format_count

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
    return build_ranked_board(f"Mean score over the blueprints tagged {tag}", convert_to_rows(scored_rows), "Blueprints")


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


_WEIGHT_HOW = (
    "If a prompt has criteria and an ideal answer, the score is beta times similarity plus 1 - beta times coverage. At 0 only coverage "
    "counts, at 1 only similarity. A prompt with only one of the two is scored by it at every weight, and a similarity below 0 counts as "
    "0, so the scores at 0 and 1 differ from the mean coverage and similarity of the leaderboard. Its intervals are for the weight of "
    "the runs."
)
_EDGE = 1e-9
"""Weights or scores that differ by less are equal."""
_BETA = r"^beta=[^,]*, "


class PlaceChange(NamedTuple):
    """Two models that have the same score at one weight and change places there."""

    beta: float
    """Weight of the similarity, above 0 and below 1."""
    rises: str
    """The model that is better above it."""
    falls: str
    place: int
    """The place of both at this weight, from 1."""


def build_weight_section(rows: RubricRows) -> Section:
    """Return a slider for the weight of similarity that ranks the models again. Empty if no score uses similarity."""
    models = [model for model in _build_lines(rows) if not is_unknown(model["intercept"])]
    usual = ScoringPolicy().beta
    if not any(abs(model["slope"]) > _EDGE for model in models):
        return Section("weight", "Weight of similarity", [])
    models.sort(key=lambda model: (not model["ranked"], -_compute_at(model, usual), model["model"]))
    items = [{**model, "scores": [_compute_at(model, beta) for beta in (usual, 0.0, 1.0)]} for model in models]
    part = Fold("Rank models at another weight", [TemplateBlock("rubric/weight.html.j2", {"models": items, "usual": usual})])
    return Section(
        "weight",
        "Weight of similarity",
        [part],
        _summarize_changes(find_place_changes(models), sum(model["ranked"] for model in models)),
        _WEIGHT_HOW,
    )


def _build_lines(rows: RubricRows) -> list[dict[str, Any]]:
    """Return each model's score as a line: `intercept`, `slope`, and whether it is `ranked`."""
    return [
        {
            "model": str(row["model"]),
            "intercept": row["intercept"],
            "slope": row["slope"],
            "ranked": row["n_scored"] >= MIN_BLUEPRINTS,
        }
        for row in convert_to_rows(rows.cut("overall"))
    ]


def _compute_at(model: Mapping[str, Any], beta: float) -> float:
    return float(compute_hybrid_at(model["intercept"], model["slope"], beta))


def find_place_changes(models: Sequence[Mapping[str, Any]]) -> list[PlaceChange]:
    """Return all changes of places among ranked models, by weight. `models`: with `model`, `intercept`, `slope` and `ranked`."""
    ranked = [model for model in models if model["ranked"] and not is_unknown(model["intercept"])]
    intercept, slope = (np.array([model[name] for model in ranked], dtype=np.float64) for name in ("intercept", "slope"))
    changes = []
    for first, second in combinations(ranked, 2):
        beta = find_crossing((first["intercept"], first["slope"]), (second["intercept"], second["slope"]))
        if beta is None or not _EDGE < beta < 1 - _EDGE:
            continue
        rises, falls = (first, second) if first["slope"] > second["slope"] else (second, first)
        ahead = compute_hybrid_at(intercept, slope, beta) > _compute_at(first, beta) + _EDGE
        changes.append(PlaceChange(beta, rises["model"], falls["model"], int(ahead.sum()) + 1))
    return sorted(changes)


def _summarize_changes(changes: Sequence[PlaceChange], n_ranked: int) -> str:
    if n_ranked < 2:
        return ""
    if not changes:
        return "No two ranked models change places at any weight."
    first = [f"from {change.beta:.2f} on {change.rises} ranks above {change.falls}" for change in changes if change.place == 1]
    leader = f"the first place changes: {'; '.join(first)}" if first else "the first place stays"
    return f"Between 0 and 1 ranked models change places {format_count(len(changes), 'time')}; {leader}."


def build_alike_section(rows: RubricRows) -> Section:
    """Describe differences in judges, scale or policy between runs; empty if none."""
    runs = rows.rows.frame("rubric_runs")
    warnings: list[str] = []
    if len(rows.scores) and {"judges", "judge_hash", "policy"} <= set(runs):
        board_runs = select_averaged_runs(rows.scores, runs, rows.order)
        board_runs = board_runs[~board_runs["blueprint"].isin(rows.tags.get(TEST_TAG, []))]
        # Beta is on the slider, and no reason for a warning.
        warnings = list(describe_unlike_runs(board_runs.assign(policy=board_runs["policy"].str.replace(_BETA, "", regex=True))))
    return Section(
        "unlike", "Runs with other judges or policies", [], " ".join(f"{line[:1].upper()}{line[1:]}." for line in warnings)
    )
