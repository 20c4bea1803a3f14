"""Every shell block of README and docs is valid shell, and every `dtef` command in it can be read. Those that the demo has data for are run."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from dtef_pipeline.cli import main
from tests.conftest import ROOT
from tests.dtef_pipeline.cli.commands import dtef, ok, use

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOT_RUN = {
    "a provider or a model": r"gpt-|\bcore\b|\bmine\b|local/|retriever remote",
    "a server": r"^ui\b|^api\b|postgresql",
    "somebody's own files or answers": (
        r"path/to|/var/lib|GD5|human|\bPAIR\b|\bVOTE\b|\bNAME\b|votes\.jsonl$|votes\.csv|class-of-may|vote --reviewer"
    ),
    "data that the demo lacks": r"mmlu|--family qa|^qa |anchors|by conditions|--after|corrected|demo-letters$|partition poker|travel",
    "the time of a run or a roll-up, which other tests have": (
        r"^run\b|^rubric run|^games run|^(rubric |preference )?board --refresh|^report$|^report --out report$"
    ),
    "a folder of blueprints; tests/dtef_pipeline/rubric/test_write_a_blueprint.py has one": r"blueprints\b(?!/)",
}
"""By what a command needs: which ones are only read."""
SAME = {"GD4": "S1", "2026-01-31": "2026-01-01"}
"""Names of the pages, and what the state here has in their place."""


def shell_blocks() -> Iterator[tuple[str, str]]:
    """Page and text of each block."""
    for page in PAGES:
        for indent, block in re.findall(r"^( *)```sh\n(.*?)^ *```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            yield page.name, re.sub(rf"^{indent}", "", block, flags=re.MULTILINE)


def documented_commands() -> list[tuple[str, ...]]:
    """The words after `dtef` of each command that begins a line, once each."""
    found = {}
    for _, block in shell_blocks():
        for line in re.findall(r"^(?:[A-Z_]+=\S+ )*dtef (.*?)&?$", block.replace("\\\n", " "), re.MULTILINE):
            found[tuple(shlex.split(line, comments=True))] = True
    return list(found)


def is_run(words: tuple[str, ...]) -> bool:
    return not any(re.search(pattern, " ".join(words)) for pattern in NOT_RUN.values())


@pytest.mark.parametrize(("page", "block"), list(shell_blocks()))
def test_a_shell_block_is_valid_shell(page: str, block: str) -> None:
    checked = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True)
    assert (page, checked.stderr) == (page, "")


@pytest.mark.parametrize("words", documented_commands(), ids=" ".join)
def test_a_command_can_be_read(words: tuple[str, ...]) -> None:
    command: click.Command = main
    context = click.Context(main)
    rest = list(words)
    while isinstance(command, click.Group):
        name, below, rest = command.resolve_command(context, rest)
        assert below is not None
        command, context = below, click.Context(below, parent=context, info_name=name)
    values, left_over, _ = command.make_parser(context).parse_args(rest)
    assert left_over == []
    lacking = [
        one.name
        for one in command.params
        if isinstance(one, click.Argument) and one.required and not values.get(one.name or "")
    ]
    assert lacking == []


@pytest.fixture(scope="module")
def documented(rubric_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A checkout's folder with the state of the rubric demo, and of a few games."""
    folder = tmp_path_factory.mktemp("documented")
    (folder / "data").symlink_to(ROOT / "data")
    with pytest.MonkeyPatch.context() as patch:
        use(Path(shutil.copytree(rubric_demo, folder / ".dtef")), patch)
        patch.setenv("DTEF_API_TOKENS", str(folder / "tokens.yaml"))
        patch.chdir(folder)
        ok("games", "run", "--scenario", "poker/*", "--player", "baselines", "--seeds", "1-5")
        yield folder


def test_the_commands_that_need_nothing_else_end_well(documented: Path) -> None:
    run = [words for words in documented_commands() if is_run(words)]
    assert len(run) > 25
    failed = []
    for words in run:
        result = dtef(*(SAME.get(word, word).replace("GD4", "S1") for word in words))
        if result.exit_code != 0:
            failed.append((" ".join(words), result.output[-200:]))
    assert failed == []
