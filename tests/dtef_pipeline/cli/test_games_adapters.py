"""Engines of other people's packages: where one fails, it is said whose it is, and the other scenarios stay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from dtef_pipeline.games.packs import adapters
from tests.dtef_pipeline.cli.commands import dtef
from tests.made.made_games import show_pack

ENGINE = """
from tests.made.made_games import ShowCards

class StrangeCards(ShowCards):
    def ending(self, state):
        raise KeyError("lost")

    def measure_seat(self, state, seat):
        raise KeyError("lost")

def of_manifest(manifest):
    if "retired" in manifest.description:
        raise RuntimeError("the engine is gone")
    return StrangeCards()
"""
WHOSE = "the adapter strange_cards:of_manifest of the package strange-cards 1.5"


@pytest.fixture
def installed(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package with an engine, and the manifest of its scenario: the path of that."""
    noted = state / "site" / "strange_cards-1.5.dist-info"
    noted.mkdir(parents=True)
    (noted / "METADATA").write_text("Metadata-Version: 2.1\nName: strange-cards\nVersion: 1.5\n")
    (noted / "entry_points.txt").write_text("[dtef.scenarios]\nmade/show-cards = strange_cards:of_manifest\n")
    (state / "site" / "strange_cards.py").write_text(ENGINE)
    monkeypatch.syspath_prepend(state / "site")
    manifest = state / "scenarios" / "made" / "show-cards.yaml"
    manifest.parent.mkdir(parents=True)
    manifest.write_text(yaml.safe_dump(show_pack().manifest.model_dump(), sort_keys=False), encoding="utf-8")
    monkeypatch.setenv("DTEF_SCENARIOS", str(state / "scenarios"))
    adapters.cache_clear()
    yield manifest
    adapters.cache_clear()


def in_one_line(*words: object) -> str:
    return " ".join(dtef("games", *words).output.split())


def test_what_an_engine_of_somebody_else_raises_is_no_fault_of_this_project(installed: Path) -> None:
    told = in_one_line("play", "made/show-cards", "--players", "baseline/careful,baseline/careful")
    assert f"error: scenario made/show-cards: {WHOSE} fails: KeyError: 'lost'" in told
    assert "bug of dtef-pipeline" not in told
    assert f"made/show-cards (scenario made/show-cards: {WHOSE} fails: KeyError" in in_one_line(
        "run", "--scenario", "show-cards", "--seeds", "1", "--player", "baseline/careful"
    )
    assert "made/show-cards: not complete" in (checked := in_one_line("check"))
    assert "its adapter fails when baseline/random plays seed 1" in checked


def test_an_adapter_that_cannot_be_used_leaves_the_other_scenarios_in_the_list(installed: Path) -> None:
    """Regression: `dtef games list` ended with the first one that raised."""
    text = installed.read_text(encoding="utf-8")
    installed.write_text(text.replace("Who shows", "It is retired. Who shows"), encoding="utf-8")
    told = in_one_line("list")
    assert f"made/show-cards cannot be played: scenario made/show-cards: {WHOSE} cannot be used: RuntimeError" in told
    assert "poker/kuhn" in told
