"""What a point function says of one response, and the reasons why it may say nothing."""

from __future__ import annotations

from dataclasses import dataclass

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
"""A function that another package has added has raised an error, or gave something that is no score."""
_SHOWN_LENGTH = 60


@dataclass(frozen=True, slots=True)
class FunctionScore:
    """How far a response meets a criterion that is computed."""

    score: float | None
    """0 (not met) to 1 (met); None: unscored."""
    explanation: str
    """What was found, in words."""
    reason: str | None = None
    """Why it is unscored: one of the reasons of this module, to count by; None: it is scored."""

    @property
    def reversed(self) -> FunctionScore:
        """1 minus the score; what is unscored stays unscored."""
        return self if self.score is None else FunctionScore(1 - self.score, self.explanation)


def unscored(reason: str, explanation: str) -> FunctionScore:
    """No score, for one of the reasons of this module."""
    return FunctionScore(None, explanation, reason)


def shown(text: str) -> str:
    """A text in quotation marks, of which a long one is cut."""
    return repr(text) if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]!r}..."
