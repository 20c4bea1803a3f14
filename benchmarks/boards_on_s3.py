"""Boards over a million scores that lie in an object store: the same work on a local warehouse beside it.

Writes the tables of `benchmarks/board_statistics.py` (30 models, 150 partitions, 1,008,000 scores) to a folder and to a server on loopback that
speaks S3 (moto), reads each back into all boards, and prints seconds, requests and the ratio. The server is a process of Python on this machine,
which answers some hundred requests a second; Amazon's answers each after 10 to 50 ms, whatever their number. Run:
`python -m benchmarks.boards_on_s3 [--repeat 3]`.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from benchmarks.board_statistics import connection
from dtef_pipeline.boards.boards import board, load_evidence
from dtef_pipeline.survey.boards.scored import SurveyBoardOptions
from dtef_pipeline.survey.keys import KEYS
from resources import whole_files
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


def boards(house: Warehouse) -> float:
    """Seconds until all boards are made."""
    began = time.perf_counter()
    options = SurveyBoardOptions()
    with house.connect(only=["scores", "survey_responses", "reference_scores", "blueprints"]) as opened:
        evidence = load_evidence(opened, options)
        for view in KEYS.groups:
            board(opened, view, options, evidence)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    made = tables()
    os.environ |= CREDENTIALS
    with tempfile.TemporaryDirectory() as folder, s3_server.running(Path(folder) / "requests.jsonl") as server:
        make_bucket(server.port)
        here = Warehouse(Path(folder) / "warehouse")
        there = Warehouse(f"s3://{BUCKET}/warehouse?endpoint_override=127.0.0.1:{server.port}&scheme=http")
        for name, house in (("folder", here), ("S3", there)):
            began = time.perf_counter()
            files, size = written(house, made)
            print(f"{name}: {made['scores'].num_rows:,} scores, {files:,} files, {size / 1e6:,.0f} MB written in ", end="")
            print(f"{time.perf_counter() - began:.1f} s", flush=True)
        times = []
        for _ in range(given.repeat):
            server.forget()
            whole_files._kept = whole_files._Kept(whole_files._KEPT_BYTES)  # as in a process that has read nothing yet
            local, remote = boards(here), boards(there)
            times.append((local, remote))
            asked = [unquote(path) for _, path, _ in server.requests]
            print(
                f"all boards: folder {local:.1f} s, S3 {remote:.1f} s, {remote / local:.2f}x; {len(asked):,} requests",
                flush=True,
            )
        local, remote = (min(each) for each in zip(*times, strict=True))
        print(f"best of {given.repeat} each: {remote / local:.2f}x the time on a folder")


if __name__ == "__main__":
    main()
