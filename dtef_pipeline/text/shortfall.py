"""What came of what was asked for, in words."""

from __future__ import annotations

from dtef_pipeline.text.quantity_words import format_count


def describe_shortfall(asked: int, done: int, stopped: int, failed: int, what: tuple[str, str]) -> str:
    """`12 of 24 episodes were played: a budget ended 9, 2 failed, 1 is not made`; empty where all came.

    `what`: the noun, and what was to be done: `("episode", "played")`. `stopped`: those that a budget ended.
    """
    if done >= asked:
        return ""
    left = asked - done - stopped - failed
    why = [
        *([f"a budget ended {stopped:,}"] if stopped else []),
        *([f"{failed:,} failed"] if failed else []),
        *([f"{left:,} {'is' if left == 1 else 'are'} not made"] if left > 0 else []),
    ]
    noun, verb = what
    return f"{done:,} of {format_count(asked, noun)} {'was' if asked == 1 else 'were'} {verb}: {', '.join(why)}"
