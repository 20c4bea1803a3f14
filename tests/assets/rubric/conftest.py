"""A rubric pipeline of one's own: a warehouse, a Dagster instance, a folder of blueprints, and a server that plays all who are asked."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from assets.stage.file_notes import add_noted
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.rubric.tables import RUBRIC_SPACE
from resources.notes import BLUEPRINT_NOTES, RubricFile, content_hash
from resources.settings import Settings
from resources.warehouse import Warehouse
from tests.assets.family_state import AskingState, opened_instance
from tests.assets.rubric.reviews import reviews as reviews
from tests.assets.rubric.reviews import scored as scored
from tests.assets.rubric.reviews import scored_once as scored_once
from tests.assets.rubric.reviews import two_nights as two_nights
from tests.assets.rubric.run_stages import StageRunner, stage_runner
from tests.dtef_pipeline.cli.commands import use
from tests.fake_llm_server import FakeLLM, FaultPlan
from tests.made.models_file import serve_models
from tests.made.rubric_documents import ONE, ONE_PROMPTS
from tests.made.rubric_replies import Players
from tests.made_once import made_once

MODELS = ("cand-a", "cand-b", "cand-c", "judge-x", "judge-y", "analyst-z", "embed")
Document = Mapping[str, Any] | Sequence[Any]


def serve_players(server: FakeLLM, folder: Path, patch: pytest.MonkeyPatch, *, analyst: bool = False, **settings: Any) -> None:
    """The server as every model there is."""
    collections = {"judges": ["judge-x"], **({"analyst": ["analyst-z"]} if analyst else {})}
    serve_models(server, folder, patch, MODELS, collections, **{"retries": 8, **settings})


@dataclass
class RubricPipeline(AskingState):
    """Blueprints in a folder."""

    family = "rubric"
    players: Players
    config: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {"rubric_embeddings": {"embedder": "embed"}, "rubric_scores": {"embedder": "embed"}}
    )

    def write(self, name: str, documents: Sequence[Document], *, skip_broken: bool = False) -> bool:
        """Write or change a blueprint's file and add it; whether Dagster was told of something new."""
        path = self.folder / f"{name}.yml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump_all(documents, allow_unicode=True, sort_keys=False), encoding="utf-8")
        return self.add({name: path}, skip_broken=skip_broken)

    def add(self, paths: Mapping[str, Path], models_dir: Path | None = None, *, skip_broken: bool = False) -> bool:
        """Add files by the blueprints' ids; whether Dagster was told of something new."""
        files = [
            RubricFile(name, str(path), str(models_dir) if models_dir else None, skip_broken, content_hash(path, models_dir))
            for name, path in paths.items()
        ]
        return bool(add_noted(self.instance, self.house, FAMILY_BY_NAME["rubric"], BLUEPRINT_NOTES, files).changed)


@contextmanager
def rubric_pipeline(
    folder: Path, patch: pytest.MonkeyPatch, fault: FaultPlan = lambda call: None, *, on_disk: bool = False, **settings: Any
) -> Iterator[RubricPipeline]:
    """A pipeline whose state is in the folder, unless the environment says already where; nothing is added yet.

    `on_disk`: Dagster's instance too, so that other processes see it. `settings`: of all models.
    """
    players = Players()
    with (
        FakeLLM(players.reply, fault, embeddings=players.embeddings) as server,
        opened_instance(folder, on_disk=on_disk) as instance,
    ):
        serve_players(server, folder, patch, **settings)
        house = Warehouse(Settings.read_environment().warehouse)
        yield RubricPipeline(instance, house, folder / "blueprints", server, players)


def state_in(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """The folder, in which the warehouse, the response store and DAGSTER_HOME are from now on."""
    folder.mkdir(parents=True, exist_ok=True)
    use(folder, patch)
    return folder


def make_finished(folder: Path, blueprints: Mapping[str, Sequence[Document]], *, unreadable: bool = True) -> Path:
    """The folder, with the state after one run of the six stages; to be copied, not changed. `unreadable`: as in `Players`."""
    with pytest.MonkeyPatch.context() as patch, rubric_pipeline(state_in(folder, patch), patch) as made:
        made.players.unreadable = unreadable
        for name, documents in blueprints.items():
            made.write(name, documents)
        assert made.run().failures == ()
    return folder


def copy_finished(finished: Path, pipeline: RubricPipeline) -> None:
    """Give a pipeline the tables, blueprints and responses of a finished one, which Dagster has not seen being made."""
    root = pipeline.folder.parent
    for name in ("warehouse", "blueprints"):
        shutil.copytree(finished / name, root / name, dirs_exist_ok=True)
    for file in finished.glob("responses.sqlite*"):
        shutil.copy(file, root)
    keys = sorted(path.stem for path in pipeline.folder.glob("*.yml"))
    pipeline.instance.add_dynamic_partitions(RUBRIC_SPACE.name, keys)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small blueprint after all stages, judges easily read; made once, to be copied."""
    blueprints = {"one": [ONE, ONE_PROMPTS]}
    return made_once(tmp_path_factory, "finished_rubric", lambda folder: make_finished(folder, blueprints, unreadable=False))


@pytest.fixture
def one(rubric: RubricPipeline, finished: Path) -> RubricPipeline:
    """The small blueprint, all stages made, judges easily read."""
    rubric.players.unreadable = False
    copy_finished(finished, rubric)
    return rubric


@pytest.fixture
def rubric(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RubricPipeline]:
    """Nothing is added yet; a Dagster instance in memory."""
    with rubric_pipeline(state, monkeypatch) as made:
        yield made


@pytest.fixture
def runner() -> Iterator[StageRunner]:
    with stage_runner() as made:
        yield made
