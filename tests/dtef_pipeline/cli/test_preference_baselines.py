"""`dtef preference pairs` and baselines: they stand in no pair unless they are let in, of any family."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from resources.warehouse import Warehouse
from tests.dtef_pipeline.cli.commands import ok, refused
from tests.dtef_pipeline.cli.test_preference_votes import asked, keep, vote_on_all


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
    vote_on_all(state, "zoe", "A", "A", "A")
    chains = [
        json.loads(ok("preference", "votes", one["vote"], "--json")) for one in json.loads(ok("preference", "votes", "--json"))
    ]
    told = {row["reason"] for chain in chains for row in chain if row["player"].startswith("baseline/")}
    assert told == {"the response was computed from the data: no model was asked"}


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
