"""The plan of a text: what a player wrote before its action."""

from __future__ import annotations

from dtef_pipeline.text.plain import without_thinking

ACTION_WORD = "action:"
"""What an action begins with, in any case."""


def plan_of(text: str, *, played: bool) -> str:
    """What stands before the last line with `ACTION:`, without thinking. Of a text without such a line: all but its last line where that was
    played, else all of it.
    """
    lines = without_thinking(text).strip().splitlines()
    last = max((at for at, line in enumerate(lines) if ACTION_WORD in line.casefold()), default=None)
    if last is None:
        return "\n".join(lines[:-1] if played else lines).strip()
    return "\n".join(lines[:last]).strip()
