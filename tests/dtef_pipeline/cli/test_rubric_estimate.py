"""`dtef rubric run --estimate`: prices, budgets, key points; that a run asks what was estimated is tested with the stages."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.assets.rubric.conftest import serve_players
from tests.dtef_pipeline.cli.commands import PRICES, name_panel, ok, refused, use, write_panel
from tests.fake_llm_server import FakeLLM
from tests.made.rubric_documents import ONE, ONE_PROMPTS, PATHS, PATHS_PROMPTS
from tests.made.rubric_replies import Players
from tests.strict_json import strict

EMBEDDED = {"embedder": "embed"}


@pytest.fixture(scope="module")
def added(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two blueprints are added. Made once; to be copied, not changed."""
    folder = tmp_path_factory.mktemp("rubrics")
    (folder / "files").mkdir()
    for name, documents in (("one", [ONE, ONE_PROMPTS]), ("paths", [PATHS, PATHS_PROMPTS])):
        (folder / "files" / f"{name}.yml").write_text(yaml.safe_dump_all(documents, sort_keys=False), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        use(folder, patch)
        ok("rubric", "add", folder / "files")
    return folder


@pytest.fixture
def players(added: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Players]:
    """A state of its own, in which a server with prices plays everyone, and judges are easily read."""
    shutil.copytree(added, state, dirs_exist_ok=True)
    found = Players(unreadable=False)
    name_panel(state, monkeypatch, rubric=EMBEDDED)
    with FakeLLM(found.reply, embeddings=found.embeddings) as server:
        serve_players(server, state, monkeypatch, analyst=True, **PRICES)
        yield found


def estimated(*options: str) -> dict[tuple[str, str], dict[str, Any]]:
    rows = strict(ok("rubric", "run", "--estimate", *options, "--json"))
    return {(row["role"], row["model"]): row for row in rows}


def calls(rows: dict[tuple[str, str], dict[str, Any]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for (role, _), row in rows.items():
        found[role] += row["calls"]
    return found


@pytest.fixture
def lacking(players: Players, state: Path) -> Players:
    """A blueprint with an ideal answer without criteria, of which nothing was asked."""
    prompts = [ONE_PROMPTS[0], {"id": "second", "prompt": "Why?", "ideal": "For it is so. It was ever so."}]
    (state / "more").mkdir()
    (state / "more" / "two.yml").write_text(yaml.safe_dump_all([ONE, prompts], sort_keys=False), encoding="utf-8")
    ok("rubric", "add", state / "more")
    return players


EXTRACTING = ("--blueprint", "two")
POINTS = {**EMBEDDED, "extract_points": True}


def test_key_points_are_priced_apart_and_as_many_are_assumed_as_are_usual(lacking: Players) -> None:
    of_points = ("analyst", "analyst-z (key points)")
    assert calls(estimated(*EXTRACTING)) == {"candidate": 2, "judge": 6, "embedder": 1, "analyst": 1}
    write_panel(rubric=POINTS)
    before = estimated(*EXTRACTING)
    assert (before[of_points]["calls"], before[of_points]["calls_max"]) == (1, 2)
    assert before[of_points]["cost_usd"] > 0
    # Six points are guessed, each judged twice.
    assert before["judge", "judge-x"]["calls"] == 6 + 2 * 6
    assert "1 ideal answer without extracted key points" in ok("rubric", "run", "--estimate", *EXTRACTING)
    assert not lacking.asked


def test_no_calls_are_made_for_key_points_where_no_analyst_is_named(lacking: Players, state: Path) -> None:
    models = yaml.safe_load((state / "models.yaml").read_text(encoding="utf-8"))
    models["collections"].pop("analyst")
    (state / "models.yaml").write_text(yaml.safe_dump(models), encoding="utf-8")
    write_panel(rubric=POINTS)
    for more in ([], ["--estimate"]):
        assert "no analyst is named to extract key points" in refused("rubric", "run", *more, *EXTRACTING)
    assert not lacking.asked
    write_panel(rubric={**POINTS, "analysts": ["analyst-z"]})
    assert "analyst-z (key points)" in ok("rubric", "run", "--estimate", *EXTRACTING)


def test_budgets_are_compared_with_the_estimate_by_run_role_and_model(players: Players) -> None:
    budgets = ("--max-calls", "1", "--max-cost-usd", "judge=1000", "--max-calls", "cand-a=1000")
    text = ok("rubric", "run", "--estimate", *budgets)
    assert "max_calls 1 would be reached" in text
    assert "judge: max_cost_usd 1,000.0 is enough" in text
    assert "cand-a: max_calls 1,000 is enough" in text
    told = refused("rubric", "run", "--estimate", "--max-calls", "cand=5", "--json")
    assert "the budget of 'cand' limits nothing in this run; roles and models: cand-" in told


def test_a_model_under_test_that_is_not_known_is_reported_before_judges_are_missed(players: Players, state: Path) -> None:
    write_panel(rubric={})
    (state / "models.yaml").write_text("models: {}\n", encoding="utf-8")
    assert "no model or collection 'nosuch'" in refused("rubric", "run", "--estimate", "--model", "nosuch")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "cand-a", "--judge", "standard=nosuch/x"], "nosuch/x: LiteLLM knows no such provider"),
        (["--model", "custom/x"], "custom/x: custom needs the address of your server"),
    ],
)
def test_a_provider_that_cannot_be_asked_is_refused_as_in_the_run(players: Players, options: list[str], message: str) -> None:
    assert message in refused("rubric", "run", "--estimate", *options)
