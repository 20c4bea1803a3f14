"""Blueprints that are asked together, and what becomes of them where one cannot be asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.stage.partitions import split_batches
from dtef_pipeline.errors import DtefError
from tests.assets.family_state import RUBRIC_STAGE_NAMES
from tests.assets.rubric.conftest import RubricPipeline
from tests.made.rubric_documents import ONE, ONE_PROMPTS


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 12))
def test_groups_keep_the_order_and_the_bound_unless_one_alone_is_larger(sizes: list[int], most: int) -> None:
    plans = list(enumerate(sizes))
    made = list(split_batches(plans, sizes, most))
    assert [plan for group in made for plan in group] == plans
    assert all(len(group) == 1 or sum(size for _, size in group) <= most for group in made)


def test_small_blueprints_are_judged_together(rubric: RubricPipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    windows: list[int] = []
    _count_windows(monkeypatch, windows)
    rubric.players.unreadable = False
    for name in ("one", "two"):
        rubric.write(name, [ONE, ONE_PROMPTS])
    assert rubric.run(RUBRIC_STAGE_NAMES[:3]).failures == ()
    responses, judgements = (
        sum(len(rubric.rows(name, key)) for key in rubric.keys) for name in ("rubric_responses", "rubric_judgements")
    )
    assert windows == [responses, judgements]


def test_a_blueprint_that_cannot_be_judged_keeps_no_other_from_it(
    rubric: RubricPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    rubric.players.unreadable = False
    for name in ("one", "two"):
        rubric.write(name, [ONE, ONE_PROMPTS])
    _refuse(monkeypatch, "two")
    (failure,) = rubric.run(RUBRIC_STAGE_NAMES[:3]).failures
    assert "two (its criteria are nowhere)" in failure
    assert rubric.status("rubric_judgements") == {"one": "MATERIALIZED", "two": "FAILED"}
    assert rubric.players.asked["judge"] == len(rubric.rows("rubric_judgements", "one")) > 0


def _count_windows(monkeypatch: pytest.MonkeyPatch, windows: list[int]) -> None:
    import assets.engine.stage_assets as stage
    import dtef_pipeline.asking.episodes as side_by_side

    played = stage.play

    def counted_play(episodes, ask, stored):  # type: ignore[no-untyped-def]
        windows.append(len(episodes))
        return played(episodes, ask, stored)

    for module in (stage, side_by_side):
        monkeypatch.setattr(module, "play", counted_play)


def _refuse(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    import dtef_pipeline.rubric.stages as stage

    planned = stage.iterate_judgings

    def refused(responses, criteria, *others):  # type: ignore[no-untyped-def]
        if key in criteria["blueprint"].to_pylist():
            raise DtefError("its criteria are nowhere")
        return planned(responses, criteria, *others)

    monkeypatch.setattr(stage, "iterate_judgings", refused)
