"""`dtef rubric run --estimate` says what `dtef rubric run` then does; and what was run can be shown, exported and compared."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dtef_pipeline.asking.tokens import estimate_tokens
from tests.assets.rubric.conftest import serve_players
from tests.dtef_pipeline.cli.commands import dtef, name_panel, ok, refused, use, write_panel
from tests.fake_llm_server import FakeLLM
from tests.made.rubric_documents import ONE, ONE_PROMPTS, PATHS, PATHS_PROMPTS
from tests.made.rubric_replies import Players, role_of
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
    rows = strict(ok("rubric", "run", "--estimate", *options, "--format", "json"))
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


def test_judgements_of_stored_responses_are_the_requests_that_are_sent_and_the_run_can_be_read(
    players: Players, state: Path
) -> None:
    """Equal texts are judged once, a blank response is not judged, and a conversation that a blank turn ended is over."""
    before = estimated("--blueprint", "paths", "--draws", "2")
    assert before["candidate", "cand-a"]["planned"] == 2 * 2 * 2 * (1 + 3 + 1 + 1)
    dtef(*RUN, "--blueprint", "paths", "--draws", "2", "--max-calls", "judge=0", "--max-calls", "analyst=0")
    assert players.asked["candidate"] <= calls(before)["candidate"]
    stored = estimated("--blueprint", "paths", "--draws", "2")
    assert calls(stored)["candidate"] == 0
    assert calls(stored)["judge"] < calls(before)["judge"]
    assert calls(stored)["embedder"] == 0
    ok(*RUN, "--blueprint", "paths", "--draws", "2")
    assert players.asked["judge"] == calls(stored)["judge"]
    _shown_and_exported(state)


def _shown_and_exported(state: Path) -> None:
    shown = ok("rubric", "show", "paths", "talk", "--model", "cand-a")
    assert "prompt talk" in shown
    assert all(f"cand-a[temp:0][sp_idx:{place}]" in shown for place in (0, 1))
    assert "standard(judge-x): CLASS_" in shown
    out = state / "result.json"
    ok("rubric", "export", "paths", "--out", out)
    result = strict(out.read_text(encoding="utf-8"))
    assert result["executiveSummary"][0]["analyst"] == "analyst-z"
    assert result["executiveSummary"][0]["grades"]
    points = [point for one in result["coverage"]["paths"] for point in one["pointAssessments"]]
    judged = [said for point in points for said in point["individualJudgements"]]
    assert judged
    assert all(said["raw"] for said in judged)


def sent_to_analysts(players: Players) -> list[int]:
    """Tokens of each request to an analyst that arrived, by the rule of the estimate."""
    bodies = [json.loads(body) for body in players.answered]
    return [
        sum(estimate_tokens(message["content"]) for message in body["messages"])
        for body in bodies
        if role_of(body) == "analyst"
    ]


def analyst_tokens(*options: str) -> tuple[int, int]:
    row = estimated("--blueprint", "paths", *options)["analyst", "analyst-z"]
    return row["calls"], row["prompt_tokens"]


def test_report_to_the_analyst_is_estimated_as_it_is_sent(players: Players) -> None:
    """Instructions, models and tables were left out, so that the estimate was a third of what was sent; and a changed report cost nothing."""
    calls, nothing_known = analyst_tokens()
    dtef(*RUN, "--blueprint", "paths", "--max-calls", "judge=0", "--max-calls", "analyst=0")
    _, responses_known = analyst_tokens()
    dtef(*RUN, "--blueprint", "paths", "--max-calls", "analyst=0")
    _, all_known = analyst_tokens()
    assert sent_to_analysts(players) == []
    ok(*RUN, "--blueprint", "paths")
    (sent,) = sent_to_analysts(players)
    assert calls == 1
    assert all_known == sent
    # Whether a score or "unscored" will stand there is not known.
    assert 1 <= responses_known / sent < 1.05
    # No response is known: each is taken for 400 tokens, and these are some 20.
    assert responses_known < nothing_known
    assert analyst_tokens() == (0, 0)
    write_panel(rubric={**EMBEDDED, "or_paths": "two_group"})
    calls, other_scores = analyst_tokens()
    write_panel(rubric=EMBEDDED)
    assert calls == 1
    assert 1 <= other_scores / sent < 1.05
    _, next_night = analyst_tokens("--snapshot", "night-2")
    # Responses of the next night are taken to be as long as these, as the server counted them.
    assert 0.8 < next_night / sent < 1.25


def test_second_request_for_what_a_reply_lacks_is_in_the_estimate_until_it_is_answered(players: Players) -> None:
    players.analyst = lambda call: "<topic>law</topic>"
    ok(*RUN, "--blueprint", "one", "--max-calls", "analyst=1")
    row = estimated("--blueprint", "one")["analyst", "analyst-z"]
    assert (row["requests"], row["replayed"], row["calls"], row["calls_most"]) == (1, 0, 1, 1)
    ok(*RUN, "--blueprint", "one")
    assert row["prompt_tokens"] == max(sent_to_analysts(players))
    assert estimated("--blueprint", "one")["analyst", "analyst-z"]["calls"] == 0


def test_ten_classes_are_other_requests_and_are_estimated_as_they_are_sent(players: Players) -> None:
    ok(*RUN, "--blueprint", "one")
    write_panel(rubric={**EMBEDDED, "scale": 10})
    assert calls(estimated("--blueprint", "one"))["judge"] == 8
    assert players.asked
    ok("rubric", "run", "--from", "judge", "--no-roll-ups", "--blueprint", "one")
    assert players.asked["judge"] == 8
    assert calls(estimated("--blueprint", "one"))["judge"] == 0
    assert "standard(judge-x)[scale:10]: CLASS_" in ok("rubric", "show", "one", "first")
    write_panel(rubric={"scale": 7})
    assert "panel.yaml:2: rubric.scale: got 7; allowed: 5, 10" in refused("rubric", "run", "--from", "judge")


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
    assumed = "1 ideal answer yet to be read for key points, taken to have 6 points each"
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
    assert "yet to be read" not in ok("rubric", "run", "--estimate", *EXTRACTING)
    assert (after["judge", "judge-x"]["planned"], after["judge", "judge-x"]["calls"]) == (10, 0)
    shown = ok("rubric", "show", "two", "second")
    assert "should [0], extracted: It says: For it is so" in shown
    assert "should [1], extracted: It says: It was ever so" in shown
    costs = strict(ok("sql", "SELECT sum(cost_usd) > 0 AS paid, count(*) AS n FROM rubric_extractions", "--format", "json"))
    assert costs == [{"paid": True, "n": 1}]

    # A run without the switch takes the points out again, and its estimate says so.
    write_panel(rubric=EMBEDDED)
    assert estimated("--blueprint", "two")["judge", "judge-x"]["planned"] == 6
    ok(*RUN, "--blueprint", "two")
    assert not {role for role, n in lacking.asked.items() if n and role != "analyst"}
    assert "extracted" not in ok("rubric", "show", "two", "second")


def test_nobody_is_asked_for_key_points_where_no_analyst_is_named(lacking: Players, state: Path) -> None:
    models = yaml.safe_load((state / "models.yaml").read_text(encoding="utf-8"))
    models["collections"].pop("analyst")
    (state / "models.yaml").write_text(yaml.safe_dump(models), encoding="utf-8")
    write_panel(rubric=POINTS)
    for more in ([], ["--estimate"]):
        assert "nobody is named who extracts key points" in refused("rubric", "run", *more, *EXTRACTING)
    assert not lacking.asked
    write_panel(rubric={**POINTS, "analysts": ["analyst-z"]})
    assert "analyst-z (key points)" in ok("rubric", "run", "--estimate", *EXTRACTING)


def test_budgets_of_key_points_are_those_of_their_model_and_role(lacking: Players) -> None:
    write_panel(rubric=POINTS)
    told = ok("rubric", "run", "--estimate", *EXTRACTING, "--max-calls", "analyst-z=1", "--max-calls", "analyst=1")
    assert sum("1 call" in line or "max_calls" in line for line in told.splitlines()) >= 2
    dtef(*RUN, *EXTRACTING, "--max-calls", "analyst=0")
    assert lacking.asked["extractor"] == 0


def test_dollars_are_tokens_at_the_models_prices_and_the_most_is_never_less(players: Players) -> None:
    for row in estimated().values():
        assert row["cost_usd"] == pytest.approx((row["prompt_tokens"] + 2 * row["response_tokens"]) / 1e6)
        assert row["cost_usd_most"] >= row["cost_usd"]
        assert row["calls_most"] >= row["calls"]


def test_budgets_are_compared_with_the_estimate_by_run_role_and_model(players: Players) -> None:
    budgets = ("--max-calls", "1", "--max-cost-usd", "judge=1000", "--max-calls", "cand-a=1000")
    text = ok("rubric", "run", "--estimate", *budgets)
    assert "max_calls 1 would be reached" in text
    assert "judge: max_cost_usd 1,000.0 would not be reached" in text
    assert "cand-a: max_calls 1,000 would not be reached" in text
    told = refused("rubric", "run", "--estimate", "--max-calls", "cand=5", "--format", "json")
    assert "budget of 'cand': allowed: a role or a model of this run: cand-" in told


def test_a_model_under_test_that_is_not_known_is_told_before_judges_are_missed(players: Players, state: Path) -> None:
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


def test_estimate_asks_nobody_and_makes_no_store(players: Players, state: Path) -> None:
    estimated()
    assert +players.asked == Counter()
    assert not (state / "responses.sqlite").exists()
