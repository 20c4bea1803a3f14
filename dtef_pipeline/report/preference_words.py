"""What holds of a fit of votes as a whole, in sentences: votes, options, answers that are not finite, length, judges, leaks and voids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from dtef_pipeline.report.markup import is_unknown
from dtef_pipeline.text.counted import counted

_TIES_IN_WORDS = {
    "half": "a tie is half a win of each player",
    "davidson": "a tie is an outcome of its own, by the model of Davidson",
    "drop": "ties do not count",
}


def fit_in_words(fit: pd.DataFrame, met: pd.DataFrame) -> Iterator[str]:
    """Sentences of one fit. `fit`: its rows of `preference_scores`, at least one; `met`: its rows of `preference_met`."""
    one: dict[Any, Any] = fit.iloc[0].to_dict()
    yield _votes_in_words(one) + _options(one)
    if not is_unknown(one["note"]):
        yield f"{one['note'][0].upper()}{one['note'][1:]}."
    if one["separable"]:
        yield (
            "Some players have no finite score: a player that won or lost all its votes can be as strong or as weak as one likes, so that no "
            "number is right. `prior_l2: 0.01` in the section `preference` of the panel file gives every player one."
        )
    if (groups := len(set(fit["component"]))) > 1:
        yield f"The players fall into {counted(groups, 'group')} that no vote compares with each other. Places and betas hold within a group."
    if not is_unknown(one["longer_share"]):
        ends = "" if is_unknown(one["longer_low"]) else f" (95 % interval {one['longer_low']:.3f} to {one['longer_high']:.3f})"
        yield (
            f"The longer text was preferred in {one['longer_share']:.3f}{ends} of the votes that are no ties; "
            "0.5 would mean that length plays no part."
        )
    yield from _of_votes_left_out(one)
    if not is_unknown(one["length_effect"]):
        yield f"Betas are those of texts of equal length; a text twice as long gains {one['length_effect']:.3f}{_ends_of_length(one)} logits."
    if not is_unknown(one["flip_rate"]):
        yield _of_places(one)
    if len(met):
        yield _pairs_in_words(met)


def _votes_in_words(one: Mapping[Any, Any]) -> str:
    words = f"{counted(int(one['votes']), 'vote')} of {counted(int(one['reviewers']), 'reviewer')}"
    worth = one["effective_reviewers"]
    if is_unknown(worth):
        return words
    return f"{words}, worth {worth:.1f} equally busy ones"


def _options(one: Mapping[Any, Any]) -> str:
    prior = (
        "no prior" if is_unknown(one["prior_l2"]) else f"a prior of {one['prior_l2']:g} * sum(beta^2) pulls scores towards 0"
    )
    weight = "every vote counts 1" if is_unknown(one["weight"]) else "a vote of confidence c counts c / 5"
    ties = _TIES_IN_WORDS.get(one["ties"], one["ties"])
    together = "intervals take all votes of one reviewer together, since they share a taste, and all votes on one prompt"
    if not is_unknown(one["unweighted"]):
        weight = f"{weight}, although weights were asked for: {one['unweighted']}"
    items = "" if is_unknown(one["items"]) else f" Only votes on items that fit {one['items']}."
    return f". How they count: {ties}; {weight}; {prior}; {together}.{items}"


def _of_votes_left_out(one: Mapping[Any, Any]) -> Iterator[str]:
    if one["leaks_left_out"]:
        yield f"Left out: {counted(int(one['leaks_left_out']), 'vote')} on pairs in whose texts a name stood."
    if is_unknown(one["self_judged"]):
        return
    left = f", and {int(one['self_judged_left_out']):,} such are left out" if one["self_judged_left_out"] else ""
    yield f"Of the judge's votes that count, {int(one['self_judged']):,} are on a response of its own maker{left}."


def _ends_of_length(one: Mapping[Any, Any]) -> str:
    return "" if is_unknown(one["length_low"]) else f" ({one['length_low']:.3f} to {one['length_high']:.3f})"


def _of_places(one: Mapping[Any, Any]) -> str:
    words = f"{one['flip_rate']:.1%} of the verdicts did not survive the swap of the texts, and are ties"
    if not is_unknown(one["first_share"]):
        words += f"; {one['first_share']:.3f} of the decisions are for the text that stood first; 0.5: the place plays no part"
    return f"{words}."


def _pairs_in_words(met: pd.DataFrame) -> str:
    """How many pairs there are and were voted on, with leak risks and voided votes."""
    sums = {name: int(met[name].sum()) for name in ("n_pairs", "n_voted", "n_leak_risk", "n_votes_leak_risk", "n_void")}
    words = f"{counted(sums['n_pairs'], 'pair')} of responses, {sums['n_voted']:,} with a vote that counts"
    words += f"; a name stood in the texts of {sums['n_leak_risk']:,}, with {counted(sums['n_votes_leak_risk'], 'vote')}"
    return f"{words}; {counted(sums['n_void'], 'voided vote')}."
