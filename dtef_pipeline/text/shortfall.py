"""Describe how much of the planned work was not done."""

from __future__ import annotations

from dtef_pipeline.text.number_words import format_count


def describe_shortfall(total: int, n_done: int, n_stopped: int, n_failed: int, words: tuple[str, str]) -> str:
    """Return `12 of 24 episodes were played: a budget ended 9, 2 failed, 1 is not made`, or "" if nothing is missing.

    `words`: the noun and the participle, `("episode", "played")`. `n_stopped`: those that a budget stopped.
    """
    if n_done >= total:
        return ""
    remaining = total - n_done - n_stopped - n_failed
    reasons = [
        *([f"a budget ended {n_stopped:,}"] if n_stopped else []),
        *([f"{n_failed:,} failed"] if n_failed else []),
        *([f"{remaining:,} {'is' if remaining == 1 else 'are'} not made"] if remaining > 0 else []),
    ]
    noun, verb = words
    return f"{n_done:,} of {format_count(total, noun)} {'was' if total == 1 else 'were'} {verb}: {', '.join(reasons)}"
