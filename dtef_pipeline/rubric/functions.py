"""Point functions: criteria that are computed from the text of a response, without a judge."""

from __future__ import annotations

import functools
import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from dtef_pipeline.rubric.blueprint.function_names import EXTERNAL_FUNCTIONS, check_argument
from dtef_pipeline.rubric.blueprint.patterns import (
    LONGEST_SEARCH,
    WHITE_SPACE,
    BadPattern,
    SearchTooLong,
    compile_pattern,
    count_words,
)
from dtef_pipeline.text.extras import describe_installation
from dtef_pipeline.text.number_words import format_count

UNKNOWN_FUNCTION = "unknown function"
BAD_ARGUMENTS = "bad arguments"
BAD_PATTERN = "bad pattern"
PATTERN_TIMEOUT = "pattern timeout"
EXTERNAL_SERVICE = "external service"
NESTED_TOO_DEEP = "nested too deep"
NO_SCRIPT_ENGINE = "no script engine"
SCRIPT_ERROR = "script error"
SCRIPT_TIMEOUT = "script timeout"
SCRIPT_MEMORY = "script memory"
SCRIPT_ENGINE_STOPPED = "script engine stopped"
FUNCTION_FAILED = "function failed"
"""A function of another package raised an error or returned something that is not a score."""
_SHOWN_LENGTH = 60


@dataclass(frozen=True, slots=True)
class FunctionScore:
    """The extent to which a criterion is met."""

    score: float | None
    """0 (not met) to 1 (met); None: unscored."""
    explanation: str
    """What was found, in words."""
    reason: str | None = None
    """Why it is unscored: one of the reasons of this module, to count by; None: it is scored."""

    @property
    def complement(self) -> FunctionScore:
        """1 minus the score; an unscored criterion stays unscored."""
        return self if self.score is None else FunctionScore(1 - self.score, self.explanation)


def make_unscored(reason: str, explanation: str) -> FunctionScore:
    """Return no score, for a reason of this module."""
    return FunctionScore(None, explanation, reason)


def quote_shortened(text: str) -> str:
    """Quote a text, shortened if it is long."""
    return repr(text) if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]!r}..."


ScoreText = Callable[[str], FunctionScore]
"""A criterion that is ready: given the text of a response, its score."""


class SearchTarget(NamedTuple):
    """A text or pattern to search for."""

    label: str
    """Text shown in explanations."""
    has_match: Callable[[str], bool]


@functools.lru_cache(maxsize=256)
def lower_text(text: str) -> str:
    """Return the text in lower case."""
    return text.lower()


def has_word(text: str, word: str) -> bool:
    """Return whether a word occurs without letters, numbers or underscores beside it; the empty word always does."""
    start = text.find(word)
    while start >= 0 and word:
        end = start + len(word)
        if not (start and _is_word_character(text[start - 1])) and not (end < len(text) and _is_word_character(text[end])):
            return True
        start = text.find(word, start + 1)
    return not word


def _is_word_character(character: str) -> bool:
    return character == "_" or unicodedata.category(character)[0] in "LN"


_PART_TESTS: dict[str, Callable[[str, str], bool]] = {
    "contains": lambda text, part: part in text,
    "contains_word": has_word,
    "starts_with": str.startswith,
    "ends_with": str.endswith,
}
SEARCHES = (*_PART_TESTS, "matches")
"""The kinds of searches; each has a form that ignores case, with `i` before its name."""


def prepare_wanted(search: str, argument: str, ignore_case: bool) -> SearchTarget:
    """Prepare a search target; `search` is one of `SEARCHES`. Raises BadPattern if a pattern is invalid."""
    if search == "matches":
        return SearchTarget(f"/{argument}/{'i' if ignore_case else ''}", compile_pattern(argument, ignore_case).has_match)
    test = _PART_TESTS[search]
    if not ignore_case:
        return SearchTarget(quote_shortened(argument), lambda text: test(text, argument))
    small = argument.lower()
    return SearchTarget(quote_shortened(argument), lambda text: test(lower_text(text), small))


def prepare_search(search: str, family: str, argument: Any, ignore_case: bool) -> ScoreText:
    """Prepare the criterion of a search with a valid argument. `family`: `one`, `any_of`, `all_of` or `at_least_n_of`."""
    n, texts = argument if family == "at_least_n_of" else (0, [argument] if family == "one" else argument)
    try:
        parts = [prepare_wanted(search, text, ignore_case) for text in texts]
    except BadPattern as fault:
        return make_constant(make_unscored(BAD_PATTERN, str(fault)))
    ready = {"one": _require_one, "any_of": _require_any, "all_of": _require_all}.get(
        family, functools.partial(_require_at_least, n)
    )(parts)
    return _limit_time(ready) if search == "matches" else ready


def make_constant(score: FunctionScore) -> ScoreText:
    """Return a criterion with one score for every response."""
    return lambda text: score


def _limit_time(ready: ScoreText) -> ScoreText:
    def score(text: str) -> FunctionScore:
        try:
            return ready(text)
        except SearchTooLong:
            return make_unscored(PATTERN_TIMEOUT, f"the search took longer than {LONGEST_SEARCH:g} s")

    return score


def _require_one(parts: list[SearchTarget]) -> ScoreText:
    (part,) = parts
    yes, no = FunctionScore(1.0, f"found {part.label}"), FunctionScore(0.0, f"did not find {part.label}")
    return lambda text: yes if part.has_match(text) else no


def _require_any(parts: list[SearchTarget]) -> ScoreText:
    none = FunctionScore(0.0, f"found none of {len(parts)}{_list_labels(parts)}")

    def score(text: str) -> FunctionScore:
        first = next((part for part in parts if part.has_match(text)), None)
        return none if first is None else FunctionScore(1.0, f"found {first.label}")

    return score


def _require_all(parts: list[SearchTarget]) -> ScoreText:
    def score(text: str) -> FunctionScore:
        n_matches, explanation = _count_found(parts, text)
        return FunctionScore(n_matches / len(parts), explanation) if parts else FunctionScore(1.0, "nothing to find")

    return score


def _require_at_least(n: float, parts: list[SearchTarget]) -> ScoreText:
    if n <= 0 or not parts:
        return make_constant(FunctionScore(float(n <= 0), f"{n:g} of {len(parts)} needed"))

    def score(text: str) -> FunctionScore:
        n_matches, explanation = _count_found(parts, text)
        return FunctionScore(min(1.0, n_matches / n), f"{explanation} ({n:g} needed)")

    return score


def _count_found(parts: list[SearchTarget], text: str) -> tuple[int, str]:
    """Return the number of parts in a text, and an explanation."""
    has = [part.has_match(text) for part in parts]
    present = [part for part, is_present in zip(parts, has, strict=True) if is_present]
    missing = [part for part, is_present in zip(parts, has, strict=True) if not is_present]
    missing_text = f"; not{_list_labels(missing)[1:]}" if present and missing else ""
    return len(present), f"found {len(present)} of {len(parts)}{_list_labels(present)}{missing_text}"


def _list_labels(parts: Iterable[SearchTarget]) -> str:
    labels = ", ".join(part.label for part in parts)
    return f": {labels}" if labels else ""


def prepare_words_between(argument: Any) -> ScoreText:
    """Prepare [least, most]: 1 within, words / least below, most / words above. Words are runs without white space."""
    minimum, maximum = argument

    def score(text: str) -> FunctionScore:
        words = count_words(text)
        points = words / minimum if words < minimum else maximum / words if words > maximum else 1.0
        return FunctionScore(points, format_count(words, "word"))

    return score


def score_json(text: str) -> FunctionScore:
    """Return 1 if the whole text is a JSON object or array, else 0; unscored if nested too deeply for Python."""
    try:
        value = read_json(text)
    except RecursionError:
        return make_unscored(NESTED_TOO_DEEP, "brackets are nested too deeply")
    except ValueError as fault:
        return FunctionScore(0.0, f"no JSON: {fault}")
    is_whole = isinstance(value, (dict, list))
    return FunctionScore(float(is_whole), "a JSON object or array" if is_whole else "JSON, but not an object or array")


def read_json(text: str) -> Any:
    """Parse JSON as JavaScript does: numbers may have any length. Raises ValueError for NaN and Infinity."""
    return json.loads(
        text, parse_constant=_refuse_json_number, parse_int=lambda digits: int(digits) if len(digits) < 300 else float(digits)
    )


def _refuse_json_number(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_MARK = "TOOL_CALL "
_BLANK_RUN = re.compile(f"[{WHITE_SPACE}]+")


class ToolCall(NamedTuple):
    """One call of a tool."""

    name: str
    arguments: Any
    """Arguments as JSON values; None: the call has none."""


@functools.lru_cache(maxsize=256)
def find_tool_calls(text: str) -> tuple[ToolCall, ...]:
    """Return the calls in a response, in their order. Lines with invalid JSON or without a name are skipped."""
    if _MARK not in text:
        return ()
    lines = (line.strip(WHITE_SPACE) for line in text.split("\n"))
    read = (_call(line[len(_MARK) :]) for line in lines if line.startswith(_MARK))
    return tuple(call for call in read if call is not None)


def _call(text: str) -> ToolCall | None:
    try:
        value = read_json(text.strip(WHITE_SPACE))
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    return ToolCall(value["name"], value.get("arguments"))


def _describe_calls(calls: Sequence[ToolCall]) -> str:
    names = ", ".join(call.name for call in calls[:12])
    return f"called {names}{', ...' if len(calls) > 12 else ''}" if calls else "called no tool"


def prepare_tool_call_count(argument: Any) -> ScoreText:
    """Prepare [least, most, name]: 1 if the number of calls (of this tool, if named) is in the range."""
    minimum, maximum, name = (*argument, None)[:3]
    return _score_calls(lambda calls: minimum <= sum(not name or call.name == name for call in calls) <= maximum)


def prepare_tool_call_order(argument: Any) -> ScoreText:
    """Prepare a criterion: 1 if the tools of these names are called in this order; others may be called between them."""

    def is_called_in_order(calls: Sequence[ToolCall]) -> bool:
        names = iter(call.name for call in calls)
        return all(name in names for name in argument)

    return _score_calls(is_called_in_order)


def prepare_tool_args_match(argument: Any) -> ScoreText:
    """Prepare {name, where, normalizeWhitespace}: 1 if a call of the tool includes the arguments `where`, a mapping or list."""
    where, ignores_blanks = argument["where"], bool(argument.get("normalizeWhitespace"))

    def score(text: str) -> FunctionScore:
        calls = [call for call in find_tool_calls(text) if call.name == argument["name"]]
        summary = "; ".join(quote_shortened(str(call.arguments)) for call in calls[:3])
        return FunctionScore(
            float(any(is_including(call.arguments, where, ignores_blanks) for call in calls)),
            f"arguments of {argument['name']}: {summary}" if calls else _describe_calls(find_tool_calls(text)),
        )

    return score


def _score_calls(holds: Callable[[Sequence[ToolCall]], bool]) -> ScoreText:
    def score(text: str) -> FunctionScore:
        calls = find_tool_calls(text)
        return FunctionScore(float(holds(calls)), _describe_calls(calls))

    return score


def is_including(value: Any, target: Any, ignores_blanks: bool = False) -> bool:
    """Return whether a value includes the target: mappings by key, lists by place, all else equal. true is not 1, but 1 equals 1.0."""
    if isinstance(target, dict):
        return isinstance(value, dict) and all(
            str(key) in value and is_including(value[str(key)], part, ignores_blanks) for key, part in target.items()
        )
    if isinstance(target, (list, tuple)):
        long_enough = isinstance(value, list) and len(value) >= len(target)
        return long_enough and all(is_including(*pair, ignores_blanks) for pair in zip(value, target, strict=False))
    if isinstance(target, str) and isinstance(value, str) and ignores_blanks:
        return _BLANK_RUN.sub("", target) == _BLANK_RUN.sub("", value)
    return isinstance(value, bool) == isinstance(target, bool) and bool(value == target)


_FAULTS = {"timeout": SCRIPT_TIMEOUT, "memory": SCRIPT_MEMORY, "stopped": SCRIPT_ENGINE_STOPPED, "error": SCRIPT_ERROR}
_HOW_TO_INSTALL = f"the engine that runs scripts is not installed; {describe_installation('js')}"


class ScriptHost(Protocol):
    """A runner of scripts in another process."""

    def run(self, script: str, variables: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the outcome: {type: boolean | number | undefined | ..., value}, {type: score, score: an outcome, explain}, or {fault,
        text}.

        A number's value is its JavaScript text. `fault` is error, timeout, memory or stopped. Never raises.
        """
        ...


def score_by_script(script: str, text: str, engine: ScriptHost | None, context: Mapping[str, Any] | None) -> FunctionScore:
    """Score a response by a script, which gets it as `r`; `context` has `messages` and `modelId`."""
    if engine is None:
        return make_unscored(NO_SCRIPT_ENGINE, _HOW_TO_INSTALL)
    script_context = {"messages": [], "modelId": None} | dict(context or {})
    return _score_outcome(engine.run(script, {"r": text, "response": text, "context": script_context}))


def call_script_score(argument: Mapping[str, Any], text: str, engine: ScriptHost | None) -> FunctionScore:
    """Score 1 if the expression `where` is true of the arguments, `args`, of a call of the tool.

    Unscored if it is true of no call and fails on one.
    """
    calls = [call for call in find_tool_calls(text) if call.name == argument["name"] and call.arguments is not None]
    if engine is None:
        return make_unscored(NO_SCRIPT_ENGINE, _HOW_TO_INSTALL)
    scores = []
    for call in calls:
        scores.append(_score_outcome(engine.run(f"!!({argument['where']}\n)", {"args": call.arguments})))
        if scores[-1].score == 1:
            return FunctionScore(1.0, f"true for a call of {argument['name']}")
    failure = next((score for score in scores if score.score is None), None)
    return failure or FunctionScore(0.0, f"true for none of {format_count(len(calls), 'call')} of {argument['name']}")


def _score_outcome(outcome: Mapping[str, Any]) -> FunctionScore:
    """Return the score of a script's outcome: 1 for true, a number clipped to 0-1, 0 for nothing; all else is unscored."""
    if "fault" in outcome:
        return make_unscored(_FAULTS.get(str(outcome["fault"]), SCRIPT_ERROR), str(outcome.get("text", "")))
    if outcome.get("type") != "score":
        return _score_outcome_value(outcome, None)
    inner, explain = outcome.get("score"), outcome.get("explain")
    if not isinstance(inner, Mapping) or inner.get("type") not in ("boolean", "number"):
        return make_unscored(SCRIPT_ERROR, "its `score` is not a number, true or false")
    return _score_outcome_value(inner, explain if isinstance(explain, str) else None)


def _score_outcome_value(outcome: Mapping[str, Any], explain: str | None) -> FunctionScore:
    kind, value = outcome.get("type"), outcome.get("value")
    if kind == "undefined":
        return FunctionScore(0.0, "the script returned nothing")
    if kind == "boolean" and isinstance(value, bool):
        return FunctionScore(float(value), explain or f"the script returned {str(value).lower()}")
    try:
        number = float(str(value)) if kind == "number" else math.nan
    except ValueError:
        number = math.nan
    if math.isnan(number):
        return make_unscored(
            SCRIPT_ERROR,
            f"the script returned {'NaN' if kind == 'number' else f'a value of type {kind}'}, which is not a score",
        )
    return FunctionScore(min(1.0, max(0.0, number)), explain or f"the script returned {value}")


ScriptContext = Mapping[str, Any]
"""Additional input of scripts: `messages`, a list of {role, content}, and `modelId`."""
AddedFunction = Callable[[str, Any, ScriptContext], float | bool | FunctionScore]
"""A function of another package: given the response, the argument and the context, a score from 0 to 1."""
ReadyFunction = Callable[[str, ScriptContext | None], FunctionScore]
"""A criterion that is ready: given a response and its context, the score."""

_LIST_FORMS = {"contains": ("one", "any_of", "all_of", "at_least_n_of"), "matches": ("one", "all_of", "at_least_n_of")}
_SEARCH_FUNCTIONS = {
    f"{case}{search}{'' if family == 'one' else f'_{family}'}": functools.partial(
        prepare_search, search, family, ignore_case=bool(case)
    )
    for search in ("contains", "contains_word", "starts_with", "ends_with", "matches")
    for family in _LIST_FORMS.get(search, ("one",))
    for case in ("", "i")
}
_FURTHER_FUNCTIONS: dict[str, Callable[[Any], ScoreText]] = {
    "word_count_between": prepare_words_between,
    "is_json": lambda argument: score_json,
    "tool_called": lambda name: _score_calls(lambda calls: any(call.name == name for call in calls)),
    "tool_call_count_between": prepare_tool_call_count,
    "tool_call_order": prepare_tool_call_order,
    "tool_args_match": prepare_tool_args_match,
}
_OF_TEXT: dict[str, Callable[[Any], ScoreText]] = {**_SEARCH_FUNCTIONS, **_FURTHER_FUNCTIONS}
_NEGATED = {f"not_{name}": name for name in _OF_TEXT if not name.endswith("_at_least_n_of")}
FUNCTION_NAMES = frozenset({*_OF_TEXT, *_NEGATED, "js", *EXTERNAL_FUNCTIONS})
"""Every point function by its canonical name."""


def prepare_function(
    name: str, argument: Any, engine: ScriptHost | None = None, added_functions: Mapping[str, AddedFunction] | None = None
) -> ReadyFunction:
    """Prepare a criterion once for any number of responses. It never raises; an unscored criterion has a reason.

    `name` is canonical, `argument` as in YAML. `engine` runs scripts; None: they stay unscored. `added_functions`: functions of other
    packages by name; they are used for names that are unknown here or need an external service.
    """
    is_own = name in FUNCTION_NAMES and name not in EXTERNAL_FUNCTIONS
    if not is_own and added_functions and name in added_functions:
        return functools.partial(_call_added_function, added_functions[name], argument)
    unscored = None
    if name not in FUNCTION_NAMES:
        unscored = make_unscored(UNKNOWN_FUNCTION, f"there is no function {name!r}")
    elif not is_own:
        unscored = make_unscored(EXTERNAL_SERVICE, f"${name} needs an external service, which is not supported")
    elif (fault := _check_function_argument(name, argument)) is not None:
        unscored = make_unscored(BAD_ARGUMENTS, fault)
    elif name == "js":
        return lambda text, context: score_by_script(argument, text, engine, context)
    ready = make_constant(unscored) if unscored else _prepare_text_function(name, argument, engine)
    return lambda text, context: ready(text)


def evaluate(
    name: str,
    argument: Any,
    text: str,
    engine: ScriptHost | None = None,
    context: ScriptContext | None = None,
    added_functions: Mapping[str, AddedFunction] | None = None,
) -> FunctionScore:
    """Score a response by a function: 0 to 1, or unscored with the reason. See `prepare_function`."""
    return prepare_function(name, argument, engine, added_functions)(text, context)


def _check_function_argument(name: str, argument: Any) -> str | None:
    try:
        return check_argument(name, argument)
    except (OverflowError, RecursionError) as error:
        return f"the argument of ${name} is too large: {error}"


def _prepare_text_function(name: str, argument: Any, engine: ScriptHost | None) -> ScoreText:
    if name in _NEGATED:
        positive = _prepare_text_function(_NEGATED[name], argument, engine)
        return lambda text: positive(text).complement
    if name == "tool_args_match" and isinstance(argument["where"], str):
        return lambda text: call_script_score(argument, text, engine)
    return _OF_TEXT[name](argument)


def _call_added_function(function: AddedFunction, argument: Any, text: str, context: ScriptContext | None) -> FunctionScore:
    """Score by a function of another package; its errors leave the criterion unscored."""
    try:
        result = function(text, argument, context or {})
        if isinstance(result, FunctionScore):
            return result
        if not 0 <= result <= 1:
            return make_unscored(FUNCTION_FAILED, f"the function returned {result!r}, which is not from 0 to 1")
        return FunctionScore(float(result), f"the function returned {result!r}")
    except Exception as error:
        return make_unscored(FUNCTION_FAILED, f"{type(error).__name__}: {error}")
