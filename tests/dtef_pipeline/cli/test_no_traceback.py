"""Whatever is broken, a command says so in words: no traceback, no dump of a library, no exit code of an unexpected exception.

Commands and options are those that click lists, so a new one is tried at once.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from assets.launch import LaunchResult
from dtef_pipeline.cli import main
from dtef_pipeline.cli.error_reports import UNEXPECTED
from dtef_pipeline.identity import digest
from dtef_pipeline.qa.prompt_rows import AskSettings, build_plain_prompts
from dtef_pipeline.qa.tables import QA_SCORES
from resources.notes import ITEM_NOTES, QaSource
from resources.warehouse import Warehouse
from tests.dtef_pipeline.cli.commands import SAMPLE, skip_charts
from tests.dtef_pipeline.cli.test_help import all_commands
from tests.made.qa_items import ROWERS, responses_to, rows_of_items
from tests.made.qa_scores import score_row

USUAL = {
    "round": "S1",
    "round_id": "S1",
    "rounds": "S1",
    "query": "SELECT count(*) FROM scores",
    "out": "out",
    "blueprint": "demo-facts",
    "blueprints": "demo-facts",
    "before": "base",
    "after": "night-2",
    "suite": "gsm8k",
    "parts": "gsm8k/all",
    "scenario": "poker/kuhn",
    "what": "responses",
    "family": "rubric",
    "patterns": "demo-facts",
    "reviewer": "r1",
    "models": "baseline/uniform",
    "name": "alice",
    "role": "reviewer",
}
"""What is typed where a command needs a value; a file is given by the test."""
DUMPS = ("Traceback", "errors.pydantic.dev", "sqlalche.me", "_duckdb.", "pydantic_core", "[Errno", "object at 0x")
COMMANDS = {words: command for words, command in all_commands(main) if not isinstance(command, click.Group)}
YAML = {
    "empty": b"",
    "rubbish": bytes(range(256)) * 4,
    "utf-16": "models: {}\n".encode("utf-16"),
    "no yaml": b"models: [a\nb: }\n",
    "a list": b"- models\n- 3\n",
    "wrong types": b"models: 3\nrounds: {a: b}\nconditions: [[1]]\nstorage: 5\nrun_launcher: 7\n",
    "unknown key": b"rouds: [S1]\n",
    "a control character": b"models: '\x01'\n",
}


def offence(arguments: Sequence[object], about: str, stdin: str | None = None) -> str | None:
    """What a user would see that is none of the project's words; None: nothing."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)
    said = f"dtef {' '.join(map(str, arguments))} with {about}: exit code {result.exit_code}\n{result.output}"
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return f"{said}{result.exception!r}"
    shown = [dump for dump in DUMPS if dump in result.output]
    return said if shown or result.exit_code not in (0, 1, 2, 3, 4) or result.exit_code == UNEXPECTED else None


def typed(words: Sequence[str], command: click.Command, file: Path) -> list[str]:
    """The command with all that it needs, and `file` where it reads one."""
    arguments: list[str] = list(words)
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.required:
            arguments += [parameter.opts[0], str(file.parent / "out") if is_path(parameter) else USUAL[parameter.name or ""]]
        elif isinstance(parameter, click.Argument) and parameter.required:
            arguments.append(str(file) if is_path(parameter) else USUAL[parameter.name or ""])
    if words == ("survey", "run"):
        arguments += ["--round", "S1", "--segment", "country:brazil", "--questions", "2"]
    return arguments


def reading_of(words: Sequence[str], file: Path) -> list[str]:
    """The command that reads the file, also where it can do without one."""
    arguments = typed(words, COMMANDS[words], file)
    return arguments if str(file) in arguments else [*arguments, str(file)]


def is_path(parameter: click.Parameter) -> bool:
    return isinstance(parameter.type, click.Path | click.File)


@pytest.fixture(autouse=True)
def no_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    skip_charts(monkeypatch)


@pytest.fixture
def no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything up to the start of a run or of Dagster's web page, which takes seconds, is real."""
    monkeypatch.setattr("assets.launch.materialize", lambda *_, **__: LaunchResult((), ()))
    monkeypatch.setattr("dtef_pipeline.cli.serve_ui.subprocess.Popen", lambda *_, **__: Ended())
    monkeypatch.setattr("dtef_pipeline.cli.serve_ui.signal.signal", lambda *_: None)


class Ended:
    def wait(self) -> int:
        return 0


@pytest.fixture
def state_of_its_own(scored: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(scored, state, dirs_exist_ok=True)
    keep_items(Warehouse(state / "warehouse"))
    monkeypatch.chdir(state)
    return state


def keep_items(house: Warehouse) -> None:
    """One question that was asked and answered, so that the commands of questions have something to read."""
    at = {"suite": ROWERS.suite, "part": ROWERS.part}
    prompts = build_plain_prompts([ROWERS], [], AskSettings()).qa_prompts
    house.write("qa_items", rows_of_items(ROWERS), **at)
    house.write("qa_prompts", prompts, **at)
    house.write("qa_responses", responses_to(ROWERS, "#### 12"), **at, snapshot="base")
    house.write("qa_scores", pa.Table.from_pylist([score_row(1.0, **at)], schema=QA_SCORES), **at, snapshot="base")
    ITEM_NOTES.write(house, QaSource(**at, path="sums.jsonl", corpus=None, suites=None, content_hash="0"))


def of_every_table(folder: Path, change: Callable[[Path], object]) -> None:
    """Breaks one file of each table."""
    for table in (folder / "warehouse").iterdir():
        if table.is_dir() and (files := sorted(table.rglob("*.parquet"))):
            change(files[0])


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:300])


def to_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def of_old_columns(file: Path) -> None:
    pq.write_table(pa.table({"round": ["S1"], "score": ["text"]}), file)


TABLE_FAULTS: Mapping[str, Callable[[Path], object]] = {
    "tables cut": cut,
    "empty tables": lambda file: file.write_bytes(b""),
    "folders for tables": to_folder,
    "tables of old columns": of_old_columns,
}
PLACES: Mapping[str, Mapping[str, str]] = {
    "no variable set": {"DTEF_WAREHOUSE": "", "DTEF_RESPONSES": "", "DAGSTER_HOME": "", "DTEF_MODELS": "", "DTEF_PANEL": ""},
    "a warehouse below a file": {"DTEF_WAREHOUSE": "a-file/warehouse"},
    "a warehouse of no known kind": {"DTEF_WAREHOUSE": "nope://x/y"},
    "a store of rubbish": {"DTEF_RESPONSES": "a-file"},
    "a store below a file": {"DTEF_RESPONSES": "a-file/store.sqlite"},
    "a store of no known kind": {"DTEF_RESPONSES": "nope://me:hush@h/x"},
    "a relative home below a file": {"DAGSTER_HOME": "a-file/home"},
    "a webhook that is none": {"DTEF_WEBHOOK": "hush"},
}


def in_place_of(name: str, how: str) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        path = folder / name
        if how == "folder":
            to_folder(path)
        else:
            path.write_bytes(b"rubbish" * 99)

    return change


FILES: Mapping[str, Callable[[Path], object]] = {
    "runs of Dagster that are rubbish": in_place_of("dagster/history/runs.db", "rubbish"),
    "events of Dagster that are rubbish": in_place_of("dagster/history/runs/index.db", "rubbish"),
    "a folder for dagster.yaml": in_place_of("dagster/dagster.yaml", "folder"),
    "a source that is rubbish": in_place_of("warehouse/sources/S1.json", "rubbish"),
    "a note of questions that is rubbish": in_place_of(f"warehouse/qa_files/{digest('gsm8k/all')}.json", "rubbish"),
    "a dtef.duckdb that is rubbish": in_place_of("warehouse/dtef.duckdb", "rubbish"),
}


def some_commands(file: Path, about: str, among: Iterable[str]) -> Iterator[str]:
    """What is wrong with what a share of the commands says. Each fault `among` all meets another share."""
    faults = list(among)
    for words, command in list(COMMANDS.items())[faults.index(about) :: len(faults)]:
        # A survey that can be read, so that the state is what is met.
        if found := offence(typed(words, command, SAMPLE if words == ("survey", "add") else file), about, stdin="{}\n"):
            yield found


@pytest.mark.usefixtures("no_runs")
class TestState:
    @pytest.mark.parametrize("about", PLACES)
    def test_a_place_that_cannot_be_used(self, state_of_its_own: Path, about: str, monkeypatch: pytest.MonkeyPatch) -> None:
        file = state_of_its_own / "a-file"
        file.write_bytes(b"rubbish" * 99)
        for name, value in PLACES[about].items():
            monkeypatch.setenv(name, value)
        assert list(some_commands(file, about, PLACES)) == []

    @pytest.mark.parametrize("about", {**FILES, **TABLE_FAULTS})
    def test_a_file_of_the_state_that_is_broken(self, state_of_its_own: Path, about: str) -> None:
        if about in FILES:
            FILES[about](state_of_its_own)
        else:
            of_every_table(state_of_its_own, TABLE_FAULTS[about])
        assert list(some_commands(state_of_its_own / "models.yaml", about, {**FILES, **TABLE_FAULTS})) == []


@pytest.mark.parametrize("share", [3, pytest.param(1, marks=pytest.mark.thorough)])
def test_files_given_to_a_command_that_are_broken(state: Path, no_runs: None, share: int) -> None:
    """Each file is given to one in `share` of the commands, the next to others."""
    contents = {
        **YAML,
        "no text": b"\xff\xfe\x00",
        "half a table": b"PAR1" * 9,
        "text": b"a,b\n1\n",
        "JSON": b'{"a": [1, {"b": 2}]}',
    }
    suffixes = (".csv", ".json", ".parquet", ".jsonl", ".jsonl.gz", ".txt", "")
    paths = {words: filter(is_path, command.params) for words, command in COMMANDS.items()}
    readers = [words for words, found in paths.items() if any(isinstance(path, click.Argument) for path in found)]
    found = []
    for number, (about, content) in enumerate(contents.items()):
        suffix = suffixes[number % len(suffixes)]
        file = state / f"file{number}{suffix}"
        file.write_bytes(content)
        found += [offence(reading_of(words, file), f"{about}{suffix}", stdin="") for words in readers[number % share :: share]]
    for number, file in enumerate((state / "none.csv", state, Path("/proc/nope/x.jsonl"))):
        found += [offence(reading_of(words, file), str(file), stdin="") for words in readers[number % share :: share]]
    assert [one for one in found if one] == []


def test_targets_that_cannot_be_written(reading: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    targets = [file / "x", Path("/proc/nope/x"), Path("/dev/full")]
    found = [offence(["report", "--out", target], str(target)) for target in targets]
    found += [offence(["export", "prompts", target, "--round", "S1"], str(target)) for target in (file, file / "x")]
    for target in (tmp_path / "none" / "x.parquet", file / "x.jsonl", tmp_path / "x.txt"):
        found.append(offence(["export", "responses", target], str(target)))
    assert [one for one in found if one] == []


ODD_VALUES = ("", "-1e999", "../\u2028=\x07")


def test_values_of_options_that_make_no_sense(ingested: Path, no_runs: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each name of an option with one value, in the first command that has it."""
    monkeypatch.chdir(ingested)
    found, seen = [], list[str]()
    for words, command in COMMANDS.items():
        for option in command.params:
            if not isinstance(option, click.Option) or option.is_flag or option.opts[0] in seen:
                continue
            seen.append(option.opts[0])
            value = ODD_VALUES[len(seen) % len(ODD_VALUES)]
            arguments = [*typed(words, command, ingested / "models.yaml"), option.opts[0], value]
            found.append(offence(arguments, f"{option.opts[0]} {value!r}", stdin=""))
    assert [one for one in found if one] == []
