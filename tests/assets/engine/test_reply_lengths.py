"""How long responses are taken to be in an estimate: as long as those that are stored, empty ones too."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from assets.engine.dry_run import compute_mean_lengths
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.family.stage import Lengths
from dtef_pipeline.games.tables import EPISODE_TURNS, LEAGUE_SPACE
from resources.model_catalog import load_known_models
from resources.settings import Settings
from resources.warehouse import Warehouse
from tests.dtef_pipeline.cli.commands import ok, use
from tests.strict_json import strict

TURNS = (("silent", "a", 0), ("silent", "b", 0), ("brief", "c", 8), ("brief", "c", 0), ("brief", "d", 2))
UNKNOWN = (("untold", "e", None), ("untold", "e", 0))


def turns(rows: tuple[tuple[str, str, int | None], ...]) -> pa.Table:
    known = [
        {"model_variant": model, "request_key": key, "completion_tokens": tokens, "call_status": "answered", "snapshot": "base"}
        for model, key, tokens in rows
    ]
    known.append({"model_variant": "silent", "request_key": "z", "completion_tokens": None, "call_status": "error"})
    return pa.table([pa.array([row.get(one.name) for row in known], one.type) for one in EPISODE_TURNS], schema=EPISODE_TURNS)


def test_empty_responses_count_as_they_are_and_unknown_ones_not_at_all(tmp_path: Path) -> None:
    """A model whose responses had no tokens was taken to write hundreds."""
    house = Warehouse(tmp_path)
    house.write("episode_turns", turns(TURNS + UNKNOWN), **LEAGUE_SPACE.levels("poker/kuhn"), snapshot="base")
    lengths = (Lengths("episode_turns"), Lengths("decision_answers"))
    found = compute_mean_lengths(house, lengths)
    assert found == {"silent": 0.0, "brief": pytest.approx(5)}
    assert compute_mean_lengths(Warehouse(tmp_path / "none"), lengths) == {}


def test_an_estimate_of_decisions_takes_texts_as_long_as_those_of_the_model_s_games(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(tmp_path, monkeypatch)
    (model,) = load_known_models(Settings.read_environment(), COMPUTED_MODELS).resolve(["gpt-4.1-mini"])
    asks = ("games", "run", "--decisions", "--scenario", "kuhn", "--player", model.name, "--draws", "1", "--estimate", "--json")
    (before,) = strict(ok(*asks))
    house = Warehouse(tmp_path / "warehouse")
    house.write("episode_turns", turns(((model.variant, "a", 7),)), **LEAGUE_SPACE.levels("poker/kuhn"), snapshot="base")
    (after,) = strict(ok(*asks))
    assert before["response_tokens"] > after["response_tokens"] == 7 * after["calls"] > 0
