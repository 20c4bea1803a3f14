"""Point functions: criteria that are computed from the text of a response, without a judge."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from dtef_pipeline.rubric.function_names import EXTERNAL_FUNCTIONS, argument_fault
from dtef_pipeline.rubric.function_score import (
    BAD_ARGUMENTS,
    EXTERNAL_SERVICE,
    FUNCTION_FAILED,
    UNKNOWN_FUNCTION,
    FunctionScore,
    unscored,
)
from dtef_pipeline.rubric.scripts import ScriptHost, call_script_score, script_score
from dtef_pipeline.rubric.text_functions import ScoreText, always, json_text, searching, words_between
from dtef_pipeline.rubric.tool_calls import tool_args_match, tool_call_count_between, tool_call_order, tool_called

ScriptContext = Mapping[str, Any]
"""What scripts know beside the response: `messages`, a list of {role, content}, and `modelId`."""
AddedFunction = Callable[[str, Any, ScriptContext], float | bool | FunctionScore]
"""A function of another package: given the response, the argument and the context, a score from 0 to 1."""
ReadyFunction = Callable[[str, ScriptContext | None], FunctionScore]
"""A criterion that is ready: given a response and its context, the score."""

_LIST_FORMS = {"contains": ("one", "any_of", "all_of", "at_least_n_of"), "matches": ("one", "all_of", "at_least_n_of")}
_SEARCH_FUNCTIONS = {
    f"{case}{search}{'' if family == 'one' else f'_{family}'}": functools.partial(
        searching, search, family, ignore_case=bool(case)
    )
    for search in ("contains", "contains_word", "starts_with", "ends_with", "matches")
    for family in _LIST_FORMS.get(search, ("one",))
    for case in ("", "i")
}
_OTHER_FUNCTIONS: dict[str, Callable[[Any], ScoreText]] = {
    "word_count_between": words_between,
    "is_json": json_text,
    "tool_called": tool_called,
    "tool_call_count_between": tool_call_count_between,
    "tool_call_order": tool_call_order,
    "tool_args_match": tool_args_match,
}
_OF_TEXT: dict[str, Callable[[Any], ScoreText]] = {**_SEARCH_FUNCTIONS, **_OTHER_FUNCTIONS}
_NEGATED = {f"not_{name}": name for name in _OF_TEXT if not name.endswith("_at_least_n_of")}
FUNCTION_NAMES = frozenset({*_OF_TEXT, *_NEGATED, "js", *EXTERNAL_FUNCTIONS})
"""Every point function by its canonical name."""


def ready_function(
    name: str, argument: Any, engine: ScriptHost | None = None, added: Mapping[str, AddedFunction] | None = None
) -> ReadyFunction:
    """A criterion, prepared once for any number of responses. It never raises: what cannot be scored says why.

    `name` is canonical, `argument` as YAML has it. `engine` runs scripts; None: they stay unscored. `added`: functions of other
    packages by name, for names that no function of this one has, and for those that ask a service.
    """
    is_own = name in FUNCTION_NAMES and name not in EXTERNAL_FUNCTIONS
    if not is_own and added and name in added:
        return functools.partial(_of_another, added[name], argument)
    if name not in FUNCTION_NAMES:
        return _without_context(always(unscored(UNKNOWN_FUNCTION, f"no function is called {name!r}")))
    if not is_own:
        return _without_context(always(unscored(EXTERNAL_SERVICE, f"${name} asks a service, which criteria may not")))
    if (fault := _argument_fault(name, argument)) is not None:
        return _without_context(always(unscored(BAD_ARGUMENTS, fault)))
    if name == "js":
        return lambda text, context: script_score(argument, text, engine, context)
    return _without_context(_of_text(name, argument, engine))


def evaluate(
    name: str,
    argument: Any,
    text: str,
    engine: ScriptHost | None = None,
    context: ScriptContext | None = None,
    added: Mapping[str, AddedFunction] | None = None,
) -> FunctionScore:
    """What one function says of one response: from 0 to 1, or unscored with the reason. See `ready_function`."""
    return ready_function(name, argument, engine, added)(text, context)


def _argument_fault(name: str, argument: Any) -> str | None:
    try:
        return argument_fault(name, argument)
    except (OverflowError, RecursionError) as error:
        return f"the argument of ${name} is too large: {error}"


def _without_context(score: ScoreText) -> ReadyFunction:
    return lambda text, context: score(text)


def _of_text(name: str, argument: Any, engine: ScriptHost | None) -> ScoreText:
    if name in _NEGATED:
        positive = _of_text(_NEGATED[name], argument, engine)
        return lambda text: positive(text).reversed
    if name == "tool_args_match" and isinstance(argument["where"], str):
        return lambda text: call_script_score(argument, text, engine)
    return _OF_TEXT[name](argument)


def _of_another(function: AddedFunction, argument: Any, text: str, context: ScriptContext | None) -> FunctionScore:
    """The score by a function of another package, whose errors leave the criterion unscored."""
    try:
        found = function(text, argument, context or {})
        if isinstance(found, FunctionScore):
            return found
        if not 0 <= found <= 1:
            return unscored(FUNCTION_FAILED, f"the function gave {found!r}, which is not from 0 to 1")
        return FunctionScore(float(found), f"the function gave {found!r}")
    except Exception as error:
        return unscored(FUNCTION_FAILED, f"{type(error).__name__}: {error}")
