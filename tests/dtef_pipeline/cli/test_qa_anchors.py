"""`dtef qa anchors`: what it refuses before anything runs. What it asks is in `tests/assets/qa/test_night.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtef_pipeline.cli.qa_anchors import QaAnchorOptions
from dtef_pipeline.qa.tables import QA_JUDGEMENTS
from resources.warehouse import Warehouse
from tests.dtef_pipeline.cli.commands import refused, use


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    use(tmp_path, monkeypatch)
    made = Warehouse(tmp_path / "warehouse")
    made.write("qa_judgements", QA_JUDGEMENTS.empty_table(), suite="gsm8k", part="all", snapshot="base")
    return made


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--judge", "none"], "allowed: a model"),
        (["--judge", "nobody"], "nobody"),
        (["--judge", "openai/j", "--max-calls", "judge=x"], "a whole number from 0"),
        (["--judge", "openai/j", "--snapshot", "../x"], "snapshot"),
    ],
)
def test_options_that_need_mending_are_told_before_anything_runs(given: list[object], told: str, house: Warehouse) -> None:
    assert told in refused("qa", "anchors", *given)
    assert not (Path(house.root).parent / "responses.sqlite").exists()


def test_a_judge_without_a_price_is_allowed_by_name() -> None:
    assert QaAnchorOptions(allow_unpriced=("j",)).config()["qa_anchors"]["allow_unpriced"] == ["j"]
    assert "allow_unpriced" not in QaAnchorOptions().config()["qa_anchors"]


def test_without_a_judged_answer_there_is_nothing_to_judge_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(tmp_path, monkeypatch)
    (tmp_path / "warehouse").mkdir()
    assert "nothing to judge again" in refused("qa", "anchors")
    assert "no qa_anchors" in refused("qa", "anchors", "--show")
