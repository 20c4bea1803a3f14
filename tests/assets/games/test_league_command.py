"""`dtef games run` and `board` with a model API at the other end: estimates, boards, refusals, and a run that is killed during episodes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dtef_pipeline.cli.dtef import main
from dtef_pipeline.cli.games.games_group import games
from dtef_pipeline.games import pack_files
from resources.responses.store import ResponseStore
from tests.assets.games.conftest import REPLIES, SHOW_CARDS, write_made_models, write_made_scenarios
from tests.dtef_pipeline.cli.commands import dtef, ok, query, skip_site
from tests.fake_llm_server import Call, FakeLLM, Fault, always
from tests.made.made_games import ShowCards, show_pack
from tests.made.responses import stored
from tests.waiting import wait_until

AT_ONCE = 2
MODELS = ("legal", "second")
SOLITAIRE_TEXTS = 11
"""After so many a player resigns: each text is a commit, a busy disk takes its time for it, and nothing here is about the length of a game."""


def legal_reply(call: Call) -> str:
    """The first legal command that is listed; in solitaire the whole stock twice."""
    if "Legal commands: " in call.user:
        return f"ACTION: {call.user.rpartition('Legal commands: ')[2].splitlines()[0].split(', ')[0]}"
    if sum(one["role"] == "assistant" for one in call.body["messages"]) >= SOLITAIRE_TEXTS:
        return "ACTION: resign"
    return "ACTION: recycle" if "Stock: empty" in call.user else "ACTION: draw"


def test_a_run_killed_during_episodes_repeats_no_request_and_loses_no_turn(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ["games", "run", "--no-roll-ups", "--scenario", "thirteen", "--player", "legal", "--seeds", "1-2"]
    with FakeLLM(legal_reply, latency=0.1) as server:
        write_made_models(state, monkeypatch, server, MODELS, AT_ONCE)
        command = [str(Path(sys.executable).with_name("dtef")), *run]
        process = subprocess.Popen(command, env=dict(os.environ), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        # Both episodes play at once: this is the seventh turn of each.
        assert wait_until(lambda: server.answered >= 2 * 7 or process.poll() is not None, 240)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        server.await_nobody()
        with ResponseStore(state / "responses.sqlite") as store:
            committed = stored(store)
        answered = server.answered
        assert committed > 0
        assert answered - committed <= AT_ONCE
        server.latency = 0.0
        ok(*run)
        texts = query("SELECT episode_id, turn, attempt, request_key, call_status FROM episode_turns")
        requests = {row["request_key"] for row in texts}
        assert len(requests) > committed
        assert server.answered == answered + len(requests) - committed
    assert {row["call_status"] for row in texts} == {"answered"}
    assert len({(row["episode_id"], row["turn"], row["attempt"]) for row in texts}) == len(texts)
    episodes = query("SELECT item_id, status, n_turns FROM episodes")
    assert sorted(row["item_id"] for row in episodes) == ["1/0", "2/0"]
    assert {row["status"] for row in episodes} == {"played"}
    assert sum(row["n_turns"] for row in episodes) == len({(row["episode_id"], row["turn"]) for row in texts})


def test_a_model_that_hangs_in_one_scenario_holds_up_nobody_in_the_next(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    second_scenario_is_played, waited_for_nothing = threading.Event(), list[str]()

    def reply(call: Call) -> str:
        is_second_scenario = "Leduc" in call.body["messages"][0]["content"]
        if call.body["model"] == "second" and not is_second_scenario and not second_scenario_is_played.wait(60):
            waited_for_nothing.append(call.user)
        if call.body["model"] == "legal" and is_second_scenario:
            second_scenario_is_played.set()
        return legal_reply(call)

    players = ["--player", "second", "--player", "legal", "--opponent", "nash", "--seeds", "1-2"]
    with FakeLLM(reply) as server:
        write_made_models(state, monkeypatch, server, MODELS, AT_ONCE)
        ok("games", "run", "--no-roll-ups", "--scenario", "kuhn", "--scenario", "leduc", *players)
    assert waited_for_nothing == []
    assert Counter(row["status"] for row in query("SELECT status FROM episodes")) == {"played": 2 * 2 * 4}


def test_the_command_tells_the_error_of_the_call_that_used_up_the_budget(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It said that a budget was reached, and nothing of the only call, which had failed."""
    with FakeLLM(legal_reply) as server:
        server.fault = always(Fault("status", status=500, message="out of memory"))
        write_made_models(state, monkeypatch, server, MODELS, AT_ONCE)
        what = ("--scenario", "thirteen", "--player", "legal", "--seeds", "1-3", "--max-calls", "1")
        said = dtef("games", "run", "--no-roll-ups", *what).output
    (line,) = [one for one in said.splitlines() if "because a budget was reached" in one]
    assert "out of memory" in line


def dtef_games(*words: str) -> Result:
    return CliRunner().invoke(games, list(words))


@pytest.fixture
def server(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLM]:
    write_made_scenarios(state, monkeypatch)
    with FakeLLM(lambda call: REPLIES[call.body["model"]](call)) as server:
        write_made_models(state, monkeypatch, server)
        yield server


def test_a_league_is_estimated_played_and_shown(server: FakeLLM, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_site(monkeypatch)
    # Regression: where nothing was ever played, the check that episodes replay failed on an empty table.
    found = dtef_games("run", "--no-roll-ups", "--scenario", "show-cards", "--seeds", "1")
    assert (found.exit_code, "no player was given: stored episodes were scored" in found.output) == (0, True), found.output
    players = ["--player", "legal", "--player", "baseline/waits", "--persona", "calm"]
    league = ["--scenario", "show-cards", *players, "--seeds", "1-6"]
    before = dtef_games("run", "--estimate", *league, "--json")
    assert before.exit_code == 0, before.output
    (planned,) = json.loads(before.stdout)
    assert planned["model"] == "legal"
    assert planned["calls"] > 0
    assert planned["cost_usd_max"] > planned["cost_usd"] > 0
    assert len(server.calls) == 0
    played = dtef_games("run", *league)
    assert played.exit_code == 0, played.output
    assert "1 scenario, snapshot base" in played.output
    bought = len(server.calls)
    assert 0 < bought <= planned["calls_max"]
    (after,) = json.loads(dtef_games("run", "--estimate", *league, "--json").stdout)
    assert (after["calls"], after["replayed"]) == (0, bought)
    assert "There are no responses" not in dtef_games("run", "--estimate", *league[:-1], "1-8").output
    shown = dtef_games("board", "--scenario", "show-cards", "--json")
    rows = json.loads(shown.stdout)
    assert {row["player"] for row in rows} == {"calm:v2@legal", "baseline/waits"}
    assert [row["mean"] for row in rows] == sorted((row["mean"] for row in rows), reverse=True)
    _the_board_marks_a_persona_that_nobody_approved(state)
    of_family = [CliRunner().invoke(main, [*words, "--json"]) for words in (("games", "board"), ("costs", "--family", "games"))]
    assert json.loads(of_family[0].stdout) == [row for row in rows if row["scenario"] == "show-cards"]
    (cost,) = json.loads(of_family[1].stdout)
    assert (cost["model"], cost["persona"], cost["calls"], cost["unpriced"]) == ("legal", "calm:v2", bought, 0)
    by_opponent = dtef_games("board", "--by-opponent", "--metric", "illegal_rate")
    assert "baseline/careful" in by_opponent.output


def _the_board_marks_a_persona_that_nobody_approved(state: Path) -> None:
    """What counts is what its file says today."""
    place, board = state / "personas" / "calm.yaml", ("board", "--scenario", "show-cards")
    approved, own = place.read_text(encoding="utf-8"), "calm:v2@legal"
    for status, note in (("approved", ""), ("draft", "a draft persona")):
        place.write_text(approved.replace("approved", status), encoding="utf-8")
        rows = {row["player"]: row for row in json.loads(dtef_games(*board, "--json").stdout)}
        assert (rows[own]["persona_status"], rows["baseline/waits"]["persona_status"]) == (status, "")
        assert [one for one in rows[own]["note"].split("; ") if "persona" in one] == [note] * bool(note)
    place.write_text(approved, encoding="utf-8")


def test_check_names_scenarios_of_ones_own_and_where_they_are(
    server: FakeLLM, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: the folder of DTEF_SCENARIOS was never looked at."""
    monkeypatch.setattr(pack_files, "adapters", lambda: {SHOW_CARDS: lambda _: ShowCards()})
    place = state / "scenarios" / "made" / "show-cards.yaml"
    assert f"made/show-cards: complete ({place})" in dtef_games("check").output
    place.write_text(place.read_text(encoding="utf-8").replace("careful", "clever"), encoding="utf-8")
    checked = dtef_games("check")
    assert checked.exit_code == 1
    assert f"made/show-cards: not complete ({place})" in checked.output
    assert "its manifest names the opponent clever" in checked.output


def test_a_line_says_that_baselines_play_no_persona(server: FakeLLM) -> None:
    estimate = ("run", "--estimate", "--scenario", "show-cards", "--seeds", "1", "--persona", "calm", "--player", "baselines")
    line = "warning: --persona calm has no effect, because baselines do not play personas"
    assert line in " ".join(dtef_games(*estimate).output.split())
    assert line not in " ".join(dtef_games(*estimate, "--player", "legal").output.split())


def test_a_persona_that_is_not_approved_plays_only_where_somebody_says_so(server: FakeLLM, state: Path) -> None:
    place = state / "personas" / "calm.yaml"
    place.write_text(place.read_text(encoding="utf-8").replace("approved", "retired"), encoding="utf-8")
    league = ["--scenario", "show-cards", "--seeds", "1", "--player"]
    for chosen in (["legal", "--persona", "calm"], ["calm@legal"], ["baseline/waits", "--opponent", "calm@legal"]):
        refused = dtef_games("run", *league, *chosen)
        assert refused.exit_code == 2
        assert "calm:v2 (retired): not approved" in refused.output
        assert "--unapproved" in refused.output
    assert dtef_games("run", "--estimate", *league, "calm@legal", "--unapproved").exit_code == 0


def test_what_could_not_be_scored_is_reported_before_anything_is_bought(server: FakeLLM, state: Path) -> None:
    """Regression: the league was played, paid for, and failed when it was scored."""
    manifest = show_pack(severities={"odd": "high"}).manifest.model_dump(mode="json")
    (state / "scenarios" / "made" / "show-cards.yaml").write_text(json.dumps(manifest), encoding="utf-8")
    for more in (["--estimate"], []):
        refused = dtef_games("run", *more, "--scenario", "show-cards", "--player", "legal", "--seeds", "1")
        assert refused.exit_code == 2
        assert "made/show-cards: severities: odd: not a flag of the scenario" in refused.output
    assert len(server.calls) == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--scenario", "chess", "--player", "legal"], "--scenario 'chess' matches none; known: made/show-cards"),
        (
            ["--scenario", "show-cards", "--player", "legal", "--seeds", "9-1"],
            "--seeds: '9-1': the range 9-1 is backwards; write 1-9",
        ),
    ],
)
def test_what_cannot_be_played_is_reported_before_anything_is_bought(server: FakeLLM, words: list[str], told: str) -> None:
    refused = dtef_games("run", *words)
    assert refused.exit_code == 2
    assert told in refused.output
    assert len(server.calls) == 0
