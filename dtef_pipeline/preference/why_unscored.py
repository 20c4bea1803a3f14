"""Why a player has no score, or a score without an interval, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dtef_pipeline.statistics.bradley_terry import PairedOutcomes, StrengthFit, better_and_worse
from dtef_pipeline.statistics.cluster_robust import MIN_CLUSTERS
from dtef_pipeline.statistics.clustered_errors import FEWEST_VOTES, ClusteredErrors, dependence
from dtef_pipeline.statistics.strength_graph import strong_groups, unbeaten_players
from dtef_pipeline.text.counted import and_more, counted, plural

_PLAYERS_NAMED = 3


def why_no_beta(fit: StrengthFit, counts: PairedOutcomes, players: Sequence[str]) -> list[str]:
    """Of each player the reason why it has no score; empty where it has one. `counts`: the votes that count."""
    better, worse = better_and_worse(counts)
    group = strong_groups(len(players), better, worse)
    top = unbeaten_players(group, better, worse)
    return [_why(fit, group, top, players, at) for at in range(len(players))]


def why_no_bounds(fit: StrengthFit, errors: ClusteredErrors, votes: npt.NDArray[np.float64]) -> list[str]:
    """Of each player the reason why its score has no interval, were it to have none. `votes` (players,): those that count."""
    ways = dependence(fit.rows)
    nouns = ["prompt" if way is fit.rows.item else "reviewer" for way in ways] or ["vote"]
    return [_why_no_interval(dict(zip(nouns, errors.effective[:, at], strict=False)), int(n)) for at, n in enumerate(votes)]


def _why(fit: StrengthFit, group: npt.NDArray[np.int64], top: npt.NDArray[np.bool_], players: Sequence[str], at: int) -> str:
    if not fit.no_answer[at]:
        return ""
    if fit.no_answer[at] == "unconverged":
        return "no score: the fit did not converge"
    if fit.no_answer[at] == "unidentified":
        return "no score: lengths cannot be told apart from the players"
    here = fit.component == fit.component[at]
    if len(np.unique(group[here])) == 1:
        return "no finite score: ties or lengths explain the votes better without end"
    names = [players[place] for place in np.flatnonzero(here & top).tolist()]
    return f"no finite score: none of the others ever beat or tied {and_more(names, _PLAYERS_NAMED)}"


def _why_no_interval(effective: dict[str, float], votes: int) -> str:
    if votes == 0:
        return "no vote on it counts"
    if votes < FEWEST_VOTES:
        return f"no interval: {counted(votes, 'vote')}, at least {FEWEST_VOTES} are needed"
    for noun, number in effective.items():
        if round(number) < MIN_CLUSTERS:
            equal = f"{number:.1f} {plural(noun)} with equally many votes"
            return f"no interval: its votes are worth {equal}, at least {MIN_CLUSTERS} are needed"
    return "no interval: the votes leave its score nothing to vary by"
