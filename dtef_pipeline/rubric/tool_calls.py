"""Point functions about the tools that a response calls, in lines such as `TOOL_CALL {"name": "search", "arguments": {...}}`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dtef_pipeline.rubric.function_score import FunctionScore, shown
from dtef_pipeline.rubric.patterns import WHITE_SPACE
from dtef_pipeline.rubric.text_functions import ScoreText, read_json

_MARK = "TOOL_CALL "
_BLANK_RUN = re.compile(f"[{WHITE_SPACE}]+")


class ToolCall(NamedTuple):
    """One call of a tool."""

    name: str
    arguments: Any
    """As JSON has them; None: the call has none."""


@functools.lru_cache(maxsize=256)
def tool_calls(text: str) -> tuple[ToolCall, ...]:
    """The calls in a response, in their order. A line whose JSON cannot be read, or that has no name, is no call."""
    if _MARK not in text:
        return ()
    lines = (line.strip(WHITE_SPACE) for line in text.split("\n"))
    read = (_call(line[len(_MARK) :]) for line in lines if line.startswith(_MARK))
    return tuple(call for call in read if call is not None)


def _call(written: str) -> ToolCall | None:
    try:
        found = read_json(written.strip(WHITE_SPACE))
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("name"), str):
        return None
    return ToolCall(found["name"], found.get("arguments"))


def _called(calls: Sequence[ToolCall]) -> str:
    """The calls in words."""
    return (
        "called " + ", ".join(call.name for call in calls[:12]) + (", ..." if len(calls) > 12 else "")
        if calls
        else "called no tool"
    )


def tool_called(argument: Any) -> ScoreText:
    """1 where the tool of this name is called."""
    return _judged(lambda calls: any(call.name == argument for call in calls))


def tool_call_count_between(argument: Any) -> ScoreText:
    """[least, most, name]: 1 where so many tools are called; with a name, where this one is called so many times."""
    least, most, name = (*argument, None)[:3]
    return _judged(lambda calls: least <= sum(not name or call.name == name for call in calls) <= most)


def tool_call_order(argument: Any) -> ScoreText:
    """1 where the tools of these names are called in this order; others may be called between them."""

    def in_order(calls: Sequence[ToolCall]) -> bool:
        left = iter(call.name for call in calls)
        return all(name in left for name in argument)

    return _judged(in_order)


def tool_args_match(argument: Any) -> ScoreText:
    """{name, where, normalizeWhitespace}: 1 where a call of the tool includes the arguments `where`, a mapping or a list."""
    where, without_blanks = argument["where"], bool(argument.get("normalizeWhitespace"))

    def matched(calls: Sequence[ToolCall]) -> bool:
        return any(call.name == argument["name"] and includes(call.arguments, where, without_blanks) for call in calls)

    def score(text: str) -> FunctionScore:
        calls = [call for call in tool_calls(text) if call.name == argument["name"]]
        seen = "; ".join(shown(str(call.arguments)) for call in calls[:3])
        return FunctionScore(
            float(matched(calls)), f"arguments of {argument['name']}: {seen}" if calls else _called(tool_calls(text))
        )

    return score


def _judged(holds: Callable[[Sequence[ToolCall]], bool]) -> ScoreText:
    def score(text: str) -> FunctionScore:
        calls = tool_calls(text)
        return FunctionScore(float(holds(calls)), _called(calls))

    return score


def includes(value: Any, wanted: Any, without_blanks: bool = False) -> bool:
    """Whether a value has all that is wanted: mappings by their keys, lists by place, the rest equal. true is not 1, 1 is 1.0."""
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(
            str(key) in value and includes(value[str(key)], part, without_blanks) for key, part in wanted.items()
        )
    if isinstance(wanted, (list, tuple)):
        long_enough = isinstance(value, list) and len(value) >= len(wanted)
        return long_enough and all(includes(*pair, without_blanks) for pair in zip(value, wanted, strict=False))
    if isinstance(wanted, str) and isinstance(value, str) and without_blanks:
        return _BLANK_RUN.sub("", wanted) == _BLANK_RUN.sub("", value)
    return isinstance(value, bool) == isinstance(wanted, bool) and bool(value == wanted)
