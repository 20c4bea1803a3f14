"""`dtef rubric add`, `run`, `judge`, `rollup`, `board` and `report`: blueprints from their files to the pages, against a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from dtef_pipeline.rubric.blueprint_rows import blueprint_tables
from dtef_pipeline.rubric.reading import read_blueprint
from dtef_pipeline.rubric.tables import RUBRIC_BOARDS, RUBRIC_SCORES
from resources.warehouse import Warehouse
from tests.dtef_pipeline.cli.commands import dtef, ok, refused, use
from tests.fake_llm_server import Call, FakeLLM

GREETINGS = """
title: Greetings
models: ["openai:cand-a", "openai:cand-b"]
temperatures: [0, 0.5]
---
- id: hello
  prompt: Say hello.
  should: [{$icontains: hello}, It greets.]
  should_not: [{$contains: "!"}]
"""
BROKEN = """
title: Broken
models: ["openai:cand-a"]
---
- id: fine
  prompt: Say hello.
  should: [{$icontains: hello}]
- id: not-fine
  prompt: Say it again.
  should: [{text: It greets., weight: 99}]
"""


def said(call: Call) -> str:
    if "<CRITERION>" in call.user:
        return "<reflection>It does.</reflection><classification>CLASS_MAJORLY_MET</classification>"
    return {"cand-a": "Hello there", "cand-b": "Good day!"}[call.body["model"]]


@pytest.fixture
def blueprints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, FakeLLM]]:
    """A state of its own with two files, of which nothing is known yet, and the server behind all models."""
    folder = tmp_path
    files = folder / "files"
    (files / "more").mkdir(parents=True)
    (files / "greetings.yml").write_text(GREETINGS, encoding="utf-8")
    (files / "more" / "broken.yml").write_text(BROKEN, encoding="utf-8")
    with FakeLLM(reply=said) as server:
        use(folder, monkeypatch)
        spec = {"api_base": server.base_url, "retries": 1, "input_price": 1.0, "output_price": 2.0}
        models = {f"openai/{name}": spec for name in ("cand-a", "cand-b", "judge")}
        path = folder / "models.yaml"
        path.write_text(yaml.safe_dump({"collections": {"judges": ["openai/judge"]}, "models": models}), encoding="utf-8")
        monkeypatch.setenv("DTEF_MODELS", str(path))
        monkeypatch.setenv("OPENAI_API_KEY", "planted-key")
        yield folder, server


def test_a_folder_of_blueprints_is_run_judged_shown_and_written(blueprints: tuple[Path, FakeLLM]) -> None:
    folder, server = blueprints
    added = dtef("rubric", "add", folder / "files")
    assert added.exit_code == 1
    assert "2 blueprints added, 2 new or changed" in added.stdout
    assert "more__broken" in added.stderr
    assert "weight-out-of-range" in added.stderr
    assert "prompt 1 should[0]" in added.stderr

    ran = ok("rubric", "run", "--blueprint", "greetings", "--max-cost-usd", "judge=5")
    assert "1 blueprint, snapshot base" in ran
    assert "as candidate: 4 calls" in ran
    assert "as judge: 4 calls" in ran, "two models said two things, and two judges saw each once for both temperatures"
    asked = server.answered
    assert "asked now" not in ok("rubric", "run", "--blueprint", "greetings")
    assert server.answered == asked

    (first, second) = json.loads(ok("rubric", "board", "--by", "blueprint", "--format", "json"))
    assert (first["model"], second["model"]) == ("openai/cand-a", "openai/cand-b")
    assert first["score"] == pytest.approx((1 + 0.75 + 1) / 3)
    assert second["score"] == pytest.approx((0 + 0.75 + 0) / 3)
    shown = ok("rubric", "board")
    assert "not ranked: a score in 1 blueprint, at least 10 are needed" in shown

    written = ok("rubric", "report", "--out", folder / "pages")
    assert "(2 pages)" in written or "(3 pages)" in written
    assert "Greetings" in (folder / "pages" / "index.html").read_text(encoding="utf-8")

    # Other judges judge what is stored, and no candidate is asked.
    before = sum(call.body["model"].startswith("cand") for call in server.calls)
    judged = ok("rubric", "judge", "--blueprint", "greetings", "--judge", "holistic=openai/judge", "--no-roll-ups")
    assert "as judge: 2 calls" in judged
    assert sum(call.body["model"].startswith("cand") for call in server.calls) == before

    # Broken parts are left out where that is asked for.
    ok("rubric", "add", folder / "files" / "more" / "broken.yml", "--root", folder / "files", "--skip-broken")
    assert "1 blueprint" in ok("rubric", "run", "--blueprint", "more__*", "--no-roll-ups")

    # A budget of a role stops that role alone.
    stopped = dtef(
        "rubric", "run", "--blueprint", "greetings", "--snapshot", "cheap", "--max-calls", "judge=1", "--no-roll-ups"
    )
    assert "as candidate: 4 calls" in stopped.stdout
    assert "as judge: 1 call," in stopped.stdout
    rows = json.loads(
        ok(
            "sql",
            "SELECT reason, count(*) AS n FROM rubric_judgements WHERE snapshot = 'cheap' GROUP BY 1 ORDER BY 1",
            "--format",
            "json",
        )
    )
    assert {row["reason"] for row in rows} == {None, "budget"}
    unscored = json.loads(
        ok("sql", "SELECT reason FROM rubric_points WHERE snapshot = 'cheap' AND score IS NULL", "--format", "json")
    )
    assert {row["reason"] for row in unscored} <= {"budget"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "--blueprint", "greatings"], "known: greetings"),
        (["run", "--max-calls", "judge=x"], "a whole number from 0"),
        (["run", "--judge", "lenient=openai/judge"], "one of standard, prompt-aware, holistic"),
        (["board", "--by", "overall", "--blueprint", "greetings"], "--blueprint with --by overall"),
        (["report", "--snapshot", "never"], "known: "),
    ],
)
def test_what_is_wrong_is_said_with_what_is_allowed(arguments: list[str], told: str, blueprints: tuple[Path, FakeLLM]) -> None:
    folder, _ = blueprints
    house = Warehouse(folder / "warehouse")
    read = read_blueprint(folder / "files" / "greetings.yml", "greetings")
    assert read.blueprint is not None
    for table, rows in blueprint_tables(read, read.blueprint, "greetings.yml")._asdict().items():
        house.write(table, rows, blueprint="greetings")
    house.write("rubric_scores", RUBRIC_SCORES.empty_table(), blueprint="greetings", snapshot="base")
    for table, schema in RUBRIC_BOARDS.items():
        house.write(table, schema.empty_table())
    assert told in refused("rubric", *arguments)
