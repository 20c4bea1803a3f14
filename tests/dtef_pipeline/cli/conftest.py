"""State of the commands: the shipped sample, ingested, and scored on two nights. Made once, copied for tests that change it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from assets.engine.roll_up_names import FAMILY_ROLL_UPS
from resources.warehouse import Warehouse
from tests.conftest import ROOT
from tests.dtef_pipeline.cli.commands import CHOSEN, PRICES, SAMPLE, distribution, ok, serve_as, skip_checks, skip_site, use
from tests.fake_llm_server import FakeLLM
from tests.made_once import made_once


@pytest.fixture(scope="module", autouse=True)
def without_checks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if "dagster" in sys.modules:  # which tests of messages alone do not wait for
            skip_checks(patch)
        yield


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
def ingested(base: Base, state: Path) -> Path:
    shutil.copytree(base.folder, state, dirs_exist_ok=True)
    return state


@pytest.fixture
def server(ingested: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLM]:
    """A server as the model `fake`, with prices, for the sample round."""
    with FakeLLM(reply=lambda call: distribution(call, 40)) as server:
        serve_as(server, ingested, monkeypatch, **PRICES)
        yield server


@pytest.fixture(scope="session")
def scored(base: Base, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two dated snapshots of one language model that answered differently; for tests that only read."""
    made = made_once(tmp_path_factory, "scored", lambda folder: score_two_nights(base, folder))
    return Path(shutil.copytree(made, tmp_path_factory.mktemp("state") / "scored"))


def score_two_nights(base: Base, folder: Path) -> None:
    shutil.copytree(base.folder, folder, dirs_exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        use(folder, patch)
        skip_checks(patch)
        skip_site(patch)
        for night, first, more in (("2026-01-01", 30.0, ["--no-roll-ups"]), ("2026-01-03", 97.0, [])):
            with FakeLLM(reply=lambda call, first=first: distribution(call, first)) as server:  # type: ignore[misc]
                serve_as(server, folder, patch)
                what = ["--model", "mine", "--context", "0", "--context", "2", "--questions", "3", "--snapshot", night]
                printed = ok("run", "--round", "S1", *CHOSEN, *what, *more)
                assert server.answered == 2 * 2 * 3
            assert "2 partitions, snapshot " in printed
            assert ("no roll-ups: `dtef board --refresh`" in printed) == bool(more)
            assert (folder / "warehouse" / "leaderboard").exists() == (not more)
            assert f"in snapshot {night}, all runs so far: " in printed
            assert printed.count("Columns: dtef explain survey/overall") == 1


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
def rubric_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make demo` does with rubrics and votes, with one board. To be read, not changed."""
    return made_once(tmp_path_factory, "rubric_demo", run_rubric_demo)


def run_rubric_demo(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        use(folder, patch)
        skip_checks(patch)
        skip_site(patch)
        ok("import", "responses", ROOT / "data" / "stored_responses.jsonl")
        ok("rubric", "add", ROOT / "data" / "blueprints")
        patch.setitem(FAMILY_ROLL_UPS, "rubric", ["rubric_board"])
        ok("rubric", "run", "--blueprint", "demo-*")
        ok("preference", "pairs", "--family", "rubric", "--pattern", "demo-*", "--per-item", "3")
        ok("import", "votes", ROOT / "data" / "stored_votes.jsonl")
        ok("preference", "board", "--refresh")
