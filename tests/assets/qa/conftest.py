"""A qa pipeline of one's own: a warehouse, a Dagster instance, and a server that plays all who are asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
import yaml

from assets.engine.roll_up_names import QA_ROLL_UP_NAMES
from assets.launch import LaunchResult, materialize
from assets.qa.suite_catalog import load_known_suites
from assets.stage.file_notes import add_noted, list_partitions
from dtef_pipeline.cli.stage_runs import open_dagster_instance
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.qa.item_files.suite_files import read_added
from dtef_pipeline.qa.tables import QA_SPACE
from resources.gateway.retries import Backoff
from resources.item_files import ITEM_NOTES, QaSource, source_hash
from resources.settings import Settings
from resources.warehouse import Warehouse
from tests.assets.rubric.run_stages import StageRunner, stage_runner
from tests.assets.stage_names import QA_STAGE_NAMES
from tests.fake_llm_server import FakeLLM, FaultPlan
from tests.made.qa_replies import QaPlayers

ASKED_MODELS = ("honest", "inventor", "arbiter")
PLANTED = "sk-planted-key-3141592653589793"
"""The value of the key that models are asked with: it must be found nowhere."""


@dataclass
class QaPipeline:
    """What a test does to the state, and sees of it."""

    instance: dg.DagsterInstance
    house: Warehouse
    folder: Path
    server: FakeLLM
    players: QaPlayers
    config: dict[str, dict[str, Any]] = field(default_factory=lambda: {"qa_judgements": {"judge": "none"}})
    """By asset, for every run."""

    def add(self, suite: str, path: Path, corpus: Path | None = None) -> list[str]:
        """Make the parts of a suite known; their keys."""
        added = read_added(load_known_suites(None).route(suite), path, corpus)
        content = source_hash(path, corpus)
        documents = str(corpus) if corpus else None
        sources = [QaSource(suite, part, str(path), documents, None, content) for part in added.parts]
        return add_noted(self.instance, self.house, FAMILY_BY_NAME["qa"], ITEM_NOTES, sources).keys

    @property
    def keys(self) -> list[str]:
        return list_partitions(self.instance, QA_SPACE)

    def run(
        self, names: Sequence[str] = QA_STAGE_NAMES, keys: Sequence[str] | None = None, **config: dict[str, Any]
    ) -> LaunchResult:
        """Materialize stages, by default all six, for all parts; `config` by asset name, over that of every run."""
        given = {name: {**self.config.get(name, {}), **config.get(name, {})} for name in names}
        return materialize(self.instance, names, self.keys if keys is None else keys, given, family="qa")

    def roll_up(self, *names: str) -> LaunchResult:
        return materialize(self.instance, list(names) or QA_ROLL_UP_NAMES, [], {}, family="qa")

    def rows(self, table: str, key: str | None = None) -> list[dict[str, Any]]:
        return self.table(table, key).to_pylist()

    def table(self, table: str, key: str | None = None) -> pa.Table:
        return self.house.read_or_empty(table, **({} if key is None else QA_SPACE.levels(key)))


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
        open_dagster_instance() if on_disk else dg.DagsterInstance.ephemeral(tempdir=str(folder)) as instance,
    ):
        shared = {
            "api_base": server.base_url,
            "api_key_env": "OPENAI_API_KEY",
            "retries": 8,
            "max_concurrency": 8,
            "timeout": 60,
            "max_tokens": 2048,
            "input_price": 1.0,
            "output_price": 2.0,
            **settings,
        }
        models = {name: {"model": f"openai/{name}", **shared} for name in ASKED_MODELS}
        (folder / "models.yaml").write_text(yaml.safe_dump({"models": models}), encoding="utf-8")
        patch.setenv("DTEF_MODELS", str(folder / "models.yaml"))
        patch.setenv("OPENAI_API_KEY", PLANTED)
        patch.setattr("resources.gateway.gateway.Backoff", partial(Backoff, first=0.01, longest=0.1))
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
