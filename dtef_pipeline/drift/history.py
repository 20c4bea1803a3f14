"""The snapshots of every model in `scores` and `predictions`: one series at a time, draws averaged by DuckDB."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from dtef_pipeline.asking.snapshot_order import among, convert_microseconds, snapshot_order, snapshot_time
from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.drift.settings import WatchOptions, list_names
from dtef_pipeline.drift.snapshots import Snapshot
from dtef_pipeline.drift.subject import Subject
from dtef_pipeline.tables import ANSWERED


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
