"""Whom the section `drift` of a panel may name."""

from __future__ import annotations

from pathlib import Path

import pytest

from assets.stage.family_drift import panel_drift
from dtef_pipeline.errors import ConfigError
from resources.settings import Settings
from resources.warehouse import Warehouse
from tests.dtef_pipeline.cli.commands import use

JUDGED = "qa: {judge: openai/a}\nrubric: {judges: [standard=openai/b@temperature=0.5]}\n"


def test_the_drift_of_a_judge_that_the_panel_names_can_be_accepted_and_no_judge_is_a_control(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Judges were refused as models that nobody asks."""
    use(tmp_path, monkeypatch)
    panel, warehouse = tmp_path / "panel.yaml", Warehouse(tmp_path / "warehouse")
    monkeypatch.setenv("DTEF_PANEL", str(panel))
    panel.write_text(f"drift: {{since: {{openai/a: 2026-01-06, openai/b: 2026-01-06}}}}\n{JUDGED}", encoding="utf-8")
    assert set(panel_drift(Settings.read_environment(), warehouse).since) == {"openai/a", "openai/b"}
    for named, said in (
        ("since: {openai/c: 2026-01-06}", "not a model of the panel"),
        ("control: [openai/a]", "not a language model of the panel"),
    ):
        panel.write_text(f"drift: {{{named}}}\n{JUDGED}", encoding="utf-8")
        with pytest.raises(ConfigError, match=f"{said}, and without scores"):
            panel_drift(Settings.read_environment(), warehouse)
