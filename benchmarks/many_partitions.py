"""What grows with the number of partitions: 1,000, 2,500 and 10,000 of them (rounds of 50 segments), step by step.

The rounds land as files in the folder that the sensor `new_round` watches, and are registered by it. One of them is run for real; its tables,
run and events are then copied to the others under their names, which is quicker than 200 runs and leaves the same state. Measured is each
step a user or the daemon waits for, with seconds at each size and the exponent of growth between the last two: 0 is no growth, 1 in
proportion, 2 the square.

    python -m benchmarks.many_partitions [PARTITIONS ...] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SEGMENTS, QUESTIONS = 50, 4
ROOT = Path(__file__).resolve().parent.parent
CONFIG = {"predictions": {"models": ["baseline/uniform"]}}
TEMPLATE = "B0000"
STATUS_QUERY = """{ assetNodes(assetKeys: [{path: ["scores"]}, {path: ["predictions"]}]) {
    partitionStats { numMaterialized numPartitions }
    assetPartitionStatuses { ... on DefaultPartitionStatuses { materializedPartitions unmaterializedPartitions } } } }"""


class Measured:
    """Seconds of each step, in the order they were first taken."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.sizes: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - started
        print(f"    {name}: {self.seconds[name]:.2f} s", file=sys.stderr, flush=True)


def write_surveys(folder: Path, rounds: list[str]) -> None:
    from benchmarks.full_round import synthetic_survey

    folder.mkdir(parents=True, exist_ok=True)
    for number, round_id in enumerate(rounds):
        path = synthetic_survey(folder / f"{round_id}.json", segments=SEGMENTS, questions=QUESTIONS, seed=number)
        survey = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps({**survey, "surveyId": round_id.lower()}), encoding="utf-8")


def tick(instance: Any, cursor: str | None) -> Any:
    """One look of the sensor, as the daemon takes it."""
    import dagster as dg

    from assets.survey.landing import new_round
    from assets.survey.store import SurveyStore

    context = dg.build_sensor_context(instance=instance, cursor=cursor, resources={"store": SurveyStore()})
    return new_round.evaluate_tick(context)


def copy_tables(house: Any, rounds: list[str]) -> None:
    """Every table of the round that was run, under the names of the others."""
    import pyarrow as pa

    from resources.warehouse import TABLES

    for table, spec in TABLES.items():
        if "round" not in spec.levels or table.startswith("survey_f") or not house.values(table, "round"):
            continue
        parts = [({}, house.read_or_empty(table, round=TEMPLATE))]
        if "segment" in spec.levels:
            parts = [
                ({"segment": segment} | ({"snapshot": "base"} if "snapshot" in spec.levels else {}), None)
                for segment in house.values(table, "segment", round=TEMPLATE)
            ]
            parts = [(at, house.read(table, round=TEMPLATE, **at)) for at, _ in parts]
        for round_id in rounds:
            for at, rows in parts:
                place = rows.schema.get_field_index("round")
                renamed = rows.set_column(place, "round", pa.array([round_id] * len(rows), pa.string()))
                house.write(table, renamed, round=round_id, **at)


def copy_run(instance: Any, run_id: str, rounds: list[str]) -> None:
    """The run with its events of assets and checks, for each of the other rounds."""
    import dagster as dg

    kinds = {
        dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED,
        dg.DagsterEventType.ASSET_MATERIALIZATION,
        dg.DagsterEventType.ASSET_OBSERVATION,
        dg.DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED,
        dg.DagsterEventType.ASSET_CHECK_EVALUATION,
    }
    run = dg.serialize_value(instance.get_run_by_id(run_id))
    events = [dg.serialize_value(entry) for entry in instance.all_logs(run_id, of_type=kinds)]
    for round_id in rounds:
        new_id = str(uuid.uuid4())

        def renamed(text: str, round_id: str = round_id, new_id: str = new_id) -> str:
            return text.replace(run_id, new_id).replace(TEMPLATE, round_id)

        instance.add_run(dg.deserialize_value(renamed(run), dg.DagsterRun))
        instance.event_log_storage.store_event_batch(
            [dg.deserialize_value(renamed(event), dg.EventLogEntry) for event in events]
        )


def dtef(words: list[str]) -> None:
    command = [sys.executable, "-c", "from dtef_pipeline.cli import main; main()", *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(ROOT)})


@contextmanager
def web_server() -> Iterator[Callable[[str], Any]]:
    """Dagster's web server on the state at hand; asks it as the UI does."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "dagster_webserver", "-m", "assets.definitions", "-h", "127.0.0.1", "-p", str(port)]
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
        try:

            def ask(query: str) -> Any:
                request = urllib.request.Request(
                    f"http://127.0.0.1:{port}/graphql",
                    json.dumps({"query": query}).encode(),
                    {"Content-Type": "application/json"},
                )
                with urllib.request.urlopen(request, timeout=600) as response:
                    answer = json.load(response)
                assert "errors" not in answer, answer["errors"]
                return answer["data"]

            for _ in range(240):
                try:
                    ask("{ version }")
                    break
                except OSError:
                    time.sleep(0.5)
            yield ask
        finally:
            server.terminate()
            server.wait(30)


def size(folder: Path) -> tuple[float, int]:
    """Megabytes as `du` counts them, and files."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sum(path.stat().st_blocks * 512 for path in files) / 1e6, len(files)


def measure(partitions: int, folder: Path) -> Measured:
    """All steps at one size, in a state of its own below `folder`. Run in a process of its own."""
    places = {"DTEF_WAREHOUSE": "warehouse", "DTEF_RESPONSES": "responses.sqlite", "DAGSTER_HOME": "dagster"}
    os.environ |= {name: str(folder / place) for name, place in places.items()} | {"DTEF_SURVEYS": str(folder / "landing")}
    os.environ.setdefault("DAGSTER_EVENT_BATCH_SIZE", "50")
    rounds = [f"B{number:04}" for number in range(partitions // SEGMENTS)]
    write_surveys(folder / "landing", rounds)
    taken = Measured()
    with taken.step("definitions load"):
        subprocess.run(
            [sys.executable, "-c", "import assets.definitions as a; a.defs.get_repository_def()"], check=True, cwd=ROOT
        )
    from dtef_pipeline.cli.left_out import open_warehouse
    from dtef_pipeline.cli.ready import dagster_instance

    with dagster_instance() as instance:
        _land_and_fill(instance, open_warehouse(), rounds, folder, taken)
        with taken.step("status of a partition set, first"):
            _status(instance)
        with taken.step("status of a partition set, again"):
            _status(instance)
        with taken.step("backfill of a round, all stages"):
            _backfill(instance, rounds[-1])
    with web_server() as ask:
        ask("{ assetNodes { id } }")
        with taken.step("partition status asked by the UI"):
            (node, _) = ask(STATUS_QUERY)["assetNodes"]
        assert node["partitionStats"] == {"numMaterialized": partitions, "numPartitions": partitions}, node["partitionStats"]
    for words in (
        ["leaderboard", "--round", rounds[-1]],
        ["leaderboard", "--no-intervals"],
        ["leaderboard"],
        ["drift", "--by", "round"],
    ):
        with taken.step(f"dtef {' '.join(words).replace(rounds[-1], 'ROUND')}"):
            dtef(words)
    for name in ("dagster", "warehouse"):
        taken.sizes[f"{name}, MB"], taken.sizes[f"{name}, files"] = size(folder / name)
    return taken


def _land_and_fill(instance: Any, house: Any, rounds: list[str], folder: Path, taken: Measured) -> None:
    from assets.launch import STAGE_NAMES, materialize
    from assets.survey.rounds import known_keys

    with taken.step("sensor tick, all rounds seen first"):
        first = tick(instance, None)
    cursor, started = first.cursor, 0
    with taken.step("sensor ticks, all rounds registered, a bounded number per tick"):
        while more := (latest := tick(instance, cursor)).run_requests:
            cursor, started = latest.cursor, started + len(more)
    assert started == len(rounds), f"{started} of {len(rounds)} rounds started"
    with taken.step("sensor tick, nothing new"):
        third = tick(instance, latest.cursor)
    assert not third.run_requests
    keys = [key for key in known_keys(instance) if key.startswith(f"{TEMPLATE}/")]
    outcome = materialize(instance, STAGE_NAMES, keys, CONFIG)
    assert not outcome.failures, outcome.failures
    copy_tables(house, rounds[1:])
    copy_run(instance, outcome.run_ids[0], rounds[1:])
    changed = folder / "landing" / f"{rounds[-1]}.json"
    changed.write_text(changed.read_text(encoding="utf-8").replace("statement number 1 ", "claim number 1 "), encoding="utf-8")
    seen = tick(instance, third.cursor)
    with taken.step("sensor tick, one round changed"):
        last = tick(instance, seen.cursor)
    assert len(last.run_requests or []) == 1, last.skip_message


def _status(instance: Any) -> None:
    import dagster as dg

    from assets.survey.rounds import ROUND_SEGMENT, known_keys

    keys = known_keys(instance)
    found = instance.get_status_by_partition(dg.AssetKey("scores"), keys, ROUND_SEGMENT) or {}
    assert len(found) == len(keys)


def _backfill(instance: Any, round_id: str) -> None:
    from assets.launch import STAGE_NAMES, materialize
    from assets.survey.rounds import known_keys

    keys = [key for key in known_keys(instance) if key.startswith(f"{round_id}/")]
    assert len(keys) == SEGMENTS
    failures = materialize(instance, STAGE_NAMES, keys, CONFIG).failures
    assert not failures, failures


def table(found: dict[int, Measured]) -> str:
    """A markdown table, with how fast each row grows between the two largest sizes."""
    counts = sorted(found)
    lines = ["| | " + " | ".join(f"{count:,}" for count in counts) + " | growth |", "|---|" + "---:|" * (len(counts) + 1)]
    for unit, pick in ((" (s)", "seconds"), ("", "sizes")):
        for name in getattr(found[counts[0]], pick):
            values = [getattr(found[count], pick)[name] for count in counts]
            growth = ""
            if len(counts) > 1 and values[-2] > 0:
                growth = f"{math.log(values[-1] / values[-2]) / math.log(counts[-1] / counts[-2]):.2f}"
            shown = " | ".join(f"{value:,.2f}" if unit else f"{value:,.0f}" for value in values)
            lines.append(f"| {name}{unit} | {shown} | {growth} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("partitions", nargs="*", type=int, default=[1_000, 2_500, 10_000])
    parser.add_argument("--keep", type=Path, help="A folder that the states are left in.")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]
    if given.measure:
        taken = measure(int(given.measure[0]), Path(given.measure[1]))
        print(json.dumps([taken.seconds, taken.sizes]))
        return
    found: dict[int, Measured] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for count in given.partitions:
            folder = (given.keep or Path(temporary)) / str(count)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            print(f"{count:,} partitions", file=sys.stderr)
            command = [sys.executable, __file__, "--measure", str(count), str(folder)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            found[count] = Measured()
            found[count].seconds, found[count].sizes = json.loads(done.stdout.splitlines()[-1])
            print(table(found), flush=True)


if __name__ == "__main__":
    main()
