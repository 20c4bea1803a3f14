"""Rubrics on the site: how well models meet the criteria of blueprints, over all of them and in each."""

from __future__ import annotations

from itertools import chain
from typing import Any

import duckdb
import pandas as pd

from dtef_pipeline.report.row_reader import StoredRows
from dtef_pipeline.rubric.blueprint.findings import FINDING_LEVELS
from dtef_pipeline.rubric.board import MIN_BLUEPRINTS, TEST_TAG, describe_unlike_runs
from dtef_pipeline.rubric.rubric_drift import WATCHED
from dtef_pipeline.rubric.scoring import ScoringPolicy, compute_hybrid_at
from dtef_pipeline.rubric.site.blueprint_pages import blueprint_pages, build_blueprint_list, tag_pages
from dtef_pipeline.rubric.site.judges import build_judges_section, judge_sections
from dtef_pipeline.rubric.site.model_sections import make_model_sections
from dtef_pipeline.rubric.site.rubric_rows import RubricRows, build_ranked_board, describe_best_model
from dtef_pipeline.rubric.tables import RUBRIC_TABLES
from dtef_pipeline.site.content import Column, Fold, Section, Table, TemplateBlock, convert_to_rows
from dtef_pipeline.site.family_content import FamilyContent, FamilySite
from dtef_pipeline.site.paths import address_id, state_address
from dtef_pipeline.text.number_words import format_count

_MEASURE = "Mean hybrid score over blueprints, 0-1, higher is better"
_LEADERBOARD_HOW = (
    "Each blueprint counts once, with its latest run that has scores. Coverage measures how far a response meets the criteria, "
    "similarity how close it is to the ideal answer; the score combines both. Intervals cover other blueprints of this kind. Blueprints "
    "differ a lot: before you choose a model by this table, read the blueprint that is most like your use."
)
_WEIGHT_HOW = (
    "At 0 only coverage counts, at 1 only similarity. A prompt with criteria but no ideal answer, or the reverse, is scored by what it has "
    "at every weight. The intervals of the leaderboard are for the weight of the runs."
)
_RUBRIC_METHOD = (
    "Several judges read a criterion in words and choose a class from not met (0) to met in full (1). The point is the mean over judges; "
    "for should_not it is 1 minus that mean. A criterion that is a function is computed.",
    "`coverage = sum(weight x point) / sum(weight)` over the criteria of a prompt; of alternative paths the best counts. `similarity` is "
    "the cosine of the embeddings of response and ideal answer.",
    "`score = beta x max(0, similarity) + (1 - beta) x coverage`, with beta = 0.35 unless the run sets another; a prompt with only one "
    "of the two is scored by it. Missing scores are left out of every mean, and the page gives the reason.",
    f"A blueprint's score is the mean over prompts by their weights, then over variants of a model. A model needs {MIN_BLUEPRINTS} "
    "blueprints to be ranked. Intervals and comparisons treat blueprints as independent; within one blueprint they treat prompts so.",
    "Agreement of judges is Krippendorff's alpha (interval metric): 1 is full agreement, 0 is chance; 0.8 or more supports conclusions, "
    "0.667 or more tentative ones. Agreement does not show that judges are right; labels of people do.",
)
_FINDING_COLUMNS = (
    Column("blueprint", "Blueprint"),
    Column("text", "What was found", "long"),
    Column("level", "Level", always=True),
    Column("place", "Place", "code"),
    Column("line", "Line", "count"),
)
_FINDINGS = "FROM rubric_findings ORDER BY list_position($levels, level), blueprint, line NULLS FIRST, place, text"
# Beta is on the slider, and no reason for a warning.
_AVERAGED_RUNS = f"""
    SELECT runs.* REPLACE (regexp_replace(policy, '^beta=[^,]*, ', '') AS policy) FROM rubric_runs AS runs
    SEMI JOIN shown_runs USING (blueprint, snapshot)
    ANTI JOIN (FROM rubric_blueprints WHERE list_contains(tags, '{TEST_TAG}')) AS tests USING (blueprint)"""


def read(connection: duckdb.DuckDBPyConnection) -> FamilyContent:
    """Return the view of rubrics."""
    rows = RubricRows(connection)
    board = build_ranked_board(_MEASURE, rows.cut("overall"), "Blueprints", _LEADERBOARD_HOW)
    blueprints = build_blueprint_list(rows, list(rows.about))
    return FamilyContent(
        describe_best_model(board) if board.rows else "There is no leaderboard yet; `dtef rubric board --refresh` makes it.",
        [board] if board.rows else [],
        sections=[build_weight_section(rows), build_unlike_section(rows), blueprints, *judge_sections(rows)],
        build_model_sections=make_model_sections(rows),
        item_scores=_compute_item_scores(rows),
        pages=lambda: chain(tag_pages(rows), blueprint_pages(rows)),
        data=[build_findings_section(rows), build_judges_section(rows)],
        method=_RUBRIC_METHOD,
        variants=_map_variants(rows),
        setting_text=lambda row: f"{row['metric']} score",
    )


def build_weight_section(rows: RubricRows) -> Section:
    """Return a slider for the weight of similarity that ranks the models again. Empty if no score uses similarity."""
    usual = ScoringPolicy().beta
    models: list[dict[str, Any]] = []
    for row in convert_to_rows(rows.cut("overall").dropna(subset=["intercept"])):
        scores = [float(compute_hybrid_at(row["intercept"], row["slope"], beta)) for beta in (usual, 0.0, 1.0)]
        models.append({**row, "ranked": row["n_scored"] >= MIN_BLUEPRINTS, "scores": scores})
    if not any(model["slope"] for model in models):
        return Section("weight", "Weight of similarity", [])
    models.sort(key=lambda model: (not model["ranked"], -model["scores"][0], model["model"]))
    ranked = [model for model in models if model["ranked"]]
    answer = ""
    if len(ranked) > 1:
        first = [max(ranked, key=lambda model: model["scores"][place])["model"] for place in range(3)]
        answer = f"{first[0]} is first at the default weight, {first[1]} if only coverage counts, {first[2]} if only similarity counts."
    slider = TemplateBlock("rubric/weight.html.j2", {"models": models, "usual": usual})
    return Section("weight", "Weight of similarity", [Fold("Rank models at another weight", [slider])], answer, _WEIGHT_HOW)


def build_unlike_section(rows: RubricRows) -> Section:
    """Describe differences in judges, scale or policy between runs; empty if none."""
    runs = rows.query_frame(_AVERAGED_RUNS)
    lines = describe_unlike_runs(runs) if len(runs) else ()
    answer = " ".join(f"{line[:1].upper()}{line[1:]}." for line in lines)
    return Section("unlike", "Runs with other judges or policies", [], answer)


def build_findings_section(rows: RubricRows) -> Section:
    """Show what was found in the files of blueprints, errors first."""
    findings = rows.query(_FINDINGS, {"levels": list(FINDING_LEVELS)})
    n_errors = sum(bool(details["n_errors"]) for details in rows.about.values())
    answer = f"{format_count(len(rows.about), 'blueprint')} read with {format_count(len(rows.prompts), 'prompt')}; "
    answer += f"{n_errors} had errors, whose parts were left out; {len(rows.about) - len(rows.runs)} not run."
    lines = [{**row, "blueprint": rows.link(row["blueprint"])} for row in findings if row["blueprint"] in rows.about]
    table = Table("Findings in files of blueprints", _FINDING_COLUMNS, lines, first=10)
    return Section("findings", "what was read and left out", [table], answer)


def _compute_item_scores(rows: RubricRows) -> pd.DataFrame:
    """Return one row per model and prompt."""
    items = []
    for row in convert_to_rows(rows.cut("prompt").dropna(subset=["score"])):
        title, page = rows.link(row["blueprint"])
        words = rows.prompts.get((row["blueprint"], row["prompt"]), (0, row["prompt"]))[1]
        item = {"item": f"{row['blueprint']}/{row['prompt']}", "label": f"{title}: {words}"}
        address = state_address(page, prompt=address_id(row["prompt"]))
        items.append({"model": row["model"], "score": row["score"], **item, "page": address})
    return pd.DataFrame(items, columns=["model", "item", "label", "page", "score"])


def _map_variants(rows: RubricRows) -> dict[str, str]:
    """Map each model's name to one variant; boards know models by name."""
    variants = rows.query("SELECT model, min(model_variant) AS variant FROM rubric_scores GROUP BY model ORDER BY model")
    return {row["model"]: row["variant"] for row in variants if row["variant"]}


def _read_titles(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    rows = StoredRows(connection).rows("rubric_blueprints", ("blueprint", "title"), {})
    return {str(row["blueprint"]): str(row["title"]) for row in rows if row["title"]}


RUBRIC_SITE = FamilySite(
    "rubric",
    "Rubrics",
    tuple(RUBRIC_TABLES),
    "rubric_scores",
    read,
    WATCHED,
    responses="rubric_responses",
    read_partition_titles=_read_titles,
)
