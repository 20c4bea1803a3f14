"""Single sections, from frames written by hand."""

from __future__ import annotations

import json
import re

import duckdb
import numpy as np
import pandas as pd
import pytest

from dtef_pipeline.report import leaderboard as shared
from dtef_pipeline.survey.report.attributes import consistency
from dtef_pipeline.survey.report.context import context
from dtef_pipeline.survey.report.groups import asked_alike, asked_like
from dtef_pipeline.survey.report.heatmap import heat_map_section
from dtef_pipeline.survey.report.leaderboard import SURVEY_BOARD
from dtef_pipeline.survey.report.quality import quality
from dtef_pipeline.survey.report.terms import NAMES
from tests.made.sections import OTHERS, cells, frame


def leaderboard(board: pd.DataFrame) -> str:
    return shared.leaderboard(asked_alike(board), SURVEY_BOARD)


def comparisons(board: pd.DataFrame, pairs: pd.DataFrame) -> str:
    return shared.comparisons([(group, asked_like(group.rows, pairs)) for group in asked_alike(board)], NAMES)


def test_each_language_model_against_the_reference_is_seen_from_the_language_model() -> None:
    board = frame({"model": OTHERS, "rank": 1, "score": 0.8}, {"model": "a", "rank": 2, "score": 0.6}).assign(tier=1)
    known = {"difference": 0.2, "low": 0.1, "high": 0.3, "p": 0.01, "p_adjusted": 0.02, "verdict": "better", "note": ""}
    known |= {"score": 0.8, "other_score": 0.6, "targets": "clean", "parsed_difference": -0.1, "parsed_low": -0.2}
    known |= {"parsed_high": 0.05, "parsed_verdict": "not told apart", "parsed_note": ""}
    pair = frame({"model": OTHERS, "other_model": "a", "other_variant": "a", "family": "reference", **known})
    markup = comparisons(board, pair)
    assert f"each language model against {OTHERS}" in markup
    row = cells(markup.split("<caption>Each language model against")[1])[0]
    assert [row[0], row[1], row[2], row[4]] == ["a", OTHERS, "-0.20 -0.30 to -0.10", "worse"]
    saved = json.loads(markup.split("<caption>Each language model against")[1].split('class="rows">')[1].split("</script>")[0])
    assert [saved[name] for name in ("score", "other_score")] == [[0.6], [0.8]], "the file had them the other way round"
    apart = comparisons(board, pair.assign(parsed_note="something else"))
    row = cells(apart.split("<caption>Each language model against")[1])[0]
    assert row[5:7] == ["+0.10 -0.05 to +0.20", "not told apart"], "by readable responses alone"


def test_a_cell_of_the_heat_map_has_its_number_its_colour_and_more_when_pointed_at() -> None:
    rows = frame(
        {"model": "a", "score": 0.9, "score_low": 0.85, "score_high": 0.93, "segment": "country:kenya", "value": "Kenya"},
        {"model": "b", "score": 0.4, "segment": "country:kenya", "value": "Kenya"},
        {"model": "b", "score": np.nan, "segment": "country:chile", "value": "Chile"},
    ).assign(attribute="country")
    markup = heat_map_section(rows)
    assert '<td class="h9" title="a: 0.9000, 95 % 0.850 to 0.930, 10 pairs">0.90</td>' in markup
    assert '<td class="h0" title="b: 0.4000, 10 pairs">0.40</td>' in markup
    assert "Chile" not in markup
    assert "nan" not in markup
    sizes = pd.DataFrame({"segment": ["country:kenya"], "n_respondents": [1096], "n_rounds": [2]})
    assert "Kenya<span" not in markup
    assert 'Kenya<span class="n">n = 1,096 in 2 rounds</span>' in heat_map_section(rows, sizes=sizes)


def test_consistency_shows_what_is_expected_and_what_is_true_where_it_is_known() -> None:
    row = {
        "model": "a",
        "rank": 1,
        "segment_sd": 0.05,
        "lowest": 0.5,
        "lowest_segment": "x",
        "highest": 0.9,
        "highest_segment": "y",
    }
    known = {
        "segment_sd_expected": 0.04,
        "segment_sd_true": 0.01,
        "segment_sd_low": 0.0,
        "segment_sd_high": 0.02,
        "segment_p": 0.2,
    }
    assert cells(consistency(frame(row)))[0] == ["1", "a", "0.050", "0.500 x", "0.900 y"]
    assert "ranked by the one seen" in consistency(frame(row))
    assert "ranked by that of the true means" in consistency(frame({**row, **known}))
    assert cells(consistency(frame({**row, **known})))[0][2:6] == ["0.010 0.000 to 0.020", "0.050", "0.040", "0.200"]


def test_context_curves_are_of_models_that_move() -> None:
    rows = pd.concat(
        [
            frame({"model": "still", "score": 0.5}, {"model": "a", "score": s}, level=level)
            for level, s in (("0", 0.6), ("all", 0.7))
        ]
    )
    markup = context(rows.reset_index(drop=True), pd.DataFrame())
    assert re.findall(r'aria-label="(.*?)"', markup) == ["a by context level: 0: 0.600, all: 0.700"]
    assert "The same at every level: still." in markup
    assert "spaced evenly" in markup
    assert "nothing to compare" in context(frame({"model": "a", "score": 0.5}), pd.DataFrame())


def test_curves_are_spaced_by_the_questions_that_prompts_really_show() -> None:
    board = pd.concat([frame({"model": "a", "score": s}, level=level) for level, s in (("0", 0.6), ("5", 0.65), ("all", 0.7))])
    rows = [("0", 0), ("5", 5), ("5", 4), ("all", 40), ("all", 50)]
    shown = pd.DataFrame(rows, columns=["context_level", "context_included"]).assign(condition="c")
    markup = context(board.reset_index(drop=True), pd.DataFrame(), shown)
    left, middle, right = (float(x) for x in re.findall(r'circle cx="([\d.]+)%"', markup))
    assert (middle - left) / (right - left) == pytest.approx(4.5 / 45, abs=0.001)
    assert "0 (0.0), 5 (4.5), all (45.0)" in markup
    assert "spaced evenly" in context(board.reset_index(drop=True), pd.DataFrame(), shown[shown["context_level"] != "5"])


def test_responsiveness_stands_with_its_verdict() -> None:
    known = {
        "levels": "0, all",
        "slope": 0.001,
        "slope_low": 0.0005,
        "slope_high": 0.0015,
        "difference": 0.02,
        "low": 0.01,
        "high": 0.03,
    }
    rest = {"least_context": 0.0, "most_context": 42.5, "least_score": 0.6, "most_score": 0.62, "p": 0.01, "p_adjusted": 0.02}
    told = frame({"model": "a", "verdict": "evidence-adapting", **known, **rest})
    (row,) = cells(context(frame({"model": "a", "score": 0.5}), told))
    assert row[:5] == ["a", "0, all", "0.600 0.0 questions", "0.620 42.5 questions", "+0.020 +0.010 to +0.030"]
    assert "evidence-adapting" in row


def test_quality_counts_statuses_and_says_why(connection: duckdb.DuckDBPyConnection) -> None:
    markup = quality(connection)
    assert ["m", "2", "1", "1"] in cells(markup.split("Predictions by status")[1])
    assert "an apology" in markup
    assert "circular pairs" in markup.lower()
