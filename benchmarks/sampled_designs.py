"""What a run of a part of a round finds, beside a run of all of it: verdicts on every two of five made models, through `comparisons`.

The scores of two models differ as those of baselines of the round do: by variance components of a battery, of a question and of a pair,
estimated from the leave-one-out marginal's lead over the uniform baseline. Draws are those of `--questions` and `--sample-segments`, with
another seed in every world.

Run: `python benchmarks/sampled_designs.py path/to/GD4 [WORLDS]`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from dtef_pipeline.boards.cells import load_cells
from dtef_pipeline.boards.comparisons import compare_all_pairs
from dtef_pipeline.boards.pairs import BETTER
from dtef_pipeline.survey.adapters import read_survey
from dtef_pipeline.survey.answer_scales.batteries import load_question_clusters
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.observations import observe
from dtef_pipeline.survey.question_draw import (
    Components,
    compute_expected_error,
    draw_segment_order,
    estimate_variance_components,
)
from dtef_pipeline.survey.scoring.references import compute_reference_scores
from dtef_pipeline.survey.tables import SCORES

MODELS = {"a": 0.80, "b": 0.76, "c": 0.76, "d": 0.71, "e": 0.65}
PAIRS = list(combinations(MODELS, 2))
ALL = "all questions, all segments"
_NAMES = ["round", "segment", "attribute", "question_id"]


def read_round(folder: Path) -> pd.DataFrame:
    """One row per pair that boards count, with its battery as `cluster` and the baselines' difference as `score`."""
    responses = observe(read_survey(folder)).responses
    with duckdb.connect() as connection:
        connection.register("survey_responses", responses)
        connection.register("reference_scores", compute_reference_scores(responses, draws=2))
        pairs = connection.execute(
            f"SELECT {', '.join(_NAMES)}, question_text, options, question_order, battery, draw_order, circular, "
            "r.leave_one_out_score.js - r.uniform_score.js AS score "
            "FROM survey_responses JOIN reference_scores r USING (round, segment, question_id) WHERE NOT circular AND NOT non_answer"
        ).df()
        clusters = load_question_clusters(connection)
    return pairs.merge(clusters, on=["round", "question_id"]).assign(question=pairs["question_id"], put_off=False)


def designs(pairs: pd.DataFrame) -> Iterator[tuple[str, SurveyBoardOptions, pd.Series]]:
    """A name, the options of the board, and which of the pairs (by their order in the questionnaire) are asked at all."""
    every, first = ~pairs["put_off"], pairs["question_order"].rank(method="dense") <= 10
    yield ALL, _options(), every
    yield "first 10 questions of the questionnaire", _options(), first
    for questions, segments in ((10, None), (43, None), (None, 1), (None, 2), (None, 4), (43, 10)):
        named = {"--questions": questions, "--sample-segments": segments}
        name = " ".join(f"{option} {number}" for option, number in named.items() if number)
        yield name, _options(questions, segments), every


def _options(questions: int | None = None, segments: int | None = None) -> SurveyBoardOptions:
    return SurveyBoardOptions(questions=questions, sample_segments=segments)


def made_scores(pairs: pd.DataFrame, components: Components, rng: np.random.Generator) -> pa.Table:
    """`scores` of the models, whose differences have the components."""
    tables = []
    for model, mean in MODELS.items():
        effect = rng.normal(mean, np.sqrt(components.pair / 2), len(pairs))
        for column, variance in (("cluster", components.battery), ("question", components.question)):
            codes, names = pd.factorize(pairs[column])
            effect += rng.normal(0, np.sqrt(variance / 2), len(names))[codes]
        tables.append(pairs[_NAMES].assign(model=model, model_variant=model, js=effect))
    same = {"snapshot": "base", "context_level": "0", "condition": "made", "draw": 0, "status": "ok", "circular": False}
    frame = pd.concat(tables, ignore_index=True).assign(**same)
    columns = [pa.array(frame[f.name], f.type) if f.name in frame else pa.nulls(len(frame), f.type) for f in SCORES]
    return pa.Table.from_arrays(columns, schema=SCORES)


def world(pairs: pd.DataFrame, components: Components, seed: int) -> Iterator[Mapping[str, object]]:
    """A row per design: verdicts that are those of the whole round, the error of the first two models' difference, and what was expected."""
    drawn = pairs.assign(segment_order=draw_segment_order(pairs["round"].iloc[0], pairs, seed))
    whole: dict[tuple[str, str], str] = {}
    with duckdb.connect() as connection:
        connection.register("survey_responses", drawn)
        connection.register("scores", made_scores(pairs, components, np.random.default_rng(seed)))
        for name, options, asked in designs(pairs):
            cells = load_cells(connection, options)
            cells = cells[cells["question_id"].isin(pairs.loc[asked, "question_id"])]
            found = verdicts(cells, options)
            whole = whole or found
            means = cells.groupby("model", observed=True)["score"].mean()
            one = cells[cells["model"] == "a"].assign(question=cells["question_id"])
            yield {
                "design": name,
                "calls": len(one),
                "same": np.mean([found[pair] == whole[pair] for pair in PAIRS]),
                "error": means["a"] - means["b"] - (MODELS["a"] - MODELS["b"]),
                "expected": compute_expected_error(components, one),
            }


def verdicts(cells: pd.DataFrame, options: SurveyBoardOptions) -> dict[tuple[str, str], str]:
    """The better model of every two; empty where no clear difference is found."""
    rows = compare_all_pairs(cells, options, has_parsed=False).to_dict("records")
    named = {tuple(sorted((row["model"], row["other_model"]))): row for row in rows}
    return {pair: named[pair]["model"] if named[pair]["verdict"] == BETTER else "" for pair in PAIRS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("worlds", nargs="?", type=int, default=40)
    asked = parser.parse_args()
    pairs = read_round(asked.folder)
    components = estimate_variance_components(pairs)
    print("standard deviations:", *(f"{name} {value**0.5:.3f}" for name, value in components._asdict().items()))
    rows = pd.DataFrame([row for seed in range(asked.worlds) for row in world(pairs, components, seed)])
    print(
        "| design | calls | same verdicts (standard error) | standard error: expected | in these worlds |\n|---|---|---|---|---|"
    )
    for name, of in rows.groupby("design", sort=False):
        calls, same = of["calls"].mean(), of["same"]
        share, error = f"{same.mean():.2f} ({same.sem():.2f})", f"{of['expected'].mean():.4f} | {of['error'].std():.4f}"
        print(f"| {name} | {calls:,.0f} ({calls / len(pairs):.1%}) | {share} | {error} |")


if __name__ == "__main__":
    main()
