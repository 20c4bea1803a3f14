"""`dtef qa check`, `add`, `list` and `remove`: what is right with files of questions, and what is wrong with them and where."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from dtef_pipeline.qa.tables import QA_SCORES
from resources.warehouse import Warehouse
from tests.conftest import ROOT
from tests.dtef_pipeline.cli.commands import dtef, ok, refused
from tests.made.qa_items import BIRDS, write_choices, write_sums
from tests.strict_json import strict

SAMPLES = ROOT / "data" / "questions"
OWN_SUITES = """
suites:
  oars:
    layout: gsm8k
    scorers: [numeric]
"""
BAD_ROWS = '{"question": "1 + 1?", "answer": "#### 2"}\n{"question": "1 + 2?", "answer": "three"}\n{oops\n'


def bad_sums(folder: Path) -> Path:
    path = folder / "bad.jsonl"
    path.write_text(BAD_ROWS, encoding="utf-8")
    return path


class TestCheck:
    @pytest.mark.parametrize(
        ("suite", "path", "told"),
        [
            ("mmlu", "mmlu", "20 items (20 choice), 15 examples"),
            ("gsm8k", "gsm8k/test.jsonl", "20 items (20 number)"),
            ("humaneval", "humaneval", "20 items (20 code)"),
        ],
    )
    def test_the_shipped_samples_are_right(self, suite: str, path: str, told: str) -> None:
        assert ok("qa", "check", suite, SAMPLES / path).strip() == told

    def test_questions_about_interviews_are_checked_with_their_documents(self) -> None:
        talks = SAMPLES / "socioscope"
        (line,) = ok("qa", "check", "socioscope", talks / "questions.json", "--corpus", talks).splitlines()
        assert line.startswith("20 items (")
        assert line.endswith(" chunks of documents")

    def test_each_fault_is_reported_with_file_line_and_what_is_allowed(self, tmp_path: Path) -> None:
        result = dtef("qa", "check", "gsm8k", bad_sums(tmp_path))
        assert result.exit_code == 1
        first, second, last = result.stdout.splitlines()
        assert "bad.jsonl:2: " in first
        assert first.startswith("error: ")
        assert "; allowed: " in first
        assert "bad.jsonl:3: " in second
        assert last == "1 item (1 number), 2 rows left out"
        result = dtef("qa", "check", "gsm8k", tmp_path / "bad.jsonl", "--json")
        told = strict(result.stdout)
        assert (result.exit_code, told["items"], told["types"]) == (1, 1, {"number": 1})
        assert [(one["level"], one["line"]) for one in told["findings"]] == [("error", 2), ("error", 3)]
        assert {"code", "file", "item_id", "found", "allowed", "text", "part"} < set(told["findings"][0])

    def test_a_file_of_another_suite_is_reported_in_a_few_lines(self, tmp_path: Path) -> None:
        """There was a line per row, all but equal."""
        file = write_choices(tmp_path, birds=[(f"Which {at}?", "Tern", "Owl", "Gull", "Auk", "C") for at in range(9)])
        *rows, more, last = dtef("qa", "check", "gsm8k", file).stdout.splitlines()
        assert (len(rows), more) == (5, "error: and 6 more rows like it; --json lists them all")
        assert last == "0 items (none), 11 rows left out"
        assert len(strict(dtef("qa", "check", "gsm8k", file, "--json").stdout)["findings"]) == 11
        told = refused("qa", "add", "gsm8k", file)
        assert "left out: and 6 more rows like it" in told

    def test_what_surprises_is_a_warning_and_no_error(self, tmp_path: Path) -> None:
        folder = write_choices(tmp_path, birds=[("Which?", "Tern", "tern ", "Gull", "Auk", "C")])
        result = dtef("qa", "check", "mmlu", folder)
        assert result.exit_code == 0
        assert "warning: " in result.stdout

    def test_half_a_character_leaves_out_its_row_and_nothing_else(self, tmp_path: Path) -> None:
        """What JSON writes as \\ud800 can neither be stored nor sent; in the source of an answer it ended `dtef score --corpus`."""
        half = "half \ud800"
        asked = {"text": "Who?", "type": "PickOne", "metric": "Ada", "options": ["Ada", "Bo"]}
        said = {"answer": "Ada", "citations": [{"source_index": 0, "quote": "Ada"}]}
        texts = [{}, {"text": half}, {"options": ["Ada", half]}, {"metric": json.dumps({half: 1})}, {"type": half}]
        pairs = [{"question": {**asked, **one}, "answers": [said]} for one in texts]
        pairs += [{"question": asked, "answers": [{**said, **one}]} for one in ({"answer": half}, {"source": half})]
        pairs.append({"question": asked, "answers": [{**said, "citations": [{"source_index": 0, "quote": half}]}]})
        (tmp_path / "talks.json").write_text(json.dumps({"qa_pairs": pairs}, indent=1), encoding="utf-8")
        pages = [{"page_content": text, "metadata": {"FILE": "a.csv"}} for text in ("Ada kept it.", half)]
        (tmp_path / "pages.json").write_text(json.dumps(pages), encoding="utf-8")
        of_talks = (tmp_path / "talks.json", "--corpus", tmp_path / "pages.json")
        result = dtef("qa", "check", "socioscope", *of_talks)
        told = result.stdout.splitlines()
        assert (result.exit_code, len(told)) == (1, 8)
        assert [int(line.split("json:")[1].split(":")[0]) > 1 for line in told[:6]] == [True] * 6
        assert "pages.json:1: page_content is not text; got 'half \\ud800'; allowed: text without NUL" in told[6]
        assert told[7] == "4 items (4 PickOne), 1 chunk of documents, 5 rows left out, 2 answers left out"
        (tmp_path / "page.json").write_text(json.dumps(pages[:1]), encoding="utf-8")
        result = dtef("score", tmp_path / "talks.json", "--corpus", tmp_path / "page.json", "--out", tmp_path / "out")
        assert (result.exit_code, result.stdout.splitlines()[0][:30]) == (1, "score:      1.000 over 2 quest")

    def test_missing_interviews_are_named_once_and_in_order(self, tmp_path: Path) -> None:
        asked = {"text": "Cold?", "type": "Yes/No", "metric": "yes"}
        pairs = [{"question": asked, "evidence": [{"file": "gone.csv", "turn": at}], "quotes": ["It was."]} for at in range(4)]
        (tmp_path / "talks.json").write_text(json.dumps({"qa_pairs": pairs}), encoding="utf-8")
        fields = "PROJECT,YEAR,MONTH,NAME,COUNTRY,GEOGRAPHY,FILE,TYPE,RECORD LANG"
        rows = [f"P,2024,May,N,C,G,{name}.csv,interview,en" for name in ("b", "d", "a", "c", "here")]
        rows.append("P,late,May,N,C,G,e.csv,interview,en")
        (tmp_path / "metadata.csv").write_text("\n".join([fields, *rows, ""]), encoding="utf-8")
        (tmp_path / "interviews").mkdir()
        (tmp_path / "interviews" / "here.csv").write_text("turn,speaker,role,text\n0,Ada,guest,Cold.\n", encoding="utf-8")
        lines = dtef("qa", "check", "socioscope", tmp_path / "talks.json", "--corpus", tmp_path).stdout.splitlines()
        assert [line.partition("got ")[2][:10] for line in lines if "got 'gone" in line] == ["'gone.csv'"]
        assert [line.partition("got ")[2][1] for line in lines if "interviews/" in line and "got '" in line] == [
            "a",
            "b",
            "c",
            "d",
        ]
        assert any("metadata YEAR; got 'late'" in line for line in lines)

    def test_nothing_is_written(self, state: Path) -> None:
        ok("qa", "check", "gsm8k", SAMPLES / "gsm8k")
        assert list(state.iterdir()) == []


@pytest.mark.parametrize("command", ["check", "add"])
def test_unknown_suites_missing_paths_and_broken_files_of_suites_are_refused(state: Path, command: str) -> None:
    told = refused("qa", command, "mnlu", SAMPLES / "mmlu")
    assert "'mnlu'; known: " in told
    assert "mmlu" in told
    assert "none.jsonl" in refused("qa", command, "gsm8k", state / "none.jsonl")
    assert list(state.iterdir()) == []
    (state / "suites.yaml").write_text(OWN_SUITES.replace("numeric]", "numeric]\n    licens: mine"), encoding="utf-8")
    told = refused("qa", command, "oars", SAMPLES / "gsm8k", "--suites", state / "suites.yaml")
    assert "licens" in told
    assert "suites.yaml" in told


class TestNothingToAdd:
    def test_nothing_is_stored_of_files_that_cannot_be_used(self, state: Path) -> None:
        """Items about interviews without these made a part that could not be asked, and an earlier one lost its documents."""
        for content in ("", "\n", "{oops\n"):
            (state / "sums.jsonl").write_text(content, encoding="utf-8")
            assert "no item of it can be used; `dtef qa check` lists all that is wrong" in refused(
                "qa", "add", "gsm8k", state / "sums.jsonl"
            )
        assert "bad.jsonl:2: " in refused("qa", "add", "gsm8k", bad_sums(state), "--strict")
        told = refused("qa", "add", "socioscope", SAMPLES / "socioscope" / "questions.json")
        assert "socioscope needs --corpus" in told
        assert not (state / "warehouse").exists()

    @pytest.mark.parametrize("command", ["list", "board"])
    def test_where_there_is_no_warehouse_the_command_of_this_family_is_named(self, state: Path, command: str) -> None:
        told = refused("qa", command)
        assert "`dtef qa add SUITE PATH` " in " ".join(told.split())
        assert "ingest" not in told

    @pytest.mark.parametrize("words", [("list",), ("remove", "mmlu/*"), ("run", "--model", "m"), ("run", "--from", "judge")])
    def test_where_nothing_was_added_it_is_stated_how(self, state: Path, words: tuple[str, ...]) -> None:
        (state / "warehouse").mkdir()
        told = refused("qa", *words)
        assert str(state / "warehouse") in told
        assert "`dtef qa add SUITE PATH` adds some" in told


def listed() -> dict[str, tuple[object, ...]]:
    rows = strict(ok("qa", "list", "--json"))
    return {f"{row['suite']}/{row['part']}": (row["items"], row["left_out"], row["types"], row["examples"]) for row in rows}


def test_files_come_in_change_and_leave(state: Path) -> None:
    """One state, in which each step stands on the one before: each starts Dagster, which takes seconds."""
    choices = write_choices(state / "choices")
    added = ok("qa", "add", "mmlu", choices)
    assert "2 parts of mmlu added, 2 new or changed: 5 items (5 choice), 4 examples" in added
    assert "`dtef qa run --model MODEL` asks" in added
    house = Warehouse(state / "warehouse")
    assert listed() == {"mmlu/sea_birds": (3, 0, "choice 3", 2), "mmlu/winds": (2, 0, "choice 2", 2)}
    assert [row["public_since"] for row in strict(ok("qa", "list", "--json"))] == ["2020-09"] * 2

    # The same again is nothing new; a changed file is, and its rows take the place of the earlier ones.
    assert "2 parts of mmlu added, 0 new or changed" in ok("qa", "add", "mmlu", choices)
    write_choices(state / "choices", sea_birds=[*BIRDS[1:], ("Which?", "a", "b", "c", "d", "E")])
    changed = dtef("qa", "add", "mmlu", choices)
    assert changed.exit_code == 0
    assert "4 items (4 choice), 4 examples, 1 row left out" in changed.stdout
    assert "left out: " in changed.stderr
    assert "sea_birds_test.csv:3: " in " ".join(changed.stderr.split())
    assert listed()["mmlu/sea_birds"] == (2, 1, "choice 2", 2)
    texts = house.read("qa_items", suite="mmlu", part="sea_birds")["text"].to_pylist()
    assert texts == [row[0] for row in BIRDS[1:]]

    # A name that fits nothing changes nothing; a pattern takes all that fit.
    assert "PART 'mmlu/wind' matches none; known: mmlu/winds" in refused("qa", "remove", "mmlu/wind")
    ok("qa", "add", "gsm8k", write_sums(state / "sums.jsonl"))
    assert set(listed()) == {"gsm8k/all", "mmlu/sea_birds", "mmlu/winds"}
    removed = ok("qa", "remove", "mmlu/*")
    assert "removed mmlu/sea_birds, which was never run" in removed
    assert "removed mmlu/winds, which was never run" in removed
    assert set(listed()) == {"gsm8k/all"}
    assert [len(house.read_or_empty(table, suite="mmlu")) for table in ("qa_items", "qa_examples", "qa_findings")] == [0] * 3

    # What was taken away comes as something new.
    assert "2 parts of mmlu added, 2 new or changed" in ok("qa", "add", "mmlu", choices)
    assert set(listed()) == {"gsm8k/all", "mmlu/sea_birds", "mmlu/winds"}


def test_a_file_that_is_gone_is_named_where_it_is_read_again(state: Path) -> None:
    sums = write_sums(state / "sums.jsonl")
    (state / "suites.yaml").write_text(OWN_SUITES, encoding="utf-8")
    assert "1 part of oars added" in ok("qa", "add", "oars", sums, "--suites", state / "suites.yaml")
    assert [(row["suite"], row["public_since"]) for row in strict(ok("qa", "list", "--json"))] == [("oars", "")]
    shutil.move(sums, state / "elsewhere.jsonl")
    result = dtef("qa", "run", "--from", "ingest", "--judge", "none", "--no-roll-ups")
    assert result.exit_code == 1
    assert "sums.jsonl" in result.stderr
    assert listed() == {"oars/all": (3, 0, "number 3", 0)}, "what was read before stays"
    (state / "suites.yaml").unlink()
    assert listed() == {"oars/all": (3, 0, "number 3", 0)}, "without the file of its suite it was not listed"


@pytest.mark.thorough
def test_a_file_of_another_place_takes_no_items_away_unasked(state: Path) -> None:
    """One of the same name took the place of a part of 42 items and all their scores, without a word."""
    talks, other = SAMPLES / "socioscope", state / "other" / "questions.json"
    asked = {"text": "Cold?", "type": "Yes/No", "metric": "yes"}
    other.parent.mkdir()
    other.write_text(json.dumps({"qa_pairs": [{"question": asked}]}), encoding="utf-8")
    ok("qa", "add", "socioscope", talks / "questions.json", "--corpus", talks)
    house = Warehouse(state / "warehouse")
    at = {"suite": "socioscope", "part": "questions", "snapshot": "base"}
    scored = {
        "item_id": "questions/d01",
        "condition": "c",
        "model_variant": "m",
        "draw": 0,
        "score": 1.0,
        "value": 1.0,
        "status": "ok",
    }
    rows = [{**at, **scored, "metric": metric, "flags": []} for metric in ("score", "existence")]
    house.write("qa_scores", pa.Table.from_pylist(rows, schema=QA_SCORES), **at)

    told = " ".join(refused("qa", "add", "socioscope", other, "--corpus", talks).split())
    assert f"socioscope/questions was added from {talks / 'questions.json'}: {other} would remove " in told
    assert "20 items with 1 scored response of it" in told
    assert "--part NAME gives it another name, --replace replaces it" in told
    assert listed()["socioscope/questions"][0] == 20

    ok("qa", "add", "socioscope", other, "--corpus", talks, "--part", "cold")
    assert {name: row[0] for name, row in listed().items()} == {"socioscope/cold": 1, "socioscope/questions": 20}
    assert house.read("qa_items", suite="socioscope", part="cold")["item_id"].to_pylist() == ["cold/0"]
    ok("qa", "run", "--part", "cold", "--from", "ingest", "--judge", "none", "--no-roll-ups")
    assert len(house.read("qa_items", suite="socioscope", part="cold")) == 1, "it is read again under its name"

    # What was moved loses nothing, and is no question.
    moved = shutil.copy(talks / "questions.json", state / "questions.json")
    ok("qa", "add", "socioscope", moved, "--corpus", talks)
    # Neither does a copy with one more question.
    grown, longer = json.loads(moved.read_text(encoding="utf-8")), state / "longer" / "questions.json"
    grown["qa_pairs"].append({"question": asked})
    longer.parent.mkdir()
    longer.write_text(json.dumps(grown), encoding="utf-8")
    assert "gone with" not in ok("qa", "add", "socioscope", longer, "--corpus", talks)
    assert listed()["socioscope/questions"][0] == 21
    assert len(house.read("qa_scores", suite="socioscope", part="questions")) == 2, "scores of items that are kept stay"
    ok("qa", "add", "socioscope", moved, "--corpus", talks, "--replace")
    # Boards went on ranking items that were gone, until the part was run again.
    kept = {"suite": "socioscope", "part": "cold", "snapshot": "base"}
    more = [{**kept, **scored, "item_id": "cold/0", "metric": "score", "flags": []}]
    house.write("qa_scores", pa.Table.from_pylist(more, schema=QA_SCORES), **kept)
    replaced = " ".join(ok("qa", "add", "socioscope", other, "--corpus", talks, "--replace").split())
    assert listed()["socioscope/questions"][0] == 1
    assert f"socioscope/questions: gone with {moved}: 20 items with 1 scored response; stored responses stay" in replaced
    assert "boards and pages change with the next `dtef qa board --refresh`" in replaced
    assert house.read("qa_scores")["item_id"].to_pylist() == ["cold/0"]
    assert "allowed: up to 64 letters" in refused("qa", "add", "socioscope", other, "--corpus", talks, "--part", "a/b")
    sums = write_sums(state / "sums.jsonl")
    assert "the files of gsm8k name their own parts" in refused("qa", "add", "gsm8k", sums, "--part", "mine")
