"""`1 pairs` is written nowhere: numbers of things are put into words by `counted`, which knows the singular."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from dtef_pipeline.text.counted import counted
from tests.architecture import sources
from tests.conftest import ROOT

RULE = "dtef_pipeline/text/counted.py"
_THINGS = (
    r"answer|attempt|attribute|call|cell|character|cluster|column|comparison|condition|day|draw|error|failure|file|group|hour"
    r"|individual|item|level|line|list|minute|model|night|number|option|pair|partition|percentage|prediction|probe|prompt|question"
    r"|rate limit|record|request|resample|respondent|response|round|row|run|score|second|segment|snapshot|string|table|text|token"
    r"|value|word"
)
FIXED_PLURAL = re.compile(rf" (?:(?!(?:from|of|the|to|in|all|two)\b)[a-z]+ )?(?:{_THINGS})s\b")
"""What follows a number: the things counted, in the plural, with a word between or none. (`3 of the calls` has two.)"""
PROMPTS = "a prompt's words are its identity, and its numbers are 2 or more"
OPEN = {
    "dtef_pipeline/api/problems.py: {len(text)} characters": "longer than what is shown, so never 1",
    "dtef_pipeline/boards/served.py: {len(names)} models": "one name alone is not mixed, so 2 or more",
    "dtef_pipeline/drift/verdict_text.py: {needed} snapshots": "a baseline and one more, so never 1",
    "dtef_pipeline/survey/adapters/text_files.py: {expected} between columns": "a separator, no number",
    "dtef_pipeline/survey/boards/skill.py: {scored} pairs": "part of a number of pairs that is larger",
    "resources/gateway/sent_settings.py: {budget} tokens": "a provider's smallest budget, above 1",
    "resources/gateway/dispatch.py: {SAME_REFUSALS} requests": "a constant above 1",
    "resources/gateway/local_model.py: {_SMOLLM2} answers": "a name, no number",
    "resources/gateway/local_model.py: {len(_OPTION_LETTERS)} options": "a constant above 1",
    "dtef_pipeline/drift/models.py: {len(asked.items)} prompts": "2 or more: a snapshot with fewer is compared with none",
    "dtef_pipeline/drift/headline.py: {MIN_HOURS} hours": "a constant above 1",
    "dtef_pipeline/survey/adapters/segment_coverage.py: {naming} these segments": "names of files, no number",
    "dtef_pipeline/survey/boards/consistency.py: {other} segments": "more than another number of them, so never 1",
    "dtef_pipeline/drift/changes.py: {len(values)} {first}s": "more than are named, so never 1",
    "dtef_pipeline/survey/blueprint/answers.py: {sizes[0]} numbers": PROMPTS,
    "dtef_pipeline/survey/blueprint/answers.py: {options.individuals} strings": PROMPTS,
    "dtef_pipeline/survey/blueprint/answers.py: {size} numbers": PROMPTS,
    "dtef_pipeline/survey/blueprint/formats.py: {row['n']} respondents": PROMPTS,
    "dtef_pipeline/survey/blueprint/answers.py: {'s' if len(keys) > 1 else ''}": PROMPTS,
    "dtef_pipeline/survey/blueprint/narrative.py: {'' if tenths == 10 else 's'}": PROMPTS,
    "dtef_pipeline/survey/adapters/questionnaire.py: {self._files(files, 'name')} questions": "names of files, no number",
    "dtef_pipeline/survey/adapters/questionnaire.py: {guide} lists options": "the name of a file, no number",
    "dtef_pipeline/survey/adapters/questionnaire.py: {counts} has respondents": "the name of a file, no number",
    "dtef_pipeline/survey/adapters/questionnaire.py: {last} {verb}s": "the name of a file and a verb",
    "dtef_pipeline/survey/report/leaderboard.py: {SCORED.ranked_from} segments": "a constant above 1",
    "dtef_pipeline/survey/report/context.py: {count} questions": "a mean, with a decimal",
}
"""Places that are left as they are, each with its reason."""


def fixed_plurals(source: str) -> Iterator[str]:
    """A number in an f-string, or a text that is added to one, with what it counts in the plural; and a plural s that is decided in place."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            yield from _in_text(node.values)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            yield from _in_text([ast.FormattedValue(node.left, -1), *_parts(node.right)])


def _parts(node: ast.expr) -> list[ast.expr]:
    return node.values if isinstance(node, ast.JoinedStr) else [node]


def _in_text(parts: list[ast.expr]) -> Iterator[str]:
    for at, part in enumerate(parts):
        if not isinstance(part, ast.FormattedValue):
            continue
        value = ast.unparse(part.value)
        after = [str(one.value) if isinstance(one, ast.Constant) else "{}" for one in parts[at + 1 :]]
        if value.startswith("counted("):
            continue
        if found := FIXED_PLURAL.match("".join(after[:1])):
            yield f"{{{value}}}{found[0]}"
        if after[:2] == [" ", "{}"] and re.match(r"s\b", "".join(after[2:3])):
            yield f"{{{value}}} {{{ast.unparse(parts[at + 2].value)}}}s"  # type: ignore[attr-defined]
        if isinstance(part.value, ast.IfExp | ast.BinOp) and "'s'" in value:
            yield f"{{{value}}}"


def test_numbers_of_things_are_put_into_words_in_one_place() -> None:
    found = {
        f"{path}: {offence}"
        for path, file in sources(ROOT)
        for offence in fixed_plurals(file.read_text("utf-8"))
        if path != RULE
    }
    assert sorted(found - set(OPEN)) == []
    assert sorted(set(OPEN) - found) == [], "mended: take it off the list"


@pytest.mark.parametrize(
    "source",
    [
        'f"{len(rows)} pairs"',
        'f"{n:,} calls failed"',
        'f"{n} more rows"',
        'f"of {n} whole segments"',
        'numbers + " pairs are left"',
        'number.astype(str) + f" {noun}s cannot"',
        'f"{n} {noun}s cannot"',
        "f\"{n} {noun}{'' if n == 1 else 's'}\"",
        "f\"{n} pair{'s' * (n > 1)}\"",
    ],
)
def test_a_plural_for_any_number_is_noticed(source: str) -> None:
    assert list(fixed_plurals(source))


@pytest.mark.parametrize(
    "source",
    [
        "f\"{counted(n, 'pair')} and {counted(m, 'whole segment')}\"",
        'f"SELECT {names} FROM scores"',
        'f"{share:.1%} of the pairs"',
    ],
)
def test_other_words_are_left_alone(source: str) -> None:
    assert list(fixed_plurals(source)) == []


def test_one_is_singular_and_thousands_have_a_comma() -> None:
    said = [counted(number, "more row") for number in (0, 1, 2, 1200)]
    assert said == ["0 more rows", "1 more row", "2 more rows", "1,200 more rows"]
    assert [counted(2, noun) for noun in ("day", "battery", "question battery")] == [
        "2 days",
        "2 batteries",
        "2 question batteries",
    ]
