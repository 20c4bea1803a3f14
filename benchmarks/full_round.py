"""What orchestration costs: a full GD4-sized round (49 segments x 116 questions x 3 contexts x 5 baselines) through all six stages.

Each in a process of its own, all but the command warmed up (the stages on a round of one segment, the roll-ups by a first time):

- library: the same library calls, with the same Parquet files read and written, and no Dagster;
- its roll-ups: boards, tests, costs, drift of the models and the report, by library calls too;
- dagster: the six stages as one Dagster run, with its checks, metadata and event log;
- roll-ups: all roll-ups as one Dagster run over what the stages made;
- command: the whole of `dtef run`, with the start of Python, the roll-ups and the boards that it prints.

Prints seconds (of the clock, and of the processor), and the ratio of each to library, and to library and its roll-ups together, which is
the same work as the command's: of the clock, and in brackets of the processor. The smallest of `--repeat` passes each, which alternate, so
that a busy machine disturbs all alike.

    python -m benchmarks.full_round [SURVEY.json] [--storage sqlite|URL] [--dagsters-own] [--no-batching] [--repeat 3] [--no-command]

Without a survey it makes a synthetic one. Storage is where runs and events are kept: SQLite, or a PostgreSQL database given by its URL;
`--dagsters-own`: by the classes of Dagster, not by those of `resources/`. `--no-batching`: one event at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import yaml

from benchmarks.round_by_library import BASELINES, CONTEXTS, library_pass, library_roll_ups_pass

ROUND, WARM_UP = "B1", "B0"


def synthetic_survey(path: Path, *, segments: int = 49, questions: int = 116, seed: int = 1) -> Path:
    """A DTEFSurveyData file of the given size; its answers are random."""
    rng = np.random.default_rng(seed)
    options = ["Strongly disagree", "Somewhat disagree", "Neutral", "Somewhat agree", "Strongly agree"]
    shares = 100 * rng.dirichlet(np.full(5, 3.0), size=(segments, questions))
    survey = {
        "surveyId": "benchmark-b1",
        "surveyName": "Benchmark",
        "questions": {
            f"q{q}": {
                "text": f"How far do you agree with statement number {q} of this synthetic survey?",
                "type": "single-select",
                "options": options,
            }
            for q in range(questions)
        },
        "segments": [
            {
                "id": f"country:c{s}",
                "label": f"C{s}",
                "attributes": {"country": f"C{s}"},
                "sampleSize": 50,
                "responses": [{"questionId": f"q{q}", "distribution": shares[s, q].tolist()} for q in range(questions)],
            }
            for s in range(segments)
        ],
    }
    path.write_text(json.dumps(survey), encoding="utf-8")
    return path


def dagster_pass(survey: Path, round_id: str) -> None:
    """The same as one Dagster run of the six stages."""
    import dagster as dg

    from assets.launch import materialize
    from resources.settings import Settings
    from resources.warehouse import Warehouse
    from tests.assets.family_state import STAGE_NAMES

    with dg.DagsterInstance.get() as instance:
        house = Warehouse(Settings.read_environment().warehouse)
        keys = [f"{round_id}/{segment}" for segment in house.values("survey_responses", "segment", round=round_id)]
        config = {
            "blueprints": {"context_levels": list(CONTEXTS)},
            "predictions": {"models": [f"baseline/{name}" for name in BASELINES]},
        }
        failures = materialize(instance, STAGE_NAMES, keys, config).failures
    assert not failures, failures


def roll_ups_pass(survey: Path, round_id: str) -> None:
    """All roll-ups, over all that the stages have stored."""
    import dagster as dg

    from assets.engine.roll_up_names import ROLL_UP_NAMES
    from assets.launch import materialize

    with dg.DagsterInstance.get() as instance:
        failures = materialize(instance, ROLL_UP_NAMES, [], {}).failures
    assert not failures, failures


PASSES: dict[str, Callable[[Path, str], None]] = {
    "library": library_pass,
    "its roll-ups": library_roll_ups_pass,
    "dagster": dagster_pass,
    "roll-ups": roll_ups_pass,
}


def measured(what: str, survey: Path, warm_up: Path) -> None:
    """In the process that is measured: the seconds of one pass, after a pass over the small round, as JSON."""
    PASSES[what](warm_up, WARM_UP)
    started, used = time.perf_counter(), time.process_time()
    PASSES[what](survey, ROUND)
    clock, processor = time.perf_counter() - started, time.process_time() - used
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"clock": clock, "processor": processor, "megabytes": memory}))


def command_pass(environment: dict[str, str]) -> dict[str, float]:
    """The whole of `dtef run`, as a user waits for it."""
    options = [word for level in CONTEXTS for word in ("--context", level)]
    options += [word for name in BASELINES for word in ("--model", f"baseline/{name}")]
    started = time.perf_counter()
    process = subprocess.Popen(
        _command(["run", "--from", "ingest", "--round", ROUND, *options]), env=environment, stdout=subprocess.DEVNULL
    )
    # Of this process alone: `RUSAGE_CHILDREN` has the memory of the largest there ever was.
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, status
    return {
        "clock": time.perf_counter() - started,
        "processor": used.ru_utime + used.ru_stime,
        "megabytes": used.ru_maxrss / 1024,
    }


def _command(words: list[str]) -> list[str]:
    return [sys.executable, "-c", "from dtef_pipeline.cli import main; main()", *words]


def _dtef(words: list[str], environment: dict[str, str]) -> None:
    subprocess.run(_command(words), env=environment, check=True, stdout=subprocess.DEVNULL)


def prepared(folder: Path, survey: Path, warm_up: Path, storage: str, dagsters_own: bool, batching: bool) -> dict[str, str]:
    """A state of its own with both rounds ingested; the environment that names it."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "dagster").mkdir(parents=True)
    root = Path(__file__).resolve().parent.parent
    config = yaml.safe_load((root / "dagster.yaml").read_text(encoding="utf-8"))
    if "://" in storage:
        ours = {"module": "resources.dagster_postgres_storage", "class": "PostgresStorage", "config": {"postgres_url": storage}}
        config["storage"] = {"postgres": {"postgres_url": storage}} if dagsters_own else {"custom": ours}
    elif dagsters_own:
        del config["storage"]
    (folder / "dagster" / "dagster.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    places = {"DTEF_WAREHOUSE": "warehouse", "DTEF_RESPONSES": "responses.sqlite", "DAGSTER_HOME": "dagster"}
    environment = {**os.environ, **{name: str(folder / place) for name, place in places.items()}}
    environment["PYTHONPATH"] = str(root)
    # A user's Python keeps what it has compiled; without that a command spends seconds compiling Dagster.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["DAGSTER_EVENT_BATCH_SIZE"] = "50" if batching else "0"
    for round_id, path in ((WARM_UP, warm_up), (ROUND, survey)):
        _dtef(["add", str(path), "--round", round_id], environment)
    return environment


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("survey", nargs="?", type=Path)
    parser.add_argument("--storage", default="sqlite")
    parser.add_argument("--dagsters-own", action="store_true")
    parser.add_argument("--no-batching", action="store_true")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-command", action="store_true")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        measured(given.measure[0], given.survey, Path(given.measure[1]))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        survey = given.survey or synthetic_survey(folder / "b1.json")
        warm_up = synthetic_survey(folder / "b0.json", segments=1, questions=5)
        best: dict[str, dict[str, float]] = {}
        for _ in range(given.repeat):
            environment = prepared(folder / "state", survey, warm_up, given.storage, given.dagsters_own, not given.no_batching)
            found = {name: _in_a_process(name, survey, warm_up, environment) for name in PASSES}
            if not given.no_command:
                found["command"] = command_pass(environment)
            for name, numbers in found.items():
                best[name] = {n: min(v, best.get(name, numbers)[n]) for n, v in numbers.items()}
    whole = {kind: best["library"][kind] + best["its roll-ups"][kind] for kind in ("clock", "processor")}
    for name, numbers in best.items():
        seconds = f"{numbers['clock']:6.2f} s ({numbers['processor']:.2f} s of processor), {numbers['megabytes']:,.0f} MB"
        print(
            f"{name:12} {seconds}, ratio {_ratio(numbers, best['library'])}, to all of the same work {_ratio(numbers, whole)}"
        )


def _ratio(numbers: dict[str, float], to: dict[str, float]) -> str:
    return f"{numbers['clock'] / to['clock']:.2f} ({numbers['processor'] / to['processor']:.2f})"


def _in_a_process(name: str, survey: Path, warm_up: Path, environment: dict[str, str]) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.full_round", str(survey), "--measure", name, str(warm_up)]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    numbers: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return numbers


if __name__ == "__main__":
    main()
