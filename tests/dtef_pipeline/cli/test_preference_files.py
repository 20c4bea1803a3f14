"""Files of votes that come in and go out, and votes on baselines and of other tools."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from resources.votes.vote_store import VoteStore, read_player_votes
from resources.warehouse import Warehouse
from tests.dtef_pipeline.cli.commands import ok, refused
from tests.dtef_pipeline.cli.test_preference_votes import asked, keep


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
def house(state: Path) -> Warehouse:
    house = Warehouse(str(state / "warehouse"))
    place = {
        "round": "GD1",
        "segment": "country:x",
        "context_level": "0",
        "condition": "c",
        "prompt_id": "p",
        "question_id": "q",
    }
    levels = {"round": "GD1", "segment": "country:x"}
    keep(house, "blueprints", [place | {"system": "S", "user": "How many?"}], **levels)
    rows = [asked("one"), computed("baseline/uniform", 13.861358859921921), computed("baseline/other", 20.123)]
    keep(house, "predictions", [place | row for row in rows], **levels, snapshot="base")
    return house


def test_baselines_stand_in_no_pair_unless_they_are_let_in(house: Warehouse, state: Path) -> None:
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
