"""Every shell block of README and docs is valid shell, and every `dtef` command in it runs on small data: a newcomer's in each run of the
tests, all in `make test-thorough` (tests/test_printed_commands.py checks the options of all in each run).

Other programs: tests/dtef_pipeline/api/test_guide.py sends the requests of `curl`, tests/test_operate.py starts the services.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import ROOT
from tests.dtef_pipeline.cli.commands import dtef, ok
from tests.dtef_pipeline.cli.documented_world import documented_world, fill_sheet, remove_sheet, write_votes
from tests.strict_json import strict

FIRST = ("README.md", "first-evaluation.md", "report.md", "rubric.md", "qa.md", "games.md", "preference.md")
"""Pages whose data the others use, and the report, which takes longer with more data."""
NEWCOMER = ("first-evaluation.md",)
PAGES = sorted(
    (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")),
    key=lambda page: (FIRST.index(page.name) if page.name in FIRST else len(FIRST), page),
)
NOT_RUN = {
    r"^ui$": "tests/test_operate.py",
    r"^api$": "tests/dtef_pipeline/api/test_guide.py",
    r"postgresql": "tests/test_several_machines.py",
}
"""By a pattern of commands that need a server or a long time: the test that runs the like."""
LABEL = (
    "export labels sheet.csv --prompts 5",
    fill_sheet,
    "import labels sheet.csv --author Ada",
    remove_sheet,
    "rubric board --refresh",
)
VOTE = (write_votes, "import votes votes.jsonl", "preference board --refresh")
BEFORE: Mapping[str, Sequence[str | Callable[[], None]]] = {
    "rubric board --by corrected": LABEL,
    "import labels sheet.csv --author Ada": (fill_sheet,),
    "preference pairs --family qa --per-item 3": ("qa run --suite mmlu --model gpt-4.1 --limit 5",),
    "import votes votes.jsonl": (write_votes,),
    "anchors --family rubric --snapshot 2026-01-31 --n 200": ("rubric remove demo-letters", "rubric remove demo-facts"),
    "preference board --family games --partition poker --metric *expected_return": (
        "preference pairs --family games --per-item 1",
        *VOTE,
    ),
    "export responses january.jsonl.gz --snapshot 2026-01-31 --model gpt-4.1-mini": (
        "run --round GD4 --model gpt-4.1-mini --questions 2 --snapshot 2026-01-31 --no-roll-ups",
    ),
    "run --round GD4 --round GD5 --round GD6 --context 0 --model baselines": ("add path/to/GD5 path/to/GD6",),
    "anchors --family qa --snapshot 2026-03-01": (
        "qa add gsm8k data/questions/gsm8k",
        "qa run --suite gsm8k --model gpt-4.1-mini --limit 5 --judge gpt-4.1 --no-roll-ups",
    ),
}
"""By command: what the reader of the page, a reviewer or a schedule did before."""
ROLLED_UP = r"^run --round GD4$|^rubric run --blueprint demo|^qa run --suite (demo-\*|mmlu)|^games run --(scenario|league)"
"""Runs whose boards are shown."""
NEEDED_RUNS = rf"{ROLLED_UP}|^run --round S1$|--condition|--from|^rubric run --(blueprint|judge)|--retriever"
"""Runs that later commands, or the ways of asking that a page explains, need. Runs like them are only estimated."""
NAMES = {"/var/lib/dtef/surveys/GD4": "path/to/GD4", "$round": "GD5", "1-10": "1-5", "1-20": "1-5"}
"""Words of the pages, and what the folder here has in their place."""


COMMAND = re.compile(
    r"(?:^|^echo '(?P<stdin>.*)' \| |\$\(|; do )(?P<settings>(?:[A-Z_]+=\S+ )*)dtef (?P<words>[^\n]*?)(?:; done|\)|&)?$",
    re.MULTILINE,
)


class Documented(NamedTuple):
    """A command of the pages."""

    stdin: str | None
    environment: tuple[str, ...]
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def __str__(self) -> str:
        return " ".join((*self.environment, *self.words))


def shell_blocks() -> Iterator[tuple[str, str]]:
    """Page and text of each block."""
    for page in PAGES:
        for indent, block in re.findall(r"^( *)```sh\n(.*?)^ *```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            yield page.name, re.sub(rf"^{indent}", "", block, flags=re.MULTILINE)


def documented_commands(pages: Collection[str]) -> list[Documented]:
    """Return each command of these pages once, in the order of the pages."""
    found = {}
    for block in (block for page, block in shell_blocks() if page in pages):
        for match in COMMAND.finditer(block.replace("\\\n", " ")):
            words = tuple(shlex.split(match["words"], comments=True))
            found[Documented(match["stdin"], tuple(match["settings"].split()), words)] = True
    return list(found)


@pytest.mark.parametrize(("page", "block"), list(shell_blocks()))
def test_a_shell_block_is_valid_shell(page: str, block: str) -> None:
    checked = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True)
    assert (page, checked.stderr) == (page, "")


def find_stand_in(command: Documented) -> str | None:
    """Return the test that runs the like of a command, None if it is run here."""
    return next((test for pattern, test in NOT_RUN.items() if re.search(pattern, str(command))), None)


@pytest.mark.timeout(1500)  # on a busy machine; as a rule two minutes
@pytest.mark.parametrize(
    ("pages", "n_commands"),
    [
        pytest.param(NEWCOMER, 8, id="newcomer"),
        pytest.param([page.name for page in PAGES], 120, id="all", marks=pytest.mark.thorough),
    ],
)
def test_every_other_command_ends_well(tmp_path: Path, pages: Collection[str], n_commands: int) -> None:
    commands = [command for command in documented_commands(pages) if find_stand_in(command) is None]
    assert len(commands) > n_commands
    assert all((ROOT / test).is_file() for test in NOT_RUN.values())
    with documented_world(tmp_path):
        assert [fault for command in commands for fault in run_documented(command)] == []


def run_documented(command: Documented) -> Iterator[str]:
    """Yield the output of a command that fails."""
    for step in BEFORE.get(command.text, ()):
        if callable(step):
            step()
        else:
            ok(*step.split())
    with pytest.MonkeyPatch.context() as patch:
        for setting in command.environment:
            patch.setenv(*setting.split("=", 1))
        result = dtef(*(fill_in(word) for word in command.words), *lessen(command), stdin=command.stdin)
    if result.exit_code != 0:
        yield f"{command.text}: {result.output[-300:]}"


def lessen(command: Documented) -> Sequence[str]:
    """Return an option that leaves out what takes most of a run's time, and no page shows."""
    if "run" not in command.words[:2] or re.search(f"{ROLLED_UP}|--estimate", command.text):
        return []
    return ["--no-roll-ups" if re.search(NEEDED_RUNS, command.text) else "--estimate"]


def fill_in(word: str) -> str:
    """Return the word, or what the folder here has in its place."""
    if word == "VOTE":
        return str(strict(ok("preference", "votes", "--json"))[0]["vote"])
    return NAMES.get(word, word)
