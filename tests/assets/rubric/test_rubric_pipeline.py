"""The six stages and the board for real: small blueprints, a server that plays everyone, tables held against loops of the tests' own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dtef_pipeline.identity import digest
from tests.assets.family_state import GREEN, RED, RUBRIC_STAGE_NAMES
from tests.assets.rubric.conftest import RubricPipeline, rubric_pipeline, state_in
from tests.made.rubric_by_hand import ByHand, near, scored_by_hand
from tests.made.rubric_documents import BROKEN_PROMPTS, EDITED_PROMPTS, ONE, ONE_PROMPTS, PATHS, PATHS_PROMPTS
from tests.made.rubric_replies import READABLE_FORMS, UNREADABLE_FORMS

USUAL_JUDGES = [("standard", "judge-x"), ("prompt-aware", "judge-x")]


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RubricPipeline]:
    """The blueprint with every part, all stages made, once for the tests that leave its scores as they are."""
    with (
        pytest.MonkeyPatch.context() as patch,
        rubric_pipeline(state_in(tmp_path_factory.mktemp("paths"), patch), patch) as made,
    ):
        made.write("paths", [PATHS, PATHS_PROMPTS])
        outcome = made.run()
        assert outcome.failures == ()
        assert all(passed for name, passed in made.checks(outcome).items() if name != "rubric_judges_are_readable")
        yield made


def by_hand(paths: RubricPipeline) -> ByHand:
    return scored_by_hand(PATHS, PATHS_PROMPTS, USUAL_JUDGES, paths.players)


def cell_of(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["prompt"], row["model"], row["temperature"], row["system_index"]


class TestTables:
    def test_tables_have_the_stated_inputs_and_the_scores_of_plain_loops(self, paths: RubricPipeline) -> None:
        hand = by_hand(paths)
        responses = {cell_of(row): (row["status"], row["text"] or "") for row in paths.rows("rubric_responses")}
        assert responses == {at: tuple(reply) for at, reply in hand.replies.items()}
        assert len(responses) == 4 * 2 * 2 * 2
        points = {
            (*cell_of(row), row["block"], row["path"], row["position"]): row["score"] for row in paths.rows("rubric_points")
        }
        assert points == {at: near(score) for at, score in hand.points.items()}
        found = paths.rows("rubric_scores")
        cells = {cell_of(row): (row["coverage"], row["similarity"], row["hybrid"]) for row in found if row["level"] == "cell"}
        assert cells == {at: tuple(near(value) for value in three) for at, three in hand.cells.items()}
        variants = {
            (row["model"], row["temperature"], row["system_index"]): row["hybrid"] for row in found if row["level"] == "variant"
        }
        assert variants == {at: near(score) for at, score in hand.variants.items()}
        models = {row["model"]: row["hybrid"] for row in found if row["level"] == "model"}
        assert models == {at: near(score) for at, score in hand.models.items()}
        paths.roll_up("rubric_board")
        board = {row["model"]: (row["score"], row["rank"]) for row in paths.rows("rubric_board") if row["cut"] == "overall"}
        assert board == {model: (near(score), None) for model, score in hand.models.items()}

    def test_judgements_keep_every_reply_and_none_that_could_not_be_read_is_a_zero(self, paths: RubricPipeline) -> None:
        assert set(paths.players.forms) == {*READABLE_FORMS, *UNREADABLE_FORMS}
        text_of = {row["criterion_id"]: row["text"] for row in paths.rows("rubric_criteria")}
        reply_of = {cell_of(row): row["text"] for row in paths.rows("rubric_responses")}
        rows = paths.rows("rubric_judgements")
        for row in rows:
            meant = paths.players.verdicts[
                row["judge_model"], row["approach"], reply_of[cell_of(row)], text_of[row["criterion_id"]]
            ]
            assert row["class"] == (meant[-1] and f"CLASS_{meant[-1]}")
            assert (row["score"] is None) == (row["class"] is None) == (row["reason"] is not None)
            assert len(row["raw"]) == len(row["request_keys"]) == row["attempts"] == len(meant)
        assert {row["reason"] for row in rows} >= {None, "unreadable"}
        assert 1 in {row["attempts"] for row in rows}
        assert 2 in {row["attempts"] for row in rows}

    def test_each_request_is_sent_once_and_a_rerun_sends_none(self, paths: RubricPipeline) -> None:
        answered = paths.players.answered
        assert set(answered.values()) == {1}
        before = {table: paths.table(table) for table in ("rubric_judgements", "rubric_points", "rubric_scores")}
        assert set(paths.players.asked) == {"candidate", "judge", "embedder"}
        assert paths.run().failures == ()
        assert not paths.players.asked
        assert {table: paths.table(table) for table in before} == before


class TestEditing:
    def test_each_edit_asks_for_what_it_changes_alone(self, one: RubricPipeline) -> None:
        scores, label = one.table("rubric_scores"), one.rows("rubric_runs")[0]["run_hash"]
        assert one.write("one", [{**ONE, "title": "Another", "description": "Of what?", "tags": ["other"]}, ONE_PROMPTS])
        assert self.asked(one) == {}
        assert one.rows("rubric_blueprints")[0]["tags"] == ["other"]
        assert (one.table("rubric_scores"), one.rows("rubric_runs")[0]["run_hash"]) == (scores, label)

        heavier = [{**ONE_PROMPTS[0], "should": [{"text": "It is right.", "weight": 5.0}, "It is kind."]}, ONE_PROMPTS[1]]
        one.write("one", [ONE, heavier])
        assert self.asked(one) == {}
        assert one.table("rubric_scores") != scores

        # One response, one criterion, a standard and a prompt-aware judge.
        one.write("one", [ONE, EDITED_PROMPTS])
        assert self.asked(one) == {"judge": 2}
        judged = {row["criterion_id"] for row in one.rows("rubric_judgements")}
        assert judged == {row["criterion_id"] for row in one.rows("rubric_criteria")}

        one.server.calls.clear()
        two_models = {**ONE, "models": ["openai:cand-a", "openai:cand-b"]}
        one.write("one", [two_models, EDITED_PROMPTS])
        assert self.asked(one) == {"candidate": 2, "judge": 8, "embedder": 1}
        candidates = {call.body["model"] for call in one.server.calls if call.body["model"].startswith("cand-")}
        assert candidates == {"cand-b"}
        assert {row["model"] for row in one.rows("rubric_scores")} == {"cand-a", "cand-b"}

        third = {"id": "third", "prompt": "And now?", "should": ["It is new."]}
        one.write("one", [ONE, [ONE_PROMPTS[1], third]])
        assert self.asked(one) == {"candidate": 1, "judge": 2}
        for table in ("rubric_responses", "rubric_judgements", "rubric_points"):
            assert {row["prompt"] for row in one.rows(table) if row["model"] == "cand-a"} == {"second", "third"}, table

    def asked(self, one: RubricPipeline) -> dict[str, int]:
        """Who is asked how often by a run."""
        assert one.run().failures == ()
        return dict(one.players.asked)

    def test_a_run_without_own_judges_says_so_among_its_judges(self, one: RubricPipeline) -> None:
        """Only its hash told it, which nobody can read."""
        (with_all,) = one.rows("rubric_runs")
        switch = {"no_own_judge": True}
        one.run(["rubric_points", "rubric_scores"], rubric_points=switch, rubric_scores=switch)
        (without,) = one.rows("rubric_runs")
        assert without["judges"] == [*with_all["judges"], "no own judge"]
        assert without["judge_hash"] == digest(with_all["judge_hash"], "no own judge")


class TestBrokenFile:
    def test_it_fails_alone_while_the_others_are_made(self, rubric: RubricPipeline) -> None:
        rubric.write("good", [ONE, ONE_PROMPTS])
        rubric.write("broken", [ONE, BROKEN_PROMPTS])
        outcome = rubric.run()
        (failure,) = outcome.failures
        assert failure.startswith("summarize: 1 of 2 partitions failed, the others are done: broken (")
        assert "(and 1 more error)" in failure
        for stage in RUBRIC_STAGE_NAMES:
            assert rubric.status(stage)["good"] == GREEN, stage
        assert rubric.status("rubric_blueprints")["broken"] == RED
        assert {row["blueprint"] for row in rubric.rows("rubric_scores")} == {"good"}


class TestStaleness:
    def test_a_changed_file_makes_its_own_blueprint_stale_and_no_other(self, rubric: RubricPipeline) -> None:
        prompts = [{"id": "first", "prompt": "Say the.", "should": [{"$icontains": "the"}]}]
        rubric.write("one", [ONE, prompts])
        rubric.write("other", [ONE, prompts])
        assert rubric.run().failures == ()
        assert rubric.stale() == {}
        assert not rubric.write("one", [ONE, prompts])
        assert rubric.write("one", [ONE, [{**prompts[0], "should": [{"$icontains": "a"}]}]])
        assert rubric.stale()["rubric_blueprints"] == {"one"}
        assert set().union(*rubric.stale().values()) == {"one"}
        assert rubric.run(keys=["one"]).failures == ()
        assert rubric.stale() == {}
