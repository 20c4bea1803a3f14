"""`dtef preference`: pairs of stored responses of every family, votes, pages, and files of votes that come in and go out."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dtef_pipeline.preference.votes import Ballot
from resources.votes.vote_store import VoteStore, read_player_votes
from resources.warehouse import Warehouse
from tests.dtef_pipeline.cli.commands import ok, refused
from tests.made.qa_scores import keep_in
from tests.made.shared_cases import shared
from tests.made.votes import VOTES, real_votes

MODELS = ("one", "two", "three")


def asked(model: str, draw: int = 0) -> dict[str, Any]:
    text = f"<think>Hm.</think>I am {model}, and I say {model[::-1]}."
    variant = f"openai/{model}[temperature=0]"
    return {
        "model": model,
        "model_variant": variant,
        "draw": draw,
        "snapshot": "base",
        "call_status": "answered",
        "response": text,
        "request_key": f"key of {model}",
    }


@pytest.fixture
def house(state: Path) -> Warehouse:
    question = {"suite": "made", "part": "all", "item_id": "1", "condition": "plain", "prompt_id": "p"}
    said = [{"role": "system", "text": "Be brief."}, {"role": "user", "text": "What is it?"}]
    of_questions = [question | asked(model) for model in MODELS]
    of_questions.append(question | asked("four") | {"call_status": "error", "response": None})
    prompt = {"blueprint": "b", "prompt": "hello", "snapshot": "base", "status": "ok", "request_keys": ["k1", "k2"]}
    prompt["transcript"] = [*said, {"role": "assistant", "text": "x"}]
    of_rubrics = [
        prompt | {"system_index": system, "text": f"{model} says {system == 0} {model[::-1]}", **_of(asked(model))}
        for model in MODELS
        for system in (None, 0)
    ]
    place = {"round": "GD1", "segment": "country:x", "context_level": "0", "condition": "c", "prompt_id": "p"}
    # Both questions stand in one request.
    asked_of = [place | {"question_id": f"q{at}", "system": "S", "user": "How many?"} for at in range(2)]
    tables = {
        "qa_prompts": [question | {"messages": said}],
        "qa_responses": of_questions,
        "rubric_responses": of_rubrics,
        "blueprints": asked_of,
        "predictions": [one | asked(model) for model in MODELS for one in asked_of],
    }
    return keep_in(state / "warehouse", tables)


def _of(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in ("model", "model_variant", "draw")}


def store(state: Path) -> VoteStore:
    return VoteStore(state / "responses.sqlite")


@pytest.mark.parametrize(
    ("family", "pairs", "item", "prompt"),
    [
        ("qa", 3, "made/all/1 [plain]", "What is it?"),
        ("rubric", 6, "b/hello", "What is it?"),
        ("survey", 3, "GD1/country:x/q0 [0, c]", "How many?"),
    ],
)
def test_responses_of_every_family_become_pairs_once(
    house: Warehouse, state: Path, family: str, pairs: int, item: str, prompt: str
) -> None:
    assert f"{pairs} new pairs" in ok("preference", "pairs", "--family", family)
    again = ok("preference", "pairs", "--family", family)
    assert "0 new pairs" in again
    assert "Nothing is left to pair" in again
    with store(state) as votes:
        assert item in {pair.item_id for pair in votes.pairs(family)}
        served = votes.reviewer_view(votes.waiting("r1")[0])
        assert served.prompt == prompt
        assert not re.search(r"one|two|three|openai|Hm", f"{served.run_a} {served.run_b}", re.IGNORECASE)


def test_what_is_paired_can_be_chosen(house: Warehouse, state: Path) -> None:
    refused("preference", "pairs", "--family", "qa", "--pattern", "other/*")
    refused("preference", "pairs", "--family", "qa", "--snapshot", "later")
    assert "1 new pair " in ok("preference", "pairs", "--family", "qa", "--pattern", "made/*", "--max-pairs", "1")
    assert "1 new pair " in ok(
        "preference", "pairs", "--family", "qa", "--model", "one", "--model", "two", "--model", "three", "--per-item", "2"
    )


def vote_on_all(state: Path, reviewer: str, *choices: str) -> list[str]:
    """The ids of votes on the next pairs, with a reason that can be left out."""
    with store(state) as votes:
        pairs = votes.waiting(reviewer, len(choices))
        ballots = [Ballot(pair, reviewer, choice, 4, "well put") for pair, choice in zip(pairs, choices, strict=True)]  # type: ignore[arg-type]
        return [votes.take(ballot) for ballot in ballots]


def test_votes_are_listed_traced_voided_and_exported(house: Warehouse, state: Path) -> None:
    ok("preference", "pairs", "--family", "qa")
    vote_id = vote_on_all(state, "zoe", "A", "B", "tie")[0]
    listed = json.loads(ok("preference", "votes", "--json"))
    assert {row["vote"] for row in listed} >= {vote_id}
    chain = json.loads(ok("preference", "votes", vote_id, "--json"))
    assert [row["side"] for row in chain] == ["left", "right"]
    assert all(row["request_key"].startswith("key of") and row["paired_config_hash"] for row in chain)
    # The version alone named many states of the code.
    assert all(re.fullmatch(r"\S+\+[0-9a-f]{16}", row["paired_code_version"]) for row in chain)
    assert all("not in this store" in row["reason"] for row in chain)
    ok("preference", "votes", vote_id, "--void", "a test", "--user", "admin")
    assert "a test" in (told := ok("preference", "votes", vote_id))
    assert all("  " in line for line in told.splitlines() if line), "long names of columns ran into their values"
    assert "voided already" in refused("preference", "votes", vote_id, "--void", "again")
    with store(state) as votes:
        assert len(read_player_votes(votes)) == 2
    ok("export", "votes", state / "x.jsonl", "--no-justifications", "--user", "admin")
    assert "well put" not in (state / "x.jsonl").read_text()
    done = json.loads(ok("preference", "votes", "--actions", "--json"))
    assert [one["what"] for one in done] == ["pairs", "void", "export"]
    assert (done[1]["who"], json.loads(done[1]["after"])["reason"]) == ("admin", "a test")
    assert "a test" in done[1]["after"]
    assert vote_id in done[1]["before"]
    # A narrow terminal said that --wide shows the rest, and there was no --wide.
    assert "void" in ok("preference", "votes", "--actions", "--wide")


def test_votes_of_a_page_come_back_by_import(house: Warehouse, state: Path) -> None:
    ok("preference", "pairs", "--family", "qa")
    assert "3 pairs" in ok("preference", "vote", "--out", state / "page", "--reviewer", "zoe")
    with store(state) as votes:
        ballot = {"kind": "ballot", "schema": 1, "reviewer_id": "zoe", "choice": "B", "confidence": 5, "justification": ""}
        lines = [json.dumps({**ballot, "pair_id": one}) for one in votes.waiting("zoe", 9)]
    (state / "votes.jsonl").write_text("\n".join(lines))
    assert "3 votes added" in ok("import", "votes", state / "votes.jsonl")
    assert "no pair is left" in refused("preference", "vote", "--out", state / "page", "--reviewer", "zoe")
    lines[1] = lines[1].replace('"B"', '"C"')
    (state / "votes.jsonl").write_text("\n".join(lines))
    assert "votes.jsonl:2: choice: got 'C'; allowed: A, B, tie" in refused("import", "votes", state / "votes.jsonl")


def test_reviewers_with_consent_are_named_in_exports(house: Warehouse, state: Path) -> None:
    ok("preference", "pairs", "--family", "qa")
    vote_on_all(state, "zoe", "A")
    ok("export", "votes", state / "a.jsonl")
    assert '"zoe"' not in (state / "a.jsonl").read_text()
    assert "reviewer 'nobody' has no votes" in refused("preference", "votes", "--no-consent", "nobody")
    ok("preference", "votes", "--consent", "zoe")
    ok("export", "votes", state / "a.jsonl")
    assert '"zoe"' in (state / "a.jsonl").read_text()


@pytest.mark.thorough
def test_real_votes_come_in_and_travel_without_a_change(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared("votes")
    real = VOTES / "llmfao"
    command = ("import", "votes", real / "votes.csv")
    known = ("--responses", real / "responses.jsonl", "--prompts", real / "prompts.jsonl")
    assert "295 responses, 844 pairs, 3,538 votes added" in ok(*command, *known)
    ok("export", "votes", state / "a.jsonl.gz")
    with store(state) as votes:
        found = sorted((vote.item_id, *_preferred(vote)) for vote in read_player_votes(votes))
        assert votes.waiting("somebody")
    better = {"A": "left", "B": "right"}
    assert found == sorted(
        (
            row["prompt_id"],
            *sorted((row["left"], row["right"])),
            row[better[row["choice"]]] if row["choice"] in better else "tie",
        )
        for row in real_votes()
    )
    monkeypatch.setenv("DTEF_RESPONSES", str(state / "second.sqlite"))
    ok("import", "votes", state / "a.jsonl.gz")
    ok("export", "votes", state / "b.jsonl.gz")
    assert (state / "a.jsonl.gz").read_bytes() == (state / "b.jsonl.gz").read_bytes()


def _preferred(vote: Any) -> tuple[str, str, str]:
    first, second = sorted((vote.left, vote.right))
    return first, second, "tie" if vote.preferred_side == "tie" else getattr(vote, vote.preferred_side)


def test_a_csv_without_responses_counts_and_is_not_served(state: Path) -> None:
    (state / "v.csv").write_text("left,right,choice\nx,y,A\nx,y,B\ny,x,A\n")
    assert "2 responses, 1 pair, 3 votes added" in ok("import", "votes", state / "v.csv")
    with store(state) as votes:
        assert sorted(getattr(vote, vote.preferred_side) for vote in read_player_votes(votes)) == ["x", "y", "y"]
        assert not votes.waiting("somebody")
    for text, said in (
        ("left,right,choice,reviewer_id\nx,y,A,\x1b[2J\n", r"v\.csv:2: reviewer_id; got .*allowed: nothing, or 200 printable"),
        ("left,right,choice,reviewer_id\nx,y,A,r\nx,y,B,r\n", r"v\.csv:3: .*allowed: one vote of a reviewer on a pair"),
    ):
        (state / "v.csv").write_text(text)
        assert re.search(said, refused("import", "votes", state / "v.csv"))
    refused("import", "votes", state / "v.csv", "--prompts", state / "v.csv")


FORM = "You may think first, in a few sentences. Then end your reply with a line of the form ACTION."


def keep_episodes(folder: Path) -> None:
    """One item, played by two models as themselves and by one of them as a persona; the opponent writes too."""
    place = {"league": "poker", "scenario": "kuhn", "version": 1, "item_id": "17/0/baseline/random"}
    rows, turns = [], []
    for name, persona in (("one", ""), ("two", ""), ("one", "calm:v2")):
        of = place | {"episode_id": f"{persona}{name}", "persona": persona, "snapshot": "base", **_of(asked(name))}
        rows.append(of | {"status": "played", "seat": 0})
        for turn, (mine, said) in enumerate(
            [(True, f"<think>K!</think>I bet, says {{}}, {len(rows)}."), (False, "secret"), (True, "ACTION: call")]
        ):
            text = said.format("Calm Carl" if persona else name)
            turns.append(of | {"turn": turn, "attempt": 0, "under_test": mine, "call_status": "answered", "response": text})
            turns[-1] |= {
                "request_key": f"{name} {persona} {turn}",
                "reaction": f"Pot {turn + 2}.\n\n{FORM}" if mine else "hidden",
            }
    seen = {"role": "user", "text": "You hold a king."}
    prompts = [
        place | {"persona": persona, "messages": [{"role": "system", "text": system}, seen]}
        for persona, system in (("", f"The rules.\n\n{FORM}"), ("calm:v2", "You are calm. The rules."))
    ]
    keep_in(folder, {"episodes": rows, "episode_turns": turns, "episode_prompts": prompts})


def test_episodes_of_one_deal_and_opponent_become_pairs(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DTEF_PERSONAS", str(state / "personas"))
    (state / "personas").mkdir(parents=True)
    calm = '{"id": "calm", "version": 2, "status": "approved", "display_name": "Calm Carl", "system_prompt": "Be calm."}'
    (state / "personas" / "calm.yaml").write_text(calm, encoding="utf-8")
    keep_episodes(state / "warehouse")
    assert "3 new pairs of 3 responses" in ok("preference", "pairs", "--family", "games", "--pattern", "poker/kuhn")
    with store(state) as votes:
        (item,) = {pair.item_id for pair in votes.pairs("games")}
        assert item == "poker/kuhn/v1/17/0/baseline/random"
        served = [votes.reviewer_view(pair.pair_id) for pair in votes.pairs("games")]
    assert {one.prompt for one in served} == {f"The rules.\n\n{FORM}\n\nYou hold a king."}
    texts = {text for one in served for text in (one.run_a, one.run_b)}
    assert len(texts) == 3
    assert {re.sub("[0-9]+[.]", "N.", text) for text in texts} == {
        f"Player: I bet, says [model], N.\n\nGame: Pot N.\n\n{FORM}\n\nPlayer: ACTION: call\n\nGame: Pot N.\n\n{FORM}"
    }
    ok("preference", "vote", "--reviewer", "zoe", "--out", state / "to_zoe")
    assert "I bet, says [model]" in (state / "to_zoe" / "votes.html").read_text(encoding="utf-8")


def test_a_vote_reported_from_the_other_side_is_the_same_vote(state: Path) -> None:
    (state / "v.csv").write_text("left,right,choice,reviewer_id\nx,y,A,r\ny,x,B,r\nx,y,A,r\n")
    assert "2 responses, 1 pair, 1 vote added" in ok("import", "votes", state / "v.csv")


def test_a_csv_holds_no_votes_under_the_id_of_a_judge(state: Path) -> None:
    (state / "v.csv").write_text("left,right,choice,reviewer_id\nx,y,A,r\nx,y,A,pairs(openai/x)#844a6136\n")
    said = " ".join(refused("import", "votes", state / "v.csv").split())
    assert re.search(r"v\.csv:3: reviewer_id: the id 'pairs\(openai/x\)#844a6136' belongs to a judge", said)


def test_rows_end_where_lines_of_a_csv_end(state: Path) -> None:
    (state / "v.csv").write_text("left,right,choice\nx\x85z,y\x0cw\u2028v,A\n", encoding="utf-8")
    assert "1 vote added" in ok("import", "votes", state / "v.csv")
    with VoteStore(state / "responses.sqlite") as votes:
        (vote,) = read_player_votes(votes)
    assert {vote.left, vote.right} == {"x\x85z", "y\x0cw\u2028v"}


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ('{"prompt_id": 1, "model": "y", "text": null}', r"r\.jsonl:2: no text; got 'null'; allowed: a text"),
        ('{"prompt_id": 1, "model": "y"}', r"r\.jsonl:2: no text; got 'nothing'"),
        ('{"prompt_id": 1, "model": "x", "text": "other"}', r"r\.jsonl:2: prompt_id 1 and model x: there already"),
        ('{"prompt_id": 1, "model": "y", "text": "b", "text": "c"}', r"r\.jsonl:2: is not JSON .the key 'text' is given twice"),
        ('{"prompt_id": 1, "model": "y", "text": "b", "maker": 3}', r"r\.jsonl:2: no maker; got '3'"),
    ],
)
def test_responses_of_a_csv_are_read_strictly(state: Path, second: str, said: str) -> None:
    (state / "v.csv").write_text("left,right,choice,prompt_id\nx,y,A,1\n")
    (state / "r.jsonl").write_text('{"prompt_id": 1, "model": "x", "text": "a"}\n' + second)
    command = ("import", "votes", state / "v.csv", "--responses", state / "r.jsonl")
    assert re.search(said, " ".join(refused(*command).split()))


def test_an_export_has_the_ending_of_json_lines(state: Path) -> None:
    for name in ("x.csv", "x.json", "x", "x.gz"):
        assert "allowed endings: .jsonl, .jsonl.gz" in refused("export", "votes", state / name)
        assert not (state / name).exists()


def computed(name: str, share: float) -> dict[str, Any]:
    return asked(name) | {"model": name, "model_variant": f"{name}[seed=1]", "response": f"[{share}, {100 - share}]"}


@pytest.fixture
def baselines(state: Path) -> Warehouse:
    place = {
        "round": "GD1",
        "segment": "country:x",
        "context_level": "0",
        "condition": "c",
        "prompt_id": "p",
        "question_id": "q",
    }
    rows = [asked("one"), computed("baseline/uniform", 13.861358859921921), computed("baseline/other", 20.123)]
    tables = {
        "blueprints": [place | {"system": "S", "user": "How many?"}],
        "predictions": [place | row for row in rows],
    }
    return keep_in(state / "warehouse", tables)


def test_baselines_stand_in_no_pair_unless_they_are_let_in(baselines: Warehouse, state: Path) -> None:
    """Nearly all pairs of surveys were of two baselines, and were served first."""
    assert "0 new pairs of 1 response\n" in ok("preference", "pairs", "--family", "survey")
    only = ("--model", "baseline/uniform", "--model", "baseline/other")
    assert "there are baselines, which are paired with --baselines" in " ".join(
        refused("preference", "pairs", "--family", "survey", *only).split()
    )
    assert "--baselines" not in refused("preference", "pairs", "--family", "survey", "--pattern", "other/*")
    assert "3 new pairs of 3 responses" in ok("preference", "pairs", "--family", "survey", "--baselines")
    ok("preference", "vote", "--reviewer", "zoe", "--out", state / "page")
    page = (state / "page" / "votes.html").read_text(encoding="utf-8")
    assert "13.86, 86.14" in page
    assert "13.861" not in page


def test_votes_of_elsewhere_can_be_listed_and_served(state: Path) -> None:
    """The family was refused here alone."""
    (state / "v.csv").write_text("prompt_id,left,right,choice\n1,x,y,A\n")
    lines = [{"prompt_id": "1", "model": model, "text": text} for model, text in (("x", "One."), ("y", "Two."))]
    (state / "r.jsonl").write_text("\n".join(map(json.dumps, lines)))
    ok("import", "votes", state / "v.csv", "--responses", state / "r.jsonl")
    of = ("--family", "elsewhere")
    assert len(json.loads(ok("preference", "votes", *of, "--json"))) == 1
    assert json.loads(ok("preference", "votes", "--family", "qa", "--json")) == []
    assert "1 pair;" in ok("preference", "vote", "--out", state / "page", "--reviewer", "zoe", *of)
    said = " ".join(refused("preference", "votes", "--family", "others").split())
    assert "survey, rubric, qa, games, elsewhere" in said
