"""The snapshots of every model as they stand in `scores` and `predictions`: a series at a time, draws averaged by DuckDB."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from dtef_pipeline.asking.models import COMPUTED_SQL
from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.drift.rule import snapshot_time
from dtef_pipeline.drift.snapshots import Floats, Night
from dtef_pipeline.drift.verdict import place_in_time
from dtef_pipeline.tables import ANSWERED

MODEL_SERIES = ("model", "model_variant", "context_level", "condition")
ITEM = ("round", "segment", "question_id", "prompt_id", "truth_id", "metric")
"""What tells two items apart: an item is what was asked, of whom, and what the answer is scored against and by."""
_KEYS, _ITEM = ", ".join(MODEL_SERIES), ", ".join(ITEM)
# Baselines ask nobody, and a question that defines its segment is no prediction.
_WANTED = f"NOT circular AND NOT {COMPUTED_SQL} AND (len($rounds) = 0 OR list_contains($rounds, round))"


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """One series. `keys`: its MODEL_SERIES. `times`: the snapshots that count in their order in time, with when each was taken."""

    keys: dict[str, str]
    temperature: float | None
    times: dict[str, datetime | None]

    @property
    def is_watched(self) -> bool:
        """Whether it may be compared: two snapshots or more at temperature 0."""
        return len(self.times) > 1 and self.temperature == 0


class Histories:
    """The series of a connection with a view `scores` and, for what served them, `predictions`; use it in a `with` statement.

    Only what is needed of series with several snapshots is copied, into a temporary table that the end of the statement drops.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, options: WatchOptions, rounds: Sequence[str] = ()) -> None:
        self._connection, self._rounds = connection, list(rounds)
        self._table = f"drift_{uuid.uuid4().hex}"
        self.all = self._series(options)
        self._places = {one: place for place, one in enumerate(self.all) if len(one.times) > 1}

    def __enter__(self) -> Histories:
        try:
            self._copy()
            self._labels = self._items()
            self._served = self._providers()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._connection.execute(f"DROP TABLE IF EXISTS {self._table}; DROP TABLE IF EXISTS {self._table}_keys")

    @property
    def labels(self) -> pd.DataFrame:
        """By item code, the columns ITEM."""
        return self._labels

    def _series(self, options: WatchOptions) -> list[History]:
        seen = self._connection.execute(
            f"""SELECT {_KEYS}, snapshot, min(temperature) AS least, max(temperature) AS most, count(temperature) = count(*) AS is_set,
                epoch_us(min(answered_at)) AS first FROM scores WHERE {_WANTED} GROUP BY ALL ORDER BY ALL""",
            {"rounds": self._rounds},
        ).df()
        models = list(zip(seen["model"], seen["model_variant"], strict=True))
        if not self._rounds:
            options.require_known(models)
        taken = [options.takes(label, *model) for label, model in zip(seen["snapshot"], models, strict=True)]
        counts = pd.Series(taken, index=seen.index, dtype=bool)
        return [_history(keys, own[counts[own.index]]) for keys, own in seen.groupby(list(MODEL_SERIES), sort=True)]

    def _copy(self) -> None:
        keys = [
            {"series": self._places[one], "place": place, "snapshot": label, **one.keys}
            for one in self.all
            if one in self._places
            for place, label in enumerate(one.times)
        ]
        frame = pd.DataFrame(keys, columns=["series", "place", "snapshot", *MODEL_SERIES])
        self._connection.register(f"{self._table}_given", frame)
        answered = ", ".join(f"'{status}'" for status in ANSWERED)
        self._connection.execute(
            f"""CREATE TEMP TABLE {self._table}_keys AS SELECT series::USMALLINT AS series, place::USMALLINT AS place, snapshot, {_KEYS}
                FROM {self._table}_given"""
        )
        self._connection.unregister(f"{self._table}_given")
        self._connection.execute(
            f"""CREATE TEMP TABLE {self._table} AS
                SELECT series, place, hash({_ITEM}) AS item, score, status = 'ok' AS is_ok, status IN ({answered}) AS is_answered
                FROM scores JOIN {self._table}_keys USING (snapshot, {_KEYS}) WHERE {_WANTED}""",
            {"rounds": self._rounds},
        )

    def _items(self) -> pd.DataFrame:
        found = self._connection.execute(
            f"""SELECT DISTINCT hash({_ITEM}) AS item, {_ITEM} FROM scores SEMI JOIN {self._table}_keys USING (snapshot, {_KEYS})
                WHERE {_WANTED}""",
            {"rounds": self._rounds},
        ).df()
        return found.assign(truth_id=found["truth_id"].fillna("")).set_index("item").sort_index()

    def _providers(self) -> dict[tuple[int, int], tuple[frozenset[str], frozenset[str]]]:
        """By series and place of the snapshot: the served models and the fingerprints."""
        if not has_table(self._connection, "predictions"):
            return {}
        rows = self._connection.execute(
            f"""SELECT series, place, list(DISTINCT served_model) FILTER (served_model IS NOT NULL),
                    list(DISTINCT fingerprint) FILTER (fingerprint IS NOT NULL)
                FROM predictions JOIN {self._table}_keys USING (snapshot, {_KEYS})
                WHERE len($rounds) = 0 OR list_contains($rounds, round) GROUP BY ALL""",
            {"rounds": self._rounds},
        ).fetchall()
        return {(series, place): (frozenset(models or ()), frozenset(prints or ())) for series, place, models, prints in rows}

    def nights(self, one: History) -> list[Night]:
        """The snapshots of a series that has several, in their order in time."""
        series = self._places[one]
        # Sums of several threads are added in any order: equal scores are to give equal digits.
        self._connection.execute("SET threads = 1")
        found = self._connection.execute(
            f"""SELECT place, item, avg(score) AS score, avg(score) FILTER (is_ok) AS parsed,
                count(*) FILTER (is_ok) AS ok, count(*) FILTER (is_answered) AS answered
                FROM {self._table} WHERE series = ? GROUP BY ALL ORDER BY place, item""",
            [series],
        ).fetchnumpy()
        places = np.asarray(found["place"])
        columns = {name: _floats(found[name]) for name in ("score", "parsed", "ok", "answered")}
        nights = []
        for place, label in enumerate(one.times):
            own = slice(*np.searchsorted(places, [place, place + 1]))
            served, fingerprints = self._served.get((series, place), (frozenset(), frozenset()))
            values = {name: column[own] for name, column in columns.items()}
            nights.append(Night(label, np.asarray(found["item"])[own], **values, served=served, fingerprints=fingerprints))
        return nights

    def __iter__(self) -> Iterator[History]:
        return iter(self.all)


def _floats(column: Any) -> Floats:
    return np.ma.filled(np.ma.asarray(column, dtype=np.float64), np.nan)


def _history(keys: Sequence[Any], own: pd.DataFrame) -> History:
    firsts = [None if pd.isna(us) else datetime.fromtimestamp(us / 1e6, UTC) for us in own["first"]]
    labels = [str(label) for label in own["snapshot"]]
    times = {label: snapshot_time(label, first) for label, first in zip(labels, firsts, strict=True)}
    known = {float(value) for name in ("least", "most") for value in own[name]} if own["is_set"].all() else set()
    order = sorted(times, key=lambda label: place_in_time(label, times[label]))
    return History(
        dict(zip(MODEL_SERIES, keys, strict=True)),
        known.pop() if len(known) == 1 else None,
        {label: times[label] for label in order},
    )
