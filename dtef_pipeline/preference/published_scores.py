"""Scores from all votes of the store as one table: of each family, its partitions and each kind of reviewers a fit of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from dtef_pipeline.preference.fitted import FittedPreference, PreferenceOptions, PreferenceScore, fit_votes
from dtef_pipeline.preference.judged_pairs import said_in_orders
from dtef_pipeline.preference.score_columns import EVERY_PARTITION, PREFERENCE_SCORES
from dtef_pipeline.preference.stored_votes import columns_of_votes, text_lengths, version_of_votes
from dtef_pipeline.preference.votes import PlayersVote

_Group = tuple[str, str, str]
"""Family, partition, kind of reviewers."""


def preference_scores(votes: Sequence[PlayersVote], options: PreferenceOptions | None = None) -> pa.Table:
    """`PREFERENCE_SCORES` of votes of both kinds of reviewers; without votes no rows. Raises ConfigError for weights without confidences."""
    options = options or PreferenceOptions()
    version = version_of_votes(votes)
    rows: list[dict[str, Any]] = []
    for group, own in sorted(_groups(votes).items(), key=lambda one: (one[0][0], one[0][1] != EVERY_PARTITION, one[0])):
        columns = columns_of_votes(f"votes on {group[0]}, {group[1]}, by kind {group[2]}", own)
        found = fit_votes(columns, options, text_lengths(own))
        of_fit = _of_fit(found) | position(own) | {"votes_version": version}
        named = dict(zip(("family", "partition", "reviewer_kind"), group, strict=True))
        rows += [{**named, **_of_player(score), **of_fit} for score in found.scores]
    arrays = [pa.array([row[one.name] for row in rows], one.type) for one in PREFERENCE_SCORES]
    return pa.table(arrays, schema=PREFERENCE_SCORES)


def position(votes: Iterable[PlayersVote]) -> dict[str, float | None]:
    """Of judges' votes, how often a verdict did not survive the swap of the texts, and how often the first text was chosen; None: of none."""
    said = [one for vote in votes if (one := said_in_orders(vote.justification)) is not None and vote.reviewer_kind == "judge"]
    decided = [choice for one in said for choice in one if choice != "tie"]
    return {
        "flip_rate": sum(one.flipped for one in said) / len(said) if said else None,
        "first_share": decided.count("A") / len(decided) if decided else None,
    }


def _groups(votes: Iterable[PlayersVote]) -> Mapping[_Group, list[PlayersVote]]:
    """The votes of each group; those on items without partitions stand in the one of the whole family alone."""
    found: dict[_Group, list[PlayersVote]] = defaultdict(list)
    for vote in votes:
        found[vote.family, EVERY_PARTITION, vote.reviewer_kind].append(vote)
        first, has_partition, _ = vote.item_id.partition("/")
        if has_partition and first != EVERY_PARTITION:
            found[vote.family, first, vote.reviewer_kind].append(vote)
    return found


def _of_player(score: PreferenceScore) -> dict[str, Any]:
    same = ("component", "rank", "tier", "beta", "share", "se", "low", "high", "n_reviewers")
    named = {"player": score.model, "n_votes": score.n, "reason": score.reason or None}
    return named | {name: getattr(score, name) for name in same}


def _of_fit(found: FittedPreference) -> dict[str, Any]:
    options, longer = found.options, found.length.longer if found.length else None
    return {
        "separable": found.separable,
        "ties": options.ties,
        "prior_l2": options.l2 or None,
        "weight": options.weight,
        "degrees": options.degrees,
        "votes": found.counted,
        "reviewers": found.reviewers,
        "effective_reviewers": found.effective_reviewers,
        "longer_share": longer.share if longer else None,
        "longer_low": longer.low if longer else None,
        "longer_high": longer.high if longer else None,
    }
