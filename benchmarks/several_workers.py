"""A backfill of 4 rounds x 49 segments on one worker and on three: PostgreSQL, Redis, an S3 server and workers with homes of their own.

Every process is on this machine, and the model server is slow: it answers after some seconds, and a run has few calls in flight at once, so that
waiting for it is what takes the time. Printed are the wall times of the backfill, from the click to the end that the daemon notices, and their
ratio; which of the two comes first changes from pass to pass; and the MB that the largest process of a worker held at most. With `--kill` one of
the three workers is killed in the middle; what was bought then is counted: every prompt is answered and stored once, and no more is asked twice
than the killed one had in flight.

    python -m benchmarks.several_workers [--repeat 3] [--kill] [--latency 3] [--at-once 6]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import yaml

from assets.launch import STAGE_NAMES
from benchmarks.full_round import synthetic_survey
from benchmarks.memory import held_mb
from resources.responses.store import ResponseStore
from resources.warehouse import Warehouse
from tests.assets.conftest import Pipeline
from tests.fake_llm_server import FakeLLM
from tests.made.responses import stored
from tests.several_machines import Machines, several_machines

ROUNDS, SEGMENTS = 4, 49
REPLY = "[40.0, 30.0, 15.0, 10.0, 5.0]"


@dataclass(frozen=True)
class Outcome:
    """What a backfill came to."""

    seconds: float
    prompts: int
    sent: int
    peak: int
    runs: int
    megabytes: float
    in_flight_at_kill: int = 0


def write_rounds(folder: Path, questions: int) -> list[Path]:
    """Each round has questions of its own: the same prompt is bought once, whatever its round."""
    folder.mkdir()
    files = []
    for number in range(ROUNDS):
        name = f"W{number + 1}"
        path = synthetic_survey(folder / f"{name}.json", segments=SEGMENTS, questions=questions, seed=number)
        survey = json.loads(path.read_text(encoding="utf-8")) | {"surveyId": name.lower()}
        for question in survey["questions"].values():
            question["text"] = f"In {name}: {question['text']}"
        path.write_text(json.dumps(survey), encoding="utf-8")
        files.append(path)
    return files


def backfilled(workers: int, given: argparse.Namespace, *, kill: bool) -> Outcome:
    """One backfill on so many workers, in a state of its own."""
    with tempfile.TemporaryDirectory() as temporary, FakeLLM(reply=lambda call: REPLY, latency=given.latency) as server:
        folder = Path(temporary)
        spec = {"model": "openai/slow", "api_base": server.base_url, "max_concurrency": given.at_once}
        (folder / "models.yaml").write_text(yaml.safe_dump({"models": {"slow": spec}}), encoding="utf-8")
        environment = {"DTEF_MODELS": str(folder / "models.yaml"), "DTEF_PARTITIONS_PER_RUN": str(given.partitions)}
        with several_machines(folder, max_runs=workers, **environment) as machines:
            machines.patience_s = 1800.0
            return _measured(machines, server, folder, workers, given, kill)


class Peak(threading.Thread):
    """MB that the largest process of a worker held at most, which is that of a run, its fork. Linux alone says it."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.megabytes = 0.0

    def run(self) -> None:
        while not self.ended.wait(0.5):
            for process in Path("/proc").glob("[0-9]*"):
                with suppress(OSError, KeyError):  # it may end meanwhile, and one that has ended holds nothing
                    self._look(process)

    def _look(self, process: Path) -> None:
        if b"assets.celery_worker" in (process / "cmdline").read_bytes():
            self.megabytes = max(self.megabytes, held_mb(process))


def _measured(
    machines: Machines, server: FakeLLM, folder: Path, workers: int, given: argparse.Namespace, kill: bool
) -> Outcome:
    machines.start_all(*(f"worker{number + 1}" for number in range(workers)))
    with machines.instance() as instance:
        pipeline = Pipeline(instance, Warehouse(machines.environment["DTEF_WAREHOUSE"]))
        for file in write_rounds(folder / "surveys", given.questions):
            pipeline.register(file)
        assert len(pipeline.keys) == ROUNDS * SEGMENTS
        config = {"blueprints": {"context_levels": ["0"]}, "predictions": {"models": ["slow"]}}
        # The daemon has begun to work when it has looked at its sensors once.
        machines.until(lambda: b"Checking for new runs" in machines.log("daemon"), "the daemon is at work")
        held, began = Peak(), time.monotonic()
        held.start()
        backfill = machines.backfill(instance, pipeline.keys, STAGE_NAMES, config)
        in_flight = _kill_in_the_middle(machines, server, given) if kill else 0
        status = machines.await_backfill(instance, backfill)
        seconds = time.monotonic() - began
        held.ended.set()
        assert status == "COMPLETED_SUCCESS", status
        runs = machines.runs(instance, backfill)
        prompts = _checked(machines, pipeline, server)
    return Outcome(seconds, prompts, len(server.calls), server.peak, len(runs), held.megabytes, in_flight)


def _kill_in_the_middle(machines: Machines, server: FakeLLM, given: argparse.Namespace) -> int:
    """Kill one worker after a tenth of all answers; the calls that all workers had in flight then."""
    machines.until(lambda: server.answered > ROUNDS * SEGMENTS * given.questions / 10, "a tenth is answered")
    in_flight = server.busy
    machines.processes["worker1"].kill()
    return in_flight


def _checked(machines: Machines, pipeline: Pipeline, server: FakeLLM) -> int:
    """Nothing is lost and nothing is doubled; how many prompts there were."""
    rows = pipeline.house.read("predictions", columns=["model", "request_key", "error"])
    asked = rows.filter([model == "slow" for model in rows["model"].to_pylist()])
    keys = asked["request_key"].to_pylist()
    assert set(asked["error"].to_pylist()) == {None}, "a prediction has an error"
    assert len(keys) == len(set(keys)) == len(server.answers), (len(keys), len(set(keys)), len(server.answers))
    with ResponseStore(machines.environment["DTEF_RESPONSES"]) as store:
        assert stored(store) == len(keys), (stored(store), len(keys))
    scores = pipeline.house.read("scores", columns=["model"])["model"].to_pylist().count("slow")
    assert scores == len(keys), (scores, len(keys))
    return len(keys)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3, help="pairs of one and three workers; the best ratio is told last")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--latency", type=float, default=3.0, help="seconds before each answer")
    parser.add_argument("--at-once", type=int, default=6, help="calls in flight of a run")
    parser.add_argument("--partitions", type=int, default=33, help="of one run: 33 makes six runs of equal size")
    parser.add_argument("--questions", type=int, default=4, help="of each round, each asked of all segments")
    parser.add_argument("--kill", action="store_true", help="kill one of the workers in the middle, and nothing else")
    given = parser.parse_args()
    if given.kill:
        told = backfilled(given.workers, given, kill=True)
        again = told.sent - told.prompts
        print(
            f"{told.prompts:,} prompts in {told.seconds:.0f} s with a worker killed in the middle: each stored and scored once;"
        )
        print(
            f"{told.sent:,} calls, {again} more than prompts; {told.in_flight_at_kill} were in flight of all workers at the kill"
        )
        assert again <= given.at_once, again
        return
    print(
        f"{given.latency:g} s before each answer, {given.at_once} calls at once of a run, {given.partitions} partitions in one"
    )
    ratios = []
    for number in range(given.repeat):
        order = (given.workers, 1) if number % 2 else (1, given.workers)
        done = {workers: backfilled(workers, given, kill=False) for workers in order}
        several, alone = done[given.workers], done[1]
        ratios.append(alone.seconds / several.seconds)
        for workers, one in ((1, alone), (given.workers, several)):
            print(
                f"pass {number + 1}: {workers} worker(s): {one.seconds:.1f} s, {one.runs} runs, {one.prompts:,} prompts, "
                f"{one.sent:,} calls, {one.peak} at once, {one.megabytes:,.0f} MB",
                flush=True,
            )
        print(f"pass {number + 1}: {ratios[-1]:.2f} times as fast with {given.workers} workers", flush=True)
    print(f"of {given.repeat} passes: best {max(ratios):.2f}, median {statistics.median(ratios):.2f} of {given.workers}")


if __name__ == "__main__":
    sys.exit(main())
