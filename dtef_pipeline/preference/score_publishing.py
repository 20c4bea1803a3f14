"""Scores from all stored votes as one table: a separate fit for each family, partition, and for people or each judge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from dtef_pipeline.preference.pair_verdicts import parse_order_verdicts
from dtef_pipeline.preference.score_columns import EVERY_PARTITION, PREFERENCE_SCORES
from dtef_pipeline.preference.vote_fit import (
    FilteredVotes,
    PreferenceFit,
    VoteSettings,
    build_vote_columns,
    compute_votes_version,
    filter_votes,
    find_unweighted_reason,
    fit_votes,
    measure_text_lengths,
)
from dtef_pipeline.preference.votes import PlayersVote

_Group = tuple[str, str, str, str | None]
"""Family, partition, kind of reviewers, judge."""
_VOTE_GROUP = ("family", "partition", "reviewer_kind", "judge")


def preference_scores(
    votes: Sequence[PlayersVote], settings: VoteSettings | None = None, own_servers: Collection[str] = ()
) -> pa.Table:
    """Return `PREFERENCE_SCORES` of votes of both kinds of reviewers; no rows without votes.

    `votes`: all of the store, selected by `settings`. `own_servers`: see `is_self_judged`. Votes without confidences count 1 each, even if
    weights are requested, and their rows say so.
    """
    version = compute_votes_version(votes)
    rows: list[dict[str, Any]] = []
    for group, members in sorted(_group_votes(votes).items(), key=lambda pair: _sort_key(pair[0])):
        named = dict(zip(_VOTE_GROUP, group, strict=True)) | {"votes_version": version}
        rows += [named | row for row in _fit_group(members, settings or VoteSettings(), own_servers)]
    return pa.Table.from_pylist(rows, schema=PREFERENCE_SCORES)


def _sort_key(group: _Group) -> tuple[str, bool, str, str, str]:
    family, partition, kind, judge = group
    return family, partition != EVERY_PARTITION, partition, kind, judge or ""


def _fit_group(votes: Sequence[PlayersVote], settings: VoteSettings, own_servers: Collection[str]) -> list[dict[str, Any]]:
    """Return one row per player, from one fit of the votes that count."""
    selection = filter_votes(votes, settings, own_servers)
    if not selection.votes:
        return []
    reason = find_unweighted_reason(selection.votes) if settings.weight else None
    options = settings.model_copy(update={"weight": None}) if reason else settings
    fit = fit_votes(build_vote_columns("votes of the store", selection.votes), options, measure_text_lengths(selection.votes))
    return build_score_rows(fit, describe_selection(selection, settings) | {"unweighted_reason": reason})


def describe_selection(selection: FilteredVotes, settings: VoteSettings) -> dict[str, Any]:
    """Return the columns on the selection of votes and judges' position bias."""
    has_judges = any(vote.reviewer_kind == "judge" for vote in selection.votes)
    return compute_position_bias(selection.votes) | {
        "items": ", ".join(settings.items) or None,
        "leaks_left_out": selection.leaks_left_out,
        "self_judged": selection.self_judged if has_judges else None,
        "self_judged_left_out": selection.self_judged_left_out if has_judges else None,
    }


def compute_position_bias(votes: Iterable[PlayersVote]) -> dict[str, float | None]:
    """Return how often judges' verdicts changed in the swapped order, and how often the first text was chosen; None without verdicts."""
    verdicts = [
        verdict
        for vote in votes
        if (verdict := parse_order_verdicts(vote.justification)) is not None and vote.reviewer_kind == "judge"
    ]
    choices = [choice for verdict in verdicts for choice in verdict if choice != "tie"]
    return {
        "flip_rate": sum(verdict.is_flipped for verdict in verdicts) / len(verdicts) if verdicts else None,
        "first_share": choices.count("A") / len(choices) if choices else None,
    }


def _group_votes(votes: Iterable[PlayersVote]) -> Mapping[_Group, list[PlayersVote]]:
    """Return the votes of each group; those on items without partitions only in the group of the whole family."""
    groups: dict[_Group, list[PlayersVote]] = defaultdict(list)
    for vote in votes:
        reviewer = (vote.reviewer_kind, vote.reviewer_id if vote.reviewer_kind == "judge" else None)
        groups[vote.family, EVERY_PARTITION, *reviewer].append(vote)
        first, has_partition, _ = vote.item_id.partition("/")
        if has_partition and first != EVERY_PARTITION:
            groups[vote.family, first, *reviewer].append(vote)
    return groups


def build_score_rows(fit: PreferenceFit, extra: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one row per player: its columns, those of the fit, and `extra` ones, equal for all."""
    names = ("component", "rank", "tier", "beta", "share", "se", "low", "high", "n_reviewers")
    fit_columns = {**_build_fit_columns(fit), **extra}
    return [
        {
            "player": score.model,
            **{name: getattr(score, name) for name in names},
            "n_votes": score.n,
            "reason": score.reason or None,
            **fit_columns,
        }
        for score in fit.scores
    ]


def _build_fit_columns(fit: PreferenceFit) -> dict[str, Any]:
    longer = fit.length.longer_share if fit.length else None
    return {
        "separable": fit.separable,
        "ties": fit.settings.ties,
        "prior_l2": fit.settings.prior_l2 or None,
        "weight": fit.settings.weight,
        "control": fit.settings.control,
        "votes": fit.n_counted,
        "reviewers": fit.reviewers,
        "note": fit.note,
        "longer_share": longer.share if longer else None,
        "longer_low": longer.low if longer else None,
        "longer_high": longer.high if longer else None,
        "length_effect": fit.length.coefficient if fit.length else None,
    }
