"""The rubric family at the size of its 98 public blueprints: 80,000 responses and 540,000 judgements, replayed through all stages and roll-ups.

Blueprints of uneven size (a large one has 40 % of the prompts of its ten) are made up, 25 models at two temperatures answer them, and two
judges judge 3.4 criteria in words of each response. All replies are put into the response store first, also the second replies of the
judgements whose first cannot be read (one in fifty), so that nothing is asked. Vectors are random. What an analyst is asked follows from the
scores, so that one is played in the process of `rubric_summaries`. Each stage and each roll-up is a Dagster run in a process of its own, with
its checks. Prints, by size: seconds (of the clock, and of the processor) and peak memory of each stage, bytes of store and
warehouse, and the exponents of growth between the last two sizes. A stage that would ask anything fails, since nobody can be reached.

    python benchmarks/rubric_pipeline.py [SHARE ...] [--text 400] [--keep FOLDER] [--hash]

`SHARE`: of the full size (1/30, 1/10, 1/3 and 1 unless given). `--text`: characters of a response; real ones have about 2,000. `--keep`: a
folder to work in, which stays, and whose store is used again. `--hash`: print a hash of each table's rows too, which is equal as long as the
tables are.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import math
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmarks.made_blueprints import documents

CLASSES = ("UNMET", "PARTIALLY_MET", "MODERATELY_MET", "MAJORLY_MET", "EXACTLY_MET")
VERDICT = "<reflection>The text {} the duty, and says who has it.</reflection>\n<classification>CLASS_{}</classification>"
LENGTH = 384
WORDS = "tenants may keep a part of the deposit where the lease says so but courts differ on how long and who decides it"
SUMMARIES = "rubric_summaries"
STAGES = (
    *("rubric_blueprints", "rubric_responses", "rubric_judgements", "rubric_embeddings", "rubric_points", "rubric_scores"),
    SUMMARIES,
)
ROLLED_UP = (
    *("rubric_board", "rubric_corrected", "rubric_champions", "rubric_agreement", "rubric_validity", "rubric_drift"),
    *("rubric_costs", "rubric_report"),
)
TABLES = (
    *STAGES[:-1],
    "rubric_grades",
    "rubric_agreement",
    "rubric_validity",
    "rubric_prompts",
    "rubric_criteria",
    "rubric_similarities",
    "rubric_runs",
    "rubric_board",
    "rubric_board_prompt",
)
GIVEN = ("rubric_files", "rubric_embeddings")
"""What a kept warehouse begins with: vectors are not made here, and all else is made anew."""
ANSWERED = datetime(2026, 1, 31, 12, tzinfo=UTC)


def text_of(number: int, characters: int) -> str:
    """A response: no two have the same text."""
    draw = random.Random(number)
    return f"{number}: " + " ".join(draw.choices(WORDS.split(), k=characters // 5))[:characters].strip()


def verdict_of(number: int) -> str:
    return "I would rather not say." if number % 50 == 7 else VERDICT.format("names", CLASSES[number * 7919 % 5])


def stored(requests: Sequence[Any], texts: Iterable[str]) -> list[Any]:
    """Responses to requests, as they come out of the gateway."""
    from dtef_pipeline.asking.request import Response

    return [
        Response(
            request_key=one.key,
            prompt_id=one.prompt_id,
            model=one.model.name,
            model_variant=one.model.variant,
            draw=one.draw,
            snapshot=one.snapshot,
            text=text,
            finish_reason="stop",
            served_model=one.model.model,
            fingerprint=None,
            prompt_tokens=300,
            completion_tokens=len(text) // 4,
            cost_usd=len(text) / 1e6,
            latency_s=1.5,
            attempts=1,
            answered_at=ANSWERED,
            role=one.role,
        )
        for one, text in zip(requests, texts, strict=True)
    ]


def fill(root: Path, share: Fraction, characters: int) -> None:
    """Files, partitions, response store and vectors, as if everything had been asked."""
    import dagster as dg

    from assets.rubric.files import add
    from dtef_pipeline.asking.models import Models
    from dtef_pipeline.families import COMPUTED_MODELS
    from dtef_pipeline.rubric.blueprint_rows import blueprint_tables
    from dtef_pipeline.rubric.judge_requests import chosen_judges
    from dtef_pipeline.rubric.reading import read_blueprint
    from resources.blueprint_files import RubricFile, content_hash
    from resources.known_models import known_models
    from resources.responses.store import ResponseStore
    from resources.settings import Settings
    from resources.warehouse import Warehouse

    settings = Settings.from_environment()
    house, models = Warehouse(settings.warehouse), known_models(settings, COMPUTED_MODELS)
    assert isinstance(models, Models)
    judges = chosen_judges([], [], models)
    files, counts = [], itertools.count()
    with ResponseStore(settings.responses) as store:
        for name, made in documents(share):
            path = root / "blueprints" / f"{name}.yml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(yaml.safe_dump_all(made, sort_keys=False), encoding="utf-8")
            files.append(RubricFile(name, str(path), None, False, content_hash(path, None)))
            found = read_blueprint(path, name, {})
            assert found.blueprint is not None, found.findings
            assert not any(one.level == "error" for one in found.findings), found.findings
            tables = blueprint_tables(found, found.blueprint, str(path))
            _fill_one(store, house, name, tables, models, judges, characters, counts)
    with dg.DagsterInstance.get() as instance:
        add(instance, house, files)


def _fill_one(store, house, name, tables, models, judges, characters, counts):  # type: ignore[no-untyped-def]
    import pyarrow as pa

    from dtef_pipeline.asking.embeddings import text_hash
    from dtef_pipeline.asking.episodes import Played
    from dtef_pipeline.rubric.candidates import Candidates
    from dtef_pipeline.rubric.conversations import Conversation, response_rows, scripts
    from dtef_pipeline.rubric.judge_requests import judgings
    from dtef_pipeline.rubric.policy import OFFLINE_EMBEDDER
    from dtef_pipeline.rubric.tables import RUBRIC_EMBEDDINGS

    candidates = Candidates(models, tables.rubric_blueprints["models"][0].as_py())
    talks = [
        Conversation(script, spec, 0, "base") for script, at in scripts(tables.rubric_prompts) for spec in candidates.at(at)
    ]
    texts = [text_of(next(counts), characters) for _ in talks]
    responses = stored([talk.next([]) for talk in talks], texts)
    store.add(responses)
    rows = response_rows(name, talks, [Played([one]) for one in responses])
    judged = judgings(rows, tables.rubric_criteria, tables.rubric_prompts, judges, 1)
    number = itertools.count()
    while some := list(itertools.islice(judged, 5_000)):
        first = stored([one.next([]) for one in some], (verdict_of(next(number)) for _ in some))
        further = [one.next([said]) for one, said in zip(some, first, strict=True)]
        again = [one for one in further if one is not None]
        store.add([*first, *stored(again, (VERDICT.format("misses", CLASSES[0]) for _ in again))])
    known = sorted({text_hash(text) for text in [*texts, *filter(None, tables.rubric_prompts["ideal"].to_pylist())]})
    vectors = np.random.default_rng(len(known)).normal(size=(len(known), LENGTH)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    columns = {
        "blueprint": [name] * len(known),
        "embedder": [OFFLINE_EMBEDDER] * len(known),
        "text_hash": known,
        "vector": list(vectors),
        "windows": [1] * len(known),
    }
    house.write("rubric_embeddings", pa.table(columns).cast(RUBRIC_EMBEDDINGS), blueprint=name)


def made(asset: str) -> None:
    """One stage or roll-up, as a Dagster run over all blueprints."""
    import dagster as dg

    from assets.launch import OF_BLUEPRINTS, materialize
    from assets.rubric.files import known_blueprints

    with dg.DagsterInstance.get() as instance:
        keys = [] if asset in ROLLED_UP else known_blueprints(instance)
        config: dict[str, dict[str, int]] = {name: {"max_calls": 0} for name in ("rubric_judgements", "rubric_responses")}
        # The scores of the largest blueprint alone, with 3,200 responses, are more than a report usually has.
        config[SUMMARIES] = {"report_characters": 1_000_000}
        outcome = materialize(instance, [asset], keys, {asset: config[asset]} if asset in config else {}, space=OF_BLUEPRINTS)
    assert not outcome.failures, outcome.failures


def hashed(table: str) -> str:
    """A hash of a table's rows, partition by partition."""
    from dtef_pipeline.rubric.space import RUBRIC_SPACE
    from resources.settings import Settings
    from resources.warehouse import Warehouse

    house, found = Warehouse(Settings.from_environment().warehouse), hashlib.sha256()
    keys = [{}] if table.startswith(ROLLED_UP) else [RUBRIC_SPACE.levels(key) for key in house.values(table, "blueprint")]
    for at in keys:
        for batch in house.read_or_empty(table, **at).combine_chunks().to_batches():
            found.update(json.dumps(batch.to_pylist(), default=str).encode())
    return found.hexdigest()[:16]


def work(what: str, root: Path, share: Fraction, characters: int) -> None:
    """In the process that is measured: what was done, as JSON."""
    import assets.launch  # noqa: F401 - loaded before the time is taken

    idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    started, busy = time.perf_counter(), time.process_time()
    result: dict[str, Any] = {}
    if what == "fill":
        fill(root, share, characters)
    elif what == "hash":
        result = {table: hashed(table) for table in TABLES}
    elif what == SUMMARIES:
        with analyst(root):
            made(what)
    else:
        made(what)
    seconds, busy = time.perf_counter() - started, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "busy": busy, "peak": peak, "idle": idle, **result}))


def in_a_process(what: str, root: Path, share: Fraction, characters: int) -> dict[str, Any]:
    environment = {
        **os.environ,
        "DTEF_WAREHOUSE": str(root / "warehouse"),
        "DTEF_RESPONSES": str(root / "responses.sqlite"),
        "DTEF_MODELS": str(root / "models.yaml"),
        "DAGSTER_HOME": str(root / "dagster"),
        "OPENAI_API_KEY": "none",
    }
    command = [sys.executable, __file__, "--work", what, "--root", str(root), "--text", str(characters), str(share)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{what}:\n{done.stdout}{done.stderr[-4000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def prepare(root: Path) -> None:
    """Models that nobody serves, and the folder of Dagster's state."""
    shipped = Path(__file__).parent.parent / "dagster.yaml"
    (root / "dagster").mkdir(parents=True)
    (root / "dagster" / "dagster.yaml").write_text(shipped.read_text(encoding="utf-8"), encoding="utf-8")
    write_models(root, "http://127.0.0.1:9/v1")


def write_models(root: Path, address: str) -> None:
    """Those that judge and sum up, at an address."""
    models = {name: {"model": f"openai/{name}", "api_base": address} for name in ("judge", "reader")}
    text = yaml.safe_dump({"collections": {"judges": ["judge"], "analyst": ["reader"]}, "models": models})
    (root / "models.yaml").write_text(text, encoding="utf-8")


@contextmanager
def analyst(root: Path) -> Iterator[None]:
    """A server that sums up and grades, known to the models file."""
    from tests.fake_llm_server import FakeLLM
    from tests.made.rubric_replies import Players

    with FakeLLM(Players().reply) as server:
        write_models(root, server.base_url)
        yield


def measured(root: Path, share: Fraction, characters: int, with_hash: bool) -> dict[str, float]:
    """Prints, and returns by name, what a size takes."""
    if not (root / "models.yaml").exists():
        prepare(root)
        filled = in_a_process("fill", root, share, characters)
        print(f"share {share}: store filled in {filled['seconds']:.1f} s", flush=True)
    for folder in (root / "warehouse").iterdir():
        if folder.is_dir() and folder.name not in GIVEN:
            shutil.rmtree(folder)
    found: dict[str, float] = {}
    for asset in (*STAGES, *ROLLED_UP):
        one = in_a_process(asset, root, share, characters)
        print(
            f"  {asset}: {one['seconds']:.1f} s, of processor {one['busy']:.1f} s, peak {one['peak']:,.0f} MB (idle {one['idle']:,.0f})",
            flush=True,
        )
        found |= {f"{asset}, processor s": one["busy"], f"{asset}, peak MB": one["peak"]}
    for place in ("responses.sqlite", "warehouse", "dagster"):
        found[f"{place} on disk, MB"] = size(root / place) / 1e6
        print(f"  {place}: {found[f'{place} on disk, MB']:,.1f} MB", flush=True)
    if with_hash:
        print(in_a_process("hash", root, share, characters), flush=True)
    return found


def size(place: Path) -> int:
    files = [place] if place.is_file() else place.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("shares", nargs="*", type=Fraction)
    parser.add_argument("--text", type=int, default=400)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--hash", action="store_true")
    parser.add_argument("--work")
    parser.add_argument("--root", type=Path)
    given = parser.parse_args()
    if given.work:
        work(given.work, given.root, given.shares[0], given.text)
        return
    shares = given.shares or [Fraction(1, 30), Fraction(1, 10), Fraction(1, 3), Fraction(1)]
    found = []
    for share in shares:
        with tempfile.TemporaryDirectory() as folder:
            root = (given.keep / str(share).replace("/", "-of-") if given.keep else Path(folder) / "state").absolute()
            found.append(measured(root, share, given.text, given.hash))
    if len(found) > 1:
        for name in found[-1]:
            growth = math.log(found[-1][name] / found[-2][name]) / math.log(shares[-1] / shares[-2])
            print(f"{name}: {' '.join(f'{one[name]:,.1f}' for one in found)}; growth {growth:.2f}")


if __name__ == "__main__":
    main()
