"""`dtef preference board`: stored scores, scores of a file of votes, and the comparison with metrics."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import click
import pandas as pd

from assets.preference.score_assets import vote_settings
from dtef_pipeline.boards.named_boards import TableLayout
from dtef_pipeline.cli.stage_runs import check_home_path, make_roll_ups, open_dagster_instance, report_run_end
from dtef_pipeline.cli.terminal import print_rows, say, whole_frame
from dtef_pipeline.cli.warehouse_access import NothingToShowError, open_warehouse, reads_tables
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.preference.pair_verdicts import matches_judge
from dtef_pipeline.preference.score_publishing import add_judges, build_score_rows, compare_with_metrics, read_metrics
from dtef_pipeline.preference.vote_files import read_votes
from dtef_pipeline.preference.vote_fit import PreferenceFit, compute_votes_version, filter_by_item, fit_votes
from dtef_pipeline.preference.votes import REVIEWER_KINDS, PlayersVote
from dtef_pipeline.text.name_matching import list_nearest
from dtef_pipeline.text.number_words import format_count, list_first_names
from dtef_pipeline.text.printable import escape_terminal
from resources.gateway.progress import keep_terminal
from resources.settings import Settings
from resources.votes.vote_store import VoteStore, read_player_votes
from resources.warehouse import Warehouse


def read_stored_votes(reviewer_kind: str, family: str | None = None) -> tuple[str, list[PlayersVote]]:
    """Return the store's name and its votes of this kind of reviewer that are not voided."""
    with VoteStore(Settings.read_environment().responses_url) as store:
        return store.name, read_player_votes(store, family=family, reviewer_kind=reviewer_kind)


_SCORE_LAYOUT = TableLayout(
    (
        *("family", "partition", "reviewer_kind", "judge", "component", "rank", "tier", "player", "beta", "interval", "share"),
        *("n_votes", "n_reviewers"),
    ),
    ("player", "beta", "interval"),
    ("share", "n_reviewers", "n_votes"),
    "beta",
    "reason",
    ("player",),
)
SCORE_INTERVAL = {"interval": "95 % interval of beta, over reviewers and, unless a note says otherwise, prompts"}
"""The column that preference boards show in addition to `preference_scores`."""


def print_scores(frame: pd.DataFrame, output: str, lines: Iterable[str]) -> None:
    """Print rows of `preference_scores`, with `lines` on their fits."""
    table = frame if (frame["component"] != 0).any() else frame.drop(columns="component")
    print_rows(_SCORE_LAYOUT, table, output, lines, "preference")


_FACTS = {
    "longer_share": "the longer text is preferred in {longer_share:.3f}{ends} of those that are not ties",
    "flip_rate": "flip rate {flip_rate:.3f}: verdicts that changed when the texts were swapped, and became ties",
    "first_share": "{first_share:.3f} of decisions for the text that was shown first",
    "self_judged": "self-judged votes, on a response of the judge's own maker: {self_judged:,.0f}",
    "self_judged_left_out": "self-judged votes left out: {self_judged_left_out:,.0f}",
    "leaks_left_out": "votes left out for a leak risk: {leaks_left_out:,.0f}",
    "items": "only items that fit {items}",
    "prior_l2": "prior l2={prior_l2:g}: scores are pulled towards 0",
    "weight": "votes are weighted by confidence",
    "unweighted_reason": "every vote counts 1: {unweighted_reason}",
    "length_effect": "a text twice as long has {length_effect:+.3f} logits; the scores are those of equally long texts",
}
"""Sentences on facts of a fit, by column of `preference_scores`."""
_SHOWN_UNLESS_ZERO = ("self_judged", "self_judged_left_out", "leaks_left_out")


def describe_fit(row: Mapping[Any, Any]) -> Iterator[str]:
    """Describe the fit of a row of `preference_scores`: its votes, and its method if unusual."""
    facts = {name: value for name, value in row.items() if not pd.isna(value) and (value or name not in _SHOWN_UNLESS_ZERO)}
    voters = format_count(int(facts["reviewers"]), "reviewer") if "reviewers" in facts else "voters unknown"
    yield f"{format_count(int(facts['votes']), 'vote')}, {voters}"
    ends = _format_ends(facts.get("longer_low"), facts.get("longer_high"))
    yield from (text.format(**facts, ends=ends) for name, text in _FACTS.items() if name in facts)


def _format_ends(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" ({low:.3f} to {high:.3f})"


def fit(file: Path, output: str) -> None:
    """Print scores of a file of votes, as selected and counted by the panel's section `preference`."""
    settings = vote_settings(Settings.read_environment())
    votes = read_votes(file)
    result = fit_votes(votes, settings)
    if output == "json":
        click.echo(json.dumps(result.document(), ensure_ascii=False, indent=1, allow_nan=False))
    elif not result.scores:
        say(f"{file} holds no votes")
    else:
        rows = build_score_rows(result, {})
        frame = pd.DataFrame(rows).astype({"rank": "Int64", "tier": "Int64"})
        for name in ("player", "reason"):
            frame[name] = frame[name].map(escape_terminal, na_action="ignore")
        print_scores(frame, output, [*describe_fit(rows[0]), *_describe_further(result)])


def _describe_further(result: PreferenceFit) -> Iterator[str]:
    if result.note:
        yield result.note
    if left_out := result.votes - result.n_counted:
        yield f"{format_count(left_out, 'tie')} left out"
    if result.nu is not None:
        chance, ends = result.nu / (2 + result.nu), _format_ends(result.nu_low, result.nu_high)
        yield f"nu {result.nu:.3f}{ends}: two equal players tie {chance:.0%} of the time"


_EACH_AGREEMENT = ["family", "partition", "reviewer_kind", "judge", "metric"]


_BESIDE_LAYOUT = TableLayout(
    (
        *("family", "partition", "reviewer_kind", "judge", "metric", "player", "preferred_place", "beta", "interval"),
        *("metric_place", "value", "value_low", "value_high", "n"),
    ),
    ("player", "preferred_place", "metric_place"),
    ("value_low", "value_high", "n", "partition", "reviewer_kind", "family", "judge"),
    "beta",
    name_columns=("player",),
)


@reads_tables
def compare(
    warehouse: Warehouse, family: str | None, partition: str, metric: str, reviewer_kind: str | None, output: str
) -> None:
    scores = filter_scores(load_score_frame(warehouse), family=family, partition=partition)
    tables = []
    for group, rows in scores.groupby(["family", "reviewer_kind", "judge"], dropna=False):
        if reviewer_kind in (None, group[1]):
            family_scores = scores[scores["family"] == group[0]]
            metrics = _collect_metrics(warehouse, str(group[0]), partition, family_scores, str(group[1]))
            fits = metrics["metric"].map(lambda name: fnmatchcase(str(name), metric)).astype(bool)
            tables.append(compare_with_metrics(rows, metrics[fits]))
    results = [table for table in tables if len(table)]
    if not results:
        raise WarehouseError(
            "nothing to compare: no player has both votes and a metric that fits; the boards of the families have the metrics"
        )
    frame = pd.concat(results, ignore_index=True)
    tau_rows = frame if output != "table" else frame[frame["tau"].notna()].reset_index(drop=True)
    lines = [*_describe_agreement(tau_rows), *_describe_missing_tau(frame[frame["tau"].isna()])]
    if len(tau_rows):
        print_rows(_BESIDE_LAYOUT, tau_rows, output, lines, "preference/metrics")
        return
    for line in lines:
        say(line)


def _collect_metrics(warehouse: Warehouse, family: str, partition: str, scores: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Return the metrics to compare preference with in a partition; for people also the judges' preference."""
    # Loads every family, which the board of a file of votes does not need.
    from dtef_pipeline.families import FAMILIES

    sources = [
        source for record in FAMILIES if record.name == family and record.pair_source for source in record.pair_source.metrics
    ]
    usable = [source for source in sources if len(warehouse.tables(source.tables)) == len(source.tables)]
    tables = sorted({table for source in usable for table in source.tables})
    metrics = warehouse.query(partial(read_metrics, sources=usable), only=tables)
    return add_judges(metrics, scores, partition, kind)


def _describe_missing_tau(rows: pd.DataFrame) -> Iterator[str]:
    """Yield the number of metrics without comparison, by reason."""
    for reason, group in rows.drop_duplicates(_EACH_AGREEMENT).groupby("reason", sort=True):
        metrics = format_count(group["metric"].nunique(), "metric")
        yield f"not shown: {metrics}, as there is {reason}; --csv names {'it' if metrics.startswith('1 ') else 'them'}"


def _describe_agreement(frame: pd.DataFrame) -> Iterator[str]:
    for group, rows in frame.groupby(_EACH_AGREEMENT, sort=False, dropna=False):
        row = rows.iloc[0]
        line = f"{format_group_label(group)}: {format_count(int(row['n_players']), 'player')}"
        tau = "" if pd.isna(row["tau"]) else f", Kendall's tau {row['tau']:.2f}"
        ends = "" if pd.isna(row["tau_low"]) else f" ({row['tau_low']:.2f} to {row['tau_high']:.2f})"
        yield f"{line}{tau}{ends}{'; ' if row['reason'] else ''}{row['reason']}"


_NOTES_SHOWN = 3
_JUDGES_THAT_VOTED = 5
_GROUPED_BY = ["family", "partition", "reviewer_kind", "judge"]


def refresh() -> int:
    """Refresh the board. Returns 1 if the roll-up failed."""
    settings = Settings.read_environment()
    votes, warehouse = _read_current_votes(), open_warehouse(new=True)
    _check_votes(warehouse, votes, tuple(vote_settings(settings).items))
    check_home_path(settings)
    with keep_terminal(), open_dagster_instance() as instance:
        from assets.engine.roll_up_names import PREFERENCE_ROLL_UP_NAMES, REPORT
        from assets.preference.score_assets import note_votes

        note_votes(instance, compute_votes_version(votes))
        outcome = make_roll_ups(instance, "preference", [*PREFERENCE_ROLL_UP_NAMES, REPORT], {})
    code = report_run_end(warehouse, outcome)
    if not outcome.failures and votes:
        for line in _describe_limited_intervals(_score_rows(warehouse)):
            say(line, err=True)
    return code


@reads_tables
def show(
    warehouse: Warehouse, family: str | None, partition: str, reviewer_kind: str | None, judges: tuple[str, ...], output: str
) -> None:
    frame = load_score_frame(warehouse)
    frame = filter_scores(frame, judges, family=family, partition=partition, reviewer_kind=reviewer_kind)
    table = frame.reset_index(drop=True)
    print_scores(table, output, _describe_fits(table))


def load_score_frame(warehouse: Warehouse) -> pd.DataFrame:
    """Return `preference_scores`, noting changed votes. Raises WarehouseError without a table, NothingToShowError without rows."""
    if not warehouse.tables(["preference_scores"]):
        raise WarehouseError(
            f"no preference_scores in {warehouse.root} yet: `dtef preference board --refresh` makes them of votes"
        )
    frame = _score_rows(warehouse)
    if not len(frame):
        raise NothingToShowError("nothing to show: there were no votes when `dtef preference board --refresh` ran")
    if frame["votes_version"].iloc[0] != compute_votes_version(_read_current_votes()):
        say(
            "note: the votes have changed since this table was made; update it with `dtef preference board --refresh`", err=True
        )
    return frame


def _score_rows(warehouse: Warehouse) -> pd.DataFrame:
    return whole_frame(warehouse.rows("preference_scores"))


def filter_scores(frame: pd.DataFrame, judges: Sequence[str] = (), **filters: str | None) -> pd.DataFrame:
    """Return the rows with these values (None: any), and of judges that match a pattern or name.

    Raises WarehouseError, with the values that exist, if no row is left.
    """
    for name, value in filters.items():
        values = sorted(frame[name].unique())
        if value is not None and value not in values:
            noun = name.replace("_", " ")
            raise WarehouseError(f"nothing to show: no votes of {noun} {value}; there are: {list_nearest(value, values)}")
        frame = frame if value is None else frame[frame[name] == value]
    if not judges:
        return frame
    voters = sorted(frame["judge"].dropna().unique())
    frame = frame[[isinstance(judge, str) and matches_judge(judge, judges) for judge in frame["judge"]]]
    if not len(frame):
        names = list_first_names(voters, _JUDGES_THAT_VOTED) if voters else "none"
        raise WarehouseError(f"nothing to show: no votes of {', '.join(judges)}; judges that voted: {names}")
    return frame


def format_group_label(group: Iterable[Any]) -> str:
    """Return the non-null parts of a group. People's votes have no judge."""
    return ", ".join(str(part) for part in group if not pd.isna(part))


def _describe_fits(frame: pd.DataFrame) -> Iterator[str]:
    for group, rows in frame.groupby(_GROUPED_BY, sort=False, dropna=False):
        yield f"{format_group_label(group)}: {'; '.join(describe_fit(rows.iloc[0].to_dict()))}"
    yield from _describe_limited_intervals(frame)


def _describe_limited_intervals(frame: pd.DataFrame) -> Iterator[str]:
    notes = frame.dropna(subset="note").drop_duplicates(_GROUPED_BY)
    for row in notes.head(_NOTES_SHOWN).to_dict("records"):
        yield f"note: {format_group_label(row[name] for name in _GROUPED_BY)}: {row['note']}"
    if (remaining := len(notes) - _NOTES_SHOWN) > 0:
        yield f"note: {format_count(remaining, 'more fit')} have this note; see the column note"


def _read_current_votes() -> list[PlayersVote]:
    return [vote for kind in REVIEWER_KINDS for vote in read_stored_votes(kind)[1]]


def _check_votes(warehouse: Warehouse, votes: list[PlayersVote], items: tuple[str, ...]) -> None:
    """Raise WarehouseError if there are no votes and no table to empty, and ConfigError if no vote matches `items`."""
    if not votes and not warehouse.tables(["preference_scores"]):
        raise WarehouseError(
            "no votes yet: `dtef preference vote` asks a person for some, `dtef preference vote --judge MODEL` a model"
        )
    if votes and not filter_by_item(votes, items):
        raise ConfigError(
            f"preference.items, in the panel file: no votes on {', '.join(items)}; items: "
            f"{list_first_names(sorted({vote.item_id for vote in votes}), 3)}"
        )
