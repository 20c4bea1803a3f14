"""Runs of the qa family that are killed while they ask, judge or run programs: a rerun goes on, and nothing is left behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dtef_pipeline.qa.judging.arbiter import EVALUATORS
from resources.responses.store import ResponseStore
from resources.settings import Settings
from tests.assets.qa.conftest import PLANTED, QaPipeline, qa_pipeline
from tests.assets.rubric.kills import asked_when_killed, committed, killed_when
from tests.assets.rubric.run_stages import StageRunner
from tests.conftest import ROOT
from tests.made.qa_replies import QaPlayers
from tests.waiting import wait_until

SHIPPED = ROOT / "data" / "questions"
IN_FLIGHT = 8
DRAWS = 2
ENDLESS = "    import time\n    while True:\n        time.sleep(1)\n"


@pytest.fixture
def kept(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[QaPipeline]:
    """On disk, where a process that is killed leaves its state."""
    with qa_pipeline(state, monkeypatch, on_disk=True, max_concurrency=IN_FLIGHT) as made:
        made.server.latency = 0.1
        made.players.usual = "I try for the ATTEMPT. time: it is twelve.\n#### 12"
        made.config = {
            "qa_responses": {"models": ["honest"], "draws": DRAWS},
            "qa_judgements": {"judge": "arbiter", "sample_rate": 1.0},
            "qa_executions": {},
            "qa_scores": {},
        }
        yield made


def descendants(process: int) -> set[tuple[int, str]]:
    """The processes below one, each with the moment at which it began, since numbers are given again."""
    found: set[tuple[int, str]] = set()
    parents: dict[int, list[tuple[int, str]]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (told := _stat(int(entry.name))) is not None:
            parents.setdefault(told[0], []).append((int(entry.name), told[1]))
    waiting = [process]
    while waiting:
        for one in parents.get(waiting.pop(), []):
            found.add(one)
            waiting.append(one[0])
    return found


def _stat(process: int) -> tuple[int, str] | None:
    """(parent, beginning) of a process; None: there is none, or it has ended and only waits to be forgotten."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else (int(fields[1]), fields[19])


def alive(processes: set[tuple[int, str]]) -> set[tuple[int, str]]:
    return {(process, began) for process, began in processes if (told := _stat(process)) is not None and told[1] == began}


def test_killed_while_asking_and_judging_nothing_is_bought_twice_and_no_row_is_lost(
    kept: QaPipeline, runner: StageRunner
) -> None:
    kept.add("gsm8k", SHIPPED / "gsm8k")
    assert kept.run(["qa_items", "qa_prompts"]).failures == ()
    asked = 20 * DRAWS
    first = asked_when_killed(kept, runner, "candidate", asked // 3, "qa_responses")
    assert asked // 3 <= first.answered < asked
    assert first.answered - first.committed <= IN_FLIGHT
    kept.server.latency = 0.02
    assert kept.run(["qa_responses"]).failures == ()
    assert kept.players.by_role["candidate"] == asked + first.answered - first.committed
    rows = kept.rows("qa_responses")
    assert len({(row["item_id"], row["draw"]) for row in rows}) == len(rows) == asked
    assert {row["call_status"] for row in rows} == {"answered"}

    judged = asked * len(EVALUATORS)
    kept.server.latency = 0.1
    before = committed()
    second = asked_when_killed(kept, runner, "judge", judged // 3, "qa_judgements")
    of_judge = second.answered - first.answered - (asked - first.committed)
    assert judged // 3 <= of_judge < judged
    assert of_judge - (second.committed - before) <= IN_FLIGHT
    kept.server.latency = 0.0
    assert kept.run(["qa_judgements", "qa_executions", "qa_scores"]).failures == ()
    assert kept.players.by_role["judge"] == judged + of_judge - (second.committed - before)
    assert {row["reason"] for row in kept.rows("qa_judgements")} == {None}
    assert len(kept.rows("qa_judgements")) == judged
    # Numeric, and the judge's mean and each of its evaluators.
    assert len([row for row in kept.rows("qa_scores") if row["metric"] == "judged"]) == asked
    calls = len(kept.server.calls)
    assert kept.run().failures == ()
    assert len(kept.server.calls) == calls


def test_killed_while_programs_run_no_process_is_left_and_the_rest_is_run(kept: QaPipeline, runner: StageRunner) -> None:
    kept.add("humaneval", SHIPPED / "humaneval")
    kept.server.latency = 0.0
    kept.players = QaPlayers(known={"loaves_on_shelves": "    return 1\n"}, usual=ENDLESS)
    kept.server.reply = kept.players.reply
    kept.config["qa_responses"] |= {"draws": 1, "limit": 6}
    short: dict[str, float] = {"timeout_s": 0.5}
    assert kept.run(["qa_items", "qa_prompts", "qa_responses", "qa_executions"], qa_executions=short).failures == ()
    complete = {row["item_id"]: row for row in kept.rows("qa_executions")}
    kept.config["qa_executions"]["timeout_s"] = 120.0

    def run_anew() -> list[dict[str, Any]]:
        return [row for row in kept.rows("qa_executions") if row != complete[row["item_id"]]]

    seen: set[tuple[int, str]] = set()

    def programs_run() -> bool:
        below = descendants(runner.process.pid)
        # The run, a tester and a program.
        if not seen and len(below) >= 3 and run_anew():
            seen.update(below)
        return bool(seen)

    killed_when(kept, runner, ["qa_executions"], programs_run, lambda process: seen.update(descendants(process)))
    assert wait_until(lambda: not alive(seen)), alive(seen)

    # The program that came to an end before the kill has a new row, and the others keep those that they had.
    (known,) = run_anew()
    assert known["verdict"] not in ("timeout", "crashed")
    assert len(kept.rows("qa_executions")) == len(complete) == 6

    # At the limit of before only that one is run again.
    asked = len(kept.server.calls)
    ran = kept.run(["qa_executions", "qa_scores"], qa_executions=short)
    assert ran.failures == ()
    assert len(kept.server.calls) == asked
    rows = kept.rows("qa_executions")
    assert {row["item_id"] for row in rows} == set(complete)
    assert [row["item_id"] for row in run_anew()] == [known["item_id"]]
    assert {row["verdict"] for row in rows} <= {"timeout", "crashed", known["verdict"]}
    assert {row["score"] for row in kept.rows("qa_scores")} == {0.0}


def test_the_api_key_appears_nowhere(kept: QaPipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtef_pipeline.site.build.static_files", lambda: ())  # the chart library alone takes seconds
    kept.add("humaneval", SHIPPED / "humaneval")
    kept.server.latency = 0.0
    # A server that shows what it was sent, in a program that looks for it.
    looks = f"    import os\n    raise ValueError(str(dict(os.environ)))\n    # {PLANTED}\n"
    kept.players.known = {"def ": looks}
    assert kept.run(qa_responses={"models": ["honest"], "draws": 1, "limit": 2}).failures == ()
    kept.roll_up("qa_board", "report")
    assert {call.key for call in kept.server.calls} == {PLANTED}
    holding = [path for path in kept.folder.rglob("*") if path.is_file() and PLANTED.encode() in path.read_bytes()]
    assert holding == []
    with ResponseStore(Settings.read_environment().responses_url) as store:
        texts = [text for page in store.pages() for text in page["text"].to_pylist()]
    assert texts
    assert not any(PLANTED in text for text in texts)
