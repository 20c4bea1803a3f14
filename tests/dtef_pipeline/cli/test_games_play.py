"""`dtef games play`: baselines, written commands, a person at the terminal, and a model whose responses are kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from dtef_pipeline.games import pack_files, packs
from dtef_pipeline.games.packs import adapters
from tests.dtef_pipeline.cli.commands import dtef, ok, refused, serve_as
from tests.fake_llm_server import FakeLLM
from tests.made.made_games import ShowCards, show_pack
from tests.strict_json import strict

NAME = "made/show-cards"
KEYS = {"rewards", "outcome", "ending", "actions", "illegal", "illegal_reasons", "state", "legal", "always_legal"}


@pytest.fixture(autouse=True)
def made_scenario(state: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The made-up scenario beside the shipped ones, and a folder for personas. Seed 7 deals A the lower card."""
    folder = state / "scenarios"
    (folder / "made").mkdir(parents=True)
    manifest = yaml.safe_dump(show_pack().manifest.model_dump(), sort_keys=False)
    (folder / "made" / "show-cards.yaml").write_text(manifest, encoding="utf-8")
    monkeypatch.setenv("DTEF_SCENARIOS", str(folder))
    monkeypatch.setenv("DTEF_PERSONAS", str(state / "personas"))
    known = {**adapters(), NAME: lambda _: ShowCards()}
    for module in (packs, pack_files):
        monkeypatch.setattr(module, "adapters", lambda: known)
    return folder


def played(*words: object, stdin: str | None = None) -> dict[str, Any]:
    found: dict[str, Any] = strict(ok("games", "play", NAME, "--seed", "7", *words, "--json", stdin=stdin))
    assert set(found) == KEYS
    return found


def test_baselines_play_to_the_end() -> None:
    found = played("--players", "baseline/waits,baseline/random")
    cards = found["state"]["cards"]
    assert found["actions"][-1] == [1, "show"]
    assert found["rewards"] == [1.0, -1.0] if cards[0] > cards[1] else [-1.0, 1.0]
    assert found["outcome"] == ("win" if cards[0] > cards[1] else "loss")
    assert (found["illegal"], found["illegal_reasons"], found["legal"]) == (0, [], [])
    assert found["ending"]["hidden"] == [f"A had {cards[0]}, B had {cards[1]}."]


def test_written_commands_are_the_first_seats_and_the_episode_stops_after_the_last() -> None:
    found = played("--players", "baseline/waits", "--commands", "wait; wait")
    assert found["actions"] == [[0, "wait"], [1, "wait"], [0, "wait"], [1, "wait"]]
    assert (found["rewards"], found["outcome"], found["ending"], found["legal"]) == (None, None, None, ["wait", "show"])
    assert played("--players", "baseline/careful,baseline/waits", "--commands", "wait; wait") == found


def test_a_written_command_that_is_not_allowed_changes_nothing_and_is_counted() -> None:
    found = played("--players", "baseline/waits", "--commands", "fly; fly; fly; fly; wait")
    assert found["actions"] == [[0, "wait"], [1, "wait"]]
    assert (found["illegal"], found["illegal_reasons"]) == (4, ["fly is no command here."] * 4)


def test_without_players_the_first_opponent_sits_at_the_other_seats() -> None:
    said = ok("games", "play", NAME, "--seed", "7", "--commands", "wait;show")
    assert "B (baseline/careful)" in said


def test_the_trace_shows_each_move_and_the_whole_state() -> None:
    said = ok("games", "play", NAME, "--seed", "7", "--players", "baseline/waits", "--commands", "fly;show", "--trace")
    assert "  1  A (commands)  no move (illegal): fly is no command here.\n" in said
    assert "  1  A (commands)  show\n" in said
    assert 'state: {"cards": [' in said
    assert "trace: " in said


def test_the_trace_shows_what_the_game_answered_also_to_the_last_command() -> None:
    """Hints were asked for in traces, and their answers were not to be seen."""
    said = ok("games", "play", "thirteen", "--commands", "hint; draw; hint", "--trace")
    assert said.count("       > Hint: ") == 2
    assert "       > Waste: 11\n" in said


def test_a_person_plays_and_learns_what_the_seat_may_see() -> None:
    said = ok("games", "play", NAME, "--seed", "7", "--players", "human,baseline/waits", stdin="?\nfly\n\n1\nshow\n")
    assert said.startswith("Each seat has a card.")
    assert "A> \n  1  wait\n  2  show\nA> Nothing was played: fly is no command here.\nA> A> Your card is" in said
    assert "Said so far: wait, wait." in said
    assert "3 turns, illegal texts: 1" in said
    assert "3 words were said.\n" in said
    assert "not shown to the players" not in said


def test_who_looks_on_also_learns_what_the_players_were_not_shown() -> None:
    hidden = "(not shown to the players) A had "
    for words in (("--players", "baseline/careful,baseline/waits"), ("--commands", "show"), ("--trace",)):
        assert hidden in ok("games", "play", NAME, "--seed", "7", *words, stdin="show\n")


@pytest.mark.parametrize("stdin", ["QUIT\n", "wait\n"])
def test_a_person_may_stop_at_any_time(stdin: str) -> None:
    result = dtef("games", "play", NAME, stdin=stdin)
    assert result.exit_code == 0
    assert "stopped before the end" in result.stderr
    assert "not over after" in result.stdout


def test_a_person_may_try_as_often_as_they_like() -> None:
    found = played("--players", "human,baseline/waits", stdin="fly\n" * 9 + "show\n")
    assert found["illegal"] == 9
    assert found["rewards"] is not None


def test_with_json_nothing_else_is_on_standard_output() -> None:
    result = dtef("games", "play", NAME, "--json", stdin="?\nquit\n")
    assert set(json.loads(result.stdout)) == KEYS
    assert "Your card is" in result.stderr


def test_what_cannot_be_played_is_refused() -> None:
    assert "no model or collection 'nobody'" in refused("games", "play", NAME, "--players", "nobody,human")
    assert "give --json or --trace, not both" in refused("games", "play", NAME, "--json", "--trace")
    assert "snapshot '../x': allowed" in refused("games", "play", NAME, "--snapshot", "../x")
    assert "scenario made/show-card: unknown; allowed: made/show-cards" in refused("games", "play", "made/show-card")


def test_a_model_plays_through_the_store_and_is_asked_nothing_twice(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replies = ["I wait first.\nACTION: wait", "fly", "ACTION: show"]
    with FakeLLM(
        reply=lambda call: replies[len([one for one in call.body["messages"] if one["role"] == "assistant"])]
    ) as server:
        serve_as(server, state, monkeypatch)
        words = ("games", "play", NAME, "--seed", "7", "--players", "bold@fake,baseline/waits")
        first = ok(*words, "--trace")
        assert server.answered == 3
        assert ok(*words, "--trace") == first
        assert server.answered == 3
        sent = server.calls[-1].body["messages"]
    assert "  1  A (bold@fake)  wait\n       | I wait first.\n" in first
    assert "  2  A (bold@fake)" not in first
    assert "  3  A (bold@fake)  no move (illegal): fly is no command here.\n" in first
    assert [one["role"] for one in sent] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert sent[0]["content"].startswith("You like to lead.")


def test_scenarios_and_personas_are_listed() -> None:
    said = ok("games", "list")
    assert NAME in said
    assert "random, first-legal, careful, waits" in said
    assert "bold:v1" in said
    listed = strict(ok("games", "list", "--json"))
    (made,) = (one for one in listed["scenarios"] if one["scenario"] == NAME)
    assert (made["status"], made["version"], made["seats"]) == ("experimental", 1, ["A", "B"])
    assert {one["persona"] for one in listed["personas"]} == {"bold:v1", "cautious:v1", "plain-spoken:v1"}


def test_personas_go_out_and_in_as_the_same_bytes(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {
        "id": "mine",
        "version": 4,
        "display_name": "Mïne",
        "system_prompt": "Be\n  odd: #1 \x85 \u2028\t'\"",
        "traits": {"a": 1.0},
    }
    (state / "personas").mkdir()
    (state / "personas" / "mine.yaml").write_text(yaml.safe_dump(own), encoding="utf-8")
    out, again, packed = state / "a.jsonl", state / "b.jsonl", state / "c.jsonl.gz"
    assert ok("export", "personas", out).startswith("4 personas")
    ok("export", "personas", packed)
    monkeypatch.setenv("DTEF_PERSONAS", str(state / "empty"))
    assert ok("games", "add", packed).startswith("1 persona written")
    assert "0 personas written" in ok("games", "add", out)
    ok("export", "personas", again)
    assert again.read_bytes() == out.read_bytes()


def test_scenarios_go_out_and_into_an_empty_store_as_the_same_bytes(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, again, packed = state / "a.jsonl", state / "b.jsonl", state / "c.jsonl.gz"
    ok("export", "scenarios", out)
    lines = [one for line in out.read_text(encoding="utf-8").splitlines() if (one := json.loads(line))["id"] == "poker/kuhn"]
    kuhn = next(one for one in lines if one["id"] == "poker/kuhn")
    own = [{**kuhn, "id": "own/kuhn", "adapter": "poker/kuhn", "version": version} for version in (1, 3)]
    text = "".join(f"{json.dumps(one)}\n" for one in [*lines, *own])
    out.write_text(text, encoding="utf-8")
    assert f"2 scenario versions added from {out}, {len(lines)} stored before" in ok("games", "add", out)
    ok("export", "scenarios", out)
    ok("export", "scenarios", packed)
    monkeypatch.setenv("DTEF_RESPONSES", str(state / "empty.sqlite"))
    assert "2 scenario versions added" in ok("games", "add", packed, "--by", "me")
    assert "nothing added" in ok("games", "add", out)
    ok("export", "scenarios", again)
    assert again.read_bytes() == out.read_bytes()


def test_a_bad_line_takes_in_no_scenario(state: Path) -> None:
    file = state / "in.jsonl"
    ok("export", "scenarios", file)
    lines = file.read_text(encoding="utf-8").replace('"version":1', '"version":7').splitlines()
    file.write_text("\n".join([lines[0], lines[1].replace('"version":7', '"version":0'), *lines[2:]]), encoding="utf-8")
    assert "in.jsonl:2: version: got 0; allowed: 1 or more" in refused("games", "add", file)
    ok("export", "scenarios", file)
    assert '"version":7' not in file.read_text(encoding="utf-8")


def test_a_file_that_holds_another_persona_is_reported_with_the_line_that_wants_it(state: Path) -> None:
    file, folder = state / "in.jsonl", state / "personas"
    ok("export", "personas", file)
    lines = file.read_text(encoding="utf-8").replace('"version":1', '"version":7')
    file.write_text(f"\n{lines}", encoding="utf-8")
    folder.mkdir()
    other = {"id": "mine", "version": 1, "display_name": "Mine", "system_prompt": "Be mine."}
    (folder / "bold.v7.yaml").write_text(yaml.safe_dump(other), encoding="utf-8")
    told = refused("games", "add", file).replace("\n", "")
    assert "in.jsonl:2: " in told
    assert "bold.v7.yaml holds another persona" in told


@pytest.mark.parametrize(
    ("name", "data"), [("x.jsonl", b"\xff\n"), ("x.jsonl.gz", b"no gzip"), ("x.jsonl.gz", b"\x1f\x8b\x08")]
)
def test_a_file_that_cannot_be_read_is_named(state: Path, name: str, data: bytes) -> None:
    (state / name).write_bytes(data)
    assert name in refused("games", "add", state / name)


def test_commands_that_may_be_given_in_every_turn_are_listed_behind_the_moves() -> None:
    """`?` promised what a person may do, and left out hint and resign."""
    said = ok("games", "play", "thirteen", "--seed", "1", stdin="?\nhint\nresign\n")
    assert "and in every turn: hint, resign" in said
    assert "Hints: 1" in said
    begun = strict(ok("games", "play", "thirteen", "--seed", "1", "--commands", "draw", "--json"))
    assert begun["always_legal"] == ["hint", "resign"]
    assert not {"hint", "resign"} & {*begun["legal"]}
    assert strict(ok("games", "play", "thirteen", "--seed", "1", "--commands", "resign", "--json"))["always_legal"] == []
