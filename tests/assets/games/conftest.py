"""A league of one's own: a made-up scenario, a warehouse, a Dagster instance, and a server that plays all models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml

from assets.games.stages import add_scenarios
from assets.launch import LaunchResult
from dtef_pipeline.games import packs
from resources.settings import Settings
from resources.warehouse import Warehouse
from tests.assets.family_state import GAMES_STAGE_NAMES, FamilyState
from tests.fake_llm_server import Call, FakeLLM
from tests.made.made_games import ShowCards, show_pack
from tests.made.models_file import serve_models

SHOW_CARDS = "made/show-cards"
CALM = {"id": "calm", "version": 2, "status": "approved", "display_name": "Calm", "system_prompt": "You never hurry."}


def legal_text(call: Call) -> str:
    """A player that always shows."""
    return "I trust my card.\nACTION: show"


def sloppy_text(call: Call) -> str:
    """A player whose first text of every turn is no move."""
    return "ACTION: show" if "Nothing was played" in call.user else "ACTION: fold"


def silent_text(call: Call) -> str:
    return "???"


REPLIES = {"legal": legal_text, "sloppy": sloppy_text, "silent": silent_text}


@dataclass
class League(FamilyState):
    """The made-up scenario, and the server that plays."""

    family = "games"
    server: FakeLLM

    def run(self, *players: str, names: Sequence[str] = GAMES_STAGE_NAMES, **config: Any) -> LaunchResult:
        """All four stages. `config`: of the league; what it names of `episodes` alone goes there."""
        snapshot = {"snapshot": config.pop("snapshot", "base")}
        asking = {name: config.pop(name) for name in ("max_calls", "draws", "unapproved") if name in config}
        entered = {**config, "players": list(players), "personas": config.pop("personas", [])}
        own = {name: value for name, value in entered.items() if name not in ("players", "personas")}
        by_asset = {
            "scenario_items": own,
            "episode_prompts": entered,
            "episodes": {**entered, **snapshot, **asking},
            "episode_scores": snapshot,
        }
        return self.materialize(names, [SHOW_CARDS], by_asset)


def write_made_scenarios(folder: Path, monkeypatch: pytest.MonkeyPatch, **changed: Any) -> None:
    """The made-up scenario and a persona in folders of the user's, and an adapter for it."""
    place = folder / "scenarios" / "made" / "show-cards.yaml"
    place.parent.mkdir(parents=True)
    manifest = show_pack(**changed).manifest.model_dump(mode="json")
    place.write_text(yaml.safe_dump(manifest), encoding="utf-8")
    (folder / "personas").mkdir()
    (folder / "personas" / "calm.yaml").write_text(yaml.safe_dump(CALM), encoding="utf-8")
    monkeypatch.setenv("DTEF_SCENARIOS", str(folder / "scenarios"))
    monkeypatch.setenv("DTEF_PERSONAS", str(folder / "personas"))
    monkeypatch.setattr(packs, "adapters", lambda: {SHOW_CARDS: lambda _: ShowCards()})


def write_made_models(
    folder: Path, monkeypatch: pytest.MonkeyPatch, server: FakeLLM, names: Iterable[str] = REPLIES, max_concurrency: int = 8
) -> None:
    settings = {
        "max_concurrency": max_concurrency,
        "max_tokens": 256,
        "temperature": 0.0,
        "input_price": 1.0,
        "output_price": 2.0,
    }
    serve_models(server, folder, monkeypatch, names, **settings)


@pytest.fixture
def league(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[League]:
    """The made-up scenario is known; nothing is played yet."""
    write_made_scenarios(state, monkeypatch)
    with (
        FakeLLM(lambda call: REPLIES[call.body["model"]](call)) as server,
        dg.DagsterInstance.ephemeral(tempdir=str(state)) as instance,
    ):
        write_made_models(state, monkeypatch, server)
        add_scenarios(instance, [SHOW_CARDS])
        yield League(instance, Warehouse(Settings.read_environment().warehouse), server)
