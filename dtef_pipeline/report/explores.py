"""What is said of tests that confirm nothing."""

from __future__ import annotations

CONFIRMS_ELSEWHERE = "This explores: which comparisons confirm, if any, is said under Comparisons."


def explores(over: str) -> str:
    """A sentence for readers of a table of p-values or verdicts; `over` names the tests that p is adjusted over."""
    return f"p is adjusted over {over} (Holm): the probability of any false finding among them is at most 5 %."
