"""docs/labels.md names commands, options, columns and tables that there are."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from dtef_pipeline.cli import main
from dtef_pipeline.judging.classes import FIVE_CLASSES
from dtef_pipeline.rubric.label_tables import RUBRIC_CORRECTED_ROWS
from resources.warehouse import TABLES
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "labels.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^dtef (.+)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_and_option_on_the_page_exists(line: str) -> None:
    command: click.Command = main
    words = shlex.split(line)
    while isinstance(command, click.Group):
        command = command.commands[words.pop(0)]
    options = {name for one in command.params for name in one.opts}
    assert [word for word in words if word.startswith("--") and word not in options] == []


def test_columns_tables_and_classes_on_the_page_are_the_real_ones() -> None:
    assert len(COMMANDS) >= 8
    heads = re.findall(r"^\| (`.*?) \|", PAGE.partition("## Read the corrected board")[2], re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(heads))) == set(RUBRIC_CORRECTED_ROWS.names) - {"blueprint", "model"}
    assert set(re.findall(r"`(rubric_\w+)`", PAGE)) - {"rubric_anchors_again"} <= set(TABLES)
    assert all(f"`{name.removeprefix('CLASS_')}`" in PAGE for name in FIVE_CLASSES.numbers)
