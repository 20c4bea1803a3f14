"""Key points in the pipeline: asked once; judged like any criterion; gone without the switch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.assets.rubric.conftest import RubricPipeline, copy_finished, make_finished
from tests.fake_llm_server import Call
from tests.made.rubric_documents import ONE, ONE_PROMPTS
from tests.made.rubric_replies import listed_points

EXTRACTING: dict[str, Any] = {"extract_points": True, "analysts": ["analyst-z"]}
FROM_POINTS = ["rubric_blueprints", "rubric_judgements", "rubric_points", "rubric_scores"]
"""The stages that key points change."""
LACKING = [
    ONE_PROMPTS[0],
    {"id": "second", "prompt": "Why?", "ideal": "For it is so. It was ever so."},
    {"id": "third", "prompt": "Who?", "ideal": "The council."},
]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    blueprints = {"one": [ONE, LACKING]}
    return make_finished(tmp_path_factory.mktemp("finished"), blueprints, unreadable=False)


@pytest.fixture
def lacking(rubric: RubricPipeline, finished: Path) -> RubricPipeline:
    """A blueprint with two ideal answers without criteria, all stages made; judges are easily read."""
    rubric.players.unreadable = False
    copy_finished(finished, rubric)
    return rubric


def extracted(pipeline: RubricPipeline, table: str) -> list[dict[str, Any]]:
    return [row for row in pipeline.rows(table) if row["source"] == "extracted"]


def test_points_are_asked_once_and_judged_and_marked(lacking: RubricPipeline) -> None:
    before = lacking.rows("rubric_runs")[0]
    assert lacking.run(FROM_POINTS, rubric_blueprints=EXTRACTING).failures == ()
    # Three key points of two ideal answers; each in one response, by two judges.
    assert dict(lacking.players.asked) == {"extractor": 2, "judge": 6}
    assert [(row["prompt"], row["text"], row["weight"]) for row in extracted(lacking, "rubric_criteria")] == [
        ("second", "It says: For it is so", 1.0),
        ("second", "It says: It was ever so", 1.0),
        ("third", "It says: The council", 1.0),
    ]
    points = extracted(lacking, "rubric_points")
    assert [row["prompt"] for row in points] == ["second", "second", "third"]
    assert all(row["n_answered"] == 2 and row["score"] is not None for row in points)
    assert {row["source"] for row in lacking.rows("rubric_points") if row["prompt"] == "first"} == {None}
    cells = {row["prompt"]: row for row in lacking.rows("rubric_scores") if row["level"] == "cell"}
    defined = {prompt: (row["coverage"] is not None, row["similarity"] is not None) for prompt, row in cells.items()}
    assert defined == {"first": (True, False), "second": (True, True), "third": (True, True)}
    of_points = lacking.rows("rubric_runs")[0]
    assert of_points["test_hash"] != before["test_hash"]
    assert (of_points["judge_hash"], of_points["policy_hash"]) == (before["judge_hash"], before["policy_hash"])

    rows = lacking.rows("rubric_extractions")
    assert [(row["prompt"], row["analyst"], row["n_points"], row["reason"]) for row in rows] == [
        ("second", "analyst-z", 2, None),
        ("third", "analyst-z", 1, None),
    ]
    assert "[max_tokens=256,temperature=0]" in rows[0]["analyst_variant"]

    assert lacking.run(FROM_POINTS, rubric_blueprints=EXTRACTING).failures == ()
    assert not lacking.players.asked
    assert lacking.rows("rubric_runs")[0] == of_points

    # Without the switch all is as it was.
    assert lacking.run(FROM_POINTS).failures == ()
    assert not lacking.players.asked
    assert lacking.rows("rubric_runs", "one")[0] == before
    assert lacking.rows("rubric_extractions") == []
    assert extracted(lacking, "rubric_criteria") == []


def test_editing_other_things_extracts_nothing_again(lacking: RubricPipeline) -> None:
    only = ["rubric_blueprints"]
    lacking.run(only, rubric_blueprints=EXTRACTING)
    assert dict(lacking.players.asked) == {"extractor": 2}
    heavier = [LACKING[0], {**LACKING[1], "weight": 2.0}, LACKING[2]]
    lacking.write("one", [{**ONE, "title": "Another", "tags": ["other"], "system": "Be long."}, heavier])
    lacking.run(only, rubric_blueprints=EXTRACTING)
    assert "extractor" not in lacking.players.asked
    lacking.write("one", [ONE, [LACKING[0], LACKING[1], {**LACKING[2], "ideal": "The court. A nurse."}]])
    lacking.run(only, rubric_blueprints=EXTRACTING)
    assert lacking.players.asked["extractor"] == 1


def test_what_cannot_be_read_is_asked_for_once_more_then_similarity_alone_counts(lacking: RubricPipeline) -> None:
    def says(call: Call) -> str:
        if "Who?" in call.body["messages"][1]["content"]:
            return "- It says who."
        return listed_points(call) if len(call.body["messages"]) > 2 else "<point>Half a"

    lacking.players.extractor = says
    assert lacking.run(FROM_POINTS, rubric_blueprints=EXTRACTING).failures == ()
    assert dict(lacking.players.asked) == {"extractor": 4, "judge": 4}
    assert [(row["prompt"], row["n_points"], row["reason"], row["attempts"]) for row in lacking.rows("rubric_extractions")] == [
        ("second", 2, None, 2),
        ("third", 0, "unreadable", 2),
    ]
    cells = {row["prompt"]: row for row in lacking.rows("rubric_scores") if row["level"] == "cell"}
    assert cells["third"]["hybrid"] == pytest.approx(max(0, cells["third"]["similarity"]))
    assert cells["third"]["coverage"] is None


def test_a_budget_of_analysts_stops_extraction_alone_and_the_same_command_goes_on(lacking: RubricPipeline) -> None:
    config = {**EXTRACTING, "role_budgets": {"analyst": {"max_calls": 0}}}
    assert lacking.run(["rubric_blueprints"], rubric_blueprints=config).failures == ()
    assert not lacking.players.asked
    assert [(row["n_points"], row["reason"]) for row in lacking.rows("rubric_extractions")] == [(0, "budget")] * 2
    lacking.run(["rubric_blueprints"], rubric_blueprints=EXTRACTING)
    assert lacking.players.asked["extractor"] == 2
