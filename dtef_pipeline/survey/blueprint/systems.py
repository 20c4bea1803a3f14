"""System prompts by id.

`default` describes the task and the form of the answer. The others leave the form to the user text, which always describes it.
"""

from __future__ import annotations

from collections.abc import Mapping

from dtef_pipeline.errors import ConfigError

_BASIS = "the group described and on any answers of the same group that are shown."
_ANALYST = "You are an analyst of demographic survey data."

_DEFAULT_BY_TASK: Mapping[str, str] = {
    "distribution": f"{_ANALYST} For one group of people you estimate which percentage of the group chose each answer option of a "
    f"survey question. Base the estimate on {_BASIS}",
    "shift": f"{_ANALYST} You are told how all respondents of a survey answered a question, and you estimate which percentage of one "
    "group of people chose each answer option. Start from the answers of all respondents, and base the adjustment on "
    f"{_BASIS}",
    "synthetic-individuals": "You simulate how the people of one demographic group answer a survey. You answer a survey question as "
    "a given number of people of the group, each of whom chooses one answer option, so that together they differ as much as real "
    f"people of the group do. Base the answers on {_BASIS}",
    "batch": f"{_ANALYST} For one group of people you estimate which percentage of the group chose each answer option of several "
    f"survey questions. Estimate each question on its own. Base the estimates on {_BASIS}",
}

_ALL = "Base the {what} on any answers of the respondents that are shown."
_POPULATION_BY_TASK: Mapping[str, str] = {
    "distribution": f"{_ANALYST} For all respondents of a survey together you estimate which percentage of them chose each answer option "
    f"of a survey question. {_ALL.format(what='estimate')}",
    "synthetic-individuals": "You simulate how the respondents of a survey answer it. You answer a survey question as a given number of "
    "respondents, each of whom chooses one answer option, so that together they differ as much as the real respondents do. "
    f"{_ALL.format(what='answers')}",
    "batch": f"{_ANALYST} For all respondents of a survey together you estimate which percentage of them chose each answer option of "
    f"several survey questions. Estimate each question on its own. {_ALL.format(what='estimates')}",
}
"""Where everyone is asked about; the task shift is not among them."""

_FIXED: Mapping[str, str] = {
    "brief": "You estimate how a group of people answered a survey.",
    "persona": "You are a member of the demographic group that is described to you, and you know its people well. You speak for the "
    "group as a whole, for the differences within it as much as for what its members have in common, and not for yourself alone.",
    "none": "",
}

_POPULATION_FIXED: Mapping[str, str] = {
    "brief": "You estimate how the respondents of a survey answered it.",
    "persona": "You are one of the respondents of a survey, and you know the others well. You speak for the respondents as a whole, for the "
    "differences among them as much as for what they have in common, and not for yourself alone.",
}

SHIPPED = ("default", *_FIXED)
"""Ids of the system prompts that need no text from the user."""


def check_system(system: str, own_text: str) -> None:
    """Raise ConfigError for an id that is not shipped and has no text, and for a shipped id with another text."""
    if system in SHIPPED and own_text:
        raise ConfigError(
            f"system prompt {system!r} is shipped and cannot be changed: give your own an id other than {', '.join(SHIPPED)}"
        )
    if system not in SHIPPED and not own_text.strip():
        raise ConfigError(
            f"unknown system prompt {system!r}: allowed: {', '.join(SHIPPED)}, or an id of your own with its text"
        )


def choose_system_prompt(system: str, own_text: str, task: str, answer_form: str, profile: str = "segment") -> str:
    """Return the system text; empty for `none`. `answer_form` is the description of the answer in the `default` prompt."""
    everyone = profile == "population"
    if system == "default":
        return f"{(_POPULATION_BY_TASK if everyone else _DEFAULT_BY_TASK)[task]} {answer_form}"
    prompts = {**_FIXED, **_POPULATION_FIXED} if everyone else _FIXED
    return prompts.get(system, own_text)
