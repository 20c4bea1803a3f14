"""`dtef rubric add`, `run`, `judge` and `board`: blueprints from their files to the board; how they come in, change and leave."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from assets.engine.roll_up_names import FAMILY_ROLL_UPS
from dtef_pipeline.asking.models import load_models
from dtef_pipeline.cli.family_run import RunContextOfCommand, list_failed_calls
from dtef_pipeline.cli.rubric.rubric_run import RUBRIC_RUN, describe_removed_summaries, run_warnings
from dtef_pipeline.cli.settings_command import RunFlags
from dtef_pipeline.cli.stage_runs import open_dagster_instance
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.rubric.episodes import choose_judges
from dtef_pipeline.rubric.settings import RubricSettings
from dtef_pipeline.rubric.tables import RUBRIC_BOARD, RUBRIC_JUDGEMENTS, RUBRIC_RESPONSES, RUBRIC_SCORES
from resources.notes import BLUEPRINT_NOTES
from resources.settings import Settings
from resources.warehouse import Warehouse
from tests.assets.rubric.reviews import graded
from tests.dtef_pipeline.cli.commands import PRICES, dtef, ok, refused, serve_as, skip_site
from tests.fake_llm_server import Call, FakeLLM
from tests.made.rubric_warehouse import keep_blueprint
from tests.made.shared_cases import cases_beside

CASES = cases_beside(__file__)
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
    if call.body["model"] == "analyst":
        return graded("\n".join(message["content"] for message in call.body["messages"]))
    return {"cand-a": "Hello there", "cand-b": "Good day!"}[call.body["model"]]


@pytest.fixture(autouse=True)
def server(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLM]:
    """The server behind all models. The state has two files, of which nothing is known yet."""
    files = state / "files"
    (files / "more").mkdir(parents=True)
    (files / "greetings.yml").write_text(GREETINGS, encoding="utf-8")
    (files / "more" / "broken.yml").write_text(BROKEN, encoding="utf-8")
    with FakeLLM(reply=said) as server:
        skip_site(monkeypatch)
        names = (f"openai/{name}" for name in ("cand-a", "cand-b", "judge", "analyst"))
        serve_as(server, state, monkeypatch, *names, judges=["openai/judge"], **PRICES)
        yield server


def test_a_folder_of_blueprints_is_asked_and_judged_within_budgets(server: FakeLLM, state: Path) -> None:
    added = dtef("rubric", "add", state / "files")
    assert added.exit_code == 1
    assert "1 blueprint added, 1 new or changed" in added.stdout
    assert "broken.yml:10: prompt 1 should[0]: weight-out-of-range: the weight is 99" in added.stderr
    assert "1 file with errors was not added" in added.stderr

    # A budget of a role stops that role alone; a model string stands for the model of the models file.
    spec = yaml.safe_load((state / "models.yaml").read_text(encoding="utf-8"))
    spec["models"]["mine"] = {"model": "openai/judge", **spec["models"].pop("openai/judge")}
    (state / "models.yaml").write_text(yaml.safe_dump({**spec, "collections": {"judges": ["mine"]}}), encoding="utf-8")
    run = ("rubric", "run", "--blueprint", "greetings", "--no-roll-ups")
    stopped = dtef(*run, "--max-calls", "judge=1", "--max-calls", "openai/judge=9")
    assert "1 blueprint, snapshot base" in stopped.stdout
    assert "as candidate: 4 calls" in stopped.stdout
    assert "as judge: 1 call," in stopped.stdout
    house = Warehouse(state / "warehouse")
    judgements, points = (
        house.read(name, blueprint="greetings", snapshot="base") for name in ("rubric_judgements", "rubric_points")
    )
    assert set(judgements["reason"].to_pylist()) == {None, "budget"}
    assert {row["reason"] for row in points.to_pylist() if row["score"] is None} <= {"budget"}

    # Two models said two things, and two judges see each once for both temperatures.
    continued = ok(*run)
    assert "as judge: 3 calls" in continued
    assert "as candidate" not in continued
    with open_dagster_instance() as instance:
        tagged = [run.tags["dtef/snapshot"] for run in instance.get_runs() if "dtef/snapshot" in run.tags]
    assert tagged == ["base"] * 3, "as runs of nights are: the file read once, then asked in both commands"

    # Broken parts are left out where that is asked for, and that is said.
    kept = dtef("rubric", "add", state / "files" / "more" / "broken.yml", "--root", state / "files", "--skip-broken")
    assert kept.exit_code == 0
    assert "more__broken: left out because of errors: prompt 1 should[0] (weight-out-of-range)" in kept.stderr

    # Other judges judge what is stored, and no candidate is asked. Of what was chosen, the rest is named.
    before = sum(call.body["model"].startswith("cand") for call in server.calls)
    judged = dtef("rubric", "run", "--from", "judge", "--judge", "holistic=openai/judge", "--no-roll-ups")
    assert judged.exit_code == 0
    assert "as judge: 2 calls" in judged.stdout
    assert judged.stdout.splitlines()[-1].startswith("1 blueprint, snapshot base, ")
    assert "snapshot base has no responses of them: more__broken" in judged.stderr
    assert sum(call.body["model"].startswith("cand") for call in server.calls) == before


def test_no_calls_are_made_where_nobody_can_judge(server: FakeLLM, state: Path) -> None:
    """Candidates were bought before it was found that no judge is named."""
    dtef("rubric", "add", state / "files" / "greetings.yml")
    models = yaml.safe_load((state / "models.yaml").read_text(encoding="utf-8"))
    (state / "models.yaml").write_text(yaml.safe_dump({"models": models["models"]}), encoding="utf-8")
    assert "no judge is named" in refused("rubric", "run")
    assert server.answered == 0


def test_a_judge_of_a_file_is_the_model_of_the_models_file_with_that_string(state: Path) -> None:
    spec = yaml.safe_load((state / "models.yaml").read_text(encoding="utf-8"))["models"]["openai/judge"]
    models = load_models(yaml.safe_dump({"models": {"mine": {"model": "openai/judge", **spec}}}))
    (judge,) = choose_judges([], ["standard=openai/judge"], models)
    assert (judge.name, judge.model.api_base) == ("standard(mine)", spec["api_base"])


def test_a_file_with_a_reserved_id_is_not_taken_in_parts(state: Path) -> None:
    (state / "files" / "_test_a.yml").write_text(GREETINGS, encoding="utf-8")
    refused_it = dtef("rubric", "add", state / "files" / "_test_a.yml", "--skip-broken")
    assert refused_it.exit_code == 1
    assert "reserved-id" in refused_it.stderr


def test_models_and_judges_that_fail_are_named(tmp_path: Path) -> None:
    house = Warehouse(tmp_path / "warehouse")
    at = {"blueprint": "a", "snapshot": "base"}
    responses = [{"model": "m", "status": status} for status in ("ok", "error", "empty")]
    judged = [{"judge": "j", "class": None, "reason": "unreadable"}, {"judge": "j", "class": "CLASS_UNMET", "reason": None}]
    house.write("rubric_responses", pa.Table.from_pylist(responses, schema=RUBRIC_RESPONSES), **at)
    house.write("rubric_judgements", pa.Table.from_pylist(judged, schema=RUBRIC_JUDGEMENTS), **at)
    given = RunContextOfCommand(FAMILY_BY_NAME["rubric"], RubricSettings(), RunFlags(), Settings.read_environment(), house)
    assert [*list_failed_calls(RUBRIC_RUN, given, ["a"]), *run_warnings(house, ["a"], "base")] == [
        "warning: m: 1 response of 3 failed; the same command sends them again",
        "warning: m: 1 response of 3 blank, so they have no score",
        "warning: j: 1 of 2 judgements could not be read, and count as missing",
    ]


def test_blueprints_that_lost_their_summaries_are_counted_and_named() -> None:
    assert list(describe_removed_summaries([])) == []
    (line,) = describe_removed_summaries(["a", "b"])
    assert line.startswith("warning: the summaries and grades of 2 blueprints (a, b) were of ")
    assert "taken away; `analysts: [MODEL]` in the section `rubric` of the panel file" in line


@pytest.mark.parametrize(("command", "told"), CASES["faults_are_stated_with_what_is_allowed"])
def test_faults_are_stated_with_what_is_allowed(command: str, told: str, state: Path) -> None:
    house = Warehouse(state / "warehouse")
    keep_blueprint(house, state / "files" / "greetings.yml")
    house.write("rubric_scores", RUBRIC_SCORES.empty_table(), blueprint="greetings", snapshot="base")
    house.write("rubric_responses", RUBRIC_RESPONSES.empty_table(), blueprint="greetings", snapshot="base")
    house.write("rubric_board", RUBRIC_BOARD.empty_table())
    assert told in refused("rubric", *command.split())


NOBODY = "title: Nobody\n---\n- {id: hello, prompt: Say hello., should: [$icontains: hello]}\n"


def test_a_file_that_names_no_models_is_added_and_its_run_has_to_name_some(server: FakeLLM, state: Path) -> None:
    """Such a file could not be added without a folder of collections, although --model comes later."""
    (state / "nobody.yml").write_text(NOBODY, encoding="utf-8")
    added = dtef("rubric", "add", state / "nobody.yml")
    assert (added.exit_code, "1 blueprint added" in added.stdout) == (0, True)
    assert "these blueprints name no known models: nobody; give the folder of collections with --models-dir" in added.stderr
    for more in ([], ["--estimate"]):
        told = refused("rubric", "run", *more)
        assert "nobody names a collection of models" in told
        assert "give --model, or add it again with --models-dir" in told
    assert server.answered == 0
    assert "as candidate: 1 call," in ok("rubric", "run", "--model", "openai/cand-a", "--no-roll-ups")

    (state / "models").mkdir()
    (state / "models" / "CORE.json").write_text('["openai:cand-b"]', encoding="utf-8")
    assert "1 new or changed" in ok("rubric", "add", state / "nobody.yml", "--models-dir", state / "models")
    assert "openai/cand-b" in ok("rubric", "run", "--estimate")


def test_a_file_whose_name_comes_first_and_that_is_added_later_is_known_like_all_others(state: Path) -> None:
    """Dagster has them in the order in which they were added, the folder by their names: nothing was made of either, and nobody was told."""
    for name, there in (("b", ["b"]), ("a", ["a", "b"])):
        (state / f"{name}.yml").write_text(NOBODY, encoding="utf-8")
        ok("rubric", "add", *(state / f"{one}.yml" for one in there), "--root", state)
        rows = json.loads(ok("sql", "SELECT blueprint FROM rubric_blueprints ORDER BY 1", "--json"))
        assert [row["blueprint"] for row in rows] == there


def test_broken_files_are_a_line_each_and_good_ones_are_added(state: Path) -> None:
    """All errors stood in one line of 4,000 characters."""
    files = state / "files"
    for number in range(3):
        (files / f"bad-{number}.yml").write_text(f"title: a\ndescription: b: {number}\n", encoding="utf-8")
    (files / "two.yml").write_text(NOBODY, encoding="utf-8")
    (files / "two.json").write_text('{"prompts": [{"prompt": "Hi?"}]}', encoding="utf-8")
    added = dtef("rubric", "add", files)
    assert added.exit_code == 1
    assert "1 blueprint added, 1 new or changed" in added.stdout
    lines = [line for line in added.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 6
    assert f"error: {files}/bad-0.yml:2: yaml: mapping values are not allowed" in lines[2]
    assert sum("reserved-id: the id two also belongs to" in line for line in lines) == 2
    assert "6 files with errors were not added" in added.stderr
    assert json.loads(ok("sql", "SELECT blueprint FROM rubric_blueprints", "--json")) == [{"blueprint": "greetings"}]


def test_a_file_that_breaks_stays_as_it_was_added_and_that_is_stated(state: Path) -> None:
    file = state / "files" / "greetings.yml"
    ok("rubric", "add", file)
    before = BLUEPRINT_NOTES.read(Warehouse(state / "warehouse"), "greetings")
    file.write_text("title: a: b", encoding="utf-8")
    told = dtef("rubric", "add", file)
    assert (told.exit_code, "0 blueprints added" in told.stdout) == (1, True)
    assert "their earlier versions stay: greetings" in told.stderr
    assert BLUEPRINT_NOTES.read(Warehouse(state / "warehouse"), "greetings") == before


def test_a_removed_blueprint_leaves_tables_and_boards_and_comes_back_for_nothing(
    server: FakeLLM, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deleted file stayed a partition, was planned, and stood on boards."""
    files = state / "files"
    (files / "more" / "broken.yml").write_text((files / "greetings.yml").read_text(encoding="utf-8"), encoding="utf-8")
    ok("rubric", "add", files)
    ok("rubric", "run", "--no-roll-ups")
    asked = server.answered

    removed = ok("rubric", "remove", "more__*")
    assert "removed more__broken: 4 responses, " in removed
    assert "stored responses stay" in removed
    assert f"adding their folder adds them again: {files}/more/broken.yml" in removed
    assert "boards and pages change with the next `dtef rubric board --refresh`" in removed
    for table in ("rubric_blueprints", "rubric_prompts", "rubric_responses", "rubric_judgements", "rubric_scores"):
        assert Warehouse(state / "warehouse").values(table, "blueprint") == ["greetings"]
    monkeypatch.setitem(FAMILY_ROLL_UPS, "rubric", ["rubric_board"])
    assert "not ranked: a score in 1 blueprint, at least 10 are needed" in ok("rubric", "board", "--refresh")
    shown = json.loads(ok("rubric", "board", "--by", "blueprint", "--json"))
    scores = {(row["blueprint"], row["model"]): row["score"] for row in shown}
    expected = {("greetings", "openai/cand-a"): (1 + 0.75 + 1) / 3, ("greetings", "openai/cand-b"): (0 + 0.75 + 0) / 3}
    assert scores == pytest.approx(expected)
    assert "'more__broken' matches none; known: greetings" in refused("rubric", "remove", "more__broken")

    # What was paid for is found again, also under another name.
    (files / "greetings.yml").rename(files / "hello.yml")
    (files / "more" / "broken.yml").write_text(NOBODY, encoding="utf-8")
    added = dtef("rubric", "add", files)
    assert "2 blueprints added, 2 new or changed" in added.stdout
    assert "is gone, and hello has the same content: a run of hello finds the stored responses" in added.stderr
    (files / "more" / "broken.yml").unlink()
    assert "its results stay until `dtef rubric remove more__broken`" in dtef("rubric", "add", files).stderr
    assert "1 blueprint, snapshot base" in ok("rubric", "run", "--blueprint", "hello", "--no-roll-ups")
    assert server.answered == asked
