"""Scores from all votes of the store as one table: of each family, its partitions, people, and each judge a fit of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from dtef_pipeline.preference.pair_verdicts import parse_order_verdicts
from dtef_pipeline.preference.score_columns import EVERY_PARTITION, PREFERENCE_SCORES
from dtef_pipeline.preference.vote_fit import PreferenceFit, PreferenceOptions, PreferenceScore, fit_votes
from dtef_pipeline.preference.vote_selection import (
    FilteredVotes,
    WhichVotes,
    build_vote_columns,
    compute_votes_version,
    filter_votes,
    find_unweighted_reason,
    measure_text_lengths,
)
from dtef_pipeline.preference.votes import PlayersVote

_Group = tuple[str, str, str, str | None]
"""Family, partition, kind of reviewers, judge."""
_VOTE_GROUP = ("family", "partition", "reviewer_kind", "judge")


def preference_scores(
    votes: Sequence[PlayersVote], options: PreferenceOptions | None = None, which: WhichVotes | None = None
) -> pa.Table:
    """`PREFERENCE_SCORES` of votes of both kinds of reviewers; without votes no rows. `votes`: all of the store, of which `which` count.

    Votes without confidences count 1 each, also where weights are asked for, and their rows say so.
    """
    version = compute_votes_version(votes)
    rows: list[dict[str, Any]] = []
    for group, own in sorted(_group_votes(votes).items(), key=lambda one: _sort_key(one[0])):
        found = _build_fit_rows(own, options or PreferenceOptions(), which or WhichVotes())
        named = dict(zip(_VOTE_GROUP, group, strict=True)) | {"votes_version": version}
        rows += [named | row for row in found]
    arrays = [pa.array([row[one.name] for row in rows], one.type) for one in PREFERENCE_SCORES]
    return pa.table(arrays, schema=PREFERENCE_SCORES)


def _sort_key(group: _Group) -> tuple[str, bool, str, str, str]:
    family, partition, kind, judge = group
    return family, partition != EVERY_PARTITION, partition, kind, judge or ""


def _build_fit_rows(votes: Sequence[PlayersVote], options: PreferenceOptions, which: WhichVotes) -> list[dict[str, Any]]:
    """One row per player, of one fit of those votes that count."""
    counted = filter_votes(votes, which)
    if not counted.votes:
        return []
    why = find_unweighted_reason(counted.votes) if options.weight else None
    used = replace(options, weight=None) if why else options
    found = fit_votes(build_vote_columns("votes of the store", counted.votes), used, measure_text_lengths(counted.votes))
    of_fit = _build_fit_columns(found) | _describe_votes(counted, which) | {"unweighted": why}
    return [{**_build_player_columns(score), **of_fit} for score in found.scores]


def _describe_votes(counted: FilteredVotes, which: WhichVotes) -> dict[str, Any]:
    judged = any(vote.reviewer_kind == "judge" for vote in counted.votes)
    return compute_position_bias(counted.votes) | {
        "items": ", ".join(which.items) or None,
        "leaks_left_out": counted.leaks_left_out,
        "self_judged": counted.self_judged if judged else None,
        "self_judged_left_out": counted.self_judged_left_out if judged else None,
    }


def compute_position_bias(votes: Iterable[PlayersVote]) -> dict[str, float | None]:
    """Of judges' votes, how often a verdict did not survive the swap of the texts, and how often the first text was chosen; None: of none."""
    verdicts = [
        one for vote in votes if (one := parse_order_verdicts(vote.justification)) is not None and vote.reviewer_kind == "judge"
    ]
    decided = [choice for one in verdicts for choice in one if choice != "tie"]
    return {
        "flip_rate": sum(one.flipped for one in verdicts) / len(verdicts) if verdicts else None,
        "first_share": decided.count("A") / len(decided) if decided else None,
    }


def _group_votes(votes: Iterable[PlayersVote]) -> Mapping[_Group, list[PlayersVote]]:
    """The votes of each group; those on items without partitions stand in the one of the whole family alone."""
    found: dict[_Group, list[PlayersVote]] = defaultdict(list)
    for vote in votes:
        who = (vote.reviewer_kind, vote.reviewer_id if vote.reviewer_kind == "judge" else None)
        found[vote.family, EVERY_PARTITION, *who].append(vote)
        first, has_partition, _ = vote.item_id.partition("/")
        if has_partition and first != EVERY_PARTITION:
            found[vote.family, first, *who].append(vote)
    return found


def _build_player_columns(score: PreferenceScore) -> dict[str, Any]:
    same = ("component", "rank", "tier", "beta", "share", "se", "low", "high", "n_reviewers")
    named = {"player": score.model, "n_votes": score.n, "reason": score.reason or None}
    return named | {name: getattr(score, name) for name in same}


def _build_fit_columns(found: PreferenceFit) -> dict[str, Any]:
    options, length = found.options, found.length
    longer = length.longer if length else None
    return {
        "separable": found.separable,
        "ties": options.ties,
        "prior_l2": options.l2 or None,
        "weight": options.weight,
        "control": options.control,
        "votes": found.counted,
        "reviewers": found.reviewers,
        "effective_reviewers": found.effective_reviewers,
        "prompts": found.prompts,
        "note": found.note,
        "longer_share": longer.share if longer else None,
        "longer_low": longer.low if longer else None,
        "longer_high": longer.high if longer else None,
        "length_effect": length.coefficient if length else None,
        "length_low": length.low if length else None,
        "length_high": length.high if length else None,
    }
