"""The snapshots of every model in `scores` and `predictions`: one series at a time, draws averaged by DuckDB; which of them are comparable,
and which verdicts count."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.asking.snapshot_order import among, convert_microseconds, snapshot_order, snapshot_time
from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.drift.rule import MIN_ANSWERED, MIN_HOURS, compute_hours
from dtef_pipeline.drift.settings import WatchOptions, list_names
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.tables import ANSWERED

Floats = npt.NDArray[np.float64]
Items = npt.NDArray[np.uint64]
SHARED = 0.5
"""Share of the items that a snapshot needs to be compared on them."""
NEARLY_ALL = 0.95
"""Share of a panel's pairs that another panel must have to replace it."""


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """One snapshot of one series; arrays are (items,), in the ascending order of `items`.

    `items`: codes of the items, answered or not. `score`: under the published policy, draws averaged, NaN if there is none. `parsed`: the
    mean over the parsed draws. `ok`, `answered`: number of draws that were parsed, and answered. `served`, `fingerprints`: reported by the
    provider.
    """

    label: str
    items: Items
    score: Floats
    parsed: Floats
    ok: Floats
    answered: Floats
    served: frozenset[str] = frozenset()
    fingerprints: frozenset[str] = frozenset()

    @property
    def is_answered(self) -> bool:
        return bool(len(self.items) and np.isfinite(self.score).mean() >= MIN_ANSWERED)


def parse_rate(ok: Floats, n_answered: Floats) -> float | None:
    """Return the share of answered draws that were parsed, or None if none was answered."""
    total = np.nansum(n_answered)
    return float(np.nansum(ok) / total) if total else None


@dataclass(slots=True, eq=False)
class Comparable:
    """Comparable snapshots in chronological order: each shares most items with the first `baseline` of them.

    `items` are the compared items: those in at least two of the baseline's snapshots, or in one while there are at most two. Compared items
    thus stay so, regardless of later snapshots of the baseline. A snapshot with too few answers is not part of the baseline.
    """

    baseline: int
    snapshots: list[Snapshot] = field(default_factory=list)
    items: Items = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    _founders: list[Snapshot] = field(default_factory=list)

    def count_shared(self, snapshot: Snapshot) -> int:
        """Return how many of the items a snapshot has."""
        return len(np.intersect1d(self.items, snapshot.items, assume_unique=True))

    def accepts(self, snapshot: Snapshot) -> bool:
        """Return whether enough items are shared: half; until the baseline is complete, half of these or the snapshot's, if more.

        Later snapshots may have more: new items have no baseline and are not compared.
        """
        is_forming = len(self._founders) < self.baseline
        return self.count_shared(snapshot) >= SHARED * (
            max(len(self.items), len(snapshot.items)) if is_forming else len(self.items)
        )

    def add(self, snapshot: Snapshot) -> None:
        self.snapshots.append(snapshot)
        if snapshot.is_answered and len(self._founders) < self.baseline:
            self._founders.append(snapshot)
            items, counts = np.unique(np.concatenate([founder.items for founder in self._founders]), return_counts=True)
            self.items = items[counts >= min(2, SHARED * len(self._founders))]
        elif not self._founders:
            self.items = self.snapshots[0].items

    def is_long(self, times: Mapping[str, datetime | None]) -> bool:
        """Return whether its answered snapshots span the rule's hours. `times`: when each was taken, by label."""
        hours = compute_hours([times[snapshot.label] for snapshot in self.snapshots if snapshot.is_answered])
        return hours is not None and hours >= MIN_HOURS

    @property
    def is_repeated(self) -> bool:
        """Whether two of its snapshots are answered, so that only time between them may be missing."""
        return sum(snapshot.is_answered for snapshot in self.snapshots) > 1

    def grid(self, values: Callable[[Snapshot], Floats]) -> pd.DataFrame:
        """Return (items, snapshots) values of one of the arrays; NaN if an item is missing."""
        return grid(self.items, self.snapshots, values)


def grid(items: Items, snapshots: Sequence[Snapshot], values: Callable[[Snapshot], Floats]) -> pd.DataFrame:
    """Return (items, snapshots) values of one of the snapshots' arrays; NaN if an item is missing. `items` must be ascending."""
    table = np.full((len(items), len(snapshots)), np.nan)
    for column, snapshot in enumerate(snapshots):
        place = np.searchsorted(items, snapshot.items).clip(max=max(len(items) - 1, 0))
        mask = items[place] == snapshot.items if len(items) else np.zeros(len(snapshot.items), dtype=bool)
        table[place[mask], column] = values(snapshot)[mask]
    return pd.DataFrame(table, columns=[snapshot.label for snapshot in snapshots])


def build_panels(
    snapshots: Sequence[Snapshot], baseline: int, times: Mapping[str, datetime | None], pairs: Callable[[Items], Items]
) -> list[Comparable]:
    """Return the panels of a series whose verdicts count, the latest last. `times`: when each snapshot was taken, by label. `pairs`: codes
    of (partition, item) pairs, regardless of wording.

    A series changes to another panel once that is comparable (two snapshots, 23 hours apart) and either two consecutive snapshots have it
    or nothing was comparable before. Snapshots with too few answers are ignored. An earlier panel counts until a later panel of the series
    covers its pairs, so that no verdict is hidden by fewer items. If a series returns to a panel, those in between with fewer pairs no
    longer count. If nothing is comparable, the latest repeated panel is kept: it lacks only the hours. Which panels count depends on items,
    times and whether they were answered, never on a score.
    """
    groups: list[Comparable] = []
    gone_over: list[Comparable] = []
    previous = None
    for snapshot in snapshots:
        # The group that shares most with the snapshot, the newest of equal ones.
        accepting = [candidate for candidate in reversed(groups) if candidate.accepts(snapshot)]
        group = max(accepting, key=lambda candidate: candidate.count_shared(snapshot), default=Comparable(baseline))
        groups = [*(member for member in groups if member is not group), group]
        group.add(snapshot)
        if not snapshot.is_answered:
            continue
        current = gone_over[-1] if gone_over else None
        if current is None or (
            group is not current and group.is_long(times) and (group is previous or not current.is_long(times))
        ):
            gone_over = _trim_groups(gone_over, group, pairs)
        previous = group
    parts = _select_uncovered(gone_over or groups[-1:], times, pairs)
    if any(part.is_repeated for part in parts):
        return parts
    return [part for part in groups if part.is_repeated][-1:] or parts


def _select_uncovered(
    gone_over: Sequence[Comparable], times: Mapping[str, datetime | None], pairs: Callable[[Items], Items]
) -> list[Comparable]:
    """Return the last, and before it the comparable ones that no later one covers."""
    return [
        old
        for i, old in enumerate(gone_over, start=1)
        if i == len(gone_over) or (old.is_long(times) and not any(_is_covering(later, old, pairs) for later in gone_over[i:]))
    ]


def _trim_groups(gone_over: Sequence[Comparable], group: Comparable, pairs: Callable[[Items], Items]) -> list[Comparable]:
    if group not in gone_over:
        return [*gone_over, group]
    position, n_pairs = gone_over.index(group), len(np.unique(pairs(group.items)))
    panels = [panel for panel in gone_over[position + 1 :] if len(np.unique(pairs(panel.items))) > n_pairs]
    return [*gone_over[:position], *panels, group]


def _is_covering(later: Comparable, earlier: Comparable, pairs: Callable[[Items], Items]) -> bool:
    """Return whether the later one has nearly all pairs of the earlier one."""
    earlier_pairs = np.unique(pairs(earlier.items))
    return bool(np.isin(earlier_pairs, pairs(later.items)).mean() >= NEARLY_ALL) if len(earlier_pairs) else True


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """One series. `keys`: its `Keys.series`. `times`: the counted snapshots in chronological order, with their times."""

    keys: dict[str, str]
    temperature: float | None
    times: dict[str, datetime | None]

    @property
    def is_watched(self) -> bool:
        """Whether it may be compared: at least two snapshots, at temperature 0."""
        return len(self.times) > 1 and self.temperature == 0


class Histories:
    """The series of a connection with a view `scores` and, for served models, `predictions`; use it in a `with` statement.

    Only needed rows of series with several snapshots are copied, into a temporary table dropped at the end of the statement. `order`: the
    labels of all scored snapshots of the connection, in chronological order.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        subject: Subject,
        options: WatchOptions,
        only: Sequence[str] = (),
        order: Sequence[str] | None = None,
    ) -> None:
        """`only`: these values of the space's first level; empty: all. `order`: of all snapshots, by default those of the connection."""
        self.subject = subject
        self._connection, self._keys, self._only = connection, subject.keys, list(only)
        self._by, self._item = ", ".join(subject.keys.series), ", ".join(subject.keys.tested_columns)
        self._chosen = f"(len($only) = 0 OR list_contains($only, {subject.keys.space[0]}))"
        self._wanted = f"{subject.watched_sql} AND {self._chosen}"
        self._table = f"drift_{uuid.uuid4().hex}"
        self.order = snapshot_order(connection) if order is None else list(order)
        self.all = self._read_series(options)
        self.labels = pd.DataFrame(columns=[*subject.keys.tested_columns, "name", "cluster"])
        """By item code, the columns `Keys.tested`, `name` (of the item in all partitions) and `cluster` (of dependent items)."""
        self._places = {history: place for place, history in enumerate(self.all) if len(history.times) > 1}

    def __enter__(self) -> Histories:
        if not self._places:
            return self
        try:
            self._copy()
            self.labels = self._read_items()
            self._served = self._read_providers()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._connection.execute(f"DROP TABLE IF EXISTS {self._table}; DROP TABLE IF EXISTS {self._table}_keys")

    def _read_series(self, options: WatchOptions) -> list[History]:
        rows = self._connection.execute(
            f"""SELECT {self._by}, snapshot::VARCHAR, min(temperature), max(temperature), count(temperature) = count(*),
                epoch_us(min(answered_at)) FROM scores WHERE {self._wanted} GROUP BY ALL ORDER BY ALL""",
            {"only": self._only},
        ).fetchall()
        n_keys = len(self._keys.series)
        return [
            self._build_history(dict(zip(self._keys.series, values, strict=True)), [row[n_keys:] for row in group], options)
            for values, group in groupby(rows, key=lambda row: row[:n_keys])
        ]

    def _build_history(self, keys: dict[str, str], snapshots: Sequence[tuple[Any, ...]], options: WatchOptions) -> History:
        times: dict[str, datetime | None] = {}
        temperatures = set[float | None]()
        for label, low, high, is_set, first in snapshots:
            time = snapshot_time(label, convert_microseconds(first))
            if options.is_any_counted(time, list_names(keys["model"], keys["model_variant"])):
                times[label] = time
                temperatures |= {low, high} if is_set else {None}
        temperature = temperatures.pop() if len(temperatures) == 1 else None
        return History(keys, temperature, {label: times[label] for label in among(self.order, times)})

    def _copy(self) -> None:
        keys = [
            {"series": self._places[history], "place": place, "snapshot": label, **history.keys}
            for history in self.all
            if history in self._places
            for place, label in enumerate(history.times)
        ]
        frame = pd.DataFrame(keys, columns=["series", "place", "snapshot", *self._keys.series])
        self._connection.register(f"{self._table}_given", frame)
        statuses = ", ".join(f"'{status}'" for status in ANSWERED)
        self._connection.execute(
            f"""CREATE TEMP TABLE {self._table}_keys AS SELECT series::USMALLINT AS series, place::USMALLINT AS place, snapshot, {self._by}
                FROM {self._table}_given"""
        )
        self._connection.unregister(f"{self._table}_given")
        self._connection.execute(
            f"""CREATE TEMP TABLE {self._table} AS
                SELECT series, place, hash({self._item}) AS item, score, status = 'ok' AS is_ok, status IN ({statuses}) AS is_answered
                FROM scores JOIN {self._table}_keys USING (snapshot, {self._by}) WHERE {self._wanted}""",
            {"only": self._only},
        )

    def _read_items(self) -> pd.DataFrame:
        items = self._connection.execute(
            f"""SELECT DISTINCT hash({self._item}) AS item, {self._item} FROM scores SEMI JOIN {self._table}_keys USING (snapshot, {self._by})
                WHERE {self._wanted}""",
            {"only": self._only},
        ).df()
        first, item = self._keys.shared_item
        name, links = items[first] + "/" + items[item], self.subject.query_clusters(self._connection)
        clusters = pd.Series([links.get(str(key), str(key)) for key in name], index=items.index, dtype=object)
        items = items.assign(truth_id=items["truth_id"].fillna(""), name=name, cluster=clusters)
        return items.set_index("item").sort_index()

    def _read_providers(self) -> dict[tuple[int, int], tuple[frozenset[str], frozenset[str]]]:
        """Return the served models and the fingerprints by series and place of the snapshot."""
        if not has_table(self._connection, "predictions"):
            return {}
        rows = self._connection.execute(
            f"""SELECT series, place, list(DISTINCT served_model) FILTER (served_model IS NOT NULL),
                    list(DISTINCT fingerprint) FILTER (fingerprint IS NOT NULL)
                FROM predictions JOIN {self._table}_keys USING (snapshot, {self._by})
                WHERE {self._chosen} GROUP BY ALL""",
            {"only": self._only},
        ).fetchall()
        return {(series, place): (frozenset(models or ()), frozenset(prints or ())) for series, place, models, prints in rows}

    def snapshots(self, history: History) -> list[Snapshot]:
        """Return the snapshots of a series with several, in chronological order."""
        series = self._places[history]
        # Sums over several threads have no fixed order: equal scores must give equal digits.
        self._connection.execute("SET threads = 1")
        arrays = self._connection.execute(
            f"""SELECT place, item, avg(score) AS score, avg(score) FILTER (is_ok) AS parsed,
                count(*) FILTER (is_ok) AS ok, count(*) FILTER (is_answered) AS answered
                FROM {self._table} WHERE series = ? GROUP BY ALL ORDER BY place, item""",
            [series],
        ).fetchnumpy()
        places = np.asarray(arrays["place"])
        columns = {
            name: np.ma.filled(np.ma.asarray(arrays[name], dtype=np.float64), np.nan)
            for name in ("score", "parsed", "ok", "answered")
        }
        snapshots = []
        for place, label in enumerate(history.times):
            part = slice(*np.searchsorted(places, [place, place + 1]))
            models, fingerprints = self._served.get((series, place), (frozenset(), frozenset()))
            values = {name: column[part] for name, column in columns.items()}
            snapshots.append(
                Snapshot(label, np.asarray(arrays["item"])[part], **values, served=models, fingerprints=fingerprints)
            )
        return snapshots
