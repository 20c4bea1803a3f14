"""The lengths of responses, whether reviewers prefer the longer one, and reasons for missing scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from dtef_pipeline.statistics.bradley_terry import (
    PairedOutcomes,
    StrengthFit,
    find_unbeaten,
    fit_strengths,
    list_better_and_worse,
    number_strong_groups,
)
from dtef_pipeline.statistics.cluster_robust import MIN_CLUSTERS
from dtef_pipeline.statistics.clustered_errors import (
    FEWEST_VOTES,
    ClusteredErrors,
    compute_bounds,
    estimate_errors,
    list_dependences,
)
from dtef_pipeline.text.number_words import format_count, format_plural, list_first_names

_MAX_PLAYERS_LISTED = 3


def find_missing_score_reasons(fit: StrengthFit, counts: PairedOutcomes, players: Sequence[str]) -> list[str]:
    """Return the reason why each player has no score; empty if it has one. `counts`: the votes that count."""
    better, worse = list_better_and_worse(counts)
    group = number_strong_groups(len(players), better, worse)
    top = find_unbeaten(group, better, worse)
    return [_find_score_reason(fit, group, top, players, index) for index in range(len(players))]


def find_missing_interval_reasons(fit: StrengthFit, errors: ClusteredErrors, votes: npt.NDArray[np.float64]) -> list[str]:
    """Return the reason for each player's missing interval, if it has none. `votes` (players,): those that count."""
    nouns = ["prompt" if units is fit.rows.item else "reviewer" for units in list_dependences(fit.rows)] or ["vote"]
    return [_find_interval_reason(dict(zip(nouns, errors.effective[:, i], strict=False)), int(n)) for i, n in enumerate(votes)]


def _find_score_reason(
    fit: StrengthFit, group: npt.NDArray[np.int64], top: npt.NDArray[np.bool_], players: Sequence[str], index: int
) -> str:
    if not fit.no_answer[index]:
        return ""
    if fit.no_answer[index] == "unconverged":
        return "no score: the fit did not converge"
    if fit.no_answer[index] == "unidentified":
        return "no score: the effect of lengths cannot be separated from that of players"
    mask = fit.component == fit.component[index]
    if len(np.unique(group[mask])) == 1:
        return "no finite score: ties or lengths explain the votes better without end"
    names = [players[place] for place in np.flatnonzero(mask & top).tolist()]
    return f"no finite score: none of the others ever beat or tied {list_first_names(names, _MAX_PLAYERS_LISTED)}"


def _find_interval_reason(effective: dict[str, float], votes: int) -> str:
    if votes == 0:
        return "no vote on it counts"
    if votes < FEWEST_VOTES:
        return f"no interval: {format_count(votes, 'vote')}, at least {FEWEST_VOTES} are needed"
    for noun, number in effective.items():
        if round(number) < MIN_CLUSTERS:
            equal = f"{number:.1f} {format_plural(noun)} with equally many votes"
            return f"no interval: its votes are worth {equal}, at least {MIN_CLUSTERS} are needed"
    return "no interval: the votes leave its score nothing to vary by"


Floats = npt.NDArray[np.float64]


class LongerShare(NamedTuple):
    """How often the longer of two responses was preferred."""

    share: float | None
    """Share of the votes that are not ties, on responses of different lengths, 0-1; .5: length has no effect. None if there is no such vote."""
    low: float | None
    high: float | None
    votes: int
    reason: str
    """Why there is no interval; empty if there is one."""


def compute_doublings(lengths: Floats) -> Floats:
    """Return (rows, 1) doublings of length from right to left response, log2((1 + left) / (1 + right)); negative: left is shorter."""
    return np.asarray(np.log2(1 + lengths[:, :1]) - np.log2(1 + lengths[:, 1:]))


def compute_longer_share(lengths: Floats, rows: PairedOutcomes) -> LongerShare:
    """Return the share of votes for the longer response, with a 95 % interval over whole reviewers and prompts.

    It is the fit of two players, the longer and the shorter response: beta is half the logit of the share.
    """
    sign = np.sign(lengths[:, 0] - lengths[:, 1]).astype(np.int64)
    mask = (rows.outcome != 0) & (sign != 0)
    votes, longer = int(mask.sum()), np.zeros(len(sign), dtype=np.int64)
    if not votes:
        return LongerShare(None, None, None, 0, "no vote prefers one of two responses of different lengths")
    units, none = np.ones(len(sign)), np.zeros((len(sign), 0))
    counts = PairedOutcomes(2, longer, longer + 1, sign * rows.outcome, units, units, rows.cluster, none, rows.item).where(mask)
    share, fit = float((counts.outcome > 0).mean()), fit_strengths(counts)
    errors = estimate_errors(fit)
    ends = compute_bounds(fit, errors)
    if np.isnan(ends.se[0]):
        reason = "all votes agree" if fit.separable else find_missing_interval_reasons(fit, errors, errors.votes)[0]
        return LongerShare(share, None, None, votes, reason)
    return LongerShare(share, float(expit(2 * ends.low[0])), float(expit(2 * ends.high[0])), votes, "")
