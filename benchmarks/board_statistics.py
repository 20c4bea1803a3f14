"""One million scores of 30 models: all board statistics of them.

Prints the seconds of each part and the peak memory of the process (target: under 60 s and 4 GB on two cores). Run:
`python benchmarks/board_statistics.py`. How often the intervals hold the truth: `benchmarks/coverage.py`.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dtef_pipeline.boards.boards import board, load_evidence
from dtef_pipeline.boards.comparisons import comparisons, tiers
from dtef_pipeline.boards.reliability import reliability
from dtef_pipeline.survey.baselines.names import POPULATION_MARGINAL
from dtef_pipeline.survey.boards.consistency import consistency_components
from dtef_pipeline.survey.boards.responsiveness import context_shown, responsiveness
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
from dtef_pipeline.survey.boards.segment_gaps import segment_gaps
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.scoring.metrics import Floats, measure
from dtef_pipeline.survey.scoring.unbiased import corrected_l2, gini
from dtef_pipeline.survey.tables import BLUEPRINTS, METRICS, REFERENCE_SCORES, SCORES, SIMILARITIES, SURVEY_RESPONSES

MODELS, ROUNDS, SEGMENTS, QUESTIONS, LEVELS, OPTIONS = 30, 3, 50, 112, ("0", "all"), 4
PAIRS = ROUNDS * SEGMENTS * QUESTIONS
Table = dict[str, Any]


def table(columns: Table, rows: int, schema: pa.Schema) -> pa.Table:
    """Columns of the schema: arrays, or one value for all rows; null where nothing is given."""
    made = []
    for field in schema:
        value = columns.get(field.name)
        if isinstance(value, (np.ndarray, pa.Array)):
            made.append(pa.array(value, field.type) if isinstance(value, np.ndarray) else value.cast(field.type))
        else:
            made.append(pa.repeat(pa.scalar(value, field.type), rows))
    return pa.table(made, schema=schema)


def lists(rows: Floats) -> pa.Array:
    return pa.ListArray.from_arrays(np.arange(0, rows.size + 1, rows.shape[1], dtype=np.int32), pa.array(rows.ravel()))


def named(prefix: str, codes: npt.NDArray[np.int64]) -> pa.Array:
    return pa.array([f"{prefix}{code}" for code in range(codes.max() + 1)]).take(pa.array(codes))


def survey(rng: np.random.Generator) -> tuple[Table, Floats, Floats, npt.NDArray[np.int64]]:
    """Pairs of synthetic rounds: their columns, the truth, what was observed, and n."""
    pair = np.arange(PAIRS)
    segment, question = pair // QUESTIONS % SEGMENTS, pair % QUESTIONS
    n = np.array([15, 25, 40, 60, 120, 450])[segment % 6]
    asked = pair // (SEGMENTS * QUESTIONS) * QUESTIONS + question
    population = rng.dirichlet(np.full(OPTIONS, 2.0), size=ROUNDS * QUESTIONS)[asked]
    truth = rng.standard_gamma(30 * population) + 1e-6
    truth /= truth.sum(axis=1, keepdims=True)
    observed = rng.multinomial(n, truth) / n[:, None]
    keys = {
        "round": named("S", pair // (SEGMENTS * QUESTIONS)),
        "segment": named("group:c", segment),
        "attribute": named("attribute", segment % 6),
        "value": named("C", segment),
        "question_id": named("q", question),
        "question_order": question.astype(np.int32),
        "n": n.astype(np.int32),
        "circular": False,
    }
    keys |= {"cluster": named("k", asked), "population": lists(population)}
    return keys, truth, observed, n


def references(keys: Table, population: Floats, observed: Floats, n: npt.NDArray[np.int64]) -> pa.Table:
    def struct(values: dict[str, Floats]) -> pa.Array:
        nothing = pa.nulls(PAIRS, pa.float64())
        return pa.StructArray.from_arrays(
            [pa.array(values[m]) if m in values else nothing for m in METRICS], fields=list(SIMILARITIES)
        )

    scores = {name: measure(p, observed) for name, p in (("others", population), ("uniform", np.ones_like(observed)))}
    columns = {name: struct(values) for name, values in scores.items()}
    columns |= {"population": columns["others"], "ceiling": struct({"js": 1 - 0.55 / np.sqrt(n)})}
    return table({**keys, **columns, "gini": gini(observed, n), "shrinkage": 0.5}, PAIRS, REFERENCE_SCORES)


def scores(rng: np.random.Generator, keys: Table, truth: Floats, observed: Floats, n: npt.NDArray[np.int64]) -> pa.Table:
    tables = []
    for model in range(MODELS):
        for level in LEVELS:
            off = rng.normal(0, 0.3 + 0.02 * model - 0.1 * (level == "all"), size=(ROUNDS, 1, QUESTIONS, OPTIONS))
            off = np.broadcast_to(off, (ROUNDS, SEGMENTS, QUESTIONS, OPTIONS)).reshape(PAIRS, OPTIONS)
            predicted = (truth + 0.01) * np.exp(off + rng.normal(0, 0.2, size=off.shape))
            predicted /= predicted.sum(axis=1, keepdims=True)
            values = measure(predicted, observed)
            name = POPULATION_MARGINAL if model == 0 else f"model-{model}"
            asked = {"model": name, "model_variant": name, "context_level": level, "condition": "plain", "snapshot": "base"}
            status = {"status": "ok", "metric": "js", "score": values["js"], "draw": 0, "predicted": lists(predicted)}
            error = {"l2_corrected": corrected_l2(predicted, observed, n), "prompt_id": level}
            tables.append(table({**keys, **asked, **status, **values, **error}, PAIRS, SCORES))
    return pa.concat_tables(tables)


def connection(seed: int = 1) -> duckdb.DuckDBPyConnection:
    """The tables of the benchmark in memory."""
    rng = np.random.default_rng(seed)
    keys, truth, observed, n = survey(rng)
    population = keys["population"].flatten().to_numpy().reshape(PAIRS, OPTIONS)
    texts = {"question_text": keys["cluster"], "battery": keys["question_id"]}
    asked = {**texts, "options": [f"option {i}" for i in range(OPTIONS)], "scale": "ordinal", "dont_know": [False] * OPTIONS}
    made = {
        "survey_responses": table(
            {**keys, **asked, "observed": lists(observed), "others": keys["population"]}, PAIRS, SURVEY_RESPONSES
        ),
        "reference_scores": references(keys, population, observed, n),
        "scores": scores(rng, keys, truth, observed, n),
        "blueprints": pa.concat_tables(
            table({**keys, "context_level": level, "condition": "plain", "context_included": shown}, PAIRS, BLUEPRINTS)
            for level, shown in (("0", 0), ("all", 100))
        ),
    }
    found = duckdb.connect()
    for name, rows in made.items():
        found.register("arriving", rows)
        found.execute(f"CREATE TABLE {name} AS FROM arriving")
        found.unregister("arriving")
    return found


def timed(name: str, work: Callable[[], Any]) -> Any:
    started, used = time.perf_counter(), time.process_time()
    result = work()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds, cpu = time.perf_counter() - started, time.process_time() - used
    print(f"{name}: {seconds:.1f} s ({cpu:.1f} s of processor, peak so far {peak:,.0f} MB)", flush=True)
    return result


def time_all() -> None:
    found = timed("make the tables", connection)
    options = SurveyBoardOptions()
    started, used = time.perf_counter(), time.process_time()
    evidence = timed("cells and noise", lambda: load_evidence(found, options))
    cells = evidence.cells
    noise = None if evidence.noise is None else evidence.noise.score
    boards = {view: timed(f"board {view}", lambda view=view: board(found, view, options, evidence)) for view in KEYS.groups}
    compared = timed("comparisons", lambda: comparisons(cells, options, noise))
    timed("tiers", lambda: tiers(boards["overall"], compared, KEYS))
    timed("responsiveness", lambda: responsiveness(cells, context_shown(found), options))
    timed("segment gaps", lambda: segment_gaps(cells, options))
    timed("consistency", lambda: consistency_components(cells, options))
    timed("reliability", lambda: reliability(found, options))
    seconds, cpu = time.perf_counter() - started, time.process_time() - used
    print(f"all: {seconds:.1f} s ({cpu:.1f} s of processor) for {len(cells):,} cells")


if __name__ == "__main__":
    time_all()
