"""Scores from all stored votes as one table: a separate fit for each family, partition, and for people or each judge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from dtef_pipeline.preference.pair_verdicts import parse_order_verdicts
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
from dtef_pipeline.tables import TableSpec, field

EVERY_PARTITION = "all"
_BY_ROLL_UP_OF_VOTES = "dtef preference board --refresh"
_OF_FIT = (
    field("separable", pa.bool_(), "Flag: true where some players of the fit have no finite score"),
    field("ties", pa.string(), "Treatment of ties: half (half a win of each), davidson, or drop"),
    field("prior_l2", pa.float64(), "Penalty prior_l2 * sum(beta^2) on the betas; null: none"),
    field("weight", pa.string(), "Weight of a vote: confidence (c counts c / 5); null: every vote counts 1"),
    field("unweighted_reason", pa.string(), "Reason why every vote counts 1 although weights were asked for; null: as asked"),
    field("control", pa.string(), "Control: length, betas are those of texts of equal length; null: none"),
    field("items", pa.string(), "Patterns of the items whose votes count, with commas between them; null: all items"),
    field("votes", pa.int64(), "Votes that the fit is made of"),
    field("reviewers", pa.int64(), "Reviewers who gave them"),
    field("leaks_left_out", pa.int64(), "Votes left out because a text of the pair contains a name"),
    field("self_judged", pa.int64(), "Votes among them of a judge on a response of its own maker; null: people voted"),
    field(
        "self_judged_left_out", pa.int64(), "Votes of a judge left out, as a response is of its own maker; null: people voted"
    ),
    field("note", pa.string(), "Limit of the intervals: they hold for the prompts of these votes only; null: none"),
    field(
        "longer_share",
        pa.float64(),
        "Share of votes for the longer text, 0-1, ties left out; .5: length has no effect; null: none",
    ),
    field("longer_low", pa.float64(), "Lower end of the 95 % interval of longer_share; null: too few reviewers"),
    field("longer_high", pa.float64(), "Upper end of the 95 % interval of longer_share; null: too few reviewers"),
    field(
        "length_effect",
        pa.float64(),
        "Logits that a text twice as long as the other has; null: no control by length, or no answer",
    ),
    field(
        "flip_rate",
        pa.float64(),
        "Share of judges' votes whose verdict changed when the texts were swapped, 0-1; null: people voted",
    ),
    field(
        "first_share",
        pa.float64(),
        "Share of judges' decisions for the text shown first, 0-1; .5: the position has no effect; null: people voted",
    ),
    field(
        "votes_version", pa.string(), "Version of all votes in the store that the table was made of: their number and a hash"
    ),
)
PREFERENCE_SCORES = pa.schema(
    [
        field("family", pa.string(), "Family of evaluations whose responses were voted on; elsewhere: votes of other tools"),
        field("partition", pa.string(), "First level of the items' partitions, such as a suite or league; all: the whole family"),
        field("reviewer_kind", pa.string(), "Kind of reviewers: person or judge; their votes are never mixed"),
        field("judge", pa.string(), "Judge who cast all of these votes: model variant and hash of its prompt; null: people voted"),
        field("player", pa.string(), "Player who wrote the responses: a model variant, or persona@variant"),
        field("component", pa.int32(), "Number of the group of players that were compared with each other, from 0; two cannot be compared"),
        field("rank", pa.int32(), "Place by beta within the component, 1 is best; null: there is no beta"),
        field("tier", pa.int32(), "Number of the group of players that cannot be distinguished from its first, from 1; null: there is no beta"),
        field("beta", pa.float64(), "Strength in logits, 0 on average over the component: higher is preferred; null: see the reason"),
        field("share", pa.float64(), "Share of exp(beta) in the sum of the component, 0-1: higher is preferred; null: see the reason"),
        field("se", pa.float64(), "Standard error of beta by whole reviewers and prompts; null: see the reason"),
        field("low", pa.float64(), "Lower end of the 95 % interval of beta; null: see the reason"),
        field("high", pa.float64(), "Upper end of the 95 % interval of beta; null: see the reason"),
        field("n_votes", pa.int64(), "Votes that count, on pairs with the player"),
        field("n_reviewers", pa.int64(), "Reviewers who voted on pairs with the player"),
        field("reason", pa.string(), "Reason why there is no beta or no interval; null: there are both"),
        *_OF_FIT,
    ]
)  # fmt: skip
"""One row per family, partition, kind of reviewers, judge and player; the columns from `separable` on describe the fit."""
PREFERENCE_TABLES: Mapping[str, TableSpec] = {
    "preference_scores": TableSpec(PREFERENCE_SCORES, remake=_BY_ROLL_UP_OF_VOTES),
}
"""Votes belong to no family: they cover responses of all."""


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
