"""How far the scores of one segment would move if its people's answers were drawn anew, by the segment's own rows alone.

A stage that makes the results of one segment reads no other. So the other segments of its attribute count as one here: `others_n` people who
answer as their mean `others`, of which the samples of the leave-one-out mean and of the population marginal are drawn.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.boards.scored import Deviations
from dtef_pipeline.statistics.drawing import SEED
from dtef_pipeline.survey.boards.noise import Predictions, score_anew
from dtef_pipeline.survey.boards.redrawn import DRAWN_FROM, REPLICATES, redrawn, with_size
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.scoring.matrices import EFFECTIVE, with_effective

NEEDED = (*DRAWN_FROM, "others_n", "population", "population_n")
"""Columns of `survey_responses` that are needed."""
SCORED_AGAIN = (KEYS.item, "model", "status", "predicted", "metric")
"""Columns of `scores` that are needed."""


def segment_noise(scores: pa.Table, survey: pa.Table) -> Deviations:
    """Deviations (scores, replicates) of each of a segment's `scores` under its own metric, 0 on average.

    `survey`: the columns NEEDED of the segment. 0 where nothing was read, where the survey has no such question with as many options, and
    where its n is unknown.
    """
    known = with_size(with_effective(survey).select(NEEDED)).sort_by(KEYS.item)
    noise = np.zeros((len(scores), REPLICATES), dtype=np.float32)
    pair = pc.fill_null(pc.index_in(scores[KEYS.item], known[KEYS.item].combine_chunks()), -1).to_numpy().astype(np.int64)
    options, given = (
        pc.fill_null(pc.list_value_length(lists), -1).to_numpy() for lists in (known["observed"], scores["predicted"])
    )
    read = np.flatnonzero(pc.equal(scores["status"], "ok").to_numpy() & (pair >= 0))
    read = read[options[pair[read]] == given[read]]
    answers = pa.concat_tables([known.select(DRAWN_FROM), _others(known)])
    samples = list(redrawn(answers, np.unique(pair[read]), np.random.default_rng(SEED)))
    metric = scores["metric"].to_numpy()[read]
    for name in pd.unique(metric):
        rows = read[metric == name]
        some = scores.select(["model", "predicted"]).take(pa.array(rows))
        models, predicted = some["model"].dictionary_encode().to_pandas(), some["predicted"].combine_chunks()
        noise[rows] = score_anew(samples, Predictions(models, pair[rows], np.arange(len(rows)), predicted), name).score
    return noise


def _others(survey: pa.Table) -> pa.Table:
    """DRAWN_FROM, of those who are not of the segment: the others of its attribute, or all, where it is alone in its attribute."""
    answers = pc.coalesce(survey["others"], survey["population"])
    people = pc.if_else(
        pc.is_valid(survey["others"]), survey["others_n"], pc.subtract(survey["population_n"], survey["n"].cast(pa.int64()))
    )
    rows = survey.select(DRAWN_FROM)
    nobody = pa.nulls(len(rows), pa.float64())
    for name, column in (("observed", answers), ("n", people.cast(pa.int32())), (EFFECTIVE, nobody)):
        rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    return rows.filter(pc.and_kleene(pc.greater(rows["n"], 0), pc.is_valid(rows["observed"])))
