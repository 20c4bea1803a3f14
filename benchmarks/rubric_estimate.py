"""What a large campaign would ask, counted before anything is asked: seconds and memory, with nothing stored and with every response stored.

The blueprints are made up at the size of the public ones: 98 with 1,510 prompts, 16 models, and with temperatures and system prompts some
80,000 responses and 540,000 judgements by two judges. With `--blueprints FOLDER --models-dir FOLDER` real files are read instead. Prints for
each state the seconds from tables to the ledger, judgements per second, and the peak memory of a process that does all of it: first with
nothing stored, then with every response stored and none of the judgements, whose requests are made one by one in that case. At the end the
counts of a tenth of the blueprints are held against requests made by the code that runs use. Run: `python benchmarks/rubric_estimate.py`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from dtef_pipeline.asking.models import Models, ModelSpec
from dtef_pipeline.asking.request import Request
from dtef_pipeline.judging.call_ledger import NOTHING_STORED, CallLedger, StoredResponses
from dtef_pipeline.judging.judges import JudgeConfig
from dtef_pipeline.rubric.blueprint_rows import blueprint_tables
from dtef_pipeline.rubric.candidates import Candidates
from dtef_pipeline.rubric.conversations import scripts
from dtef_pipeline.rubric.named_models import read_collections
from dtef_pipeline.rubric.plan import AskedBlueprint, plan
from dtef_pipeline.rubric.reading import read_blueprint

BLUEPRINTS, PROMPTS_EACH, MODELS_EACH = 98, 15, 16
PAGE = "Tenants may keep a deposit back, but not where the lease says so; opinions differ, and courts decide. " * 15
MODEL_LIST = [f"openai:model-{at}" for at in range(MODELS_EACH)]
JUDGE = ModelSpec(name="judge", model="openai/judge", max_tokens=2048)
JUDGE_PAIR = (JudgeConfig("standard", JUDGE), JudgeConfig("prompt-aware", JUDGE))
ANALYST = ModelSpec(name="analyst", model="openai/analyst")
EMBEDDED_BY = ModelSpec(name="embedder", model="openai/embedder")


def made(number: int) -> str:
    """A blueprint: prompts of three or four criteria in words, every third with an ideal, every fiftieth with a turn to be written."""
    header = {"models": MODEL_LIST, "temperatures": [[0.0, 0.3, 0.7], [0.0], [0.0, 0.5], [0.0, 0.3, 0.7]][number % 4]}
    header["systems"] = [None, "Be brief."] if number % 2 else [None]
    prompts = []
    for at in range(PROMPTS_EACH):
        turns: list[dict[str, str | None]] = [{"user": f"What does law {at} of land {number} say about tenants? {PAGE[:300]}"}]
        if at % 50 == 7:
            turns += [{"assistant": None}, {"user": "And what is disputed?"}]
        criteria = [f"It says what law {at} of land {number} asks for in matter {place}." for place in range(3 + at % 2)]
        ideal = {"ideal": PAGE} if at % 3 == 0 else {}
        prompts.append({"id": f"p{at}", "messages": turns, "should": criteria, **ideal})
    return json.dumps(header) + "\n---\n" + json.dumps(prompts)


def asked_blueprints(folder: Path | None, models_dir: Path | None) -> list[AskedBlueprint]:
    collections = read_collections(models_dir) if models_dir else {}
    sources: Sequence[tuple[str, Path | str]] = (
        [(path.stem, path) for path in sorted(folder.rglob("*.yml"))]
        if folder
        else [(f"made-{number}", made(number)) for number in range(BLUEPRINTS)]
    )
    found = []
    for name, source in sources:
        read = read_blueprint(source, name, collections)
        if read.blueprint is None:
            continue
        tables = blueprint_tables(read, read.blueprint, name)
        candidates = Candidates(Models({}, {}), read.blueprint.models)
        made_tables = (tables.rubric_prompts, tables.rubric_criteria)
        found.append(AskedBlueprint(name, *made_tables, candidates, JUDGE_PAIR, EMBEDDED_BY, analysts=(ANALYST,)))
    return found


EVERY_RESPONSE = StoredResponses(lambda keys: set(), lambda keys: {key: f"{PAGE}{key}" for key in keys})
"""Every turn of a candidate has a response of its own, and no judgement is stored."""


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(what: str, stored: StoredResponses, folder: Path | None, models_dir: Path | None) -> None:
    """One line; in a process of its own, for its peak memory."""
    started = time.perf_counter()
    every = asked_blueprints(folder, models_dir)
    reading = time.perf_counter() - started
    started = time.perf_counter()
    ledger = CallLedger(stored)
    responses = sum(plan(one, ledger) for one in every)
    seconds = time.perf_counter() - started
    counts: Counter[str] = Counter()
    for row in ledger.sorted_rows():
        counts[row.role] += row.planned
    print(
        f"{what}: {len(every)} blueprints read in {reading:.1f} s; {responses:,} responses and {counts['judge']:,} judgements "
        f"planned in {seconds:.1f} s, {counts['judge'] / seconds:,.0f} judgements/s; peak {peak():,.0f} MB",
        flush=True,
    )


def same_as_requests(every: Sequence[AskedBlueprint]) -> bool:
    """Whether the first turns of these blueprints are as many different requests as their conversations make."""
    keys: set[str] = set()
    further = 0
    for one in every:
        for script, temperatures in scripts(one.prompts):
            for model in one.candidates.at(temperatures):
                key = Request.of_messages(script.until([])[0], model, 0, one.snapshot).key
                further += 0 if key in keys else script.generated - 1
                keys.add(key)
    ledger = CallLedger()
    for one in every:
        plan(one, ledger)
    return sum(row.requests for row in ledger.sorted_rows() if row.role == "candidate") == len(keys) + further


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--blueprints", type=Path)
    parser.add_argument("--models-dir", type=Path)
    given = parser.parse_args()
    for what, stored in (("nothing stored", "NOTHING_STORED"), ("every response stored", "EVERY_RESPONSE")):
        arguments = (what, stored, given.blueprints, given.models_dir)
        alone = multiprocessing.get_context("spawn").Process(target=_measured, args=arguments)
        alone.start()
        alone.join()
    every = asked_blueprints(given.blueprints, given.models_dir)
    print(f"as many requests as are made one by one: {same_as_requests(every[::10])}")


def _measured(what: str, stored: str, folder: Path | None, models_dir: Path | None) -> None:
    measured(what, {"NOTHING_STORED": NOTHING_STORED, "EVERY_RESPONSE": EVERY_RESPONSE}[stored], folder, models_dir)


if __name__ == "__main__":
    main()
