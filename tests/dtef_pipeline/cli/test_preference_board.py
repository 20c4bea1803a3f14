"""From stored votes to the published board, and beside automated metrics."""

from __future__ import annotations

import secrets
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from dtef_pipeline.families import FAMILIES
from dtef_pipeline.preference.score_columns import PREFERENCE_SCORES
from dtef_pipeline.preference.score_publishing import METRIC_QUERY_COLUMNS as METRICS_READ
from dtef_pipeline.qa.tables import QA_BOARD
from resources.settings import Settings
from resources.votes.vote_store import VoteStore
from resources.warehouse import TABLES, Warehouse
from tests.dtef_pipeline.cli.commands import dtef, name_panel, ok, refused, skip_site, write_panel
from tests.made.qa_scores import table_of
from tests.made.votes import add_judged, store_votes
from tests.strict_json import strict

PLAYERS = tuple(f"player-{letter}" for letter in "abcdefghi")


@pytest.fixture
def voted(state: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """200 votes of people on two suites and 40 of a judge, and a board of questions on which the players stand in nearly the same order."""
    # The salt decides who votes on which pair: with some, another player came first, or the judge's votes had no finite answer.
    monkeypatch.setattr(secrets, "token_hex", lambda size: "5a" * size)
    store_votes(160, PLAYERS, suite="made", reviewers=8)
    store_votes(40, PLAYERS, suite="other", reviewers=8)
    store_votes(40, PLAYERS, suite="judged", reviewer_kind="judge")
    base = {"cut": "overall", "suite": "made", "condition": "plain", "metric": "accuracy", "measured_by": "", "snapshots": []}
    order = [1, 0, *range(2, 9)]
    rows = [
        base | {"model": one, "model_variant": one, "score": 1 - place / 10} for one, place in zip(PLAYERS, order, strict=True)
    ]
    rows += [row | {"metric": name, "score": score} for name, score in (("even", 0.5), ("unknown", None)) for row in rows]
    Warehouse(str(state / "warehouse")).write("qa_board", table_of(rows, QA_BOARD))
    skip_site(monkeypatch)
    ok("preference", "board", "--refresh")
    return state


def test_votes_become_a_board_and_stand_beside_metrics(voted: Path) -> None:
    board = strict(ok("preference", "board", "--json"))
    people = [row for row in board if row["reviewer_kind"] == "person"]
    assert {row["partition"] for row in board} == {"all"}
    assert sorted(row["rank"] for row in people) == list(range(1, 10))
    assert {(row["votes"], row["reviewers"], row["ties"]) for row in people} == {(200, 8, "half")}
    assert people[0]["player"] in PLAYERS[:3]
    assert all(row["low"] < row["beta"] < row["high"] for row in people)
    assert {row["flip_rate"] for row in board} == {None}, "these judges do not say what they saw"
    made = strict(ok("preference", "board", "--partition", "made", "--json"))
    assert {row["votes"] for row in made} == {160}
    shown = ok("preference", "board", "--judge", "a judge")
    assert "nothing to show" in refused("preference", "board", "--judge", "another")
    assert "40 votes, 1 reviewer" in shown
    assert "at least 5 are needed" in shown

    both = strict(ok("preference", "board", "--metric", "*", "--json"))
    metrics = {row["metric"] for row in both if row["reviewer_kind"] == "person"}
    assert metrics == {"made: accuracy [plain]", "made: even [plain]", "made: unknown [plain]", "preference of a judge"}
    shown = ok("preference", "board", "--metric", "*", "--wide")
    assert "accuracy" in shown.partition("Kendall")[0]
    assert "even" not in shown, "a metric that puts all players at one place was a wall of rows"
    assert "not shown: 1 metric, as there is no tau: one order puts all players at the same place; --csv names it" in " ".join(
        shown.split()
    )
    assert "no tau: at least 2 players are needed" in {
        row["reason"] for row in both if row["metric"] == "made: unknown [plain]"
    }
    assert "no tau" in ok("preference", "board", "--metric", "made: even*")
    of_accuracy = [row for row in both if row["metric"].startswith("made: acc") and row["reviewer_kind"] == "person"]
    assert {row["n_players"] for row in of_accuracy} == {9}
    tau = of_accuracy[0]["tau"]
    pairs = [(a, b) for a in of_accuracy for b in of_accuracy if a["player"] < b["player"]]
    agreeing = sum((a["beta"] > b["beta"]) == (a["value"] > b["value"]) for a, b in pairs)
    assert tau == pytest.approx(2 * agreeing / len(pairs) - 1)
    assert of_accuracy[0]["tau_low"] < tau < of_accuracy[0]["tau_high"]
    assert "Kendall's tau" in ok("preference", "board", "--metric", "made*")
    assert "nothing to compare" in refused("preference", "board", "--partition", "other", "--metric", "made*")
    assert "no votes of partition x; there are: all, judged, made, other" in refused("preference", "board", "--partition", "x")

    warehouse = Warehouse(str(voted / "warehouse"))
    rows = warehouse.rows("preference_scores").to_pylist()
    assert {row["note"] for row in rows} == {None}
    limited = pa.Table.from_pylist([row | {"note": "few prompts"} for row in rows], schema=PREFERENCE_SCORES)
    warehouse.write("preference_scores", limited)
    assert "note: qa, all, person: few prompts" in " ".join(ok("preference", "board").split())

    with VoteStore(Settings.read_environment().responses_url) as store:
        store.void(store.votes()[0][0], "test", "a mistake")
    assert "the votes have changed since" in dtef("preference", "board").stderr
    (file,) = (voted / "warehouse" / "preference_scores").rglob("*.parquet")
    file.write_bytes(b"PAR1 broken")
    damaged = dtef("preference", "board")
    assert damaged.exit_code == 1
    assert "makes it again: dtef preference board --refresh" in damaged.stderr


def test_a_roll_up_by_item_at_equal_length_with_weights_says_so(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With votes of a judge beside people's, weights ended in a failed run; items and length were options of `fit` alone."""
    store_votes(60, reviewers=6)
    store_votes(40, suite="other", reviewers=6)
    add_judged("openai/gpt-4o", ("[temperature=0]",), 100)
    skip_site(monkeypatch)
    how = {"weight": "confidence", "control": "length", "items": ["made/*"], "no_own_judge": True}
    name_panel(state, monkeypatch, preference=how)
    ok("preference", "board", "--refresh")
    board = strict(ok("preference", "board", "--json"))
    people, judged = ([row for row in board if row["reviewer_kind"] == kind] for kind in ("person", "judge"))
    assert {(row["votes"], row["weight"], row["control"], row["items"]) for row in people} == {
        (60, "confidence", "length", "made/*")
    }
    assert {(row["weight"], row["unweighted_reason"], row["judge"]) for row in judged} == {
        (None, "judges give no confidence", "pairs(openai/gpt-4o[temperature=0])#01234567")
    }
    shown = " ".join(ok("preference", "board").split())
    for words in ("only items that fit made/*", "every vote counts 1: judges give no confidence", "a text twice as long has"):
        assert words in shown
    write_panel(preference={"items": ["x"]})
    assert "items: made/all/0" in refused("preference", "board", "--refresh")


def test_without_votes_the_board_says_what_makes_it(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_site(monkeypatch)
    assert "no votes yet" in refused("preference", "board", "--refresh")
    store_votes(1)
    ok("preference", "board", "--refresh")
    with VoteStore(Settings.read_environment().responses_url) as store:
        store.void(store.votes()[0][0], "test", "a mistake")
    assert "there were no votes" in refused("preference", "board", "--refresh")
    assert "there were no votes" in refused("preference", "board")


@pytest.mark.parametrize("family", [family.name for family in FAMILIES if family.pair_source and family.name != "survey"])
def test_metrics_of_every_family_can_be_read(family: str, state: Path) -> None:
    house = Warehouse(str(state / "warehouse"))
    (sources,) = (one.pair_source.metrics for one in FAMILIES if one.name == family and one.pair_source)
    assert sources
    for source in sources:
        for table in source.tables:
            spec = TABLES[table]
            assert spec.schema is not None
            row = pa.table({one.name: pa.nulls(1, one.type) for one in spec.schema}, schema=spec.schema)
            house.write(table, row, **dict.fromkeys(spec.levels, "x"))
        columns = house.query(partial(columns_of, source.query), only=source.tables)
        assert set(METRICS_READ) <= set(columns)


def columns_of(query: str, connection: duckdb.DuckDBPyConnection) -> list[str]:
    return list(connection.sql(query).columns)


def test_metrics_of_surveys_stand_on_the_leaderboard(scored: Path) -> None:
    (sources,) = (one.pair_source.metrics for one in FAMILIES if one.name == "survey" and one.pair_source)
    warehouse = Warehouse(str(scored / "warehouse"))
    rows = warehouse.query(lambda made: made.sql(sources[0].query).to_arrow_table(), only=sources[0].tables).to_pylist()
    assert {row["partition"] for row in rows} == {"all"}
    assert set(METRICS_READ) <= set(rows[0])
    assert len({(row["metric"], row["player"]) for row in rows}) == len(rows)
