"""Tests find little where nothing is to be found: among unread responses and over rounds. In full: `benchmarks/type_one_error.py`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks.type_one_error import OPTIONS, evidence_of
from dtef_pipeline.boards.comparisons import compare_all_pairs
from dtef_pipeline.survey.boards.segment_gaps import compute_segment_gaps
from tests.made.world_tables import connection
from tests.made.worlds import TYPICAL, Design, Survey, World

SETS = 6
SMALL = Design((3, *(1,) * 12), countries=(15, 30, 60), ages=2, models=dict.fromkeys(("m0", "m1", "m2", "m3"), TYPICAL))
OFTEN_UNREAD = ("m2", "m3")


def compared(world: World, surveys: list[Survey]) -> pd.DataFrame:
    cells, noise = evidence_of(connection(world, surveys, 0), set(world.design.models))
    return compare_all_pairs(cells, OPTIONS, noise)


@pytest.mark.thorough
def test_a_model_that_is_read_less_often_is_worse_by_the_policy_and_not_by_readable_responses() -> None:
    unread = {model: 0.3 if model in OFTEN_UNREAD else 0.01 for model in SMALL.models}
    pairs = []
    for seed in range(SETS):
        world = World(replace(SMALL, unread=unread), seed)
        pairs.append(compared(world, [world.survey(np.random.default_rng(seed))]))
    found = pd.concat(pairs)
    unlike = found[found["model"].isin(OFTEN_UNREAD) != found["other_model"].isin(OFTEN_UNREAD)]
    assert (unlike["verdict"] == "better").mean() >= 0.8
    assert (unlike["parsed_verdict"] != "no clear difference").mean() <= 0.15


def test_readable_responses_show_no_gap_between_segments_that_are_read_unequally_often() -> None:
    world = World(replace(SMALL, country=1e-4, group=1e-4, unread=0.2, uneven=0.9), 1)
    tables = connection(world, world.survey(np.random.default_rng(1)), 20)
    cells, noise = evidence_of(tables, set(SMALL.models))
    table = compute_segment_gaps(cells, OPTIONS, noise)
    table = table[table["attribute"] == "gender"]
    assert (table["deviation"].abs() > 0.15).all()
    assert set(table["parsed_verdict"]) == {"no clear difference"}


@pytest.mark.thorough
def test_questions_that_three_rounds_ask_count_once() -> None:
    """With batteries of each round by itself there are 39, and too many of the equal models differ."""
    found = []
    for seed in range(SETS):
        world = World(SMALL, seed)
        # The first three are a battery, whose last question all rounds ask; all ask the other twelve.
        surveys = world.rounds(np.random.default_rng(seed), [slice(0, None), slice(2, None), slice(2, None)])
        found.append(compared(world, surveys))
    pairs = pd.concat(found)
    assert set(pairs["n_clusters"]) == {13}
    assert (pairs["p"] < 0.05).mean() <= 0.15
