"""`dtef rubric run --estimate` says what `dtef rubric run` then does."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.assets.rubric.conftest import serve_players
from tests.dtef_pipeline.cli.commands import name_panel, ok, refused, use, write_panel
from tests.fake_llm_server import FakeLLM
from tests.made.rubric_documents import ONE, ONE_PROMPTS, PATHS, PATHS_PROMPTS
from tests.made.rubric_replies import Players
from tests.strict_json import strict

PRICES = {"input_price": 1.0, "output_price": 2.0}
EMBEDDED = {"embedder": "embed"}
RUN = ("rubric", "run", "--no-roll-ups")


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


def test_calls_are_those_that_arrive_and_a_second_estimate_finds_them_answered(players: Players) -> None:
    before = estimated("--blueprint", "one")
    assert calls(before) == {"candidate": 2, "judge": 8, "embedder": 1, "analyst": 1}
    ok(*RUN, "--blueprint", "one")
    asked = players.asked
    assert {role: asked[role] for role in ("candidate", "judge", "embedder")} == {"candidate": 2, "judge": 8, "embedder": 1}
    after = estimated("--blueprint", "one")
    assert +calls(after) == Counter()
    assert [(row["requests"], row["replayed"], row["cost_usd"]) for row in after.values()] == [
        (row["requests"], row["requests"], 0.0) for row in before.values()
    ]


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


def test_key_points_are_priced_apart_and_what_follows_from_stored_ones_is_what_is_sent(lacking: Players) -> None:
    of_points = ("analyst", "analyst-z (key points)")
    assert calls(estimated("--blueprint", "two")) == {"candidate": 2, "judge": 6, "embedder": 1, "analyst": 1}
    write_panel(rubric=POINTS)
    before = estimated(*EXTRACTING)
    assert (before[of_points]["calls"], before[of_points]["calls_most"]) == (1, 2)
    assert before[of_points]["cost_usd"] > 0
    # Six points are guessed, each judged twice.
    assert before["judge", "judge-x"]["calls"] == 6 + 2 * 6
    assumed = "1 ideal answer without extracted key points, assumed to have 6 each"
    assert assumed in ok("rubric", "run", "--estimate", *EXTRACTING)
    assert not lacking.asked
    write_panel(rubric=EMBEDDED)
    ok(*RUN, "--blueprint", "two")
    assert lacking.asked["judge"] == 6

    write_panel(rubric=POINTS)
    told = ok("rubric", "run", "--from", "judge", "--no-roll-ups", *EXTRACTING)
    assert "as analyst: 2 calls" in told
    asked = lacking.asked
    assert {role: asked[role] for role in ("candidate", "extractor", "judge")} == {
        "candidate": 0,
        "extractor": 1,
        "judge": 4,
    }
    after = estimated(*EXTRACTING)
    assert (after[of_points]["requests"], after[of_points]["replayed"]) == (1, 1)
    assert "without extracted key points" not in ok("rubric", "run", "--estimate", *EXTRACTING)
    assert (after["judge", "judge-x"]["planned"], after["judge", "judge-x"]["calls"]) == (10, 0)
    shown = ok("rubric", "show", "two", "second")
    assert "should [0], extracted: It says: For it is so" in shown
    assert "should [1], extracted: It says: It was ever so" in shown
    costs = strict(ok("sql", "SELECT sum(cost_usd) > 0 AS paid, count(*) AS n FROM rubric_extractions", "--json"))
    assert costs == [{"paid": True, "n": 1}]

    # A run without the switch takes the points out again, and its estimate says so.
    write_panel(rubric=EMBEDDED)
    assert estimated("--blueprint", "two")["judge", "judge-x"]["planned"] == 6
    ok(*RUN, "--blueprint", "two")
    assert not {role for role, n in lacking.asked.items() if n and role != "analyst"}
    assert "extracted" not in ok("rubric", "show", "two", "second")


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


def test_dollars_are_tokens_at_the_models_prices_and_the_most_is_never_less(players: Players) -> None:
    for row in estimated().values():
        assert row["cost_usd"] == pytest.approx((row["prompt_tokens"] + 2 * row["response_tokens"]) / 1e6)
        assert row["cost_usd_most"] >= row["cost_usd"]
        assert row["calls_most"] >= row["calls"]


def test_budgets_are_compared_with_the_estimate_by_run_role_and_model(players: Players) -> None:
    budgets = ("--max-calls", "1", "--max-cost-usd", "judge=1000", "--max-calls", "cand-a=1000")
    text = ok("rubric", "run", "--estimate", *budgets)
    assert "max_calls 1 would be reached" in text
    assert "judge: max_cost_usd 1,000.0 is enough" in text
    assert "cand-a: max_calls 1,000 is enough" in text
    told = refused("rubric", "run", "--estimate", "--max-calls", "cand=5", "--json")
    assert "budget of 'cand': allowed: a role or a model of this run: cand-" in told


def test_a_model_under_test_that_is_not_known_is_reported_before_judges_are_missed(players: Players, state: Path) -> None:
    write_panel(rubric={})
    (state / "models.yaml").write_text("models: {}\n", encoding="utf-8")
    assert "no model or collection 'nosuch'" in refused("rubric", "run", "--estimate", "--model", "nosuch")


def test_table_has_sums_by_role_and_unknown_prices_are_unknown(players: Players) -> None:
    text = ok("rubric", "run", "--estimate", "--model", "openai/no-such-model", "--model", "cand-a")
    lines = [line.split() for line in text.splitlines()]
    assert next(line for line in lines if "openai/no-such-model" in line)[-2:] == ["unknown", "unknown"]
    assert any(line[:3] == ["candidate", "all", "2"] for line in lines)
    assert "and the unknown" in text
    assert "response tokens most" in text


def test_blueprint_that_is_not_known_is_answered_with_the_nearest(players: Players) -> None:
    assert "known: paths" in refused("rubric", "run", "--estimate", "--blueprint", "path")


def test_estimate_makes_no_calls_and_makes_no_store(players: Players, state: Path) -> None:
    estimated()
    assert +players.asked == Counter()
    assert not (state / "responses.sqlite").exists()
