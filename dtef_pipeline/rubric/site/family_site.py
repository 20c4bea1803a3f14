"""Rubrics on the site: how well models meet the criteria of blueprints, over all of them and in each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import duckdb
import numpy as np
import pandas as pd

from dtef_pipeline.boards.families import BETTER
from dtef_pipeline.report.row_reader import StoredRows
from dtef_pipeline.rubric.board import MIN_BLUEPRINTS
from dtef_pipeline.rubric.roll_up_tables import RUBRIC_TABLES
from dtef_pipeline.rubric.rubric_drift import WATCHED
from dtef_pipeline.rubric.site.blueprint_lists import (
    build_alike_section,
    build_blueprint_list,
    build_tag_list,
    build_tag_pages,
    build_weight_section,
)
from dtef_pipeline.rubric.site.blueprint_pages import blueprint_pages
from dtef_pipeline.rubric.site.judges import build_data_sections, judge_sections
from dtef_pipeline.rubric.site.model_sections import RubricsOfModel
from dtef_pipeline.rubric.site.rubric_rows import RubricRows, build_ranked_board
from dtef_pipeline.site.content import DataFile, Page, convert_to_rows
from dtef_pipeline.site.family_content import FamilyContent, FamilySite, RankedBoard
from dtef_pipeline.site.number_text import show_with_interval
from dtef_pipeline.site.paths import address_id, state_address
from dtef_pipeline.text.number_words import format_count, list_first_names

_MEASURE = "Mean hybrid score over blueprints, 0-1, higher is better"
_LEADERBOARD_HOW = (
    "Each blueprint counts once, with its latest run that has scores. Coverage measures how far a response meets the criteria, "
    "similarity how close it is to the ideal answer; the score combines both, and similarity below 0 counts as 0 in it. Intervals cover "
    "other blueprints of this kind. Blueprints differ a lot: before you choose a model by this table, read the blueprint that is most "
    "like your use."
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
    "Scores corrected by labels of people are estimates of prediction-powered inference (PPI++): judges on all prompts, minus their bias "
    "on the labelled ones.",
)
_MAX_NAMED = 3


def read(connection: duckdb.DuckDBPyConnection) -> FamilyContent:
    """Return the view of rubrics."""
    rows = RubricRows(connection)
    board_rows = rows.cut("overall").sort_values(["rank", "score", "model"], ascending=[True, False, True])
    board = build_ranked_board(_MEASURE, convert_to_rows(board_rows), "Blueprints", _LEADERBOARD_HOW)
    return FamilyContent(
        _describe_best(rows, board),
        [board] if board.rows else [],
        sections=[
            build_weight_section(rows),
            build_alike_section(rows),
            build_blueprint_list(rows),
            build_tag_list(rows),
            *judge_sections(rows),
        ],
        build_model_sections=RubricsOfModel(rows),
        item_scores=_compute_item_scores(rows),
        pages=lambda: _build_pages(rows),
        data=build_data_sections(rows),
        method=_RUBRIC_METHOD,
        variants=_map_variants(rows),
        setting_text=lambda row: f"{row['metric']} score",
    )


def _build_pages(rows: RubricRows) -> Iterator[Page | DataFile]:
    yield from build_tag_pages(rows)
    yield from blueprint_pages(rows)


def _describe_best(rows: RubricRows, board: RankedBoard) -> str:
    """Describe the best model, and how many others paired tests find worse."""
    if not board.rows:
        return "There is no leaderboard yet; `dtef rubric board --refresh` makes it."
    best = board.models[0] if board.models else board.rows[0]
    numbers = show_with_interval(best.score, "score")
    if not board.models:
        n_parts = int(np.nanmax([row.more["n_scored"] or 0 for row in board.rows]))
        return (
            f"No model is ranked yet, because a rank needs {MIN_BLUEPRINTS} blueprints. Over {format_count(n_parts, 'blueprint')} "
            f"{best.model} has the highest mean of {format_count(len(board.rows), 'model')}: {numbers}."
        )
    first = f"{best.model} meets the criteria best of {format_count(len(board.models), 'model')}: {numbers}"
    return f"{first}{_describe_tests(rows, best.model, [row.model for row in board.models[1:]])}."


def _describe_tests(rows: RubricRows, best: str, rivals: Sequence[str]) -> str:
    tests = rows.rows.frame("comparisons", {"family": "rubric"})
    pairs = tests[(tests["model"] == best) & tests["other_model"].isin(rivals)] if len(tests) else tests
    if not len(pairs) or pairs["p_adjusted"].isna().all():
        return ""
    beaten = set(pairs.loc[pairs["verdict"] == BETTER, "other_model"])
    open_still = [name for name in rivals if name not in beaten]
    if not open_still:
        return "; tests find it better than each of the others"
    return f"; tests find it better than {len(beaten)} of {len(rivals)} others, but not than {list_first_names(open_still, _MAX_NAMED)}"


def _compute_item_scores(rows: RubricRows) -> pd.DataFrame:
    """Return one row per model and prompt."""
    prompt_rows = rows.cut("prompt").dropna(subset=["score"])
    places = list(zip(prompt_rows["blueprint"].astype(str), prompt_rows["prompt"].astype(str), strict=True))
    items = {place: _format_item(rows, *place) for place in dict.fromkeys(places) if place[0] in rows.about}
    item_rows = [
        (model, *items.get(place, ("", "", "")), score)
        for model, place, score in zip(prompt_rows["model"], places, prompt_rows["score"], strict=True)
    ]
    return pd.DataFrame(item_rows, columns=["model", "item", "label", "page", "score"])


def _format_item(rows: RubricRows, blueprint: str, prompt: str) -> tuple[str, str, str]:
    words = rows.prompts.get((blueprint, prompt), (0, prompt))[1]
    page = state_address(rows.page(blueprint), prompt=address_id(prompt))
    return f"{blueprint}/{prompt}", f"{rows.title(blueprint)}: {words}", page


def _map_variants(rows: RubricRows) -> dict[str, str]:
    """Map each model's name to one variant; boards know models by name."""
    if not {"model", "model_variant"} <= rows.rows.columns("rubric_scores"):
        return {}
    first = "(SELECT model, min(model_variant) AS variant FROM rubric_scores WHERE model_variant IS NOT NULL GROUP BY model)"
    return {str(row["model"]): str(row["variant"]) for row in rows.rows.rows(first, ("model", "variant"), {})}


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
