"""Criteria that are scripts (`$js`, and `where` as a text): what is run elsewhere, and how its outcome becomes a score.

Scripts never run in this process: a `ScriptHost`, such as `resources.script_engine.ScriptEngine`, runs them in one of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol

from dtef_pipeline.rubric.function_score import (
    NO_SCRIPT_ENGINE,
    SCRIPT_ENGINE_STOPPED,
    SCRIPT_ERROR,
    SCRIPT_MEMORY,
    SCRIPT_TIMEOUT,
    FunctionScore,
    unscored,
)
from dtef_pipeline.rubric.tool_calls import tool_calls
from dtef_pipeline.text.counted import counted
from dtef_pipeline.text.extras import how_to_install

_FAULTS = {"timeout": SCRIPT_TIMEOUT, "memory": SCRIPT_MEMORY, "stopped": SCRIPT_ENGINE_STOPPED, "error": SCRIPT_ERROR}
_HOW_TO_INSTALL = f"the engine that runs scripts is not installed; {how_to_install('js')}"


class ScriptHost(Protocol):
    """Runs scripts in another process."""

    def run(self, script: str, variables: Mapping[str, Any]) -> Mapping[str, Any]:
        """Its outcome: {type: boolean | number | undefined | ..., value}, {type: score, score: an outcome, explain}, or {fault, text}.

        A number's value is JavaScript's text of it. `fault` is error, timeout, memory or stopped. It never raises.
        """
        ...


def script_score(script: str, text: str, engine: ScriptHost | None, context: Mapping[str, Any] | None) -> FunctionScore:
    """What a script makes of a response, which it has as `r`; `context` has the messages and `modelId`."""
    if engine is None:
        return unscored(NO_SCRIPT_ENGINE, _HOW_TO_INSTALL)
    known = {"messages": [], "modelId": None} | dict(context or {})
    return _scored(engine.run(script, {"r": text, "response": text, "context": known}))


def call_script_score(argument: Mapping[str, Any], text: str, engine: ScriptHost | None) -> FunctionScore:
    """1 where the expression `where` is true of the arguments, `args`, of a call of the tool.

    Unscored where it is true of none and fails on one.
    """
    calls = [call for call in tool_calls(text) if call.name == argument["name"] and call.arguments is not None]
    if engine is None:
        return unscored(NO_SCRIPT_ENGINE, _HOW_TO_INSTALL)
    scores = []
    for call in calls:
        scores.append(_scored(engine.run(f"!!({argument['where']}\n)", {"args": call.arguments})))
        if scores[-1].score == 1:
            return FunctionScore(1.0, f"true of a call of {argument['name']}")
    failed = next((score for score in scores if score.score is None), None)
    return failed or FunctionScore(0.0, f"true of none of {counted(len(calls), 'call')} of {argument['name']}")


def _scored(outcome: Mapping[str, Any]) -> FunctionScore:
    """The score that the outcome of a script means: true 1, a number held within 0 and 1, nothing 0, all else unscored."""
    if "fault" in outcome:
        return unscored(_FAULTS.get(str(outcome["fault"]), SCRIPT_ERROR), str(outcome.get("text", "")))
    if outcome.get("type") != "score":
        return _scored_value(outcome, None)
    inner, explain = outcome.get("score"), outcome.get("explain")
    if not isinstance(inner, Mapping) or inner.get("type") not in ("boolean", "number"):
        return unscored(SCRIPT_ERROR, "its `score` is neither a number nor true or false")
    return _scored_value(inner, explain if isinstance(explain, str) else None)


def _scored_value(outcome: Mapping[str, Any], explain: str | None) -> FunctionScore:
    kind, value = outcome.get("type"), outcome.get("value")
    if kind == "undefined":
        return FunctionScore(0.0, "the script gave nothing")
    if kind == "boolean" and isinstance(value, bool):
        return FunctionScore(float(value), explain or f"the script gave {str(value).lower()}")
    number = _number(value) if kind == "number" else math.nan
    if math.isnan(number):
        return unscored(
            SCRIPT_ERROR, f"the script gave {'NaN' if kind == 'number' else f'a value of type {kind}'}, which is no score"
        )
    return FunctionScore(min(1.0, max(0.0, number)), explain or f"the script gave {value}")


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return math.nan
