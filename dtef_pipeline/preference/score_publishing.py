"""Scores from all stored votes as one table, a fit per family, partition, and people or judge; and their agreement with metrics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa

from dtef_pipeline.preference.pair_verdicts import parse_order_verdicts
from dtef_pipeline.preference.pairing import MetricSource
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
from dtef_pipeline.statistics.ranks import TAU_INTERVAL, order_agreement, rank_numbers

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


METRIC_QUERY_COLUMNS = ("partition", "metric", "player", "direction", "value", "low", "high", "n")
"""Columns of a `MetricSource` query. direction: higher or lower, whichever is better; low and high: 95 % interval or null."""
AGREEMENT_COLUMNS: Mapping[str, str] = {
    "family": "Family of evaluations",
    "partition": "First level of the items' partitions that were voted on; all: the whole family",
    "reviewer_kind": "Kind of reviewers: person or judge",
    "judge": "Judge who cast all of these votes; empty: people voted",
    "metric": "Automated metric, with what it was measured on",
    "direction": "Better side of the metric: higher or lower",
    "player": "Player that has both: a model variant, or persona@variant",
    "beta": "Preference in logits: higher is preferred",
    "low": "Lower end of the 95 % interval of beta",
    "high": "Upper end of the 95 % interval of beta",
    "preferred_place": "Place by preference among the players that have both, 1 is best",
    "value": "Value of the metric",
    "value_low": "Lower end of the 95 % interval of the metric",
    "value_high": "Upper end of the 95 % interval of the metric",
    "metric_place": "Place by the metric among the same players, 1 is best",
    "n": "Items or episodes that the metric is over",
    "tau": "Kendall's tau-b of the two orders: 1 the same, 0 nothing to do with each other, -1 reversed",
    "tau_low": "Lower end of its 95 % interval over players",
    "tau_high": "Upper end of its 95 % interval over players",
    "tau_interval": "Method of the interval: jackknife over players on the scale atanh(tau), Fisher's z; empty: there is none",
    "n_players": "Players that tau is over",
    "reason": "Reason why there is no tau, or no interval of it; empty: there are both",
}


def compare_with_metrics(scores: pd.DataFrame, metrics: pd.DataFrame) -> pd.DataFrame:
    """Return one row per metric and player of one fit that has both, with `AGREEMENT_COLUMNS`; metrics sorted by name.

    `scores`: rows of `preference_scores` of one family, partition, kind of reviewers and judge. `metrics`: METRIC_QUERY_COLUMNS; the first row
    of each metric and player counts. Betas of different components cannot be compared: only the component with the most players is, and the
    reason says so.
    """
    rows = scores[scores["beta"].notna()]
    parts = rows["component"].value_counts().sort_index()
    largest = rows[rows["component"] == parts.idxmax()] if len(parts) else rows
    left_out = len(rows) - len(largest)
    tables = list(_compare_each_metric(largest, metrics, left_out))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(AGREEMENT_COLUMNS))


def read_metrics(connection: duckdb.DuckDBPyConnection, sources: Iterable[MetricSource]) -> pd.DataFrame:
    """METRIC_QUERY_COLUMNS of all sources, whose tables the connection has."""
    columns = ", ".join(METRIC_QUERY_COLUMNS)
    tables = [connection.sql(f"SELECT {columns} FROM ({source.query}) ORDER BY ALL").df() for source in sources]
    return _stack_metrics(tables)


def add_judges(metrics: pd.DataFrame, scores: pd.DataFrame, partition: str, kind: str) -> pd.DataFrame:
    """Return the metrics that scores by votes of this kind of reviewers are compared with; scores by people also with scores by judges.

    `scores`: rows of `preference_scores` of the family.
    """
    values = metrics if partition == EVERY_PARTITION else metrics[metrics["partition"] == partition]
    judges = [convert_judge_scores(scores[scores["partition"] == partition])] if kind == "person" else []
    return _stack_metrics([values, *judges])


def _stack_metrics(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    parts = [table for table in tables if len(table)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(METRIC_QUERY_COLUMNS))


def convert_judge_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores by each judge's votes as a metric to compare with people's: METRIC_QUERY_COLUMNS from rows of `preference_scores`."""
    rows = scores[(scores["reviewer_kind"] == "judge") & scores["beta"].notna()]
    table = rows.rename(columns={"beta": "value", "n_votes": "n"}).assign(
        metric=[f"preference of {judge}" for judge in rows["judge"]], direction="higher"
    )
    return table[list(METRIC_QUERY_COLUMNS)]


def _compare_each_metric(scores: pd.DataFrame, metrics: pd.DataFrame, left_out: int) -> Iterator[pd.DataFrame]:
    for metric, rows in metrics.groupby("metric", sort=True):
        values = rows.drop_duplicates("player").rename(columns={"low": "value_low", "high": "value_high"})
        players = scores.merge(values.drop(columns=["partition", "metric"]), on="player")
        if not len(players):
            continue
        better = players["value"] * players["direction"].map({"lower": -1.0}).fillna(1.0)
        agreement = order_agreement(players["beta"].to_numpy(float), better.to_numpy(float))
        note = f"{left_out} in other components are left out" if left_out else ""
        comparison_rows = players.assign(
            metric=metric,
            preferred_place=_rank_values(players["beta"]),
            metric_place=_rank_values(better),
            tau=agreement.tau,
            tau_low=agreement.low,
            tau_high=agreement.high,
            tau_interval=None if agreement.low is None else TAU_INTERVAL,
            n_players=agreement.n,
            reason="; ".join(part for part in (agreement.reason, note) if part),
        )
        yield comparison_rows[list(AGREEMENT_COLUMNS)].sort_values(["preferred_place", "player"], ignore_index=True)


def _rank_values(values: pd.Series[float]) -> pd.Series[int]:
    """Rank values: 1 is the highest, ties share the better place, null for no value."""
    return pd.Series(rank_numbers(values.to_numpy(float, na_value=float("nan"))), index=values.index).astype("Int64")
