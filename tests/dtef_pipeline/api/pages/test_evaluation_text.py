"""What happened to an evaluation, in words: finished stages are one line each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from resources.evaluations.evaluation_store import EvaluationStore, RunSpec
from tests.dtef_pipeline.api.browsed import browsing, text_of, tree_of
from tests.dtef_pipeline.api.made import settings_in
from tests.made.run_events import RUN_LOG, tell

PLAN = {"keys": ["S1/a", "S1/b"], "config": {"blueprints": {}, "predictions": {}}, "snapshot": "base"}


def told(folder: Path, *events: tuple[str, Mapping[str, Any]]) -> list[Element]:
    """The entries of the list of events on the page of an evaluation after these events."""
    with EvaluationStore(settings_in(folder).responses_url, RUN_LOG) as store:
        asked = [RunSpec(key, {"partition": key}) for key in ("S1/a", "S1/b")]
        queue_id = store.submit("survey", {}, PLAN, asked, "operator")[0].queue_id
        for kind, data in events:
            tell(store, queue_id, kind, data)  # type: ignore[arg-type]
    with browsing(folder) as client:
        return tree_of(client.get(f"/queue/{queue_id}").text).findall(".//ol[@class='story']/li")


def words_of(entry: Element | None) -> str:
    """What an entry says without its times."""
    return " ".join(re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d( to )?", "", text_of(entry)).split()).replace(" ;", ";")


def part_done(stage: str, key: str) -> tuple[str, dict[str, str]]:
    return "item", {"stage": stage, "key": key, "status": "done"}


def test_events_are_reported_in_words_and_each_stage_once(tmp_path: Path) -> None:
    found = told(
        tmp_path,
        ("started", {}),
        part_done("blueprints", "S1/a"),
        part_done("blueprints", "S1/b"),
        ("item", {"restarted": 1, "reason": "the worker is gone"}),
        ("item", {"stage": "predictions", "answered": 30, "n_planned": 40}),
        part_done("predictions", "S1/a"),
    )
    assert [words_of(one.find("details/summary") if one.find("details") is not None else one) for one in found] == [
        "predictions 1 of 2 partitions done; 30 of 40 calls answered",
        "Dagster started the run again: the worker is gone",
        "blueprints 2 of 2 partitions done",
        "started Dagster's run has started",
        "queued Stored with 2 runs",
    ]
    assert [words_of(one) for one in found[0].findall("details/ol/li")] == ["done S1/a", "30 of 40 calls answered"]
    assert [one.find("details").get("open") for one in (found[0], found[2])] == ["", None]  # type: ignore[union-attr]


def test_the_end_says_what_became_of_all_calls_and_what_they_cost(tmp_path: Path) -> None:
    calls = {"n_requests": 24, "answered": 21, "failed": 2, "skipped": 1}
    end, *_ = told(
        tmp_path, ("completed", {"calls": calls, "warning": "2 failed", "call_costs": {"usd": 0.5, "calls": 3, "unpriced": 0}})
    )
    words = "completed 21 of 24 calls answered, 2 failed, 1 left out; 2 failed; cost: 0.5000 US dollars, 3 calls"
    assert words_of(end) == words


def test_of_many_events_of_a_stage_the_last_are_shown(tmp_path: Path) -> None:
    found = told(tmp_path, *(("item", {"stage": "predictions", "answered": n, "n_planned": 300}) for n in range(250)))
    lines = found[0].findall("details/ol/li")
    assert (len(lines), words_of(lines[0]), words_of(lines[-1])) == (201, "249 of 300 calls answered", "50 earlier events")
