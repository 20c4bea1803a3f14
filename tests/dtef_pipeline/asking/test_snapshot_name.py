"""Labels of new snapshots are names that every file system takes, and what looks like a date is one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from dtef_pipeline.asking.snapshot_order import (
    MAX_SNAPSHOT_NAME,
    among,
    read_snapshot_times,
    require_one_spelling,
    require_snapshot_name,
    snapshot_order,
    snapshot_time,
    sort_snapshots,
    take_times,
)
from dtef_pipeline.boards.cells import load_cells, load_scores_by_metric
from dtef_pipeline.drift.models import compute_model_drift, drift_checks
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.drift_subject import SUBJECT
from tests.made.scores import scores_table

PLAIN = [
    "base", "n10", "Night_2.b", "_x", "2026-01-31", "2026-01-31T0200", "2026-01-31-again", "20260131", "v1.2", "1.2.3", "2026-night-2",
    "may", "123456", "2026", "x" * MAX_SNAPSHOT_NAME,
]  # fmt: skip
TOO_LONG = "x" * (MAX_SNAPSHOT_NAME + 1)
UNSAFE = ["", "a b", "../../x", "a..b", ".x", "-x", "x.", "a/b", "a:b", "é", "x\n", "2026-01-31T02:00", TOO_LONG]  # fmt: skip
LIKE_DATES = [
    "2026-13-45", "2026-1-31", "20261345", "2026_01_31", "31-01-2026", "2026-01-31T99", "2026-02-30-b", "31.1.26", "26-01-31", "2026-02",
    "2026W05",
]  # fmt: skip


@pytest.mark.parametrize("label", PLAIN)
def test_plain_names_and_dates_are_labels(label: str) -> None:
    assert require_snapshot_name(label) == label


@pytest.mark.parametrize("label", UNSAFE)
def test_other_characters_are_refused_with_what_is_allowed(label: str) -> None:
    with pytest.raises(ConfigError, match=r"allowed: up to 64 letters a to z, digits, '\.', '_' and '-'"):
        require_snapshot_name(label)


@pytest.mark.parametrize("label", LIKE_DATES)
def test_what_looks_like_a_date_and_is_none_is_refused(label: str) -> None:
    with pytest.raises(ConfigError, match=r"looks like a date but is not one; allowed: .* 2026-01-31"):
        require_snapshot_name(label)
    assert require_snapshot_name(label, {label, "base"}) == label, "a stored one was paid for"


def test_a_label_that_differs_in_capitals_alone_is_refused() -> None:
    require_one_spelling("base", ["base", "other"])
    with pytest.raises(ConfigError, match=r"'Base': it differs from the stored 'base' only in capitals"):
        require_one_spelling("Base", ["other", "base"])


def test_the_time_of_a_snapshot_is_the_date_that_its_label_begins_with_or_else_its_first_response() -> None:
    answered = datetime(2026, 5, 5, tzinfo=UTC)
    day = datetime(2026, 1, 2)
    for label in ("2026-01-02", "20260102", "2026-01-02-again", "2026-01-02.b"):
        assert snapshot_time(label, answered) == day
    for label in ("2026-01-02T0230", "2026-01-02T02:30", "20260102T0230-b"):
        assert snapshot_time(label, None) == datetime(2026, 1, 2, 2, 30)
    for label in ("base", "2026-13-45", "2026-1-2", "night-2026-01-02"):
        assert snapshot_time(label, answered) == datetime(2026, 5, 5)
    assert snapshot_time("base", None) is None


def test_no_stored_label_makes_one_safe_that_is_the_name_of_no_folder() -> None:
    with pytest.raises(ConfigError, match=r"without '\.\.'"):
        require_snapshot_name("../x", {"../x"})


NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
LABELS = ("base", "n9", "n10", "2026-01-30", "2026-01-31", "2026-01-31-again", "20260201", "it's")


def ordered(*snapshots: tuple[str, datetime | None]) -> list[str]:
    return sort_snapshots(dict(snapshots))


def test_the_response_that_came_later_is_the_later_one_whatever_the_labels_alphabet_says() -> None:
    assert ordered(("n10", NOON + timedelta(1)), ("n9", NOON)) == ["n9", "n10"]
    assert ordered(("n9", NOON + timedelta(1)), ("n10", NOON)) == ["n10", "n9"]


def test_dates_in_labels_decide_and_on_their_day_the_first_response() -> None:
    november = datetime(2026, 11, 21, tzinfo=UTC)
    later = november + timedelta(1)
    assert ordered(("base", november), ("2026-01-31", later)) == ["2026-01-31", "base"]
    assert ordered(("base", november), ("2026-01-31-again", later)) == ["2026-01-31-again", "base"]
    assert ordered(("base", november), ("2026-12-24", later)) == ["base", "2026-12-24"]
    hour = timedelta(hours=1)
    assert ordered(("2026-01-31", NOON + hour), ("base", NOON)) == ["base", "2026-01-31"]
    assert ordered(("2026-01-31", NOON - hour), ("base", NOON)) == ["2026-01-31", "base"]
    assert ordered(("2026-01-31T02", NOON + hour), ("base", NOON)) == ["2026-01-31T02", "base"]


def test_without_a_time_a_snapshot_hides_no_other_and_numbers_count_as_numbers() -> None:
    unknown = [(label, None) for label in ("n10", "n9", "base")]
    assert ordered(*unknown, ("z", NOON)) == ["base", "n9", "n10", "z"]
    assert ordered(*((label, NOON) for label in ("n10", "base", "n9"))) == ["base", "n9", "n10"]
    assert among(["b", "a"], ["a", "b", "new"]) == ["new", "b", "a"]


def snapshot_rows(asked: dict[tuple[str, str, str, str], int | None]) -> list[dict[str, Any]]:
    """Rows of `scores`: (round, segment, model, snapshot) by the hour at which it was answered."""
    return [
        {
            "round": round_id,
            "segment": segment,
            "model": model,
            "model_variant": model,
            "snapshot": label,
            "answered_at": None if hour is None else NOON - timedelta(days=3) + timedelta(hours=hour),
            "truth_id": "t",
            **dict.fromkeys(("score", "js", "tv"), LABELS.index(label) / 10),
        }
        for (round_id, segment, model, label), hour in asked.items()
    ]


@settings(max_examples=6)
@given(
    st.dictionaries(
        st.tuples(*map(st.sampled_from, (("S1", "S2"), ("x:1", "x:2"), ("m", "n", "baseline/uniform"), LABELS))),
        st.none() | st.integers(0, 200),
        min_size=2,
        max_size=25,
    )
)
def test_boards_and_drift_agree_whatever_the_labels_and_times(asked: dict[tuple[str, str, str, str], int | None]) -> None:
    table = scores_table(snapshot_rows(asked))
    with duckdb.connect() as connection:
        connection.register("scores", table)
        order = snapshot_order(connection)
        options = SurveyBoardOptions(intervals=False)
        latest = load_cells(connection, options)
        by_metric = load_scores_by_metric(connection, options)
        drift = compute_model_drift(connection, SUBJECT)
    assert set(order) == {label for *_, label in asked}
    cell = ["round", "segment", "model"]
    for frame, said in ((latest, latest["snapshot"].astype(str)), (by_metric, by_metric["tv"])):
        for key, found in zip(frame[cell].astype(str).itertuples(index=False, name=None), said, strict=True):
            last = [label for label in order if (*key, label) in asked][-1]
            assert found in (last, 1 - LABELS.index(last) / 10)
    series: dict[str, list[str]] = {}
    for row in drift.series.to_pylist():
        series.setdefault(row["model"], []).append(row["snapshot"])
    for labels in series.values():
        assert labels == among(order, labels)
    for row in drift_checks(table, SUBJECT, order=order).to_pylist():
        both = [row["lowest_snapshot"], row["highest_snapshot"]]
        assert None in both or set(both) <= set(order)


def test_a_connection_with_some_of_the_scores_takes_the_order_of_all() -> None:
    here = {("S1", "x:1", "m", "n9"): 9, ("S1", "x:1", "m", "n10"): 5}
    elsewhere = {("S2", "x:1", "m", "n9"): 1, ("S2", "x:1", "m", "base"): None}
    with duckdb.connect() as connection, duckdb.connect() as whole:
        connection.register("scores", scores_table(snapshot_rows(here)))
        whole.register("scores", scores_table(snapshot_rows({**here, **elsewhere})))
        assert snapshot_order(connection) == ["n10", "n9"]
        take_times(connection, read_snapshot_times(whole))
        assert snapshot_order(connection) == snapshot_order(whole) == ["base", "n9", "n10"]
        cells = load_cells(connection, SurveyBoardOptions(intervals=False))
    assert cells["snapshot"].tolist() == ["n10"]
