"""Families of other packages: what an entry point may name."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.family import plugins
from tests.made import spelling_family
from tests.made.spelling_family import SPELLING

SPELLED = "tests.made.spelling_family:SPELLING"


def families(name: str, value: str, monkeypatch: pytest.MonkeyPatch, taken: tuple[str, ...] = ("qa",)) -> object:
    point = EntryPoint(name, value, plugins.FAMILY_GROUP)
    monkeypatch.setattr(plugins, "find_plugin_points", lambda: {name: point})
    return plugins.load_plugin_families(taken)


def test_a_family_is_the_record_that_its_entry_point_names(monkeypatch: pytest.MonkeyPatch) -> None:
    assert families("spelling", SPELLED, monkeypatch) == (SPELLING,)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("spelling", "tests.made.no_such_file:SPELLING", "cannot be loaded: ModuleNotFoundError"),
        ("spelling", "tests.made.spelling_family:SPACE", "allowed: a Family called spelling"),
        ("writing", SPELLED, "allowed: a Family called writing"),
    ],
)
def test_what_is_no_such_record_is_reported_with_its_name(
    name: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=f"the family {name} of an unknown package.*{message}"):
        families(name, value, monkeypatch)


def test_tables_of_others_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    table = SPELLING.tables["spelling_words"]
    monkeypatch.setattr(spelling_family, "SPELLING", replace(SPELLING, tables={**SPELLING.tables, "qa_items": table}))
    with pytest.raises(ConfigError, match="tables called spelling_"):
        families("spelling", SPELLED, monkeypatch)


def test_a_name_that_is_taken_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="whose name is none of spelling"):
        families("spelling", SPELLED, monkeypatch, taken=("spelling",))
