"""What roll-ups of the qa family make of a warehouse, what the commands show of them, and what is left when parts are removed."""

from __future__ import annotations

import os
import random
import re
import shutil
import time
from collections import Counter
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from click.testing import Result

from assets.definitions import defs
from assets.stage.resources import Store
from dtef_pipeline.asking.request import ROLES
from dtef_pipeline.cli.stage_runs import make_roll_ups, open_dagster_instance
from dtef_pipeline.drift.verdict_tables import DRIFT
from dtef_pipeline.families import SHARED_TABLES
from dtef_pipeline.qa.tables import QA_ROLLED_UP
from resources.responses.store import ResponseStore
from resources.site_writer import write_site
from resources.warehouse import Warehouse
from tests.dtef_pipeline.cli.commands import dtef, ok, refused, skip_charts, use
from tests.made.qa_scores import keep_in, night, score_row
from tests.made.responses import response
from tests.strict_json import strict

MODELS = {"good": 0.85, "middling": 0.5}
NIGHTS, PARTS, ITEMS = 13, 6, 10


JUDGE = {"judge_model": "j", "judge_variant": "j[temperature=0]", "evaluator": "semantic", "raw": []}


def made_tables() -> dict[str, list[dict[str, Any]]]:
    """Two models on six subjects and on programs, 13 nights; from the fifth on `good` is no better than chance. A judge is of one maker.

    What the judge says of `good` falls with it, in part because the judge has become stricter.
    """
    rng = random.Random(7)
    scores = []
    for at, (model, level), part, item in product(range(NIGHTS), MODELS.items(), range(PARTS), range(ITEMS)):
        right = rng.random() < (0.3 if model == "good" and at > 4 else level)
        place = {"part": f"s{part}", "cluster": f"s{part}", "item_id": f"s{part}/{item}", "prompt_id": f"{part}{item}"}
        scores.append(score_row(float(right), model=model, **place, **night(at)))
    code = {"suite": "humaneval", "part": "all", "model": "good", "type": "code", "temperature": 0.8, "metric": "tests_passed"}
    scores += [score_row(float(draw == 0), item_id=f"h{item}", draw=draw, **code) for item, draw in product(range(6), range(5))]
    keys = ("suite", "part", "item_id", "condition", "model", "model_variant", "temperature", "draw", "snapshot", "answered_at")
    answered = {"call_status": "answered", "response": "A", "cost_usd": 0.01}
    responses = [
        {**{name: row[name] for name in keys}, **answered, "request_key": f"{at:032x}"} for at, row in enumerate(scores)
    ]
    stated = {**JUDGE, "score": 0.5, "raw": ["{}"], "cost_usd": 0.001, "self_judged": True}
    judgements = [
        {**{name: row[name] for name in keys[:-1]}, **stated, "request_keys": [f"{at + 10**6:032x}"]}
        for at, row in enumerate(scores[-70:-30])
    ]
    by = {
        "metric": "judged",
        "measured_by": "judge 1, j[temperature=0], semantic",
        "model": "good",
        "suite": "sums",
        "part": "s0",
    }
    anchor = {**JUDGE, "family": "qa", "judge": "j", "request_keys": [], "partition": "sums/s0"}
    anchors = []
    for at, item in product(range(NIGHTS), range(ITEMS)):
        scores.append(score_row((0.3 if at > 4 else 0.8) + item % 5 / 50, item_id=f"sum{item}", **by, **night(at)))
        # Of the same stored answers .2 less from the fifth night on.
        said = {"snapshot": night(at)["snapshot"], "score": (0.5 if at > 4 else 0.7) + item % 5 / 50}
        anchors.append({**anchor, "item": f"sum{item}", "anchor": f"a{item}", **said})
    return {"qa_scores": scores, "qa_responses": responses, "qa_judgements": judgements, "anchors": anchors}


@pytest.fixture(scope="module")
def rolled_up(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dg.ExecuteInProcessResult]:
    assert defs  # importing it turns Dagster's warnings about single-run backfills off
    from assets.qa.roll_ups import qa_board, qa_costs, qa_drift, qa_has_no_drift, qa_scores_are_valid, qa_validity

    assets = [qa_board, qa_drift, qa_costs, qa_validity, qa_has_no_drift, qa_scores_are_valid]
    folder = tmp_path_factory.mktemp("qa")
    keep_in(folder / "warehouse", made_tables())
    with pytest.MonkeyPatch.context() as patch:
        use(folder, patch)
        return folder / "warehouse", dg.materialize(assets, resources={"store": Store()})


@pytest.fixture(scope="module")
def made(rolled_up: tuple[Path, dg.ExecuteInProcessResult]) -> Path:
    return rolled_up[0]


def shown(*arguments: str) -> Result:
    return dtef("qa", "board", *arguments)


def test_roll_ups_write_every_table_and_checks_name_drift(
    rolled_up: tuple[Path, dg.ExecuteInProcessResult], house: Warehouse
) -> None:
    _, result = rolled_up
    assert result.success
    assert {name for name in QA_ROLLED_UP if len(house.read(name))} == {*QA_ROLLED_UP}
    checks = {one.check_name: one for one in result.get_asset_check_evaluations()}
    assert not checks["qa_has_no_drift"].passed
    assert checks["qa_has_no_drift"].severity == dg.AssetCheckSeverity.ERROR
    assert "drift: good, letters, exact_choice by exact_choice 1: down by" in str(
        checks["qa_has_no_drift"].metadata["first"].value
    )
    assert not checks["qa_scores_are_valid"].passed
    assert checks["qa_scores_are_valid"].severity == dg.AssetCheckSeverity.WARN
    assert result.asset_materializations_for_node("qa_board")[0].metadata["comparisons_rows"].value == 1


@pytest.mark.parametrize("by", ["overall", "part", "cluster", "pass-at-k", "comparisons", "validity"])
def test_each_view_shows_rows_for_people_and_for_programs(house: Warehouse, by: str) -> None:
    table = shown("--by", by)
    assert table.exit_code == 0, table.output
    assert "good" in table.stdout or "middling" in table.stdout
    assert strict(shown("--by", by, "--json").stdout)


def test_a_board_says_which_answers_may_be_known_and_ranks_the_latest_night(house: Warehouse) -> None:
    text = shown().stdout
    assert "public since" in text
    rows = strict(shown("--suite", "mmlu", "--json").stdout)
    assert [(row["rank"], row["model"], row["n_parts"], row["n_items"]) for row in rows] == [
        (1, "middling", PARTS, PARTS * ITEMS),
        (2, "good", PARTS, PARTS * ITEMS),
    ]
    assert rows[0]["interval_kind"] == "clustered"
    assert strict(shown("--suite", "mm*", "--json").stdout) == rows


def test_two_served_models_of_a_snapshot_are_named(house: Warehouse, tmp_path: Path) -> None:
    rows = house.read("qa_responses", suite="mmlu", part="s0").to_pylist()
    for place, row in enumerate(rows):
        row["served_model"] = "old" if row["model"] == "good" and place % 4 == 0 else "new"
    keep_in(tmp_path / "warehouse", {"qa_responses": rows})
    assert f"good in snapshot {night(NIGHTS - 1)['snapshot']} was served by 2 models" in (
        text := " ".join(shown().output.split())
    ), text


def test_what_is_missing_is_named_with_what_makes_it(house: Warehouse) -> None:
    none = shown("--by", "position")
    assert none.exit_code == 2
    assert "`dtef qa run --order rotated-1`" in none.stderr
    assert "--suite 'gsm8k' matches none; known:" in shown("--suite", "gsm8k").stderr
    shutil.rmtree(house.root)
    Path(house.root).mkdir()
    for words in (("qa", "board"), ("costs", "--family", "qa"), ("drift", "--family", "qa", "--by", "part")):
        assert "`dtef qa run` or `dtef qa board --refresh` makes it" in refused(*words)
    assert "`dtef qa run --snapshot " in refused("drift", "--family", "qa")


def test_costs_are_those_of_candidates_and_judges(house: Warehouse) -> None:
    rows = strict(ok("costs", "--family", "qa", "--json"))
    told = [(row["role"], row["suite"], row["evaluator"], row["model"], row["calls"]) for row in rows]
    assert told == [
        ("candidate", "mmlu", None, "good", NIGHTS * PARTS * ITEMS),
        ("candidate", "mmlu", None, "middling", NIGHTS * PARTS * ITEMS),
        ("candidate", "humaneval", None, "good", 30),
        ("judge", "mmlu", "semantic", "j", 40),
    ]
    assert sum(row["cost_usd"] for row in rows) == pytest.approx(15.9 + 0.04)
    assert "$7.8000" in ok("costs", "--family", "qa")
    by_role = strict(ok("costs", "--family", "qa", "--by", "role", "--json"))
    assert [(row["role"], row["calls"]) for row in by_role] == [("candidate", 1590), ("judge", 40)]


def test_drift_tells_which_model_moved_and_the_rule_of_each_part(house: Warehouse) -> None:
    rows = {(row["model"], row["verdict"]) for row in strict(ok("drift", "--family", "qa", "--json"))}
    assert ("good", "drift") in rows
    assert ("middling", "drift") not in rows
    (judged,) = (row for row in house.read("drift", family="qa").to_pylist() if ", judged by" in row["setting"])
    assert (judged["verdict"], judged["control"]) == ("watch", "none")
    assert (judged["shift"], judged["net_shift"]) == pytest.approx((-0.5, -0.3), abs=0.01)
    said = " ".join(ok("drift", "--family", "qa").split())
    assert re.search(r"good, letters, judged by judge [^:]*: model and judges moved: on anchors j", said)
    assert re.search(r"which makes -0\.20\d\d of -0\.\d+; net of the judges -0\.", said)
    assert "judge j, semantic: watch since 2026-01-06" in said
    assert "judge j, semantic:" not in " ".join(ok("drift", "--family", "qa", "--since", "j=2026-01-06").split())
    assert "models and judges with scores: " in refused("drift", "--family", "qa", "--since", "k=2026-01-06")
    parts = strict(ok("drift", "--family", "qa", "--by", "part", "--json"))
    gaps = [row["gap"] for row in parts]
    assert gaps == sorted(gaps, reverse=True)
    assert {row["partition"].split("/")[1] for row in parts} == {f"s{part}" for part in range(PARTS)}
    assert "works with --by model only" in refused("drift", "--family", "qa", "--by", "part", "--fail-on", "drift")


@pytest.mark.thorough
def test_the_panel_sets_severity_and_acceptance_of_drift(
    house: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The section `drift` of the panel was read for surveys alone."""
    from assets.qa.roll_ups import qa_drift, qa_has_no_drift, qa_judge_is_stable
    from assets.stage.drift_webhook import build_message

    def rolled_up(panel: str) -> dict[str, Any]:
        (tmp_path / "panel.yaml").write_text(panel, encoding="utf-8")
        monkeypatch.setenv("DTEF_PANEL", str(tmp_path / "panel.yaml"))
        assets = [qa_drift, qa_has_no_drift, qa_judge_is_stable]
        result = dg.materialize(assets, resources={"store": Store()})
        return {one.check_name: one for one in result.get_asset_check_evaluations()}

    checks = rolled_up("drift: {severity: {drift: WARN}}\n")
    assert (checks["qa_has_no_drift"].passed, checks["qa_has_no_drift"].severity) == (False, dg.AssetCheckSeverity.WARN)
    assert not checks["qa_judge_is_stable"].passed, "a judge alone is to watch at most, and was not told"
    checks = rolled_up("drift: {baseline: 3, since: {good: 2026-01-08}}\nqa: {models: [nobody-yet]}\n")
    assert checks["qa_has_no_drift"].metadata["drift"].value == 0
    series = house.read("drift_series", family="qa").to_pylist()
    assert max(Counter((one["model"], one["setting"]) for one in series if one["in_baseline"]).values()) == 3
    checks = rolled_up("drift: {severity: {watch: OFF, drift: OFF}}\n")
    assert checks["qa_has_no_drift"].passed
    rows = house.read("drift", family="qa").to_pylist()
    moved = [row for row in rows if row["model"] == "good" and row["verdict"] in ("watch", "drift")]
    chosen, judged = sorted(moved, key=lambda row: str(row["setting"]))
    assert (chosen["setting"], chosen["verdict"]) == ("letters, exact_choice by exact_choice 1", "drift")
    assert judged["setting"].startswith("letters, judged by judge ")
    assert judged["verdict"] == "watch"
    assert chosen["net_shift"] is chosen["judges_note"] is None
    assert judged["net_shift"] == pytest.approx(-0.3, abs=0.01)
    assert judged["judges_note"] in build_message([judged])["text"], (
        "receivers that show the text alone took it for the model's drift"
    )
    assert any(judged["judges_note"] in told for told in checks["qa_has_no_drift"].metadata["first"].value)
    (tmp_path / "panel.yaml").write_text("drift: {since: 2026-01-08}\n", encoding="utf-8")
    rows = strict(ok("drift", "--family", "qa", "--json"))
    assert "drift" not in {row["verdict"] for row in rows}
    (tmp_path / "panel.yaml").write_text("drift: {since: {j: 2026-01-06}}\n", encoding="utf-8")
    assert "judge j, semantic:" not in " ".join(ok("drift", "--family", "qa").split())


def test_a_board_that_is_out_of_date_says_so(house: Warehouse, tmp_path: Path) -> None:
    """After runs without roll-ups an earlier board was shown as if it were of all that is stored."""
    assert "newer than this table" not in shown().stderr
    for snapshot in ("2026-01-02", "2026-01-03"):
        for file in (tmp_path / "warehouse" / "qa_scores").glob(f"*/*/snapshot={snapshot}/*"):
            os.utime(file, (time.time() + 9, time.time() + 9))
    said = "note: scores of 2 snapshots are newer than this table; update it with `dtef qa board --refresh`"
    assert said in " ".join(shown("--json").stderr.split())
    for words in (("drift", "--by", "part"), ("costs",)):
        assert said in " ".join(dtef(*words, "--family", "qa").stderr.split())
    assert "newer" not in dtef("drift", "--family", "qa").stderr, "it is made of the scores as they are"


def test_responses_of_judges_are_distinguished_by_the_tables_that_rest_on_them(house: Warehouse, state: Path) -> None:
    """Judges of questions were counted as judges of rubrics."""
    came = datetime(2026, 1, 1, tzinfo=UTC)
    kept = (
        ("0" * 32, 0, "good"),
        (f"{10**6:032x}", 1, "j"),
        ("f" * 32, 1, "j"),
        ("e" * 32, 2, "analyst"),
        ("d" * 32, 0, "other"),
    )
    with ResponseStore(state / "responses.sqlite") as store:
        store.add(
            response(0, request_key=key, role=ROLES[role], model=model, snapshot="s", answered_at=came)
            for key, role, model in kept
        )
    told = {
        family: [(row["model"], row["role"], row["responses"]) for row in strict(ok("responses", "--family", family, "--json"))]
        for family in ("survey", "rubric", "qa")
    }
    assert told == {
        "survey": [],
        "rubric": [("analyst", "analyst", 1), ("j", "judge", 1)],
        "qa": [("good", "candidate", 1), ("j", "judge", 1)],
    }


def test_no_board_is_left_of_removed_parts(house: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Roll-ups failed for good, in words of DuckDB, and boards and pages kept what was removed."""
    shutil.rmtree(tmp_path / "warehouse" / "anchors")
    items = {(row["suite"], row["part"], row["item_id"]) for row in house.read("qa_scores").to_pylist()}
    usual = {"text": "What?", "type": "number", "reference": "1", "scorers": [], "options": [], "quotes": [], "flags": []}
    rows = [{"suite": suite, "part": part, "item_id": item, **usual} for suite, part, item in sorted(items)]
    keep_in(tmp_path / "warehouse", {"qa_items": rows})
    skip_charts(monkeypatch)
    write_site(house)
    site = tmp_path / "warehouse" / "report"
    assert (site / "qa" / "index.html").is_file()
    house.write("drift", DRIFT.empty_table(), family="rubric")
    assert "qa" in house.values("drift", "family")
    assert "boards and pages change with the next `dtef qa board --refresh`" in ok("qa", "remove", "[!m]*", "mmlu/s1")
    assert "no scores are left: boards and pages were removed too" in ok("qa", "remove", "mmlu/*")
    assert not (site / "qa" / "index.html").exists()
    assert "Nothing is evaluated yet" in (site / "index.html").read_text(encoding="utf-8")
    assert "no qa_board" in refused("qa", "board")
    left = {(table, family) for table in SHARED_TABLES for family in house.values(table, "family")}
    assert left == {("drift", "rubric")}, "those of other families stay"
    assert "they are made by `dtef qa run`" in refused("qa", "board", "--refresh")
    assert "no qa_scores in" in refused("drift", "--family", "qa")
    with open_dagster_instance() as instance:
        failures = make_roll_ups(instance, "qa", ["qa_board", "qa_validity"], {}).failures
    assert len(failures) == 2
    assert all("yet: materialize the stages of a part first" in one for one in failures)


FOUND = {
    "bm25,10-chunks": [(0.1, 1.0, 1.0, 1.0, 1.0), (0.1, 0.5, 1.0, 0.25, 0.4), (0.0, 0.0, 0.0, 0.0, 0.0)],
    "hybrid,10-chunks": [(0.2, 1.0, 1.0, 0.5, 0.6)],
}
"""Precision, recall, hit, MRR and nDCG of each item."""


def test_retrieval_is_averaged_by_part_and_condition_without_a_roll_up(state: Path) -> None:
    (state / "warehouse").mkdir()
    assert "nothing to show by retrieval: it needs items about documents" in refused("qa", "board", "--by", "retrieval")
    names, parts = ("precision", "recall", "hit", "mrr", "ndcg"), ("talks", "walks")
    found = [
        {
            "suite": "socioscope",
            "part": part,
            "item_id": str(at),
            "condition": how,
            "k": 10,
            **dict(zip(names, one, strict=True)),
        }
        for part in parts
        for how, items in FOUND.items()
        for at, one in enumerate(items)
    ]
    keep_in(state / "warehouse", {"qa_retrieval": found})
    rows = strict(ok("qa", "board", "--by", "retrieval", "--json"))
    assert [(row["part"], row["condition"], row["n_items"]) for row in rows] == [
        (part, how, len(items)) for part in parts for how, items in FOUND.items()
    ]
    for at, name in enumerate(names):
        assert rows[0][name] == pytest.approx(sum(one[at] for one in FOUND["bm25,10-chunks"]) / 3)
    assert "0.5000" in ok("qa", "board", "--by", "retrieval", "--suite", "socio*")
    assert "Items with quotes" in ok("explain", "qa/retrieval")
