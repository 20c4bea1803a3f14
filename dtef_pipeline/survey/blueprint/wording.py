"""Texts of a prompt: profile, lists of options, target questions, narratives, and the form of the answer that it requires.

The narrative's words depend on the percentages as written, with one decimal, so that no sentence contradicts its figures.
docs/explanation/prompts.md lists the rules and the thresholds. The form of the answer stands in the user text, in the default system prompt
and in a JSON schema. The three agree for each task, with and without reasoning, structured or not; `survey.reading` reads these forms.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from dtef_pipeline.survey.blueprint.options import BlueprintOptions


@dataclass(frozen=True, slots=True)
class People:
    """The names that a prompt uses for the people whose answers it predicts."""

    name: str
    one: str
    some: str
    everyone: str
    were: str


GROUP = People("this group", "a person of this group", "people of this group", "Everyone in this group", "This group was")
RESPONDENTS = People("the respondents", "a respondent", "respondents", "Every respondent", "The respondents were")


def people(profile: str) -> People:
    """Return the names for a profile, `segment` or `population`."""
    return RESPONDENTS if profile == "population" else GROUP


ATTRIBUTE_LABELS = {
    "ageGroup": "Age",
    "aiConcern": "Feeling about the growing use of AI in daily life",
    "country": "Country",
    "environment": "Place of residence",
    "gender": "Gender",
    "language": "Language",
    "religion": "Religion",
    "ukRegion": "Region of the United Kingdom",
}


def format_option_letter(index: int) -> str:
    """Return a, b, ..., z, aa, ab, ..."""
    first, last = divmod(index, 26)
    return (string.ascii_lowercase[first - 1] if first else "") + string.ascii_lowercase[last]


def format_attribute(attribute: str) -> str:
    """Return `ageGroup` as a label. An attribute of another survey is split at its capitals."""
    return ATTRIBUTE_LABELS.get(attribute) or re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]+", " ", attribute).capitalize()


def format_percent(share: float) -> str:
    """Return a fraction as prompts write it: 0.4521 is `45.2%`."""
    return f"{100 * share:.1f}%"


def join_words(items: Sequence[str], word: str = "and") -> str:
    """Return `x`, `x and y`, or `x, y and z`. `word` stands before the last item."""
    *first, last = items
    return f"{', '.join(first)} {word} {last}" if first else last


def profile(attribute: str, value: str) -> str:
    """Return the demographic profile. A segment of several attributes (`ageGroup+country`, `18-25, Kenya`) has a line for each."""
    attributes = attribute.split("+")
    values = value.split(", ") if len(attributes) > 1 else [value]
    lines = [f"{format_attribute(a)}: {v}" for a, v in zip(attributes, values, strict=True)]
    return "Demographic group\n" + "\n".join(lines)


POPULATION_PROFILE = "Respondents\nAll respondents of the survey"
"""The profile for prompts about all respondents."""


def list_lettered_options(options: Sequence[str]) -> str:
    return "\n".join(f"{format_option_letter(i)}. {option}" for i, option in enumerate(options))


def list_lettered_shares(options: Sequence[str], shares: Sequence[float]) -> str:
    """Return one line per option, with its letter and its share in percent."""
    return list_lettered_options([f"{option}: {format_percent(share)}" for option, share in zip(options, shares, strict=True)])


def write_target_questions(questions: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Return the questions of a batch (text and options of each), named Q1, Q2, ..."""
    blocks = [
        f"{make_batch_key(place)}. {text}\n{list_lettered_options(options)}" for place, (text, options) in enumerate(questions)
    ]
    return "\n\n".join(["Questions to predict" if len(blocks) > 1 else "Question to predict", *blocks])


def make_batch_key(place: int) -> str:
    """Return a question's name in its batch: `Q1` at place 0."""
    return f"Q{place + 1}"


_NOTABLE = 20
"""Tenths of a percentage point from which the difference of an option is mentioned."""

_DEGREES = ((200, "far "), (100, "much "), (50, ""), (_NOTABLE, "slightly "))
_MAJORITIES = ((900, "Almost all"), (667, "A large majority"), (501, "A majority"), (500, "Half"))


class _Share(NamedTuple):
    """The shares of an option in the group and among all respondents, in tenths of a percent as written."""

    option: str
    group: int
    everyone: int
    nobody: bool
    """Exactly no one of the group, not only 0.0 % as written."""


def write_narrative(
    options: Sequence[str], observed: Sequence[float], population: Sequence[float] | None, people: People = GROUP
) -> str:
    """Return a paragraph on one question. Differences from all respondents are omitted if `population` is None.

    `observed` and `population` are fractions that sum to 1, in the order of the options. `people` names the respondents.
    """
    shares = [
        _Share(f"“{option}”", _round_to_tenths(share), _round_to_tenths(everyone), share == 0)
        for option, share, everyone in zip(options, observed, population or observed, strict=True)
    ]
    sentences = [*_iterate_level_sentences(shares, people), *(_iterate_difference_sentences(shares) if population else ())]
    return " ".join(sentences)


def _round_to_tenths(share: float) -> int:
    return round(10 * float(f"{100 * share:.1f}"))


def _format_tenths(tenths: int) -> str:
    return f"{tenths / 10:.1f}%"


def _iterate_level_sentences(shares: Sequence[_Share], people: People) -> Iterator[str]:
    """Yield sentences on the chosen options, most common first."""
    choices = sorted((s for s in shares if not s.nobody), key=lambda s: -s.group)
    ranks = [list(ties) for _, ties in groupby(choices, key=lambda s: s.group)]
    first, later = ranks[0], ranks[1:]
    yield _write_first_sentence(first, people, single=len(choices) == 1, only=len(first) == len(shares), all_chosen=not later)
    if later:
        *earlier, last = map(_format_tied, later)
        yield f"Next came {', '.join(earlier)}, then {last}." if earlier else f"Next came {last}."
    empty_options = [s.option for s in shares if s.nobody]
    if empty_options and len(choices) > 1:
        yield f"Nobody chose {join_words(empty_options, 'or')}."


def _write_first_sentence(first: Sequence[_Share], people: People, *, single: bool, only: bool, all_chosen: bool) -> str:
    names, share = join_words([s.option for s in first]), first[0].group
    if single:
        return f"{people.everyone} chose {names}."
    if only:
        return f"{people.were} evenly spread over the options: {_format_tenths(share)} chose each of {names}."
    if all_chosen:
        return f"{people.were} evenly divided between {names}, with {_format_tenths(share)} each."
    if len(first) > 1:
        return f"The most common answers of {people.name} were {names}, with {_format_tenths(share)} each."
    for threshold, words in _MAJORITIES:
        if share >= threshold:
            return f"{words} of {people.name} ({_format_tenths(share)}) chose {names}."
    return f"The most common answer of {people.name} was {names} ({_format_tenths(share)})."


def _format_tied(ties: Sequence[_Share]) -> str:
    """Return options of one share: `“B” (20.0%)`, or `“B” and “C” (20.0% each)`."""
    suffix = " each" if len(ties) > 1 else ""
    return f"{join_words([s.option for s in ties])} ({_format_tenths(ties[0].group)}{suffix})"


def _iterate_difference_sentences(shares: Sequence[_Share]) -> Iterator[str]:
    """Yield sentences on how the group differs from all respondents, the largest differences first."""
    by_size = sorted(shares, key=lambda s: -abs(s.group - s.everyone))
    largest = abs(by_size[0].group - by_size[0].everyone)
    notable = [s for s in by_size if abs(s.group - s.everyone) >= _NOTABLE]
    if largest == 0:
        yield "All respondents together answered the same way."
    elif not notable:
        yield f"All respondents together answered almost the same way: no option differs by more than {_format_points(largest)}."
    else:
        yield f"Compared with all respondents, this group chose {join_words([_format_difference(s) for s in notable])}."
        n_others = len(shares) - len(notable)
        if n_others:
            subject = "The other options differ" if n_others > 1 else "The other option differs"
            yield f"{subject} by less than {_format_points(_NOTABLE)}."


def _format_points(tenths: int) -> str:
    return f"{tenths / 10:g} percentage point{'' if tenths == 10 else 's'}"


def _format_difference(share: _Share) -> str:
    gap = share.group - share.everyone
    figures = f"({_format_tenths(share.group)} against {_format_tenths(share.everyone)})"
    if share.nobody:
        return f"{share.option} not at all {figures}"
    degree = next(word for threshold, word in _DEGREES if abs(gap) >= threshold)
    return f"{share.option} {degree}{'more' if gap > 0 else 'less'} often {figures}"


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
