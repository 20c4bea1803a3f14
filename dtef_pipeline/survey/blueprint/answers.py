"""The form of the answer that a prompt requires: in its user text, in the default system prompt, and as a JSON schema.

The three agree for each task, with and without reasoning, structured or not. `dtef_pipeline.survey.reading` reads these forms.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.blueprint.wording import format_option_letter, join_words, make_batch_key, people

_EXAMPLE_NUMBERS = [45.2, 30.1, 15.5, 9.2]
_OTHER_NUMBERS = [55.2, 30.3, 14.5]


@dataclass(frozen=True, slots=True)
class _Form:
    """The parts of an answer to a task, for the default system prompt."""

    marker: str
    """Begins the last line after free reasoning."""
    value: str
    each: str
    """What the value holds."""
    key: str | None
    """The value's key in a structured answer; None: the value is an object itself."""
    example: Mapping[str, Any]
    """A structured answer."""
    example_for: str


_PERCENTAGES = "one percentage per answer option, in the order in which the options are listed, adding up to 100"
_PERCENTAGES_FORM = _Form(
    "DISTRIBUTION", "a JSON array of numbers", _PERCENTAGES, "distribution", {"distribution": _EXAMPLE_NUMBERS}, "four options"
)
_FORMS: Mapping[str, _Form] = {
    "distribution": _PERCENTAGES_FORM,
    "shift": _PERCENTAGES_FORM,
    "synthetic-individuals": _Form(
        "ANSWERS",
        "a JSON array of option letters",
        "one letter per person",
        "answers",
        {"answers": ["b", "a", "b", "c", "a"]},
        "five people",
    ),
    "batch": _Form(
        "DISTRIBUTIONS",
        "a JSON object",
        f"for each question its key (Q1, Q2, ...) and an array of numbers, {_PERCENTAGES}",
        None,
        {"Q1": _EXAMPLE_NUMBERS, "Q2": _OTHER_NUMBERS},
        "two questions of four and three options",
    ),
}

_QUESTIONS: Mapping[str, str] = {
    "distribution": "Which percentage of {people} chose each option?",
    "shift": "Adjust the answers of all respondents to this group: which percentage of this group chose each option?",
    "batch": "For each question: which percentage of {people} chose each option?",
}


def is_one_distribution(reading: Mapping[str, Any] | None) -> bool:
    """Return whether this form of answer (`tables.READING`) is a single distribution over the options of one question."""
    return reading is None or (reading["task"] == "distribution" and reading["place"] is None)


def describe_form_for_system(options: BlueprintOptions) -> str:
    """Return the sentences of the default system prompt on the form of the answer."""
    form, thinks = _FORMS[options.task], options.reasoning == "cot"
    holds = f"{form.value}: {form.each}"
    if options.structured:
        named = f'"{form.key}", {holds}' if form.key else form.each
        example = {"reasoning": "...", **form.example} if thinks else form.example
        thinking = 'first "reasoning", your step-by-step thinking as text, then ' if thinks else ""
        return f"Reply with a JSON object only: {thinking}{named}. Example for {form.example_for}: {json.dumps(example)}"
    plain = json.dumps(form.example[form.key] if form.key else form.example)
    if thinks:
        return (
            f"Think step by step first. End with a last line that begins with {form.marker}: and goes on with {holds}. "
            f"Example of the last line for {form.example_for}: {form.marker}: {plain}"
        )
    return f"Reply with {form.value} only: {form.each}. Example for {form.example_for}: {plain}"


def describe_form_for_user(options: BlueprintOptions, sizes: Sequence[int]) -> str:
    """Return the last paragraph of the user text: the task and the form of the answer.

    `sizes` is the number of options of each question; batches have several.
    """
    value, request, respondents = _describe_value(options, sizes), _format_request(options), people(options.profile).name
    form, thinks = _FORMS[options.task], options.reasoning == "cot"
    if not thinks and not options.structured:
        return f"{request} Reply with only {value}."
    if not options.structured:
        return (
            f"{request} First think step by step about how {respondents} would answer. Then end your reply with a last line that "
            f"begins with {form.marker}: and goes on with {value}."
        )
    thinking = f'"reasoning", a text in which you think step by step about how {respondents} would answer'
    if form.key is None:
        return f"{request} Reply with only {_describe_batch_object(sizes, thinking if thinks else '')}."
    if thinks:
        return f'{request} Reply with only a JSON object with two keys, in this order: {thinking}, and "{form.key}", {value}.'
    return f'{request} Reply with only a JSON object with one key, "{form.key}": {value}.'


def _format_request(options: BlueprintOptions) -> str:
    respondents = people(options.profile)
    if options.task == "synthetic-individuals":
        if options.individuals == 1:
            return f"Answer the question as {respondents.one}, drawn at random, would."
        return (
            f"Answer the question as {options.individuals} different {respondents.some}, drawn at random, would. "
            "Each of them chooses one option."
        )
    return _QUESTIONS[options.task].format(people=respondents.name)


def _describe_value(options: BlueprintOptions, sizes: Sequence[int]) -> str:
    if options.task == "batch":
        return _describe_batch_object(sizes)
    if options.task == "synthetic-individuals":
        if options.individuals == 1:
            return "a JSON array of 1 string, the letter of the option that the person chose"
        return f"a JSON array of {options.individuals} strings, each the letter of the option that one person chose"
    return f"a JSON array of {sizes[0]} numbers that add up to 100, in the order of the options"


def _describe_batch_object(sizes: Sequence[int], thinking: str = "") -> str:
    keys = [f'"{make_batch_key(place)}" ({size} numbers)' for place, size in enumerate(sizes)]
    named = f"the key{'s' if len(keys) > 1 else ''} {join_words(keys)}"
    form = f"a JSON object with, in this order, {thinking}, and {named}" if thinking else f"a JSON object with {named}"
    subject = "each of them" if len(keys) > 1 else "which is"
    return f"{form}, {subject} an array of numbers that add up to 100, in the order of the question's options"


def build_response_schema(options: BlueprintOptions, sizes: Sequence[int]) -> str | None:
    """Return the JSON schema of the answer, as JSON text, or None for free text.

    The schema does not fix lengths, because several providers refuse that. `reasoning` comes first, because the model writes it first.
    """
    if not options.structured:
        return None
    numbers = {"type": "array", "items": {"type": "number"}}
    properties: dict[str, Any] = {"reasoning": {"type": "string"}} if options.reasoning == "cot" else {}
    if options.task == "batch":
        properties |= {make_batch_key(place): numbers for place in range(len(sizes))}
    elif options.task == "synthetic-individuals":
        letters = [format_option_letter(place) for place in range(sizes[0])]
        properties["answers"] = {"type": "array", "items": {"type": "string", "enum": letters}}
    else:
        properties["distribution"] = numbers
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return json.dumps(schema)
