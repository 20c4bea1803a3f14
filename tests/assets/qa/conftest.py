"""A qa pipeline of one's own: a warehouse, a Dagster instance, and a server that plays all who are asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from assets.qa.part_checks import load_known_suites
from assets.stage.file_notes import add_noted
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.qa.item_files.suite_files import read_added
from resources.notes import ITEM_NOTES, QaSource, source_hash
from resources.settings import Settings
from resources.warehouse import Warehouse
from tests.assets.family_state import AskingState, opened_instance
from tests.assets.rubric.run_stages import StageRunner, stage_runner
from tests.fake_llm_server import FakeLLM, FaultPlan
from tests.made.models_file import serve_models
from tests.made.qa_replies import QaPlayers

ASKED_MODELS = ("honest", "inventor", "arbiter")
PLANTED = "sk-planted-key-3141592653589793"
"""The value of the key that models are asked with: it must be found nowhere."""


@dataclass
class QaPipeline(AskingState):
    """Parts of suites."""

    family = "qa"
    players: QaPlayers
    config: dict[str, dict[str, Any]] = field(default_factory=lambda: {"qa_judgements": {"judge": "none"}})

    def add(self, suite: str, path: Path, corpus: Path | None = None) -> list[str]:
        """Make the parts of a suite known; their keys."""
        added = read_added(load_known_suites(None).route(suite), path, corpus)
        content = source_hash(path, corpus)
        documents = str(corpus) if corpus else None
        sources = [QaSource(suite, part, str(path), documents, None, content) for part in added.parts]
        return add_noted(self.instance, self.house, FAMILY_BY_NAME["qa"], ITEM_NOTES, sources).keys


@contextmanager
def qa_pipeline(
    folder: Path, patch: pytest.MonkeyPatch, fault: FaultPlan = lambda call: None, *, on_disk: bool = False, **settings: Any
) -> Iterator[QaPipeline]:
    """A pipeline whose state is where the environment says; nothing is added yet.

    `on_disk`: Dagster's instance too, so that other processes see it. `settings`: of all models.
    """
    players = QaPlayers()
    with (
        FakeLLM(players.reply, fault) as server,
        opened_instance(folder, on_disk=on_disk) as instance,
    ):
        usual = {"retries": 8, "max_tokens": 2048, "input_price": 1.0, "output_price": 2.0}
        serve_models(server, folder, patch, ASKED_MODELS, key=PLANTED, **{**usual, **settings})
        yield QaPipeline(instance, Warehouse(Settings.read_environment().warehouse), folder, server, players)


@pytest.fixture
def qa(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[QaPipeline]:
    """Nothing is added yet; a Dagster instance in memory."""
    with qa_pipeline(state, monkeypatch) as made:
        yield made


@pytest.fixture(scope="module")
def runner() -> Iterator[StageRunner]:
    with stage_runner() as made:
        yield made
