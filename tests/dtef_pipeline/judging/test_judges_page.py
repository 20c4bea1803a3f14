"""docs/judges.md says what is so: the approaches, the classes with their numbers, and the reasons for having none."""

from __future__ import annotations

import re

from dtef_pipeline.judging.classes import FIVE_CLASSES, TEN_CLASSES
from dtef_pipeline.judging.consensus import CONSENSUS_COLUMNS
from dtef_pipeline.judging.judgement import UNJUDGED_REASONS
from dtef_pipeline.judging.judges import JUDGE_SETTINGS
from dtef_pipeline.judging.prompts import APPROACHES
from dtef_pipeline.judging.replies import REPLY_CONTRACT
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "judges.md").read_text(encoding="utf-8")


def first_column(heading: str) -> list[str]:
    """The names in the first column of the table whose head begins like this."""
    table = PAGE.partition(f"| {heading} |")[2].partition("\n\n")[0]
    return [name for row in table.splitlines() for name in re.findall(r"`([^`]+)`", row.split(" | ")[0])]


def test_classes_with_their_numbers_and_meanings() -> None:
    rows = re.findall(r"^\| `(CLASS_\w+)` \| ([\d.]+) \| (.+) \|$", PAGE, re.MULTILINE)
    assert [(name, float(number), meaning) for name, number, meaning in rows] == [
        tuple(one) for one in (*FIVE_CLASSES.classes, *TEN_CLASSES.classes)
    ]


def test_approaches_reasons_and_columns() -> None:
    assert first_column("approach") == list(APPROACHES)
    assert sorted(first_column("reason")) == sorted(UNJUDGED_REASONS)
    assert set(first_column("column")) == {column.name for column in CONSENSUS_COLUMNS} - {"score", "inverted"}


def test_settings_and_the_version_of_the_contract() -> None:
    assert f"temperature {JUDGE_SETTINGS['temperature']:g} with room for {JUDGE_SETTINGS['max_tokens']:,} tokens" in PAGE
    assert f"are version {REPLY_CONTRACT} of the reply contract" in PAGE
