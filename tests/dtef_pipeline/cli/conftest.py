"""State of the commands: the shipped sample, ingested, and scored on two nights. Made once, copied for tests that change it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from resources.warehouse import Warehouse
from tests.conftest import ROOT
from tests.dtef_pipeline.cli.commands import CHOSEN, SAMPLE, distribution, ok, serve_as, skip_site, use
from tests.fake_llm_server import FakeLLM
from tests.made_once import made_once


@dataclass(frozen=True)
class Base:
    """State after `dtef add` of the sample round, and what it printed; to be copied, not changed."""

    folder: Path
    printed: str


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Base:
    folder = made_once(tmp_path_factory, "ingested", add_sample)
    return Base(folder / "state", (folder / "printed").read_text(encoding="utf-8"))


def add_sample(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        use(folder / "state", patch)
        (folder / "printed").write_text(ok("add", SAMPLE), encoding="utf-8")


@pytest.fixture
def without_site(monkeypatch: pytest.MonkeyPatch) -> None:
    """Roll-ups of the test write no pages."""
    skip_site(monkeypatch)


@pytest.fixture
def ingested(base: Base, state: Path) -> Path:
    shutil.copytree(base.folder, state, dirs_exist_ok=True)
    return state


@pytest.fixture(scope="session")
def scored(base: Base, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two dated snapshots of one language model that answered differently; for tests that only read."""
    made = made_once(tmp_path_factory, "scored", lambda folder: score_two_nights(base, folder))
    return Path(shutil.copytree(made, tmp_path_factory.mktemp("state") / "scored"))


def score_two_nights(base: Base, folder: Path) -> None:
    shutil.copytree(base.folder, folder, dirs_exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        use(folder, patch)
        skip_site(patch)
        for night, first in (("2026-01-01", 30.0), ("2026-01-03", 97.0)):
            with FakeLLM(reply=lambda call, first=first: distribution(call, first)) as server:  # type: ignore[misc]
                serve_as(server, folder, patch)
                what = ["--model", "mine", "--context", "0", "--context", "2", "--questions", "3", "--snapshot", night]
                printed = ok("run", "--round", "S1", *CHOSEN, *what, "--no-roll-ups")
                assert server.answered == 2 * 2 * 3
            assert "2 partitions, snapshot " in printed
            assert "no roll-ups: `dtef board --refresh`" in printed
            assert not (folder / "warehouse" / "leaderboard").exists()
            assert f"in snapshot {night}, all runs so far: " in printed
            assert printed.count("Columns: dtef explain survey/overall") == 1
        ok("board", "--refresh")


@pytest.fixture
def reading(scored: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use(scored, monkeypatch)
    return scored


@pytest.fixture
def house(made: Path, state: Path) -> Warehouse:
    """A copy of the warehouse that a module makes once, in a state of its own."""
    shutil.copytree(made, state / "warehouse")
    return Warehouse(state / "warehouse")


@pytest.fixture(scope="session")
def rubric_demo(scored: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state `scored`, and on top of it what `make demo` does with rubrics and votes. To be copied, not changed."""
    return made_once(tmp_path_factory, "rubric_demo", lambda folder: run_rubric_demo(scored, folder))


def run_rubric_demo(scored: Path, folder: Path) -> None:
    shutil.copytree(scored, folder, dirs_exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        use(folder, patch)
        skip_site(patch)
        ok("import", "responses", ROOT / "data" / "stored_responses.jsonl")
        ok("rubric", "add", ROOT / "data" / "blueprints")
        ok("rubric", "run", "--blueprint", "demo-*")
        ok("preference", "pairs", "--family", "rubric", "--pattern", "demo-*", "--per-item", "3")
        ok("import", "votes", ROOT / "data" / "stored_votes.jsonl")
        ok("preference", "board", "--refresh")
