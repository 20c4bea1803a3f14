"""Prompts: what is asked, by which system prompts and at which temperatures, and under which id."""

from __future__ import annotations

import pytest

from dtef_pipeline.judging.prompts import Turn
from dtef_pipeline.rubric.blueprint.model import Blueprint, PromptItem
from dtef_pipeline.rubric.blueprint.reading import read_blueprint
from tests.made.shared_cases import cases_beside

CASES = cases_beside(__file__)

HEADER = "models: [openai:gpt-4o]\n"


def read(*prompts: str, header: str = "") -> tuple[Blueprint, list[str]]:
    """The blueprint, and the codes of what was found with their places."""
    text = HEADER + header + "---\n" + "\n".join(f"- {{should: [x], {prompt}}}" for prompt in prompts)
    found = read_blueprint(text, "a")
    assert found.blueprint is not None, found.findings
    return found.blueprint, [f"{one.code} {one.place}" for one in found.findings]


def only(prompt: str, header: str = "") -> PromptItem:
    """The one prompt of a blueprint without findings."""
    blueprint, found = read(f"id: a, {prompt}", header=header)
    assert found == []
    (item,) = blueprint.prompts
    return item


def errors(prompt: str) -> list[str]:
    """What is wrong with the first of two prompts, which is left out."""
    blueprint, found = read(f"id: a, {prompt}", "id: b, prompt: c")
    assert [item.id for item in blueprint.prompts] == ["b"]
    return found


@pytest.mark.parametrize(("prompt", "turns"), CASES["forms"])
def test_forms_of_a_prompt(prompt: str, turns: list[list[str | None]]) -> None:
    assert [[turn.role, turn.text] for turn in only(prompt).turns] == turns


@pytest.mark.parametrize(("prompt", "found"), CASES["errors"])
def test_prompt_with_an_error_is_left_out(prompt: str, found: str) -> None:
    assert errors(prompt) == [found]


def test_parts_that_are_left_out_are_counted() -> None:
    text = f"{HEADER}---\n- 5\n- {{id: a, prompt: b, should: [5, c, [[d]], {{$contains: 5}}]}}\n- {{id: b}}\n"
    assert read_blueprint(text, "a").n_omitted == 4


def test_prompt_whose_criteria_all_have_errors_is_not_called_one_without_criteria() -> None:
    found = [one.code for one in read_blueprint(f"{HEADER}---\n- {{id: a, prompt: b, should: [5]}}", "a").findings]
    assert found == ["bad-point"]


def test_messages_win_over_a_prompt_beside_them() -> None:
    blueprint, found = read("id: a, prompt: b, messages: [user: c]")
    assert found == ["prompt-and-messages prompt 0"]
    assert blueprint.prompts[0].turns == (Turn("user", "c"),)


@pytest.mark.parametrize("key", ["should", "points", "expect", "expects", "expectations"])
def test_other_names_of_should(key: str) -> None:
    read_one = read_blueprint(f"{HEADER}---\n- {{id: a, prompt: b, {key}: [c], should_not: [d]}}", "a")
    assert read_one.findings == ()
    assert read_one.blueprint is not None
    assert [(one.block, one.text) for one in read_one.blueprint.prompts[0].criteria] == [("should", "c"), ("should_not", "d")]


def test_other_names_of_what_a_prompt_has() -> None:
    item = only("prompt: b, idealResponse: c, importance: 2, reference: {title: d, url: e}, description: f")
    assert (item.ideal, item.weight, item.citation, item.description) == ("c", 2.0, "d (e)", "f")
    assert only("prompt: b, multiplier: 0.5").weight == 0.5
    assert only("prompt: b, ideal: 4, citation: c").ideal == "4"


def ids(*prompts: str) -> tuple[list[str], list[str]]:
    blueprint, found = read(*prompts)
    return [item.id for item in blueprint.prompts], found


def test_ids_that_are_numbers_are_texts() -> None:
    assert ids("id: 5, prompt: a", "id: 1.0, prompt: b", "id: yes, prompt: c") == (["5", "1", "yes"], [])


def test_prompts_of_one_id_are_distinguished_and_none_is_lost() -> None:
    named, found = ids("id: a, prompt: a", "id: a, prompt: b", "id: a#2, prompt: c", "id: a, prompt: d")
    assert named == ["a", "a#2", "a#2#2", "a#3"]
    assert found == [f"duplicate-prompt-id prompt {number}" for number in (1, 2, 3)]


def test_prompt_without_id_is_named_by_its_contents() -> None:
    (first, second, third, fourth), found = ids("prompt: a", "prompt: b", "prompt: a", "prompt: a, ideal: c")
    assert first.startswith("hash-")
    assert len(first) == len("hash-") + 12
    assert third == f"{first}#2"
    assert len({first, second, fourth}) == 3
    assert found.count("duplicate-prompt-id prompt 2") == 1
    assert [one for one in found if "no-prompt-id" in one] == [f"no-prompt-id prompt {number}" for number in range(4)]


@pytest.mark.parametrize("given", ["id: [a]", "id: true", "id: ''", "id: null"])
def test_id_that_is_no_text_is_none(given: str) -> None:
    (named,), found = ids(f"{given}, prompt: a")
    assert named.startswith("hash-")
    assert found == ["no-prompt-id prompt 0"]


@pytest.mark.parametrize(("header", "prompt", "systems"), CASES["systems"])
def test_system_prompts(header: str, prompt: str, systems: list[str | None]) -> None:
    assert list(only(f"prompt: b{prompt}", header).systems) == systems


def test_systems_win_over_system_and_over_the_prompts_own() -> None:
    blueprint, found = read("id: a, prompt: b, system: c", header="systems: [s, s]\nsystem: t\n")
    assert found == ["system-and-systems header", "system-twice header", "system-and-systems prompt 0"]
    assert (blueprint.systems, blueprint.prompts[0].systems) == (("s",), ("s",))


def test_system_prompt_that_is_no_text_is_an_error_of_the_header() -> None:
    assert read("id: a, prompt: b", header="system: {a: b}\n")[1] == ["bad-header header"]
    assert read("id: a, prompt: b", header="system: [a, [b]]\n")[1] == ["bad-header header"]


@pytest.mark.parametrize(("header", "prompt", "temperatures"), CASES["temperatures"])
def test_temperatures(header: str, prompt: str, temperatures: list[float]) -> None:
    assert list(only(f"prompt: b{prompt}", header).temperatures) == temperatures


@pytest.mark.parametrize(("values", "kept"), CASES["twice"])
def test_temperature_named_twice_is_asked_once(values: str, kept: list[float]) -> None:
    blueprint, found = read("id: a, prompt: b", header=f"temperatures: {values}\n")
    assert found == ["temperature-twice header"]
    assert list(blueprint.temperatures) == kept


@pytest.mark.parametrize("keys", CASES["second_names"])
def test_second_name_of_one_thing_is_not_lost_in_silence(keys: str) -> None:
    found = [one.code for one in read_blueprint(f"{HEADER}---\n- {{id: a, {keys}}}", "a").findings]
    assert found == ["unknown-key"]


@pytest.mark.parametrize(
    "keys", ["title: a\nconfigTitle: b\n", "system: a\nsystemPrompt: b\n", "defs: {a: b}\npoint_defs: {c: d}\n"]
)
def test_second_name_in_the_header_is_not_lost_in_silence(keys: str) -> None:
    found = [
        (one.code, one.place) for one in read_blueprint(f"{HEADER}{keys}---\n- {{id: a, prompt: b, ideal: c}}", "a").findings
    ]
    assert found == [("unknown-key", "header"), ("ideal-only", "prompt 0")]
