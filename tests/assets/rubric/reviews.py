"""A pipeline of two small blueprints, with a server that plays candidates, judges and analyst."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
import pytest

from assets.launch import LaunchResult
from assets.stage.file_notes import add_noted
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.rubric.analyst_report import DIMENSIONS, INSIGHT_KINDS
from resources.notes import BLUEPRINT_NOTES, RubricFile, content_hash
from resources.warehouse import Warehouse
from tests.assets.family_state import RUBRIC_STAGE_NAMES, FamilyState
from tests.dtef_pipeline.cli.commands import skip_site, use
from tests.fake_llm_server import Call, FakeLLM
from tests.made.models_file import write_models
from tests.made_once import made_once

FIRST = """
title: Kind words
description: Which of Claude and GPT-4o is kinder
models: ["openai:one", "openai:two"]
---
- id: greet
  prompt: Greet a friend.
  should: [It greets, {$icontains: hello}]
- id: part
  prompt: Part from a friend.
  should: [It parts]
  should_not: [It is rude]
"""
SECOND = """
title: Numbers
tags: [maths]
models: ["openai:one", "openai:two"]
---
- id: sum
  prompt: What is 2 + 2?
  should: [{$contains: "4"}, It is right]
"""
SAID = {"one": "Hello, my name is Claude.", "two": "4, and goodbye."}
"""What each candidate says to everything."""


@dataclass
class Reviews(FamilyState):
    """What the server is to say."""

    family = "rubric"
    folder: Path
    server: FakeLLM | None = None
    said: dict[str, str] = field(default_factory=lambda: dict(SAID))
    analyst: bool = True
    without: tuple[str, ...] = ()
    """Models that the models file does not have."""
    seen: list[str] = field(default_factory=list)
    """What analysts were sent."""

    def reply(self, call: Call) -> str:
        model = str(call.body["model"])
        if model.startswith("judge"):
            met = "EXACTLY" if model == "judge-a" or "right" in call.user else "MODERATELY"
            return f"<reflection>so it is</reflection><classification>CLASS_{met}_MET</classification>"
        if model.startswith("analyst"):
            text = "\n".join(message["content"] for message in call.body["messages"])
            self.seen.append(text)
            return graded(text)
        return self.said[model]

    def models(self, base: str) -> None:
        known = ("one", "two", "judge-a", "judge-b", "analyst-a", "analyst-b")
        collections = {"judges": ["judge-a", "judge-b"], **({"analyst": ["analyst-a"]} if self.analyst else {})}
        names = [name for name in known if name not in self.without]
        write_models(self.folder, names, collections, api_base=base, input_price=1.0, output_price=2.0)

    def add(self, **files: str) -> None:
        for name, text in files.items():
            path = self.folder / f"{name}.yml"
            path.write_text(text, encoding="utf-8")
            file = RubricFile(name, str(path), None, False, content_hash(path, None))
            add_noted(self.instance, self.house, FAMILY_BY_NAME["rubric"], BLUEPRINT_NOTES, [file])

    def run(
        self,
        keys: Sequence[str] = ("first", "second"),
        snapshot: str = "base",
        stages: Sequence[str] = RUBRIC_STAGE_NAMES,
        **config: dict[str, Any],
    ) -> LaunchResult:
        """The stages, by default all, for these blueprints; `config` by asset name, beside the snapshot."""
        of_snapshot: dict[str, dict[str, Any]] = {name: {"snapshot": snapshot} for name in RUBRIC_STAGE_NAMES[1:]}
        for name, given in config.items():
            of_snapshot[name] |= given
        with FakeLLM(reply=self.reply) as self.server:
            self.models(self.server.base_url)
            given = {name: of_snapshot[name] for name in stages if name in of_snapshot}
            return self.materialize(stages, list(keys), given)

    def frame(self, table: str, **levels: str) -> pd.DataFrame:
        return pd.DataFrame(self.house.read(table, **levels).to_pylist(), dtype=object)


def graded(text: str) -> str:
    """A whole summary of a report: every model has 8 in clarity and 6 in all else, the first one 7."""
    models = sorted(set(re.findall(r"(MK_\d+)/(MD_\d+)", text)))
    findings = "".join(
        f'<{kind}>a {kind} of <ref maker="{maker}" model="{model}"/></{kind}>'
        for kind in INSIGHT_KINDS
        for maker, model in models[:1]
    )
    grades = "".join(
        f'<grade maker="{maker}" model="{model}" dimension="{dimension}">REASONING: so. SCORE: {8 if dimension == "clarity" else 6}/10</grade>'
        for maker, model in models
        for dimension in DIMENSIONS
    )
    return findings + grades


@contextmanager
def begun(folder: Path) -> Iterator[Reviews]:
    """Blueprints `first` and `second` are known, nothing is materialized."""
    with pytest.MonkeyPatch.context() as patch, dg.DagsterInstance.ephemeral(tempdir=str(folder)) as instance:
        use(folder, patch)
        skip_site(patch)
        patch.setenv("DTEF_MODELS", str(folder / "models.yaml"))
        patch.setenv("OPENAI_API_KEY", "sk-of-a-test")
        made = Reviews(instance, Warehouse(folder / "warehouse"), folder)
        made.add(first=FIRST, second=SECOND)
        yield made


@pytest.fixture
def reviews(tmp_path: Path) -> Iterator[Reviews]:
    with begun(tmp_path) as made:
        yield made


@pytest.fixture(scope="session")
def scored_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state after all stages of both blueprints; to be copied, not changed."""
    return made_once(tmp_path_factory, "scored_reviews", score_reviews)


def score_reviews(folder: Path) -> None:
    with begun(folder) as made:
        assert made.run().failures == ()


@pytest.fixture
def scored(scored_once: Path, tmp_path: Path) -> Iterator[Reviews]:
    """Both blueprints after all stages, of which Dagster has seen nothing."""
    shutil.copytree(scored_once, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("storage", "history"))
    with begun(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def two_nights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Reviews, list[LaunchResult]]]:
    """Two nights of both blueprints, of which the second finds model `two` without an answer; all roll-ups. Not to be changed."""
    with begun(tmp_path_factory.mktemp("nights")) as made:
        outcomes = [made.run(snapshot="2026-01-01")]
        made.said["two"] = "I cannot say."
        outcomes.append(made.run(snapshot="2026-01-03", rubric_judgements={"judge_draws": 2}))
        outcomes.append(made.roll_up())
        yield made, outcomes
