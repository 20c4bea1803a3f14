"""The point functions: their names, spellings and arguments, and the criteria that they compute from a response without a judge."""

from __future__ import annotations

import functools
import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from dtef_pipeline.rubric.blueprint.patterns import (
    LONGEST_SEARCH,
    WHITE_SPACE,
    BadPattern,
    SearchTooLong,
    compile_pattern,
    count_words,
    pattern_fault,
)
from dtef_pipeline.text.extras import describe_installation
from dtef_pipeline.text.number_words import format_count

_SHOWN_LENGTH = 60


@dataclass(frozen=True, slots=True)
class FunctionScore:
    """The extent to which a criterion is met."""

    score: float | None
    """0 (not met) to 1 (met); None: unscored."""
    explanation: str
    """What was found, in words."""
    reason: str | None = None
    """Why it is unscored, in a few fixed words to count by, such as `bad pattern`; None: it is scored."""

    @property
    def complement(self) -> FunctionScore:
        """1 minus the score; an unscored criterion stays unscored."""
        return self if self.score is None else FunctionScore(1 - self.score, self.explanation)


def make_unscored(reason: str, explanation: str) -> FunctionScore:
    """Return no score, for a reason of `FunctionScore`."""
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


def prepare_wanted(search: str, argument: str, ignore_case: bool) -> SearchTarget:
    """Prepare a search target; `search`: see `_PART_TESTS`, or matches. Raises BadPattern if a pattern is invalid."""
    if search == "matches":
        return SearchTarget(f"/{argument}/{'i' if ignore_case else ''}", compile_pattern(argument, ignore_case))
    test = _PART_TESTS[search]
    if not ignore_case:
        return SearchTarget(quote_shortened(argument), lambda text: test(text, argument))
    small = argument.lower()
    return SearchTarget(quote_shortened(argument), lambda text: test(lower_text(text), small))


def _list_searched(form: str, argument: Any) -> list[str]:
    return [argument] if form == "one" else list(argument[1] if form == "at_least_n_of" else argument)


def prepare_search(search: str, form: str, ignore_case: bool, argument: Any) -> ScoreText:
    """Prepare the criterion of a search with a valid argument. `form`: `one`, `any_of`, `all_of` or `at_least_n_of`."""
    try:
        parts = [prepare_wanted(search, text, ignore_case) for text in _list_searched(form, argument)]
    except BadPattern as fault:
        return make_constant(make_unscored("bad pattern", str(fault)))
    if form == "at_least_n_of":
        ready = _require_at_least(argument[0], parts)
    else:
        ready = {"one": _require_one, "any_of": _require_any, "all_of": _require_all}[form](parts)
    return _limit_time(ready) if search == "matches" else ready


def make_constant(score: FunctionScore) -> ScoreText:
    """Return a criterion with one score for every response."""
    return lambda text: score


def _limit_time(ready: ScoreText) -> ScoreText:
    def score(text: str) -> FunctionScore:
        try:
            return ready(text)
        except SearchTooLong:
            return make_unscored("pattern timeout", f"the search took longer than {LONGEST_SEARCH:g} s")

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
        return make_unscored("nested too deep", "brackets are nested too deeply")
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


def prepare_tool_called(name: Any) -> ScoreText:
    """Prepare a criterion: 1 if the tool of this name is called."""
    return _score_calls(lambda calls: any(call.name == name for call in calls))


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


_FAULTS = {"timeout": "script timeout", "memory": "script memory", "stopped": "script engine stopped"}
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
        return make_unscored("no script engine", _HOW_TO_INSTALL)
    script_context = {"messages": [], "modelId": None} | dict(context or {})
    return _score_outcome(engine.run(script, {"r": text, "response": text, "context": script_context}))


def call_script_score(argument: Mapping[str, Any], text: str, engine: ScriptHost | None) -> FunctionScore:
    """Score 1 if the expression `where` is true of the arguments, `args`, of a call of the tool.

    Unscored if it is true of no call and fails on one.
    """
    calls = [call for call in find_tool_calls(text) if call.name == argument["name"] and call.arguments is not None]
    if engine is None:
        return make_unscored("no script engine", _HOW_TO_INSTALL)
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
        return make_unscored(_FAULTS.get(str(outcome["fault"]), "script error"), str(outcome.get("text", "")))
    if outcome.get("type") != "score":
        return _score_outcome_value(outcome, None)
    inner, explain = outcome.get("score"), outcome.get("explain")
    if not isinstance(inner, Mapping) or inner.get("type") not in ("boolean", "number"):
        return make_unscored("script error", "its `score` is not a number, true or false")
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
            "script error",
            f"the script returned {'NaN' if kind == 'number' else f'a value of type {kind}'}, which is not a score",
        )
    return FunctionScore(min(1.0, max(0.0, number)), explain or f"the script returned {value}")


ScriptContext = Mapping[str, Any]
"""Additional input of scripts: `messages`, a list of {role, content}, and `modelId`."""
AddedFunction = Callable[[str, Any, ScriptContext], float | bool | FunctionScore]
"""A function of another package: given the response, the argument and the context, a score from 0 to 1."""
ReadyFunction = Callable[[str, ScriptContext | None], FunctionScore]
"""A criterion that is ready: given a response and its context, the score."""


class PointFunction(NamedTuple):
    """A point function: the form of its argument, and how a criterion is made from one."""

    argument: str
    """Description, as in the table of functions."""
    is_sound: Callable[[Any], bool]
    """Whether an argument has this form."""
    prepare: Callable[[Any], ScoreText] | None = None
    """Prepares a criterion from a sound argument; None: this needs a script engine or an external service."""
    takes_text: bool = False
    """Whether the argument is one text."""
    patterns: Callable[[Any], Sequence[str]] = lambda value: ()
    """The patterns in a sound argument."""
    ignores_case: bool = False


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_n_of(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and _is_number(value[0]) and _is_texts(value[1])


def _is_range(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_number, value)) and 0 <= value[0] <= value[1]


def _is_call_range(value: Any) -> bool:
    if not isinstance(value, list) or len(value) not in (2, 3):
        return False
    return _is_range(value[:2]) and (len(value) == 2 or value[2] is None or isinstance(value[2], str))


def _is_calls_match(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or not value["name"]:
        return False
    spaces = value.get("normalizeWhitespace", False)
    has_known_keys = value.keys() <= {"name", "where", "normalizeWhitespace"}
    return has_known_keys and isinstance(spaces, bool) and isinstance(value.get("where"), (dict, list, str))


def _is_some_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


_ARGUMENTS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "one": ("a {}", _is_text),
    "any_of": ("a list of {}s", _is_texts),
    "all_of": ("a list of {}s", _is_texts),
    "at_least_n_of": ("[a number, a list of {}s]", _is_n_of),
}
"""By form of a search, its argument."""
_SEARCHES: Mapping[str, Sequence[str]] = {
    "contains": tuple(_ARGUMENTS),
    "contains_word": ("one",),
    "starts_with": ("one",),
    "ends_with": ("one",),
    "matches": ("one", "all_of", "at_least_n_of"),
}
"""Functions that search the response, with their forms; each has a case-insensitive form, with `i` before its name."""


def _define_search(search: str, form: str, ignore_case: bool) -> PointFunction:
    argument, is_sound = _ARGUMENTS[form]
    is_pattern = search == "matches"
    return PointFunction(
        argument.format("pattern" if is_pattern else "text"),
        is_sound,
        functools.partial(prepare_search, search, form, ignore_case),
        takes_text=form == "one",
        patterns=functools.partial(_list_searched, form) if is_pattern else lambda value: (),
        ignores_case=ignore_case,
    )


_POSITIVE: Mapping[str, PointFunction] = {
    **{
        f"{case}{search}{'' if form == 'one' else f'_{form}'}": _define_search(search, form, bool(case))
        for search, forms in _SEARCHES.items()
        for form in forms
        for case in ("", "i")
    },
    "word_count_between": PointFunction("[least, most], 0 <= least <= most", _is_range, prepare_words_between),
    "is_json": PointFunction("true, or nothing", lambda value: value is None or value is True, lambda _: score_json),
    "tool_called": PointFunction("the name of a tool", _is_some_text, prepare_tool_called, takes_text=True),
    "tool_call_count_between": PointFunction(
        "[least, most] or [least, most, name of a tool]", _is_call_range, prepare_tool_call_count
    ),
    "tool_call_order": PointFunction("a list of names of tools", _is_texts, prepare_tool_call_order),
    "tool_args_match": PointFunction(
        "{name: tool, where: {argument: value}, normalizeWhitespace: false}", _is_calls_match, prepare_tool_args_match
    ),
}
EXTERNAL_FUNCTIONS = ("call", "factcheck")
"""Functions that need an external service, which is not supported: their criteria stay unscored."""
REFERENCE_FUNCTION = "ref"
"""Not a function, but a reference to a definition in the header."""
POINT_FUNCTIONS: Mapping[str, PointFunction] = {
    **_POSITIVE,
    **{f"not_{name}": function for name, function in _POSITIVE.items() if not name.endswith("_at_least_n_of")},
    "js": PointFunction("a JavaScript expression or function body", _is_some_text, takes_text=True),
    "call": PointFunction("a mapping with service or url", lambda value: True),
    "factcheck": PointFunction("a text that says what to check", lambda value: True, takes_text=True),
}
"""Every point function by its canonical name."""
_SINGULAR = re.compile(r"(not_)?(i)?(contain|match|start_with|end_with)(?=_|\Z)")
_PLURALS = {"contain": "contains", "match": "matches", "start_with": "starts_with", "end_with": "ends_with"}
_ALIASES = {"expr": "js", "external": "call"}


def find_canonical_name(name: str) -> str | None:
    """Return the canonical name of any spelling of a function (`icontain_any_of` -> `icontains_any_of`), or None if unknown."""
    name = _ALIASES.get(name, name)
    if match := _SINGULAR.match(name):
        name = f"{match[1] or ''}{match[2] or ''}{_PLURALS[match[3]]}{name[match.end() :]}"
    return name if name in POINT_FUNCTIONS else None


def check_argument(name: str, args: Any) -> str | None:
    """Return what is wrong with an argument of a function (canonical name), or None."""
    function = POINT_FUNCTIONS[name]
    try:
        if function.is_sound(args):
            return None
    except (OverflowError, RecursionError) as error:
        return f"the argument of ${name} is too large: {error}"
    got = "nothing" if args is None else f"{args!r:.60}"
    hint = "; put quotes around it" if function.takes_text and isinstance(args, (int, float)) else ""
    return f"${name} takes {function.argument}; got {got}{hint}"


def check_patterns(name: str, args: Any) -> Iterable[str]:
    """Yield what is wrong with each pattern in a valid argument."""
    function = POINT_FUNCTIONS[name]
    for pattern in function.patterns(args):
        if (reason := pattern_fault(pattern, function.ignores_case)) is not None:
            yield f"the pattern {pattern!r:.60} of ${name}: {reason}"


def prepare_function(
    name: str, argument: Any, engine: ScriptHost | None = None, added_functions: Mapping[str, AddedFunction] | None = None
) -> ReadyFunction:
    """Prepare a criterion once for any number of responses. It never raises; an unscored criterion has a reason.

    `name` is canonical, `argument` as in YAML. `engine` runs scripts; None: they stay unscored. `added_functions`: functions of other
    packages by name; they are used for names that are unknown here or need an external service.
    """
    is_own = name in POINT_FUNCTIONS and name not in EXTERNAL_FUNCTIONS
    if not is_own and added_functions and name in added_functions:
        return functools.partial(_call_added_function, added_functions[name], argument)
    if name not in POINT_FUNCTIONS:
        ready = make_constant(make_unscored("unknown function", f"there is no function {name!r}"))
    elif not is_own:
        ready = make_constant(make_unscored("external service", f"${name} needs an external service, which is not supported"))
    elif (fault := check_argument(name, argument)) is not None:
        ready = make_constant(make_unscored("bad arguments", fault))
    elif name == "js":
        return lambda text, context: score_by_script(argument, text, engine, context)
    else:
        ready = _prepare_text_function(name, argument, engine)
    return lambda text, context: ready(text)


def _prepare_text_function(name: str, argument: Any, engine: ScriptHost | None) -> ScoreText:
    if name.startswith("not_"):
        positive = _prepare_text_function(name.removeprefix("not_"), argument, engine)
        return lambda text: positive(text).complement
    prepare = POINT_FUNCTIONS[name].prepare
    if prepare is None or (name == "tool_args_match" and isinstance(argument["where"], str)):
        return lambda text: call_script_score(argument, text, engine)
    return prepare(argument)


def _call_added_function(function: AddedFunction, argument: Any, text: str, context: ScriptContext | None) -> FunctionScore:
    """Score by a function of another package; its errors leave the criterion unscored."""
    try:
        result = function(text, argument, context or {})
        if isinstance(result, FunctionScore):
            return result
        if not 0 <= result <= 1:
            return make_unscored("function failed", f"the function returned {result!r}, which is not from 0 to 1")
        return FunctionScore(float(result), f"the function returned {result!r}")
    except Exception as error:
        return make_unscored("function failed", f"{type(error).__name__}: {error}")
