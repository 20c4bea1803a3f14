"""Preferences of reviewers: strengths of players by votes on pairs of responses, next to automated metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import duckdb
import pandas as pd

from dtef_pipeline.preference.metric_agreement import add_judges, compare_with_metrics, read_metrics
from dtef_pipeline.preference.pair_verdicts import shorten_judge_names
from dtef_pipeline.preference.paired_source import MetricSource
from dtef_pipeline.preference.score_columns import EVERY_PARTITION
from dtef_pipeline.report.row_reader import StoredRows
from dtef_pipeline.site.content import Block, Chart, Column, Estimate, Fold, Page, Section, Table, convert_to_rows, is_unknown
from dtef_pipeline.site.number_text import show
from dtef_pipeline.text.number_words import format_count

PREFERENCE_PAGE = "preference.html"


class FamilyNames(NamedTuple):
    """Display names for a family whose responses were voted on."""

    title: str
    part: Callable[[str], str] = str
    """Of a partition."""
    metric: Callable[[str], str] = str
    """Of a metric that preference is compared with."""

    def metric_of_part(self, metric: str) -> str:
        """Name a metric by its partition: `Short letters: hybrid score` for `letters: hybrid score`."""
        part, colon, tail = metric.partition(": ")
        words = self.metric(metric)
        return f"{self.part(part)}: {tail}" if colon and words == metric else words


PREFERENCE_READ = ("preference_scores",)
"""Tables of the page, without those of the metrics that preference is compared with."""
_PREFERENCE_GUIDE = (
    "Reviewers saw two responses to the same item without names, and chose the better one. Strength is in logits, 0 on average; a difference of "
    "0 is an even chance, 0.69 is 2 to 1, 1.1 is 3 to 1. Intervals (95%) show how far strengths might move with other reviewers. A "
    "tier holds the players whose strength does not clearly differ from that of its first. Votes of people and of judge models are never mixed."
)
_STRENGTHS = (
    Column("player", "Player", "model"),
    Column("rank", "Place", "count", always=True),
    Column("tier", "Tier", "count"),
    Column("strength", "Strength", "signed", "In logits: higher is preferred"),
    Column("n_votes", "Votes", "count", always=True),
    Column("n_reviewers", "Reviewers", "count"),
    Column("share", "Share", "score", "Share of exp(strength) in the sum of its group, 0-1", more=True),
    Column("group", "Group", "count", "Players of two groups were never compared, directly or through others"),
    Column("reason", "Remark", "note"),
)
_METRIC_COLUMNS = (
    Column("metric", "Metric"),
    Column(
        "tau", "Kendall's tau", "signed", "1: the same order, 0: no relation, -1: reversed; with its 95% interval over players"
    ),
    Column("n_players", "Players", "count", always=True),
    Column("first", "First by votes"),
    Column("first_by_metric", "First by the metric"),
    Column("reason", "Remark", "note"),
)


def preference_page(
    connection: duckdb.DuckDBPyConnection, metrics: Mapping[str, Sequence[MetricSource]], names: Mapping[str, FamilyNames]
) -> Page | None:
    """Build the page over all families whose responses were voted on; return None without votes.

    By family: `metrics`, what votes are compared with; `names`, names of it and its parts.
    """
    if not has_votes(connection):
        return None
    scores = StoredRows(connection).frame("preference_scores")
    families = [name for name in metrics if name in set(scores["family"])]
    sections = [
        section
        for name in families
        for section in build_preference_sections(
            connection, name, metrics[name], names.get(name) or FamilyNames(name.capitalize())
        )
    ]
    votes = int(
        scores[scores["partition"] == EVERY_PARTITION].drop_duplicates(["family", "reviewer_kind", "judge"])["votes"].sum()
    )
    return Page(
        PREFERENCE_PAGE, "Preference", f"These orders rest on {format_count(votes, 'vote')} on pairs of responses.", sections
    )


def has_votes(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return whether the page has something to show."""
    return bool(len(StoredRows(connection).frame("preference_scores")))


def build_preference_sections(
    connection: duckdb.DuckDBPyConnection, family: str, metrics: Sequence[MetricSource], names: FamilyNames
) -> list[Section]:
    """Build a section for each fit over a whole family: people first, then each judge, with single partitions folded."""
    rows = StoredRows(connection)
    scores = rows.frame("preference_scores", {"family": family})
    if not len(scores):
        return []
    values = read_metrics(connection, [source for source in metrics if all(map(rows.has, source.tables))])
    players = shorten_player_names({*scores["player"], *values["player"]})
    values = values.assign(player=values["player"].map(players), metric=values["metric"].map(names.metric_of_part))
    is_judge, player = scores["reviewer_kind"] == "judge", scores["player"].map(players)
    scores = scores.assign(_is_judge=is_judge, judge=scores["judge"].fillna(""), player=player)
    short = shorten_judge_names(str(judge_id) for judge_id in scores["judge"] if judge_id)
    sections = []
    for i, ((_, judge), group) in enumerate(scores.groupby(["_is_judge", "judge"], sort=True)):
        overall = group[group["partition"] == EVERY_PARTITION]
        parts = sorted(set(group["partition"]) - {EVERY_PARTITION})
        blocks = list(_fit(overall, scores, values))
        if len(parts) > 1:
            blocks += [Fold(names.part(part), list(_fit(group[group["partition"] == part], scores, values))) for part in parts]
        subject = short[str(judge)] if judge else "people"
        title = f"{names.title}: what {subject} prefer" if not judge else f"{names.title}: what the judge {subject} prefers"
        sections.append(Section(f"preference-{family}-{i}", title, blocks, _summarize_fit(overall, subject), _PREFERENCE_GUIDE))
    return sections


def shorten_player_names(players: Collection[str]) -> dict[str, str]:
    """Strip the settings of models from player names, as in `gpt-4.1[temperature=0]`, if names stay distinct."""
    short = {player: (player.rpartition("[")[0] if player.endswith("]") else player) or player for player in players}
    times = Counter(short.values())
    return {player: name if times[name] == 1 else player for player, name in short.items()}


def _summarize_fit(fit: pd.DataFrame, subject: str) -> str:
    ranked = fit[fit["rank"].notna()].sort_values(["component", "rank", "player"])
    if not len(ranked):
        return "The votes do not decide an order yet."
    first = ranked.iloc[0]
    voters = format_count(int(first["reviewers"]), "reviewer")
    votes = format_count(int(first["votes"]), "vote")
    return f"{subject[:1].upper()}{subject[1:]} prefer {first['player']} ({show(float(first['beta']), 'signed')}): {votes} of {voters}."


def _fit(fit: pd.DataFrame, scores: pd.DataFrame, metrics: pd.DataFrame) -> Iterator[Block]:
    table = fit.sort_values(["component", "rank", "player"])
    rows = [
        {**row, "strength": Estimate(row["beta"], row["low"], row["high"]), "group": row["component"] + 1}
        for row in convert_to_rows(table)
    ]
    yield Table("Strength of players by votes", _STRENGTHS, rows)
    points = [
        {"label": row["player"], "value": s.value, "low": s.low, "high": s.high}
        for row in rows
        if not is_unknown(s := row["strength"])
    ]
    if len(points) > 1:
        yield Chart("intervals", points, "Strength in logits, with 95% intervals where there are any")
    frame = pd.DataFrame()
    if len(fit):  # the judges' scores are one more metric
        partition, kind = str(fit["partition"].iloc[0]), str(fit["reviewer_kind"].iloc[0])
        frame = compare_with_metrics(fit, add_judges(metrics, scores, partition, kind))
    lines = [_build_agreement_row(name, rows) for name, rows in frame.groupby("metric", sort=True)] if len(frame) else []
    yield Table("Compared with automated metrics", _METRIC_COLUMNS, lines)


def _build_agreement_row(metric: Any, rows: pd.DataFrame) -> dict[str, Any]:
    row = rows.iloc[0]
    return {
        "metric": str(metric),
        "tau": Estimate(row["tau"], row["tau_low"], row["tau_high"]),
        "n_players": row["n_players"],
        "first": list(rows.loc[rows["preferred_place"] == 1, "player"]),
        "first_by_metric": list(rows.loc[rows["metric_place"] == 1, "player"]),
        "reason": row["reason"],
    }
