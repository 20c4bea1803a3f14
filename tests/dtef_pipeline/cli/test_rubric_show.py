"""`dtef rubric show` and `dtef rubric show`: what is stored of a run, in the terminal and as one file."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from resources.warehouse import Warehouse
from tests.dtef_pipeline.cli.commands import ok, refused
from tests.made.rubric_pages import JUDGES, made_tables
from tests.made.rubric_warehouse import keep
from tests.strict_json import strict

NAME = "health__topic-0"
OF_CRITERION = ("prompt", "model", "temperature", "block", "path", "position")
ESCAPES = "\x1b[31mred\x1b[0m \x9b2J\x07 \u202eturned\r\nnext"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tables = made_tables(2, 3, 3, temperatures=(0.0, 0.5), snapshots=("base", "later"))
    tables.rows["rubric_responses"][0]["text"] = ESCAPES
    tables.rows["rubric_judgements"][0]["reflection"] = ESCAPES
    return Path(keep(tables, tmp_path_factory.mktemp("rubric") / "warehouse").root)


def exported(folder: Path, *options: str) -> Any:
    out = folder / "result.json"
    ok("rubric", "show", NAME, "--out", out, *options)
    return strict(out.read_text(encoding="utf-8"))


class TestShow:
    def test_table_has_a_row_per_prompt_and_a_column_per_model_of_the_latest_run(self, house: Warehouse) -> None:
        text = ok("rubric", "show", NAME)
        assert "snapshot later: hybrid score" in text
        cells = house.read("rubric_scores", blueprint=NAME, snapshot="later").to_pylist()
        of_prompt = [
            row["hybrid"]
            for row in cells
            if row["level"] == "cell" and (row["prompt"], row["model"]) == ("prompt-0", "openai/model-0")
        ]
        line = next(line for line in text.splitlines() if line.strip().startswith("prompt-0"))
        assert len(line.split()) == 4
        assert f"{math.fsum(of_prompt) / len(of_prompt):.4f}" in line
        assert [name for name in ("prompt-0", "prompt-1", "prompt-2", "all prompts") if name not in text] == []

    def test_prompt_shows_every_response_with_every_criterion_and_each_judges_class_and_reason(self, house: Warehouse) -> None:
        text = ok("rubric", "show", NAME, "prompt-1", "--snapshot", "base")
        responses = house.read("rubric_responses", blueprint=NAME, snapshot="base").to_pylist()
        assert text.count("  response:") == sum(row["prompt"] == "prompt-1" for row in responses)
        judgements = house.read("rubric_judgements", blueprint=NAME, snapshot="base").to_pylist()
        own = [row for row in judgements if row["prompt"] == "prompt-1"]
        for name, number in Counter(row["class"] for row in own if row["class"]).items():
            assert text.count(f"{name} (") == number
        assert text.count("no verdict (") == sum(row["class"] is None for row in own)
        assert "(written by the model)" in text
        assert "$icontains" in text
        head = ok("rubric", "show", NAME, "prompt-1", "--csv").partition("\n")[0]
        assert {"model", "hybrid", "criterion_score", "criterion_words", "judges"} <= set(head.split(","))

    def test_point_says_how_many_judges_answered_and_which_draws_of_them_are_missing(self, state: Path) -> None:
        """Where a judge answered in one draw and not in the other, `2 of 2 judges` was said of a partial point."""
        made = made_tables(1, 1, 1)
        rows = made.rows["rubric_judgements"]
        asked = [row for row in rows if [row[name] for name in OF_CRITERION] == [rows[0][name] for name in OF_CRITERION]]
        for row in asked:
            row |= {"class": "CLASS_EXACTLY_MET", "score": 1.0, "reason": None}
        rows.append({**asked[0], "judge_draw": 1, "class": None, "score": None, "reason": "cut"})
        (point,) = (one for one in made.rows["rubric_points"] if all(one[name] == asked[0][name] for name in OF_CRITERION))
        point |= {"score": 1.0, "low": 0.75, "high": 1.0, "n_judges": 2, "n_answered": 2, "partial": True}
        keep(made, state / "warehouse")
        assert "2 of 2 judges, 1 draw missing" in ok("rubric", "show", NAME, "prompt-0")
        asked[1] |= {"class": None, "score": None, "reason": "budget"}
        point |= {"n_answered": 1}
        rows.pop()
        keep(made, state / "warehouse")
        text = ok("rubric", "show", NAME, "prompt-0")
        assert "1 of 2 judges" in text
        assert "missing" not in text

    def test_escape_sequences_of_models_and_judges_are_shown_and_not_sent_to_the_terminal(self, house: Warehouse) -> None:
        text = ok("rubric", "show", NAME, "prompt-0", "--snapshot", "base")
        assert "\\x1b[31mred\\x1b[0m \\x9b2J\\x07 \\u202eturned" in text
        assert not set(text) & set("\x1b\x9b\x07\u202e\r")

    def test_names_that_are_not_known_are_answered_with_the_nearest(self, house: Warehouse) -> None:
        assert "known: health__topic-0" in refused("rubric", "show", "health__topic0")
        assert "known: prompt-2" in refused("rubric", "show", NAME, "promt-2")
        assert "known: later, base" in refused("rubric", "show", NAME, "--snapshot", "latter")
        assert "known: openai/model-1" in refused("rubric", "show", NAME, "--model", "openai/modell-1")


class TestExport:
    def test_file_holds_every_response_point_and_judgement(self, house: Warehouse, tmp_path: Path) -> None:
        result = exported(tmp_path)
        at = {"blueprint": NAME, "snapshot": "later"}
        counts = {name: len(house.read(name, **at)) for name in ("rubric_responses", "rubric_points", "rubric_judgements")}
        assert sum(map(len, result["responses"].values())) == counts["rubric_responses"]
        points = [point for of in result["coverage"].values() for one in of for point in one["pointAssessments"]]
        assert len(points) == counts["rubric_points"]
        assert sum(len(point["individualJudgements"]) for point in points) == counts["rubric_judgements"]
        judged_by = Counter(point["judgeModelId"] for point in points)
        assert {name for name in judged_by if name and name.startswith("consensus(")} == {
            f"consensus({', '.join(sorted(JUDGES))})"
        }
        assert judged_by[None] == sum(
            all(one["coverageExtent"] is None for one in point["individualJudgements"]) for point in points
        )
        assert result["metadata"]["runHash"] == "r" * 32
        assert (result["metadata"]["configId"], result["metadata"]["snapshot"]) == (NAME, "later")
        assert result["executiveSummary"] is None

    def test_scores_of_points_are_those_of_the_table_and_no_unscored_one_is_0(self, house: Warehouse, tmp_path: Path) -> None:
        result = exported(tmp_path, "--snapshot", "base")
        rows = house.read("rubric_points", blueprint=NAME, snapshot="base").to_pylist()
        found = Counter(
            (prompt, point["block"], point["path"], point["position"], point["coverageExtent"], point["reason"])
            for prompt, of in result["coverage"].items()
            for one in of
            for point in one["pointAssessments"]
        )
        names = ("prompt", "block", "path", "position", "score", "reason")
        assert found == Counter(tuple(row[name] for name in names) for row in rows)

    def test_matrices_are_symmetric_with_a_diagonal_of_1(self, house: Warehouse, tmp_path: Path) -> None:
        matrices = exported(tmp_path)["similarityMatrices"]
        assert set(matrices) == {"prompt-0", "prompt-1", "prompt-2"}
        for one in matrices.values():
            size = len(one["modelIds"])
            assert [len(row) for row in one["matrix"]] == [size] * size
            assert len(set(one["modelIds"])) == size == len(one["toIdeal"])
            assert all(one["matrix"][at][at] == pytest.approx(1) for at in range(size))
            assert one["matrix"] == [list(column) for column in zip(*one["matrix"], strict=True)]
