"""Single sections, from frames written by hand."""

from __future__ import annotations

import json
import re
from html import unescape

import duckdb
import numpy as np
import pandas as pd
import pytest

from dtef_pipeline.report import leaderboard as shared
from dtef_pipeline.report.markup import dollars
from dtef_pipeline.survey.report.attributes import attributes, consistency
from dtef_pipeline.survey.report.context import context
from dtef_pipeline.survey.report.groups import asked_alike, asked_like
from dtef_pipeline.survey.report.heatmap import heat_map_section
from dtef_pipeline.survey.report.leaderboard import SURVEY_BOARD
from dtef_pipeline.survey.report.methodology import methodology
from dtef_pipeline.survey.report.quality import costs, quality
from dtef_pipeline.survey.report.terms import NAMES
from dtef_pipeline.survey.scoring.policy import CREDITS
from tests.made.sections import OTHERS, cells, frame


def leaderboard(board: pd.DataFrame) -> str:
    return shared.leaderboard(asked_alike(board), SURVEY_BOARD)


def comparisons(board: pd.DataFrame, pairs: pd.DataFrame) -> str:
    return shared.comparisons([(group, asked_like(group.rows, pairs)) for group in asked_alike(board)], NAMES)


def headings(markup: str) -> list[str]:
    return re.findall(r"<th[^>]*><button[^>]*>(.*?)</button>", markup.split("</thead>")[0])


def test_what_models_are_ranked_by_is_shown_where_it_is_not_the_score() -> None:
    plain = {"rank": 1}
    same = frame({"model": "a", "score": 0.8, "adjusted_score": 0.8 + 1e-12, **plain})
    partial = frame({"model": "a", "score": 0.83, "adjusted_score": 0.8124, **plain})
    assert "Ranked by" not in headings(leaderboard(same))
    assert "Not every model has a score on every pair" not in leaderboard(same)
    markup = leaderboard(pd.concat([same, partial], ignore_index=True))
    at = headings(markup).index("Ranked by")
    assert [row[at] for row in cells(markup)] == ["0.800", "0.812"]
    assert "Not every model has a score on every pair" in markup


def test_what_belongs_to_a_number_stands_beneath_it() -> None:
    row = {"model": "a", "rank": 1, "rank_low": 1, "rank_high": 3, "score": 0.8, "tier": 1, "n_pairs": 1234}
    rest = {
        "parsed_score": 0.81,
        "parse_rate": 0.98,
        "skill": 0.2,
        "n_questions": 20,
        "n_batteries": 9,
        "note": "3 questions",
    }
    (row_cells,) = cells(leaderboard(frame({**row, **rest})))
    shown = [re.sub(" +", " ", cell) for cell in row_cells]
    expected = [
        "1 1 to 3",
        "1",
        "a 3 questions",
        "0.800",
        "0.810 98.0% read",
        "0.200",
        "1,234",
        "20 9 batteries",
    ]
    assert shown == expected


def test_what_a_row_should_be_read_with_stands_beneath_its_name() -> None:
    rows = frame(
        {"model": "baseline/population-marginal", "score": 0.9, "note": "has <seen> it"},
        {"model": OTHERS, "score": 0.8, "note": ""},
    )
    first, second = (row[0] for row in cells(leaderboard(rows)))
    assert "has <seen> it" in first or "has &lt;seen&gt; it" in first
    assert second == OTHERS


def test_where_questions_are_too_few_to_tell_models_apart_it_says_so_in_place_of_tiers() -> None:
    """A difference that no test could have found was marked as one of models that are alike."""
    board = frame({"model": "a", "rank": 1, "score": 0.8}, {"model": "b", "rank": 2, "score": 0.6}).assign(tier=None)
    few = "8 batteries cannot tell 28 pairs apart: at least 11 are needed"
    known = {"model": "a", "other_model": "b", "other_variant": "b", "difference": 0.2, "p": 0.01, "p_adjusted": 0.28}
    markup = comparisons(board, frame({**known, "verdict": "not told apart", "note": few}))
    assert f"No tiers: {few}." in markup
    assert "Tiers, best first" not in markup
    assert "≈" not in markup.split("<tbody>")[1].split("</tbody>")[0]
    assert f'title="{few}"' in markup
    assert "≈ +0.200" in comparisons(board.assign(tier=1), frame({**known, "verdict": "not told apart", "note": ""}))
    assert "Tier" not in headings(leaderboard(board))
    assert "Tier" in headings(leaderboard(board.assign(tier=1)))


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


def test_columns_of_the_heat_map_stand_in_the_order_of_the_ranks() -> None:
    """They stood by their means over segments, which put a model of few pairs elsewhere than the board does."""
    rows = frame(*({"model": model, "score": score} for model, score in (("a", 0.6), ("b", 0.9), ("c", 0.7), ("d", 0.8))))
    rows = rows.assign(segment="country:kenya", value="Kenya", attribute="country")
    board = frame(
        {"model": "a", "rank": 1}, {"model": "b", "rank": 2}, {"model": "c", "rank": None}, {"model": "d", "rank": None}
    )
    other = board.assign(rank=[2, 1, None, None], context_level="0")
    order = lambda markup: re.findall(r'class="upright" title="(\w)"', markup)  # noqa: E731
    assert order(heat_map_section(rows, pd.concat([other, board]))) == ["a", "b", "d", "c"]
    assert order(heat_map_section(rows)) == ["b", "d", "c", "a"]


def test_long_names_over_the_heat_map_keep_their_ends_and_are_whole_when_pointed_at() -> None:
    names = [f"provider/a-family-of-models-with-very-long-names-{end}" for end in ("0613", "1106")]
    rows = frame(*({"model": name, "score": 0.5} for name in names))
    markup = heat_map_section(rows.assign(segment="country:kenya", value="Kenya", attribute="country"))
    assert [name[-4:] for name in re.findall(r"<span>(provider[^<]*)</span>", markup)] == ["0613", "1106"]
    assert all(f'title="{name}"' in markup for name in names)


def test_attributes_stand_beside_their_ceiling_and_skill() -> None:
    rows = frame(
        {
            "model": "a",
            "attribute": "gender",
            "score": 0.9,
            "ceiling": 0.96,
            "skill": 0.5,
            "skill_low": 0.25,
            "skill_high": 0.75,
        },
        {"model": "a", "attribute": "age", "score": 0.8, "ceiling": 0.93, "skill": np.nan},
        {"model": "b", "attribute": "age", "score": 0.7, "ceiling": 0.93, "skill": -0.5},
    )
    markup = attributes(rows)
    assert cells(markup) == [["a", "0.800", "0.900"], ["b", "0.700", "–"], ["ceiling", "0.930", "0.960"]]
    skill = markup.split("</table>", 1)[1]
    assert cells(skill) == [["a", "–", "0.50 0.25 to 0.75"], ["b", "-0.500", "–"]]


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


def test_a_model_without_a_score_at_a_level_is_not_the_same_at_every_level() -> None:
    """Models without a curve were called the same at every level, also one with a score at a single level."""
    low = frame({"model": "still", "score": 0.5}, {"model": "a", "score": 0.6}, {"model": "once", "score": 0.4}, level="0")
    high = frame({"model": "still", "score": 0.5}, {"model": "a", "score": 0.7}, {"model": "once", "score": None}, level="all")
    markup = context(pd.concat([low, high], ignore_index=True), pd.DataFrame())
    assert "The same at every level: still." in markup
    assert "Without a score: once at all." in markup


def test_curves_are_spaced_by_the_questions_that_prompts_really_show() -> None:
    board = pd.concat([frame({"model": "a", "score": s}, level=level) for level, s in (("0", 0.6), ("5", 0.65), ("all", 0.7))])
    rows = [("0", 0), ("5", 5), ("5", 4), ("all", 40), ("all", 50)]
    shown = pd.DataFrame(rows, columns=["context_level", "context_included"]).assign(condition="c")
    markup = context(board.reset_index(drop=True), pd.DataFrame(), shown)
    left, middle, right = (float(x) for x in re.findall(r'circle cx="([\d.]+)%"', markup))
    assert (middle - left) / (right - left) == pytest.approx(4.5 / 45, abs=0.001)
    assert "0 (0.0), 5 (4.5), all (45.0)" in markup
    assert "spaced evenly" in context(board.reset_index(drop=True), pd.DataFrame(), shown[shown["context_level"] != "5"])


def test_a_baseline_has_no_verdict_on_what_it_believes() -> None:
    known = {
        "levels": "0, all",
        "least_score": 0.6,
        "most_score": 0.6,
        "least_context": 0.0,
        "most_context": 42.5,
        "slope": -0.0,
    }
    told = frame(*({"model": model, "verdict": "stereotype-holding", **known} for model in (OTHERS, "gpt")))
    baseline, model = cells(context(frame({"model": "a", "score": 0.5}), told))
    assert baseline[-1] == "–"
    assert model[-1] == "stereotype-holding"
    assert "-0.0" not in " ".join(baseline)


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


def test_quality_says_what_each_status_counts_as_the_policy_has_it(connection: duckdb.DuckDBPyConnection) -> None:
    """The text claimed that nothing without an answer ever counts 0, while refused and unparseable answers do."""
    how = quality(connection).split('class="how">')[1].split("</p>")[0]
    assert "never counts" not in how
    counted, left_out = how.split("Where there is no answer at all")
    for credit in CREDITS:
        said = f"{credit.status.replace('_', ' ')} {credit.score:g}" if credit.score is not None else credit.status
        assert said in (left_out if credit.score is None else counted), credit.status


def test_without_costs_nothing_was_paid_for(connection: duckdb.DuckDBPyConnection) -> None:
    assert "Nothing was paid for." in costs(connection)


def test_the_methodology_gives_every_credit_with_its_reason() -> None:
    markup = unescape(methodology("tv"))
    assert "<code>tv</code>" in markup
    for credit in CREDITS:
        assert credit.reason in markup


def test_the_methodology_explains_its_words_in_those_of_a_survey() -> None:
    markup = unescape(methodology("js"))
    assert "A <b>pair</b> is one question to one segment of a round." in markup
    for word in ("<b>cell</b>", "<b>cluster</b>", "A snapshot is"):
        assert word in markup
    assert not re.search(r"\b(items?|partitions?)\b", markup)


def test_costs_below_a_cent_are_not_nought() -> None:
    """Experiments of a small run were shown as free."""
    assert [dollars(cost) for cost in (0.0028, 0.0, 0.00001, 1234.5, None)] == [
        "0.0028",
        "0.0000",
        "&lt; 0.0001",
        "1,234.5000",
        "–",
    ]


def test_an_attribute_says_how_many_pairs_are_behind_a_mean_that_is_not_of_all() -> None:
    rows = frame({"model": "a", "score": 0.5, "n_pairs": 1234}, {"model": "b", "score": 0.6, "n_pairs": 4936})
    first, second = sorted(cells(attributes(rows.assign(attribute="country"))))
    assert (first, second) == (["a", "0.500 1,234 pairs, 25.0%"], ["b", "0.600"])
