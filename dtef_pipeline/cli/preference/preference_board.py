"""`dtef preference board`, and `dtef preference board --refresh`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any

import pandas as pd

from assets.preference.preference_panel import vote_settings
from dtef_pipeline.boards.family_views import TableView
from dtef_pipeline.cli.preference.preference_fit import describe_fit, print_scores, read_stored_votes, resolve_judges
from dtef_pipeline.cli.stage_runs import check_home_path, make_roll_ups, open_dagster_instance, report_run_end
from dtef_pipeline.cli.terminal import print_rows, say, whole_frame
from dtef_pipeline.cli.warehouse_access import NothingToShowError, open_warehouse, reads_tables
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.families import FAMILIES
from dtef_pipeline.preference.judge_ids import matches_judge
from dtef_pipeline.preference.metric_agreement import BESIDE_METRIC, compare_with_metrics, convert_judge_scores
from dtef_pipeline.preference.paired_source import MetricSource
from dtef_pipeline.preference.score_columns import EVERY_PARTITION
from dtef_pipeline.preference.vote_selection import compute_votes_version, filter_by_item
from dtef_pipeline.preference.votes import REVIEWER_KINDS, PlayersVote
from dtef_pipeline.text.name_matching import list_nearest
from dtef_pipeline.text.quantity_words import format_count, list_first_names
from resources.gateway.progress import keep_terminal
from resources.settings import Settings
from resources.warehouse import Warehouse

_EACH_AGREEMENT = ["family", "partition", "reviewer_kind", "judge", "metric"]


_BESIDE_VIEW = TableView(
    (
        *("family", "partition", "reviewer_kind", "judge", "metric", "player", "preferred_place", "beta", "interval"),
        *("metric_place", "value", "value_low", "value_high", "n"),
    ),
    ("player", "preferred_place", "metric_place"),
    ("value_low", "value_high", "n", "partition", "reviewer_kind", "family", "judge"),
    "beta",
    who=("player",),
)


@reads_tables
def compare(
    warehouse: Warehouse,
    family: str | None,
    partition: str,
    metric: str,
    reviewer_kind: str | None,
    output: str,
) -> None:
    scores = load_score_frame(warehouse)
    scores = scores[(scores["family"] == family) | (family is None)]
    if not len(scores):
        raise WarehouseError(f"nothing to compare: no votes on responses of {family}")
    scores = scores[scores["partition"] == choose_partition(scores, partition)]
    tables = [
        compare_with_metrics(
            rows, _filter_metrics(_collect_metrics(warehouse, str(group[0]), partition, rows_of_family, str(group[1])), metric)
        )
        for group, rows in scores.groupby(["family", "reviewer_kind", "judge"], dropna=False)
        for rows_of_family in [scores[scores["family"] == group[0]]]
        if reviewer_kind in (None, group[1])
    ]
    results = [table for table in tables if len(table)]
    if not results:
        raise WarehouseError(
            "nothing to compare: no player has both votes and a metric that fits; the boards of the families have the metrics"
        )
    frame = pd.concat(results, ignore_index=True)
    with_tau = frame if output != "table" else frame[frame["tau"].notna()].reset_index(drop=True)
    lines = [*_describe_agreement(with_tau), *_describe_missing_tau(frame[frame["tau"].isna()])]
    if len(with_tau):
        print_rows(_BESIDE_VIEW, with_tau, output, lines, "preference/metrics")
        return
    for line in lines:
        say(line)


def _collect_metrics(warehouse: Warehouse, family: str, partition: str, scores: pd.DataFrame, kind: str) -> pd.DataFrame:
    """All that preference can be compared with in a partition; of people's also that of judges."""
    sources = [source for record in FAMILIES if record.name == family and record.paired for source in record.paired.metrics]
    tables = [
        _read_metrics(warehouse, source) for source in sources if len(warehouse.tables(source.tables)) == len(source.tables)
    ]
    if kind == "person":
        tables.append(convert_judge_scores(scores))
    parts = [table for table in tables if len(table)]
    metrics = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(BESIDE_METRIC))
    return metrics if partition == EVERY_PARTITION else metrics[metrics["partition"] == partition]


def _read_metrics(warehouse: Warehouse, source: MetricSource) -> pd.DataFrame:
    columns = ", ".join(BESIDE_METRIC)
    query = f"SELECT {columns} FROM ({source.query})"
    frame: pd.DataFrame = warehouse.query(lambda connection: connection.sql(query).df(), only=source.tables)
    return frame


def _filter_metrics(metrics: pd.DataFrame, pattern: str) -> pd.DataFrame:
    return metrics[metrics["metric"].map(lambda name: fnmatchcase(str(name), pattern)).astype(bool)]


def _describe_missing_tau(rows: pd.DataFrame) -> Iterator[str]:
    """How many metrics cannot be compared, for which reason."""
    for reason, group in rows.drop_duplicates(_EACH_AGREEMENT).groupby("reason", sort=True):
        metrics = format_count(group["metric"].nunique(), "metric")
        yield f"not shown: {metrics}, as there is {reason}; --csv names {'it' if metrics.startswith('1 ') else 'them'}"


def _describe_agreement(frame: pd.DataFrame) -> Iterator[str]:
    """The agreement of each two orders."""
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
    """The exit code: 1 where the roll-up failed."""
    settings = Settings.read_environment()
    votes, warehouse = _read_current_votes(), open_warehouse(new=True)
    _check_votes(warehouse, votes, tuple(vote_settings(settings).items))
    check_home_path(settings)
    with keep_terminal(), open_dagster_instance() as instance:
        from assets.engine.roll_up_names import PREFERENCE_ROLL_UP_NAMES, REPORT
        from assets.preference.vote_assets import note_votes

        note_votes(instance, compute_votes_version(votes))
        outcome = make_roll_ups(instance, [*PREFERENCE_ROLL_UP_NAMES, REPORT], {})
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
    frame = _filter_family(frame, family)
    frame = frame[frame["partition"] == choose_partition(frame, partition)]
    frame = filter_reviewers(frame, reviewer_kind, judges)
    table = frame.reset_index(drop=True)
    print_scores(table, output, _describe_fits(table))


def load_score_frame(warehouse: Warehouse) -> pd.DataFrame:
    """The rows of `preference_scores`; says so where there are votes that they are made without. Raises WarehouseError where there are none."""
    if not warehouse.tables(["preference_scores"]):
        raise WarehouseError(
            f"no preference_scores in {warehouse.root} yet: `dtef preference board --refresh` makes them of votes"
        )
    frame = _score_rows(warehouse)
    if not len(frame):
        raise NothingToShowError("nothing to show: there were no votes when `dtef preference board --refresh` ran")
    if frame["votes_version"].iloc[0] != compute_votes_version(_read_current_votes()):
        say(
            "note: the votes have changed since this table was made; update it with `dtef preference board --refresh`",
            err=True,
        )
    return frame


def _score_rows(warehouse: Warehouse) -> pd.DataFrame:
    return whole_frame(warehouse.rows("preference_scores"))


def choose_partition(frame: pd.DataFrame, partition: str) -> str:
    """The partition as it was given. Raises ConfigError for one that no votes are on."""
    partitions = sorted(frame["partition"].unique())
    if partition not in partitions:
        raise ConfigError(f"--partition {partition}: no votes; allowed: {list_nearest(partition, partitions)}")
    return partition


def filter_reviewers(frame: pd.DataFrame, reviewer_kind: str | None, judges: tuple[str, ...]) -> pd.DataFrame:
    """The rows of this kind of reviewers, and of judges that fit a pattern or have the name. Raises WarehouseError where there are none."""
    voters = sorted({judge for judge in frame["judge"] if isinstance(judge, str)})
    if judges:
        judges = resolve_judges(judges, voters)
        frame = frame[[isinstance(judge, str) and matches_judge(judge, judges) for judge in frame["judge"]]]
    if not len(frame) and judges:
        names = list_first_names(voters, _JUDGES_THAT_VOTED) if voters else "none"
        raise WarehouseError(f"nothing to show: no votes of {', '.join(judges)}; judges that voted: {names}")
    frame = frame[(frame["reviewer_kind"] == reviewer_kind) | (reviewer_kind is None)]
    if not len(frame):
        raise WarehouseError("nothing to show: no votes of such reviewers; `dtef preference votes` lists those there are")
    return frame


def format_group_label(group: Iterable[Any]) -> str:
    """The parts of a group that are there; people's votes have no judge."""
    return ", ".join(str(part) for part in group if not pd.isna(part))


def _filter_family(frame: pd.DataFrame, family: str | None) -> pd.DataFrame:
    if family is not None and family not in set(frame["family"]):
        raise WarehouseError(
            f"nothing to show: no votes on responses of {family}; there are some of {', '.join(sorted(set(frame['family'])))}"
        )
    return frame if family is None else frame[frame["family"] == family]


def _describe_fits(frame: pd.DataFrame) -> Iterator[str]:
    """What holds of each fit as a whole."""
    for group, rows in frame.groupby(_GROUPED_BY, sort=False, dropna=False):
        yield f"{format_group_label(group)}: {'; '.join(describe_fit(rows.iloc[0].to_dict()))}"
    yield from _describe_limited_intervals(frame)


def _describe_limited_intervals(frame: pd.DataFrame) -> Iterator[str]:
    """Which fits have intervals with a limit."""
    notes = frame.dropna(subset="note").drop_duplicates(_GROUPED_BY)
    for row in notes.head(_NOTES_SHOWN).to_dict("records"):
        yield f"note: {format_group_label(row[name] for name in _GROUPED_BY)}: {row['note']}"
    if (more := len(notes) - _NOTES_SHOWN) > 0:
        yield f"note: {format_count(more, 'more fit')} have this note; see the column note"


def _read_current_votes() -> list[PlayersVote]:
    return [vote for kind in REVIEWER_KINDS for vote in read_stored_votes(kind)[1]]


def _check_votes(warehouse: Warehouse, votes: list[PlayersVote], items: tuple[str, ...]) -> None:
    """Raises WarehouseError where there is nothing to make a table of, nor one to empty; ConfigError where no vote fits `items`."""
    if not votes and not warehouse.tables(["preference_scores"]):
        raise WarehouseError(
            "no votes yet: `dtef preference vote` asks a person for some, `dtef preference vote --judge MODEL` a model"
        )
    if votes and not filter_by_item(votes, items):
        raise ConfigError(
            f"preference.items, in the panel file: no votes on {', '.join(items)}; items: "
            f"{list_first_names(sorted({vote.item_id for vote in votes}), 3)}"
        )
