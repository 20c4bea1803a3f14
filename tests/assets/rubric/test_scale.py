"""Judges that choose from ten classes: the same stages, with faults, and nothing that mixes two scales."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from dtef_pipeline.judging.consensus import TEN_CLASSES
from dtef_pipeline.rubric.site.family_site import read
from dtef_pipeline.rubric.tables import RUBRIC_TABLES
from dtef_pipeline.site.content import DataFile
from tests.assets.rubric.conftest import RubricPipeline, rubric_pipeline
from tests.made.rubric_by_hand import near, scored_by_hand
from tests.made.rubric_documents import PATHS, PATHS_PROMPTS
from tests.made.rubric_replies import TEN_VERDICTS, faulty

JUDGES_ON_TEN = [("standard", "judge-x"), ("prompt-aware", "judge-x")]
TEN: dict[str, Any] = {"scale": 10}
COLD = {**PATHS, "temperatures": [0.0]}


@pytest.fixture
def faults(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RubricPipeline]:
    """A pipeline of which a fifth of the calls fails."""
    with rubric_pipeline(state, monkeypatch, faulty(0.2)) as made:
        yield made


@pytest.mark.thorough
def test_ten_classes_make_the_scores_that_plain_loops_find_and_are_bought_once(faults: RubricPipeline) -> None:
    faults.write("paths", [COLD, PATHS_PROMPTS])
    assert faults.run(rubric_judgements=TEN).failures == ()
    assert set(faults.players.answered.values()) == {1}
    rows = faults.rows("rubric_judgements")
    assert {row["scale"] for row in rows} == {10}
    assert {row["judge"] for row in rows} == {"standard(judge-x)[scale:10]", "prompt-aware(judge-x)[scale:10]"}
    said = {row["class"]: row["score"] for row in rows}
    assert len(said) > 8
    assert said == {name: None if name is None else TEN_CLASSES.numbers[name] for name in said}
    hand = scored_by_hand(COLD, PATHS_PROMPTS, JUDGES_ON_TEN, faults.players, TEN_VERDICTS)
    models = {row["model"]: row["hybrid"] for row in faults.rows("rubric_scores") if row["level"] == "model"}
    assert models == {model: near(score) for model, score in hand.models.items()}
    assert faults.players.asked
    assert faults.run(rubric_judgements=TEN).failures == ()
    assert not faults.players.asked


def test_another_scale_asks_judges_alone_and_back_again_nobody(one: RubricPipeline) -> None:
    rubric, judge_and_score = one, ["rubric_judgements", "rubric_points", "rubric_scores"]
    of_five = rubric.rows("rubric_runs")[0]
    judged = rubric.table("rubric_judgements")
    rubric.run(judge_and_score, rubric_judgements=TEN)
    assert dict(rubric.players.asked) == {"judge": 8}
    of_ten = rubric.rows("rubric_runs")[0]
    assert of_ten["test_hash"] == of_five["test_hash"]
    assert of_ten["policy_hash"] == of_five["policy_hash"]
    assert of_ten["judge_hash"] != of_five["judge_hash"]
    assert of_ten["run_hash"] != of_five["run_hash"]
    rubric.run(judge_and_score)
    assert not rubric.players.asked
    assert rubric.rows("rubric_runs")[0] == of_five
    assert rubric.table("rubric_judgements") == judged


@pytest.mark.thorough
def test_tables_of_judges_and_pages_keep_two_scales_apart(rubric: RubricPipeline) -> None:
    rubric.players.unreadable = False
    rubric.write("five", [COLD, PATHS_PROMPTS])
    rubric.write("ten", [COLD, PATHS_PROMPTS])
    assert rubric.run(keys=["five"]).failures == ()
    assert rubric.run(keys=["ten"], rubric_judgements=TEN).failures == ()
    assert rubric.roll_up().failures == ()
    cuts = rubric.rows("rubric_agreement")
    assert [row["scale"] for row in cuts if row["cut"] == "overall"] == [5, 10]
    assert {(row["value"], row["scale"]) for row in cuts if row["cut"] == "blueprint"} == {("five", 5), ("ten", 10)}
    assert {row["value"] for row in cuts if row["cut"] == "judges"} == {
        "prompt-aware(judge-x) x standard(judge-x)",
        "prompt-aware(judge-x)[scale:10] x standard(judge-x)[scale:10]",
    }
    overall = {row["scale"]: row["alpha"] for row in cuts if row["cut"] == "overall"}
    assert {row["scale"]: row["alpha"] for row in cuts if row["cut"] == "blueprint"} == {
        scale: near(alpha) for scale, alpha in overall.items()
    }
    assert len(rubric.rows("rubric_judges")) == 4

    told = rubric.house.query(_verdicts_on_pages, only=RUBRIC_TABLES)
    names = {row["class"].removeprefix("CLASS_") for row in rubric.rows("rubric_judgements", "ten")}
    assert len(names) > 7
    assert names <= set(TEN_VERDICTS)
    assert {name.lower().replace("_", " ") for name in names} <= told


def _verdicts_on_pages(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """The verdicts in the data of the pages of the blueprint `ten`."""
    files = [one.value for one in read(connection).pages() if isinstance(one, DataFile) and "/ten/" in one.path]
    points = [point for value in files for response in value["responses"] for point in response["points"] if point]
    return {words for point in points for _, words, _, _ in point[3]}
