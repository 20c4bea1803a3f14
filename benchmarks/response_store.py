"""The response store at the size of a campaign: lookups, reading, adding and claiming in a store of a million answers.

Prints seconds and rows per second, of the best of three passes over other keys each and of the first one, which comes right after the store
was filled, and the ratio of the best to that in a store of a hundredth of the size (1.0: size costs nothing).
Run: `python benchmarks/response_store.py [--answers 1000000] [--url postgresql+psycopg://...]`; a database by URL must be empty.

With `--claimants 8` so many processes also claim at the same time, as workers on several machines do. With `--copy` a PostgreSQL database is
filled by COPY, which is quicker and is not what is measured: `--url ... --answers 10000000 --claimants 8 --copy --no-files`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from dtef_pipeline.asking.request import Response
from dtef_pipeline.identity import digest, request_key
from resources.responses.claims import Claims
from resources.responses.database import RESPONSE_COLUMNS
from resources.responses.files import export_responses, import_responses
from resources.responses.store import ResponseStore
from tests.made.responses import stored

LOOKED_UP = 10_000
PASSES = 3
GROUP = 1_000
CLAIMED = 128
COPIED = 500_000
VARIANT = "openai/gpt-4.1-mini[max_tokens=256,temperature=0]"
START = datetime(2026, 1, 1, tzinfo=UTC)

Timings = dict[str, tuple[int, float]]
"""By what was done: rows, seconds."""


def response(number: int) -> Response:
    prompt = digest("prompt", number)
    return Response(
        request_key=request_key(prompt, VARIANT, 0, "base"),
        prompt_id=prompt,
        model="gpt-4.1-mini",
        model_variant=VARIANT,
        draw=0,
        snapshot="base",
        text=f"[{number % 100}.0, 30.5, 20.25, {number % 7}.0]",
        finish_reason="stop",
        served_model="gpt-4.1-mini-2026-01-01",
        fingerprint="fp_0123456789",
        prompt_tokens=400 + number % 300,
        completion_tokens=20,
        cost_usd=number / 1e7,
        latency_s=0.5 + number % 10,
        attempts=1,
        answered_at=START + timedelta(milliseconds=number),
    )


def groups(first: int, last: int) -> Iterator[list[Response]]:
    for start in range(first, last, GROUP):
        yield [response(number) for number in range(start, min(start + GROUP, last))]


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def fill(store: ResponseStore, first: int, last: int) -> float:
    """Seconds of the store alone: making the answers is not counted."""
    return sum(seconds(lambda group=group: store.add(group)) for group in groups(first, last))  # type: ignore[misc]


def copied(url: str, first: int, last: int) -> float:
    """Seconds of filling a PostgreSQL store by COPY, rows made included."""
    names = [column.name for column in RESPONSE_COLUMNS]
    began = time.perf_counter()
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        for start in range(first, last, COPIED):
            with connection.cursor().copy(f"COPY responses ({', '.join(names)}) FROM STDIN") as copy:
                for number in range(start, min(start + COPIED, last)):
                    row = response(number)
                    at = int(row.answered_at.timestamp() * 1e6)
                    copy.write_row([at if name == "answered_at" else getattr(row, name) for name in names])
            connection.commit()
            print(f"{min(start + COPIED, last):,} rows", flush=True)
        connection.autocommit = True
        # What the server does by itself some minutes after rows were added.
        connection.execute("VACUUM ANALYZE responses")
        connection.execute("CHECKPOINT")
    return time.perf_counter() - began


def claimed_by_several(location: str, claimants: int) -> tuple[float, list[float]]:
    """So many processes claim other keys each, at once, 128 at a time: seconds until all are done, and of every single claim."""
    context = multiprocessing.get_context("fork")
    start, took = context.Barrier(claimants + 1), context.Queue()
    arguments = [(location, number, start, took) for number in range(claimants)]
    processes = [context.Process(target=_claim, args=given) for given in arguments]
    for process in processes:
        process.start()
    start.wait()
    began = time.perf_counter()
    each = [one for _ in processes for one in took.get()]
    seconds_taken = time.perf_counter() - began
    for process in processes:
        process.join()
    return seconds_taken, each


def _claim(location: str, number: int, start: Any, took: Any) -> None:
    keys = [digest("claimed by", number, one) for one in range(LOOKED_UP)]
    with ResponseStore(location) as store, Claims(store) as claims:
        claims.beat()
        start.wait()
        took.put([seconds(lambda part=part: claims.claim(part)) for part in parts(keys)])  # type: ignore[misc]


def measured(store: ResponseStore, answers: int, turn: int = 0) -> Timings:
    """What a run does to a store of so many answers; the keys are those of the `turn`."""
    chance = random.Random(turn)
    known = [response(number).request_key for number in chance.sample(range(answers), min(LOOKED_UP, answers))]
    unknown = [digest("unknown", turn, number) for number in range(LOOKED_UP)]
    timings: Timings = {}

    def timed(name: str, rows: int, work: Callable[[], object]) -> None:
        timings[name] = (rows, seconds(work))

    timed("look up keys, all known", len(known), lambda: store.find_known_keys(known))
    timed("look up keys, none known", len(unknown), lambda: store.find_known_keys(unknown))
    timed("read answers", len(known), lambda: store.responses(known))
    with Claims(store) as claims:
        timed(f"claim keys, {CLAIMED} at a time", len(unknown), lambda: [claims.claim(part) for part in parts(unknown)])
        timed("give all claims back", len(unknown), lambda: claims.release(unknown))
    new = list(groups(10**8 * (turn + 1) + answers, 10**8 * (turn + 1) + answers + LOOKED_UP))
    timed(f"add answers, {GROUP} a commit", LOOKED_UP, lambda: [store.add(group) for group in new])
    return timings


def best_of(passes: Sequence[Timings]) -> Timings:
    return {name: min((one[name] for one in passes), key=lambda timing: timing[1]) for name in passes[0]}


def parts(keys: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(keys), CLAIMED):
        yield keys[start : start + CLAIMED]


def warm_up(folder: Path) -> None:
    """What is done for the first time in a process takes longer, and is not what is measured."""
    with ResponseStore(folder / "warm-up.sqlite") as store:
        fill(store, 0, 100)
        measured(store, 100)


def moved(store: ResponseStore, folder: Path) -> Timings:
    """The store to a file, and the file to another store."""
    timings: Timings = {}
    for suffix in (".parquet", ".jsonl.gz"):
        file = folder / f"responses{suffix}"
        took = seconds(lambda file=file: export_responses(store, file))  # type: ignore[misc]
        timings[f"export {suffix}, {file.stat().st_size / 1e6:,.0f} MB"] = (stored(store), took)
        with ResponseStore(folder / f"from{suffix}.sqlite") as other:
            took = seconds(lambda file=file, other=other: import_responses(other, file))  # type: ignore[misc]
            timings[f"import {suffix} (SQLite)"] = (stored(other), took)
    return timings


def claimants(location: str, processes: int) -> Timings:
    took, each = claimed_by_several(location, processes)
    slow = 1000 * sorted(each)[int(0.95 * len(each))]
    mean = 1000 * sum(each) / len(each)
    print(
        f"{processes} processes at once: a claim of {CLAIMED} keys takes {mean:.1f} ms, 95 % at most {slow:.1f} ms", flush=True
    )
    return {f"claim keys, {processes} processes at once": (processes * LOOKED_UP, took)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--answers", type=int, default=1_000_000)
    parser.add_argument("--url", help="an empty PostgreSQL database; default: SQLite in a temporary folder")
    parser.add_argument("--no-files", action="store_true", help="leave export and import out")
    parser.add_argument("--claimants", type=int, default=0, help="processes that claim at once")
    parser.add_argument("--copy", action="store_true", help="fill a PostgreSQL database by COPY")
    options = parser.parse_args()
    if options.copy and not options.url:
        parser.error("--copy is for a database by --url")
    small = options.answers // 100
    with tempfile.TemporaryDirectory() as folder:
        location = options.url or str(Path(folder) / "responses.sqlite")
        with ResponseStore(location) as store:
            warm_up(Path(folder))
            found: dict[int, list[Timings]] = {}
            filled, first = 0.0, 0
            for size in (small, options.answers):
                filled += copied(location, first, size) if options.copy else fill(store, first, size)
                first = size
                found[size] = [measured(store, size, turn) for turn in range(PASSES)]
                if options.claimants:
                    of_several = claimants(location, options.claimants)
                    found[size] = [timings | of_several for timings in found[size]]
            size_mb = store.database.size() / 1e6
            print(f"{options.answers:,} answers in {filled:.1f} s, {size_mb:,.0f} MB, {GROUP} a commit: {store.name}")
            in_small, at_first = best_of(found[small]), found[options.answers][0]
            for name, (rows, took) in best_of(found[options.answers]).items():
                ratio = (took / rows) / (in_small[name][1] / in_small[name][0])
                print(f"{name:36} {rows:9,} in {took:7.3f} s  {rows / took:11,.0f}/s  ", end="")
                print(f"{ratio:5.2f}x the time in a store of {small:,}; at first {at_first[name][1]:.3f} s")
            if not options.no_files:
                for name, (rows, took) in moved(store, Path(folder)).items():
                    print(f"{name:36} {rows:9,} in {took:7.3f} s  {rows / took:11,.0f}/s")


if __name__ == "__main__":
    main()
