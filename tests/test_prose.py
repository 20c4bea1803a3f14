"""Sentences that have to be read twice: in sources, help texts and pages "per" says what one of something belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

READ = (
    "*.md",
    "dtef_pipeline/**/*",
    "resources/**/*",
    "assets/**/*",
    "benchmarks/**/*",
    "data/**/*",
    "deploy/*",
    "docs/*",
    "tests/**/*",
)
SUFFIXES = (".py", ".md", ".js", ".yaml", ".toml", ".sql")
NOT_OURS = ("tests/dtef_pipeline/survey/blueprint/golden/", "tests/test_prose.py")
"""Prompts word for word, whose wording is their identity, and the sentences that this test is shown to find."""

_COUNTED = (
    r"(?:(?:one|once|twice)"
    r"|(?:one|an?|\d+) (?:(?:live|small) )?(?:row|line|file|section|pool|matrix|gateway|number|draw|hash|value|name)s?)"
)
_OWNER = (
    r"answer|attribute|batch|call|cell|character|cluster|column|comparison|condition|context level|country|database|draw|experiment"
    r"|family|file|group|item|level|line|metric|model|night|option|pair|partition|person|process|prompt|provider|question|request"
    r"|response|round|row|run|segment|series|snapshot|stage|table|task|token|value|variant"
)
DISTRIBUTIVE = re.compile(
    rf"\b{_COUNTED} an? (?:\(|(?:{_OWNER})\b)(?! (?:is|was|has|had|fails|failed|ends|ended)\b)", re.IGNORECASE
)
"""One row a segment; a clause that begins with "once a model has" is none."""
_BREAK = re.compile(r'"?\s*\n\s*(?:#\s*|f?")?')
"""A line's end within a sentence, in a comment or between the parts of a text."""


def distributive_phrases(text: str) -> list[str]:
    return [found[0] for found in DISTRIBUTIVE.finditer(" ".join(_BREAK.sub(" ", text).split()))]


def sources() -> Iterator[Path]:
    for pattern in READ:
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in SUFFIXES and not name.startswith(NOT_OURS):
                yield path


def test_one_row_per_segment_is_never_called_one_row_a_segment() -> None:
    found = {path.relative_to(ROOT).as_posix(): distributive_phrases(path.read_text(encoding="utf-8")) for path in sources()}
    assert len(found) > 300
    assert {name: phrases for name, phrases in found.items() if phrases} == {}


@pytest.mark.parametrize(
    "text",
    [
        '"""One row a segment."""',
        "One row a (round, segment): its counts.",
        "It stands once a question.",
        "allowed: a number, or one a row",
        "a small matrix a cluster",
        "# It is read once a\n    # run.",
        'help="Writes one file "\n    "a partition."',
    ],
)
def test_a_distributive_article_is_noticed(text: str) -> None:
    assert distributive_phrases(text) != []


@pytest.mark.parametrize(
    "text", ["One row per segment.", "once a minute", "Once a partition has failed, nothing follows.", "one of a model's rows"]
)
def test_other_articles_are_left_alone(text: str) -> None:
    assert distributive_phrases(text) == []
