"""A full GD4-sized round (49 segments x 116 questions x 3 contexts x 5 baselines) through all six stages.

Prints the seconds and peak memory of the one Dagster run, the seconds of the same work by calling the library without Dagster and
without files, and their ratio. Run: `python benchmarks/full_round.py [SURVEY.json]`; without a survey it makes a synthetic one.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

CONTEXTS = ("0", "5", "all")
BASELINES = ("uniform", "population-marginal", "leave-one-out-marginal", "shuffled-segment", "dirichlet")


def synthetic_survey(path: Path, *, segments: int = 49, questions: int = 116, seed: int = 1) -> Path:
    """A DTEFSurveyData file of the given size; its answers are random."""
    rng = np.random.default_rng(seed)
    options = ["Strongly disagree", "Somewhat disagree", "Neutral", "Somewhat agree", "Strongly agree"]
    shares = 100 * rng.dirichlet(np.full(5, 3.0), size=(segments, questions))
    survey = {
        "surveyId": "benchmark-b1",
        "surveyName": "Benchmark",
        "questions": {
            f"q{q}": {
                "text": f"How far do you agree with statement number {q} of this synthetic survey?",
                "type": "single-select",
                "options": options,
            }
            for q in range(questions)
        },
        "segments": [
            {
                "id": f"country:c{s}",
                "label": f"C{s}",
                "attributes": {"country": f"C{s}"},
                "sampleSize": 50,
                "responses": [{"questionId": f"q{q}", "distribution": shares[s, q].tolist()} for q in range(questions)],
            }
            for s in range(segments)
        ],
    }
    path.write_text(json.dumps(survey), encoding="utf-8")
    return path


def through_dagster(survey: Path, state: Path) -> float:
    """Seconds of `dtef run` with all six stages and the roll-ups, as a user waits for them."""
    places = {"DTEF_WAREHOUSE": "warehouse", "DTEF_RESPONSES": "responses.sqlite", "DAGSTER_HOME": "dagster"}
    environment = {**os.environ, **{name: str(state / place) for name, place in places.items()}}
    dtef = [sys.executable, "-c", "from dtef_pipeline.cli import main; main()"]
    subprocess.run([*dtef, "ingest", str(survey), "--round", "B1"], env=environment, check=True)
    options = [word for level in CONTEXTS for word in ("--context", level)]
    options += [word for name in BASELINES for word in ("--model", f"baseline/{name}")]
    started = time.perf_counter()
    subprocess.run(
        [*dtef, "run", "--ingest", "--round", "B1", *options], env=environment, check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - started


def through_library(survey: Path) -> tuple[float, int]:
    """Seconds of the same stages by plain calls, and the number of predictions."""
    from dtef_pipeline.aggregation.segment_results import segment_results
    from dtef_pipeline.blueprint.options import BlueprintOptions
    from dtef_pipeline.blueprint.prompts import build_blueprints
    from dtef_pipeline.drift.checks import drift_checks
    from dtef_pipeline.prediction.assemble import baseline_rows
    from dtef_pipeline.prediction.models import load_models
    from dtef_pipeline.scoring.score import score_predictions
    from dtef_pipeline.survey.adapters import read_survey
    from dtef_pipeline.survey.observe import observe

    started = time.perf_counter()
    models = load_models("{}").resolve([f"baseline/{name}" for name in BASELINES])
    responses = observe(read_survey(survey, "B1")).responses
    tables = []
    for segment in pc.unique(responses["segment"]).to_pylist():
        rows = responses.filter(pc.field("segment") == segment)
        prompts = build_blueprints(rows, BlueprintOptions(context_levels=CONTEXTS))
        made = pa.concat_tables([baseline_rows(prompts, rows, model, 1, "base", {}) for model in models])
        scored = score_predictions(made, rows)
        drift_checks(scored)
        tables.append(scored)
    scores = pa.concat_tables(tables)
    segment_results(scores)
    return time.perf_counter() - started, len(scores)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        survey = Path(sys.argv[1]) if len(sys.argv) > 1 else synthetic_survey(Path(folder) / "b1.json")
        dagster = through_dagster(survey, Path(folder))
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        library, predictions = through_library(survey)
    print(f"{predictions:,} predictions: one Dagster run {dagster:.1f} s ({memory:,.0f} MB), library alone {library:.1f} s")
    print(f"ratio Dagster run / library: {dagster / library:.2f}")


if __name__ == "__main__":
    main()
