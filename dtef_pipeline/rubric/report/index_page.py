"""The first page: the leaderboard with its slider, the blueprints, champions, agreement, drift, costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import pandas as pd

from dtef_pipeline.report.drift_chapter import drift_chapters
from dtef_pipeline.report.isolated import inline, missing
from dtef_pipeline.report.markup import Column, named, section, table, text, three, whole
from dtef_pipeline.report.page import Chapter, build_report
from dtef_pipeline.report.stored_rows import StoredRow, StoredRows
from dtef_pipeline.rubric.board import TEST_TAG
from dtef_pipeline.rubric.levels import RUN_KEYS
from dtef_pipeline.rubric.report.marks import own_file
from dtef_pipeline.rubric.report.shared_tables import agreement_section, champions_section
from dtef_pipeline.rubric.report.slider import board_section
from dtef_pipeline.rubric.report.spending import all_costs_section
from dtef_pipeline.rubric.runs_compared import averaged_runs, unlike_runs
from dtef_pipeline.rubric.watched_drift import WATCHED

_BLUEPRINTS_HOW = (
    "Every blueprint that was read, with the run that its page shows. Best: the model with the highest hybrid score in that run. A blueprint "
    "with errors was read without the parts that they are in."
)
_INTRODUCTION = (
    "<p>How well language models meet the criteria that people wrote down for them. Criteria are judged by several language models or "
    "computed, and answers are compared with ideal ones where there are any. Each blueprint has a page with every response and every "
    "verdict.</p>"
)
_SEARCH = (
    '<label class="search">Find a blueprint <input type="search" data-filters="blueprint-table" autocomplete="off"></label>'
    '<p class="count" role="status" data-counts="blueprint-table">{n} of {n} blueprints</p>'
)
_BLUEPRINT_COLUMNS = (
    Column("link", "Blueprint", named),
    Column("tags", "Tags", named),
    Column("n_prompts", "Prompts", whole),
    Column("n_criteria", "Criteria", whole),
    Column("n_models", "Models", whole, "Models with a score"),
    Column("mean", "Mean", three, "Mean hybrid score of its models, 0-1"),
    Column("best", "Best", named),
    Column("best_score", "Its score", three),
    Column("snapshot", "Run", text),
    Column("n_errors", "Errors", whole, "Findings of the loader that left a part out"),
)


def index_page(
    rows: StoredRows,
    scores: pd.DataFrame,
    order: Sequence[str],
    runs: Mapping[str, str],
    pages: Mapping[str, str],
    *,
    further: Sequence[Chapter] = (),
) -> str:
    """The page. `scores`: rows of whole models; `runs`: the snapshot of each blueprint that is shown; `pages`: the file of each; `further`: its
    last chapters."""
    known = {row["blueprint"]: row for row in rows.rows("rubric_blueprints", _LISTED_FACTS, {})}
    tags = {name: list(row["tags"] or ()) for name, row in known.items()}
    chapters = [
        Chapter(
            "leaderboard",
            "Leaderboard",
            board_section(scores, order, tags, _warnings(rows, scores, order, tags)),
            style=own_file("slider.css"),
            script=own_file("slider.js"),
        ),
        Chapter("blueprints", "Blueprints", _blueprints(scores, runs, pages, known)),
        Chapter("champions", "Champions", champions_section(rows)),
        Chapter("agreement", "Agreement", agreement_section(rows)),
        *drift_chapters(rows, WATCHED, "blueprints"),
        Chapter("costs", "Costs", all_costs_section(rows, runs)),
        *further,
    ]
    return build_report("DTEF: rubrics", _INTRODUCTION, chapters)


def _warnings(rows: StoredRows, scores: pd.DataFrame, order: Sequence[str], tags: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """How the runs on the leaderboard differ, but for beta, at which the page scores all of them anew."""
    runs = rows.frame("rubric_runs")
    if not len(scores) or not {*RUN_KEYS, "judges", "judge_hash", "policy"} <= set(runs):
        return ()
    shown = averaged_runs(scores, runs, order)
    shown = shown[~shown["blueprint"].isin([name for name, own in tags.items() if TEST_TAG in own])]
    return list(unlike_runs(shown.assign(policy=shown["policy"].str.replace(_BETA, "", regex=True))))


_BETA = r"^beta=[^,]*, "
_LISTED_FACTS = ("blueprint", "title", "tags", "n_prompts", "n_criteria", "n_errors")


def _blueprints(scores: pd.DataFrame, runs: Mapping[str, str], pages: Mapping[str, str], known: Mapping[str, StoredRow]) -> str:
    if not pages:
        body = missing("No blueprints yet", "`dtef rubric run` reads them and makes rubric_blueprints")
        return section("blueprints", "Blueprints", _BLUEPRINTS_HOW, body)
    best = _of_runs(scores, runs)
    found = [_listed(name, page, known.get(name, {}), runs.get(name), best.get(name)) for name, page in pages.items()]
    frame = pd.DataFrame(found)
    data = frame.assign(blueprint=list(pages)).drop(columns=["link", "tags", "best"])
    shown = table(frame, _BLUEPRINT_COLUMNS, caption="Blueprints", row_head="link", anchor="blueprint-table", data=data)
    return section("blueprints", "Blueprints", _BLUEPRINTS_HOW, _SEARCH.format(n=len(found)) + shown)


def _of_runs(scores: pd.DataFrame, runs: Mapping[str, str]) -> dict[str, pd.DataFrame]:
    """The scored models of each blueprint in the run that is shown, best first."""
    if not len(scores):
        return {}
    here = scores[scores["snapshot"].astype(str) == scores["blueprint"].astype(str).map(runs)]
    here = here[here["hybrid"].notna()].sort_values(["hybrid", "model"], ascending=[False, True])
    return {str(name): own for name, own in here.groupby("blueprint", sort=True)}


def _listed(name: str, page: str, about: Mapping[str, Any], snapshot: str | None, models: pd.DataFrame | None) -> StoredRow:
    title = about.get("title") or name
    beneath = f'<span class="note"><bdi>{escape(name)}</bdi></span>' if title != name else ""
    tags = "".join(f'<span class="tag">{inline(tag)}</span>' for tag in about.get("tags") or ())
    return {
        "link": f'<span class="name"><a href="{page}">{inline(title)}</a></span>{beneath}',
        "tags": tags,
        **{count: about.get(count) for count in ("n_prompts", "n_criteria", "n_errors")},
        "snapshot": snapshot,
        "n_models": 0 if models is None else len(models),
        "mean": None if models is None else float(models["hybrid"].mean()),
        "best": "" if models is None else inline(models["model"].iloc[0]),
        "best_score": None if models is None else float(models["hybrid"].iloc[0]),
    }
