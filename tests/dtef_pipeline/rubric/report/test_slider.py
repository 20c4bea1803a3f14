from __future__ import annotations

import json
import re
from typing import Any

import pytest

from dtef_pipeline.rubric.aggregate import rescored
from dtef_pipeline.rubric.board import board
from dtef_pipeline.rubric.report.index_page import board_section, slider_data
from tests.dtef_pipeline.rubric.report.model_rows import model_rows
from tests.made.read_page import ReadPage


@pytest.mark.parametrize("beta", [0.0, 0.35, 0.5, 1.0])
def test_the_page_has_the_board_of_each_weight(beta: float) -> None:
    scores = model_rows()
    data = slider_data(scores, ["base"], {})
    own = {one["model"]: one for one in data["models"]}
    for row in board(rescored(scores, beta), ["base"], {}).to_dict("records"):
        one, at = own[row["model"]], round(beta * data["steps"])
        if row["model"] == "mute":
            assert (one["at_0"], one["low"][at], one["n"]) == (None, None, 0)
            continue
        assert one["at_0"] + beta * one["slope"] == pytest.approx(row["score"], abs=1e-12)
        assert one["n"] == row["n_parts"]
        assert [one["low"][at], one["high"][at]] == pytest.approx([row["low"], row["high"]], abs=1e-6)


def test_a_score_is_the_mean_over_blueprints_of_value_at_0_plus_weight_times_slope() -> None:
    scores = model_rows()
    for one in slider_data(scores, ["base"], {})["models"]:
        if one["at_0"] is None:
            continue
        own = scores[scores["model"] == one["model"]]
        by_hand = sum(row["at_0"] + 0.2 * row["slope"] for row in own.to_dict("records")) / len(own)
        assert one["at_0"] + 0.2 * one["slope"] == pytest.approx(by_hand, abs=1e-12)


def shown(page: str) -> list[dict[str, Any]]:
    rows = re.findall(r'<tr data-at="\d+">(.*?)</tr>', page)
    return [
        {
            "rank": re.findall(r'class="place">([^<]*)<', row)[0],
            "model": ReadPage(re.findall(r"<bdi>(.*?)</bdi>", row)[0]).text,
            "score": re.findall(r'class="number">([^<]*)<', row)[0],
            "note": "not ranked" in row,
        }
        for row in rows
    ]


def test_models_of_fewer_than_ten_blueprints_are_listed_without_a_rank() -> None:
    rows = shown(board_section(model_rows(), ["base"], {}))
    assert [row["model"] for row in rows] == ["covers", "resembles", "rare", "mute"]
    assert [row["rank"] for row in rows] == ["1", "2", "–", "–"]
    assert rows[3]["score"] == "–"
    assert [row["note"] for row in rows] == [False, False, True, True]


def test_the_text_says_what_stands_beneath_a_rank_and_warnings_stand_above_the_table() -> None:
    page = board_section(model_rows(), ["base"], {}, ["judged on <several> scales"])
    assert "Beneath a rank are the ranks that the model may truly have" in page
    assert page.index("<p>Warning: judged on &lt;several&gt; scales.</p>") < page.index("<table")


def test_blueprints_with_the_tag_test_are_in_no_score() -> None:
    scores = model_rows()
    scores.loc[scores["blueprint"] == "b0", ["at_0", "slope", "hybrid"]] = 0.0
    tagged = slider_data(scores, ["base"], {"b0": ["test"]})["models"]
    without = slider_data(scores[scores["blueprint"] != "b0"], ["base"], {})["models"]
    assert tagged == without


def test_data_in_the_page_are_json_that_no_name_can_end() -> None:
    scores = model_rows().assign(model=lambda rows: rows["model"] + "</script><!--\u2028")
    page = board_section(scores, ["base"], {})
    read = ReadPage(page)
    held = next(
        script for script, (_, given) in zip(read.scripts, _scripts(read), strict=True) if given.get("id") == "board-data"
    )
    assert {one["model"] for one in json.loads(held)["models"]} == set(scores["model"])


def _scripts(read: ReadPage) -> list[tuple[str, dict[str, str | None]]]:
    return [element for element in read.elements if element[0] == "script"]
