"""Labels of new snapshots are names that every file system takes, and what looks like a date is one."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dtef_pipeline.asking.snapshot_label import LONGEST_LABEL, require_label, require_one_spelling, snapshot_time
from dtef_pipeline.errors import ConfigError


@pytest.mark.parametrize(
    "label",
    [
        "base",
        "n10",
        "Night_2.b",
        "_x",
        "2026-01-31",
        "2026-01-31T0200",
        "2026-01-31-again",
        "20260131",
        "v1.2",
        "1.2.3",
        "2026-night-2",
        "marathon-2",
        "may",
        "123456",
        "console",
        "null",
        "com10",
        "2026",
        "x" * LONGEST_LABEL,
    ],
)
def test_plain_names_and_dates_are_labels(label: str) -> None:
    assert require_label(label) == label


@pytest.mark.parametrize(
    "label",
    [
        "",
        " ",
        "a b",
        "../../x",
        "a..b",
        ".x",
        "-x",
        "x.",
        "a/b",
        "a:b",
        "é",
        "x\n",
        "2026-01-31T02:00",
        "x" * (LONGEST_LABEL + 1),
    ],
)
def test_other_characters_are_refused_with_what_is_allowed(label: str) -> None:
    with pytest.raises(ConfigError, match=r"allowed: up to 64 letters a to z, digits, '\.', '_' and '-'"):
        require_label(label)


@pytest.mark.parametrize(
    "label",
    [
        "2026-13-45",
        "2026-2-30",
        "2026-1-31",
        "20261345",
        "2026_01_31",
        "31-01-2026",
        "2026-01-311",
        "2026-01-31T99",
        "2026-02-30-b",
    ],
)
def test_what_looks_like_a_date_and_is_none_is_refused(label: str) -> None:
    with pytest.raises(ConfigError, match=r"looks like a date but is not one; allowed: .* 2026-01-31"):
        require_label(label)


@pytest.mark.parametrize(
    ("label", "meant"),
    [
        ("31.1.26", "2026-01-31"),
        ("31-1-26", "2026-01-31"),
        ("26-01-31", "2031-01-26 or 2026-01-31"),
        ("31012026", "2026-01-31"),
        ("260131", "2026-01-31 or 2031-01-26"),
        ("2026-02", "2026-02-01"),
        ("202601", "2026-01-01"),
        ("2026-031", "2026-01-31"),
        ("jan-2026", "2026-01-01"),
        ("31jan2026", "2026-01-31"),
        ("2026W05", "2026-01-26"),
        ("2026-Q1", "2026-01-31"),
    ],
)
def test_a_date_in_another_notation_is_refused_with_the_right_spelling(label: str, meant: str) -> None:
    """They were taken, and counted as the time of their first response."""
    with pytest.raises(ConfigError, match=rf"looks like a date but is not one; allowed: .* such as {meant}, with a time"):
        require_label(label)
    assert snapshot_time(label, None) is None, "one that is stored is read as before"


@pytest.mark.parametrize("label", ["CON", "nul", "aux.b", "COM1", "lpt9"])
def test_names_that_a_file_system_keeps_are_refused(label: str) -> None:
    with pytest.raises(ConfigError, match="Windows keeps this name for a device"):
        require_label(label)


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


@pytest.mark.parametrize("label", ["2026-02", "jan-2026", "CON"])
def test_a_label_that_is_stored_may_be_asked_again_though_no_new_one_is_like_it(label: str) -> None:
    """Its responses were paid for, and a file of it may have to be made again."""
    assert require_label(label, {label, "base"}) == label
    with pytest.raises(ConfigError, match="allowed: "):
        require_label(label, {"base"})


def test_no_stored_label_makes_one_safe_that_is_the_name_of_no_folder() -> None:
    with pytest.raises(ConfigError, match=r"without '\.\.'"):
        require_label("../x", {"../x"})
