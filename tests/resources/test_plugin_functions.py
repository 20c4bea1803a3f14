"""Point functions of other packages are found by their entry points."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from dtef_pipeline.errors import ConfigError
from resources import plugin_functions


def with_entry_points(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    points = [EntryPoint(name, value, plugin_functions.FUNCTION_GROUP) for name, value in values.items()]
    monkeypatch.setattr(
        plugin_functions, "entry_points", lambda group: points if group == plugin_functions.FUNCTION_GROUP else []
    )


def test_functions_have_the_names_of_their_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    with_entry_points(monkeypatch, call="math:hypot")
    assert plugin_functions.load_plugin_functions()["call"](3, 4) == pytest.approx(5)


@pytest.mark.parametrize(
    ("value", "said"), [("no.such.module:x", "cannot be loaded: ModuleNotFoundError"), ("math:pi", "is a float")]
)
def test_what_is_no_function_is_named(monkeypatch: pytest.MonkeyPatch, value: str, said: str) -> None:
    with_entry_points(monkeypatch, factcheck=value)
    with pytest.raises(ConfigError, match=f"the point function 'factcheck' of {value}.*{said}"):
        plugin_functions.load_plugin_functions()
