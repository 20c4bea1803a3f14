"""When intervals by reviewers are known to be too narrow, said in one sentence wherever scores from votes are shown."""

from __future__ import annotations

from dtef_pipeline.text.counted import counted

FEW_WORTH = 0.6
"""Of the reviewers: below it, intervals of t with R - 1 degrees held the truth in less than 93 % of simulations."""


def why_narrow(reviewers: int | None, effective: float | None, degrees: str) -> str | None:
    """The sentence where a few reviewers gave most of the votes and intervals count all of them; None: they do not, or nobody says who voted.

    Args:
        reviewers: who gave votes that count; None: not known.
        effective: how many equally busy reviewers they are worth, (sum of votes)^2 / sum of votes^2; None: not known.
        degrees: reviewers or effective, what intervals count.
    """
    if reviewers is None or effective is None or degrees != "reviewers" or not effective < FEW_WORTH * reviewers:
        return None
    return (
        f"few reviewers gave most of the votes ({counted(reviewers, 'reviewer')} are worth {effective:.1f} equally busy ones): "
        "intervals are too narrow; --degrees effective widens them"
    )
