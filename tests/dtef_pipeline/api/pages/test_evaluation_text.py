"""What happened to an evaluation, in words: finished stages are one line each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dtef_pipeline.api.pages.evaluation_text import (
    StageStory,
    TimelineEvent,
    build_story,
)
from dtef_pipeline.api.queue.evaluation_progress import load_evaluation_view
from resources.evaluations.evaluation_store import EvaluationStore, RunSpec
from tests.dtef_pipeline.api.browsed import browsing, text_of, tree_of
from tests.dtef_pipeline.api.made import settings_in
from tests.made.run_events import RUN_LOG, tell

PLAN = {"keys": ["S1/a", "S1/b"], "config": {"blueprints": {}, "predictions": {}}, "snapshot": "base"}


def told(folder: Path, *events: tuple[str, Mapping[str, Any]]) -> tuple[str, list[TimelineEvent | StageStory]]:
    """The queue id of an evaluation after these events, and its story."""
    with EvaluationStore(settings_in(folder).responses_url, RUN_LOG) as store:
        asked = [RunSpec(key, {"partition": key}) for key in ("S1/a", "S1/b")]
        queue_id = store.submit("survey", {}, PLAN, asked, "operator")[0].queue_id
        for kind, data in events:
            tell(store, queue_id, kind, data)  # type: ignore[arg-type]
        return queue_id, build_story(load_evaluation_view(store, queue_id))


def part_done(stage: str, key: str) -> tuple[str, dict[str, str]]:
    return "item", {"stage": stage, "key": key, "status": "done"}


def test_events_are_reported_in_words_and_each_stage_once(tmp_path: Path) -> None:
    queue_id, found = told(
        tmp_path,
        ("started", {}),
        part_done("blueprints", "S1/a"),
        part_done("blueprints", "S1/b"),
        ("item", {"restarted": 1, "reason": "the worker is gone"}),
        ("item", {"stage": "predictions", "answered": 30, "n_planned": 40}),
        part_done("predictions", "S1/a"),
    )
    assert [one.stage if isinstance(one, StageStory) else one.words for one in found] == [
        "predictions",
        "Dagster started the run again: the worker is gone",
        "blueprints",
        "Dagster's run has started",
        "Stored with 2 runs",
    ]
    predictions, blueprints = (one for one in found if isinstance(one, StageStory))
    assert (predictions.summary, predictions.is_over) == ("1 of 2 partitions done; 30 of 40 calls answered", False)
    assert (blueprints.summary, blueprints.is_over) == ("2 of 2 partitions done", True)
    assert [one.words for one in predictions.lines] == ["S1/a", "30 of 40 calls answered"]
    with browsing(tmp_path) as client:
        page = tree_of(client.get(f"/queue/{queue_id}").text)
    stages = {
        text_of(one.find("summary/b")): "open" in one.attrib
        for one in page.iter("details")
        if one.find("summary/b") is not None
    }
    assert stages == {"predictions": True, "blueprints": False}


def test_the_end_says_what_became_of_all_calls_and_what_they_cost(tmp_path: Path) -> None:
    calls = {"n_requests": 24, "answered": 21, "failed": 2, "skipped": 1}
    _, found = told(
        tmp_path, ("completed", {"calls": calls, "warning": "2 failed", "call_costs": {"usd": 0.5, "calls": 3, "unpriced": 0}})
    )
    end = found[0]
    assert isinstance(end, TimelineEvent)
    assert end.words == "21 of 24 calls answered, 2 failed, 1 left out; 2 failed; cost: 0.5000 US dollars, 3 calls"


def test_of_many_events_of_a_stage_the_last_are_shown(tmp_path: Path) -> None:
    _, found = told(tmp_path, *(("item", {"stage": "predictions", "answered": n, "n_planned": 300}) for n in range(250)))
    (stage,) = (one for one in found if isinstance(one, StageStory))
    assert (len(stage.lines), stage.n_left_out) == (200, 50)
    assert stage.lines[0].words == "249 of 300 calls answered"
