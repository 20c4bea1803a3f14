"""Preferences of reviewers: strengths of players by votes on pairs of responses, next to automated metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import duckdb
import pandas as pd

from dtef_pipeline.preference.pair_verdicts import shorten_judge_names
from dtef_pipeline.preference.pairing import MetricSource
from dtef_pipeline.preference.score_columns import EVERY_PARTITION
from dtef_pipeline.preference.score_publishing import add_judges, compare_with_metrics, read_metrics
from dtef_pipeline.report.row_reader import StoredRows
from dtef_pipeline.site.content import Block, Chart, Column, Page, Section, Table, convert_to_rows
from dtef_pipeline.site.contents import SiteContents
from dtef_pipeline.site.number_text import show
from dtef_pipeline.text.number_words import format_count

PREFERENCE_PAGE = "preference.html"
PREFERENCE_READ = ("preference_scores",)
"""Tables of the page, without those of the metrics that preference is compared with."""
_PREFERENCE_GUIDE = (
    "Reviewers saw two responses to the same item without names, and chose the better one. Strength is in logits, 0 on average; a difference of "
    "0 is an even chance, 0.69 is 2 to 1, 1.1 is 3 to 1. Intervals (95%) show how far strengths might move with other reviewers. A "
    "tier holds the players whose strength does not clearly differ from that of its first. Votes of people and of judge models are never mixed."
)
_STRENGTH_COLUMNS = (
    Column("player", "Player", "model"),
    Column("rank", "Place", "count", always=True),
    Column("tier", "Tier", "count"),
    Column("beta", "Strength", "signed", "In logits: higher is preferred", ends=("low", "high")),
    Column("n_votes", "Votes", "count", always=True),
    Column("n_reviewers", "Reviewers", "count"),
    Column("group", "Group", "count", "Players of two groups were never compared, directly or through others"),
    Column("reason", "Remark", "note"),
)
_TAU = "1: the same order, 0: no relation, -1: reversed; with its 95% interval over players"
_METRIC_COLUMNS = (
    Column("metric", "Metric"),
    Column("tau", "Kendall's tau", "signed", _TAU, ends=("tau_low", "tau_high")),
    Column("n_players", "Players", "count", always=True),
    Column("first", "First by votes"),
    Column("first_by_metric", "First by the metric"),
    Column("reason", "Remark", "note"),
)


def preference_page(contents: SiteContents, metrics: Mapping[str, Sequence[MetricSource]]) -> Page | None:
    """Build the page over all families whose responses were voted on; return None without votes.

    `metrics`: what votes are compared with, by family.
    """
    scores = contents.rows.frame("preference_scores")
    if not len(scores):
        return None
    families, sections = {family.name: family for family in contents.families}, list[Section]()
    for name, sources in metrics.items():
        family = families.get(name)
        names = (family.site.title, family.name_metric) if family else (name.capitalize(),)
        sections += build_preference_sections(contents.rows.connection, name, sources, *names)
    fits = scores[scores["partition"] == EVERY_PARTITION].drop_duplicates(["family", "reviewer_kind", "judge"])
    answer = f"These orders rest on {format_count(int(fits['votes'].sum()), 'vote')} on pairs of responses."
    return Page(PREFERENCE_PAGE, "Preference", answer, sections)


def build_preference_sections(
    connection: duckdb.DuckDBPyConnection,
    family: str,
    metrics: Sequence[MetricSource],
    family_title: str,
    name_metric: Callable[[str], str] = str,
) -> list[Section]:
    """Build a section for each fit over a whole family: people first, then each judge."""
    rows = StoredRows(connection)
    scores = rows.frame("preference_scores", {"family": family})
    if not len(scores):
        return []
    values = read_metrics(connection, [source for source in metrics if all(map(rows.has, source.tables))])
    players = shorten_player_names({*scores["player"], *values["player"]})
    values = values.assign(player=values["player"].map(players), metric=values["metric"].map(name_metric))
    scores = scores.assign(
        judge=scores["judge"].fillna(""), player=scores["player"].map(players), group=scores["component"] + 1
    )
    judges = shorten_judge_names(filter(None, scores["judge"]))
    overall = scores[scores["partition"] == EVERY_PARTITION].sort_values(["component", "rank", "player"])
    sections = []
    for i, (judge, fit) in enumerate(overall.groupby("judge", sort=True)):
        name = judges[str(judge)] if judge else "people"
        title = f"what the judge {name} prefers" if judge else "what people prefer"
        answer = _summarize_fit(fit, name)
        metric_values = add_judges(values, scores, EVERY_PARTITION, str(fit["reviewer_kind"].iloc[0]))
        blocks = [*_build_strengths(fit), _build_agreement_table(compare_with_metrics(fit, metric_values))]
        sections.append(Section(f"preference-{family}-{i}", f"{family_title}: {title}", blocks, answer, _PREFERENCE_GUIDE))
    return sections


def shorten_player_names(players: Collection[str]) -> dict[str, str]:
    """Strip the settings of models from player names, as in `gpt-4.1[temperature=0]`, if names stay distinct."""
    short = {player: (player.rpartition("[")[0] if player.endswith("]") else player) or player for player in players}
    times = Counter(short.values())
    return {player: name if times[name] == 1 else player for player, name in short.items()}


def _summarize_fit(fit: pd.DataFrame, subject: str) -> str:
    ranked = fit[fit["rank"].notna()]
    if not len(ranked):
        return "The votes do not decide an order yet."
    first = ranked.iloc[0]
    voters = format_count(int(first["reviewers"]), "reviewer")
    votes = format_count(int(first["votes"]), "vote")
    return f"{subject[:1].upper()}{subject[1:]} prefer {first['player']} ({show(float(first['beta']), 'signed')}): {votes} of {voters}."


def _build_strengths(fit: pd.DataFrame) -> Iterator[Block]:
    yield Table("Strength of players by votes", _STRENGTH_COLUMNS, convert_to_rows(fit))
    points = fit.loc[fit["beta"].notna(), ["player", "beta", "low", "high"]]
    if len(points) > 1:
        rows = convert_to_rows(points.rename(columns={"player": "label", "beta": "value"}))
        yield Chart("intervals", rows, "Strength in logits, with 95% intervals where there are any")


def _build_agreement_table(agreement: pd.DataFrame) -> Table:
    """Build a table of metrics from rows of `compare_with_metrics`, which has one for each player."""
    first, first_by_metric = (
        agreement[agreement[place] == 1].groupby("metric")["player"].agg(list) for place in ("preferred_place", "metric_place")
    )
    rows = agreement.drop_duplicates("metric").sort_values("metric")
    rows = rows.assign(first=rows["metric"].map(first), first_by_metric=rows["metric"].map(first_by_metric))
    return Table("Compared with automated metrics", _METRIC_COLUMNS, convert_to_rows(rows))
