"""Files of votes that come in and go out by `dtef import votes` and `export`: every fault is named by file and line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from resources.votes.vote_store import VoteStore, read_player_votes
from tests.dtef_pipeline.cli.commands import ok, refused


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
