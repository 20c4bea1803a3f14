"""The hash of a test changes with what is asked and how it is judged, and with nothing else."""

from __future__ import annotations

import pytest

from dtef_pipeline.rubric.blueprint.model import hash_prompt
from dtef_pipeline.rubric.blueprint.model import test_hash as hash_of_test
from dtef_pipeline.rubric.blueprint.reading import read_blueprint

HEADER = "title: A\ndescription: B\ntags: [c]\nmodels: [openai:a, openai:b]\nsystem: Be kind.\n"
FIRST = "- {id: a, prompt: How much is it?, ideal: Five., should: [names a price, {$contains: '5', weight: 2}], should_not: [is rude]}\n"
SECOND = (
    "- {id: b, messages: [user: Hello, assistant: null, user: Again], should: [[is short, is kind], [is long]], weight: 3}\n"
)


def hashed(text: str) -> str:
    blueprint = read_blueprint(text, "a").blueprint
    assert blueprint is not None
    return hash_of_test(blueprint)


WHOLE = f"{HEADER}---\n{FIRST}{SECOND}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("title: A", "title: Z"),
        ("description: B", "description: Z"),
        ("tags: [c]", "tags: [z]"),
        ("openai:a, openai:b", "openai:b, openai:a, openai:z"),
        ("models:", "temperatures: [0, 1]\nmodels:"),
        (FIRST + SECOND, SECOND + FIRST),
        ("id: a", "id: z"),
        ("ideal: Five.", "ideal: Five., citation: a book, description: z, render_as: html"),
        ("- {id: b,", "---\n- {id: b,"),
        ("names a price,", "{text: names a price, weight: 1.0, citation: a book},"),
        ("{$contains: '5', weight: 2}", "{fn: contain, arg: '5', multiplier: 2.0}"),
        ("weight: 3}", "importance: 3.0}"),
        ("assistant: null", "ai: null"),
    ],
)
def test_these_do_not_change_it(old: str, new: str) -> None:
    assert old in WHOLE
    assert hashed(WHOLE.replace(old, new)) == hashed(WHOLE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("How much is it?", "How much was it?"),
        ("Five.", "Six."),
        ("ideal: Five., ", ""),
        ("names a price", "names the price"),
        ("names a price,", "{text: names a price, weight: 2},"),
        ("weight: 2", "weight: 2.5"),
        ("contains", "icontains"),
        ("'5'", "'6'"),
        ("is rude", "is curt"),
        (", should_not: [is rude]", ""),
        ("should_not", "citation: x, expect"),
        ("[is short, is kind], [is long]", "[is short], [is kind, is long]"),
        ("[is short, is kind], [is long]", "is short, is kind, is long"),
        ("Be kind.", "Be curt."),
        ("system: Be kind.", "systems: [Be kind., null]"),
        ("assistant: null", "assistant: Hello"),
        ("weight: 3}", "weight: 2}"),
        (SECOND, ""),
        (SECOND, SECOND + SECOND.replace("id: b", "id: c")),
    ],
)
def test_these_change_it(old: str, new: str) -> None:
    assert old in WHOLE
    assert hashed(WHOLE.replace(old, new)) != hashed(WHOLE)


def test_repaired_function_is_the_function() -> None:
    assert hashed(WHOLE.replace("names a price", "'$contains: a'")) == hashed(WHOLE.replace("names a price", "{$contains: a}"))


def test_numbers_are_equal_however_they_are_written() -> None:
    function = "{$word_count_between: [%s, 20]}"
    assert hashed(WHOLE.replace("names a price", function % "5.0")) == hashed(WHOLE.replace("names a price", function % "5"))


def test_prompts_that_read_the_same_hash_the_same_and_the_identity_is_fixed() -> None:
    blueprint = read_blueprint(
        "models: [openai:a]\n---\n- {id: a, prompt: b, should: [c]}\n- {id: d, prompt: b, should: [c]}", "a"
    ).blueprint
    assert blueprint is not None
    first, second = map(hash_prompt, blueprint.prompts)
    assert first == second == "bd613f01fb69d9d7cd8756f0d84e7b02"
