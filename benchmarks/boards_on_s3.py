"""Boards over a million scores that lie in an object store: the same work on a local warehouse beside it.

Writes the tables of `benchmarks/board_statistics.py` (30 models, 150 partitions, 1,008,000 scores) to a folder and to a server on loopback that
speaks S3 (moto), reads each back into all boards, each time in a process of its own, and prints seconds, peak memory, requests and the ratio.
The server is a process of Python on this machine,
which answers some hundred requests a second; Amazon's answers each after 10 to 50 ms, whatever their number. Run:
`python -m benchmarks.boards_on_s3 [--repeat 3]`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa

from benchmarks.board_statistics import connection
from benchmarks.memory import held_mb
from dtef_pipeline.boards.boards import board, load_evidence
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
from dtef_pipeline.survey.keys import KEYS
from resources.warehouse import TABLES, Warehouse
from tests import s3_server
from tests.several_machines import BUCKET, CREDENTIALS, make_bucket


def tables() -> dict[str, pa.Table]:
    made = connection()
    return {name: made.sql(f"FROM {name}").to_arrow_table() for (name,) in made.execute("SHOW TABLES").fetchall()}


def written(house: Warehouse, made: dict[str, pa.Table]) -> tuple[int, int]:
    """Files and bytes."""
    files = size = 0
    for name, rows in made.items():
        spec = TABLES[name]
        rows = rows.sort_by([(level, "ascending") for level in spec.levels])
        start = 0
        counts = rows.group_by(list(spec.levels), use_threads=False).aggregate([([], "count_all")])
        for row in counts.to_pylist():
            count = row.pop("count_all")
            part = rows.slice(start, count)
            start += count
            size += house.write(name, part.cast(spec.schema) if spec.schema else part, **row)
            files += 1
    return files, size


def measured(root: str) -> None:
    """In the process that is measured: the seconds until all boards are made, and the MB that it has held at most, as JSON."""
    house = Warehouse(root)
    began = time.perf_counter()
    options = SurveyBoardOptions()
    with house.connect(only=["scores", "survey_responses", "reference_scores", "blueprints"]) as opened:
        evidence = load_evidence(opened, options)
        for view in KEYS.groups:
            board(opened, view, options, evidence)
    seconds = time.perf_counter() - began
    print(json.dumps({"seconds": seconds, "megabytes": held_mb(Path("/proc/self"))}))


def boards(root: str) -> dict[str, float]:
    """What `measured` found of the warehouse."""
    command = [sys.executable, "-m", "benchmarks.boards_on_s3", "--measure", root]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        measured(given.measure)
        return
    made = tables()
    os.environ |= CREDENTIALS
    with tempfile.TemporaryDirectory() as folder, s3_server.running(Path(folder) / "requests.jsonl") as server:
        make_bucket(server.port)
        roots = {
            "folder": f"{folder}/warehouse",
            "S3": f"s3://{BUCKET}/warehouse?endpoint_override=127.0.0.1:{server.port}&scheme=http",
        }
        for name, root in roots.items():
            began = time.perf_counter()
            files, size = written(Warehouse(root), made)
            print(f"{name}: {made['scores'].num_rows:,} scores, {files:,} files, {size / 1e6:,.0f} MB written in ", end="")
            print(f"{time.perf_counter() - began:.1f} s", flush=True)
        times = []
        for _ in range(given.repeat):
            server.forget()
            found = {name: boards(root) for name, root in roots.items()}
            local, remote = (one["seconds"] for one in found.values())
            times.append((local, remote))
            memory = ", ".join(f"{name} {one['megabytes']:,.0f} MB" for name, one in found.items())
            print(f"all boards: folder {local:.1f} s, S3 {remote:.1f} s, {remote / local:.2f}x; ", end="")
            print(f"{len(server.requests):,} requests; at most {memory}", flush=True)
        local, remote = (min(each) for each in zip(*times, strict=True))
        print(f"best of {given.repeat} each: {remote / local:.2f}x the time on a folder")


if __name__ == "__main__":
    main()
