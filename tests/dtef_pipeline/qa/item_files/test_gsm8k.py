"""Word problems: one number after one mark. Programs to write: no program is run to find out whether it can be tested."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.qa.item_files import rows as rows_of_files
from dtef_pipeline.qa.item_files.benchmarks import find_defined_functions, load_gsm8k, load_humaneval
from dtef_pipeline.qa.item_files.item_log import MAX_FINDINGS
from dtef_pipeline.qa.item_files.rows import LONGEST_ROW, MAX_UNPACKED_BYTES
from dtef_pipeline.qa.model import ItemError
from tests.made.qa_items import written_lines
from tests.made.shared_cases import cases_beside, shared

CASES = cases_beside(__file__)
GOOD = {"question": "How many?", "answer": "2 + 2 = 4\n#### 4"}


def test_an_item_is_named_after_its_line_and_expects_the_number(tmp_path: Path) -> None:
    (_, item) = load_gsm8k(written_lines(tmp_path / "test.jsonl", GOOD, GOOD)).items
    assert (item.item_id, item.part, item.type, item.reference, item.cluster) == ("gsm8k/1", "all", "number", "4", "gsm8k/1")
    assert (item.solution, item.source_line) == ("2 + 2 = 4", 2)


@pytest.mark.parametrize("name", ["test-{:05}-of-00002.jsonl", "data-{:05}-of-00002-0a1b2c3d4e5f6071.jsonl"])
def test_shards_of_one_table_are_one_file(tmp_path: Path, name: str) -> None:
    """Eight of twenty rows were lost: the second shard began to count anew."""
    questions = [{**GOOD, "question": f"How many of {place}?"} for place in range(20)]
    shards = [written_lines(tmp_path / name.format(at), *rows) for at, rows in enumerate((questions[:12], questions[12:]))]
    for path in (tmp_path, *shards):
        found = load_gsm8k(path)
        assert [item.item_id for item in found.items] == [f"gsm8k/{place}" for place in range(20)]
        assert [item.text for item in found.items] == [row["question"] for row in questions]
        assert found.findings == ()
    shards[0].unlink()
    (finding,) = load_gsm8k(tmp_path).findings
    assert (finding.level, finding.code, finding.found) == ("warning", "shards", "'1 of 2'")


def test_a_shard_is_read_itself_beside_one_of_its_number_with_another_ending(tmp_path: Path) -> None:
    rows = [{**GOOD, "question": f"How many of {place}?"} for place in range(2)]
    shards = [written_lines(tmp_path / f"test-{at:05}-of-00002.jsonl", row) for at, row in enumerate(rows)]
    (tmp_path / "test-00000-of-00002.csv").write_text("question,answer\nAnother?,#### 7\n", encoding="utf-8")
    loaded = load_gsm8k(shards[0])
    assert [item.text for item in loaded.items] == [row["question"] for row in rows]


def test_a_parquet_file_of_more_rows_than_allowed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of nulls take no bytes, so that a small file has any number of them."""
    monkeypatch.setattr(rows_of_files, "_MAX_PARQUET_ROWS", 3)
    pq.write_table(pa.table({"question": pa.nulls(4)}), tmp_path / "test.parquet")
    (finding,) = load_gsm8k(tmp_path / "test.parquet").findings
    assert (finding.code, finding.found, finding.allowed) == ("too_large", "'4'", "3")


@pytest.mark.parametrize(("stated", "number"), CASES["numbers_lose_commas_and_currency"])
def test_numbers_lose_commas_and_currency(stated: str, number: str, tmp_path: Path) -> None:
    (item,) = load_gsm8k(written_lines(tmp_path / "x.jsonl", {**GOOD, "answer": f"so\n#### {stated}\n"})).items
    assert item.reference == number


@pytest.mark.parametrize(("answer", "code"), CASES["an_answer_without_one_number_is_left_out"])
def test_an_answer_without_one_number_is_left_out(answer: object, code: str, tmp_path: Path) -> None:
    found = load_gsm8k(written_lines(tmp_path / "x.jsonl", GOOD, {**GOOD, "answer": answer}, {**GOOD, "question": "And now?"}))
    assert [item.item_id for item in found.items] == ["gsm8k/0", "gsm8k/2"]
    assert [(finding.code, finding.line, finding.item_id) for finding in found.findings] == [(code, 2, "gsm8k/1")]


def test_blank_lines_are_counted_and_a_row_may_state_its_own_number(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(f"\n{json.dumps(GOOD)}\n   \n{json.dumps(GOOD)}", encoding="utf-8-sig")
    assert [item.item_id for item in load_gsm8k(tmp_path / "x.jsonl").items] == ["gsm8k/1", "gsm8k/3"]
    found = load_gsm8k(written_lines(tmp_path / "x.jsonl", {**GOOD, "index": 17}, {**GOOD, "id": "b7"}), suite="mine")
    assert [item.item_id for item in found.items] == ["mine/17", "mine/b7"]


def test_the_training_file_beside_gives_the_examples_and_nothing_else_does(tmp_path: Path) -> None:
    written_lines(tmp_path / "test.jsonl", GOOD)
    written_lines(tmp_path / "test_socratic.jsonl", GOOD, GOOD)
    written_lines(tmp_path / "train.jsonl", GOOD, GOOD)
    written_lines(tmp_path / "train_socratic.jsonl", GOOD)
    written_lines(tmp_path / "example_model_solutions.jsonl", GOOD)
    for path in (tmp_path, tmp_path / "test.jsonl"):
        found = load_gsm8k(path)
        assert [item.item_id for item in found.items] == ["gsm8k/0"]
        assert [item.item_id for item in found.examples] == ["gsm8k/train/0", "gsm8k/train/1"]


BAD_LINES = (
    *(("json", line) for line in (b'{"question": ', b"[" * 200_000, b"1" * 10_000, b'{"question": ' * 50_000)),
    ("no_object", b'["question"]'),
    ("doubled_key", b'{"question": "a", "question": "b", "answer": "#### 1"}'),
    ("encoding", b'{"question": "caf\xe9", "answer": "#### 1"}'),
    ("missing", b'{"answer": "#### 1"}'),
    ("long_row", b'{"question": "' + b"a" * LONGEST_ROW + b'"}'),
)


@pytest.mark.parametrize(("code", "line"), BAD_LINES, ids=range(len(BAD_LINES)))
def test_a_line_that_is_no_row_is_named_and_the_next_is_read(code: str, line: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(line + b"\n" + json.dumps(GOOD).encode())
    found = load_gsm8k(path)
    assert [item.item_id for item in found.items] == ["gsm8k/1"]
    assert [(finding.code, finding.line) for finding in found.findings] == [(code, 1)]
    with pytest.raises(ItemError, match=r"x\.jsonl:1: "):
        load_gsm8k(path, strict=True)


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("x.jsonl", b"", "empty"),
        ("x.jsonl", b"\n \n", "empty"),
        ("x.jsonl", json.dumps(GOOD).encode("utf-16"), "encoding"),
        ("x.jsonl.gz", gzip.compress(json.dumps(GOOD).encode(), mtime=0)[:-12], "unreadable"),
        ("x.jsonl.gz", b"\x1f\x8b\x08\x00nonsense" * 9, "unreadable"),
        ("x.parquet", b"PAR1 nonsense PAR1", "unreadable"),
        ("x.txt", b"question", "ending"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_finding(name: str, data: bytes, code: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    found = load_gsm8k(tmp_path / name)
    assert (found.items, [(finding.level, finding.code) for finding in found.findings]) == ((), [("error", code)])


def test_what_is_neither_a_file_nor_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.jsonl")
    with pytest.raises(ItemError, match="no such file"):
        load_gsm8k(tmp_path / "x.jsonl")
    assert [finding.code for finding in load_gsm8k(tmp_path).findings] == ["no_files"]
    with pytest.raises(ItemError, match="cannot be read: "):
        load_gsm8k(tmp_path / ("x" * 5000))


def test_of_very_many_bad_rows_the_first_are_named_and_the_rest_counted(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b"{}\n" * (MAX_FINDINGS + 50) + json.dumps(GOOD).encode())
    found = load_gsm8k(tmp_path / "x.jsonl")
    assert [item.item_id for item in found.items] == [f"gsm8k/{MAX_FINDINGS + 50}"]
    assert len(found.findings) == MAX_FINDINGS + 1
    assert found.findings[-1].text == "50 more findings, here and in files after it"


@pytest.mark.thorough
def test_a_small_file_that_unpacks_to_more_than_is_allowed_is_not_unpacked_whole(tmp_path: Path) -> None:
    zeros = gzip.compress(b"0" * 10_000_000, 9, mtime=0)
    (tmp_path / "x.jsonl.gz").write_bytes(zeros * (MAX_UNPACKED_BYTES // 10_000_000 + 5))
    found = load_gsm8k(tmp_path / "x.jsonl.gz")
    assert (found.items, [finding.code for finding in found.findings]) == ((), ["too_large"])


def test_the_shared_problems_are_read_whole() -> None:
    found = load_gsm8k(shared("benchmarks/gsm8k"))
    assert (len(found.items), found.findings, found.examples) == (400, (), ())
    assert {"2125", "-10", "1450000"} <= {item.reference for item in found.items}
    assert all(item.solution for item in found.items)


AREA = {
    "task_id": "HumanEval/4",
    "prompt": 'import math\n\n\ndef area(r):\n    """Area of a circle."""\n',
    "entry_point": "area",
    "canonical_solution": "    return math.pi * r * r\n",
    "test": "def check(candidate):\n    assert candidate(0) == 0\n",
}


@pytest.mark.parametrize("name", ["HumanEval.jsonl", "HumanEval.jsonl.gz", "test.JSONL"])
def test_an_item_is_named_by_its_task_and_brings_its_tests(name: str, tmp_path: Path) -> None:
    (item,) = load_humaneval(written_lines(tmp_path / name, AREA)).items
    assert (item.item_id, item.part, item.type, item.cluster) == ("HumanEval/4", "all", "code", "HumanEval/4")
    assert item.text == AREA["prompt"]
    assert json.loads(item.reference) == {key: value for key, value in AREA.items() if key != "task_id"}
    assert load_humaneval(tmp_path).items == (item,)


def test_the_solution_may_be_absent(tmp_path: Path) -> None:
    without = {key: value for key, value in AREA.items() if key != "canonical_solution"}
    (item,) = load_humaneval(written_lines(tmp_path / "x.jsonl", without)).items
    assert "canonical_solution" not in json.loads(item.reference)


def test_two_tasks_may_ask_for_functions_of_one_name_but_not_be_one_task(tmp_path: Path) -> None:
    found = load_humaneval(written_lines(tmp_path / "x.jsonl", AREA, {**AREA, "task_id": "HumanEval/5"}, AREA))
    assert [item.item_id for item in found.items] == ["HumanEval/4", "HumanEval/5"]
    assert [(finding.code, finding.line) for finding in found.findings] == [("repeated", 2), ("duplicate_id", 3)]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"test": "def test(candidate): ..."}, "test"),
        ({"test": "class T:\n    def check(self): ..."}, "test"),
        ({"test": "def check(candidate:\n"}, "test"),
        ({"test": "# def check(candidate): ..."}, "test"),
        ({"entry_point": "volume"}, "prompt"),
        ({"entry_point": "math"}, "prompt"),
        ({"prompt": "(" * 100_000}, "prompt"),
        ({"prompt": "x = " + "-" * 190_000 + "1"}, "prompt"),
        ({"prompt": "a" + ".b" * 90_000}, "prompt"),
        ({"prompt": "x\x00y"}, "encoding"),
        ({"task_id": None}, "text"),
        ({"test": ["check"]}, "text"),
        ({"entry_point": ""}, "text"),
    ],
)
def test_a_task_that_cannot_be_tested_is_left_out(change: dict[str, object], code: str, tmp_path: Path) -> None:
    found = load_humaneval(written_lines(tmp_path / "x.jsonl", {**AREA, **change}, AREA))
    assert [item.source_line for item in found.items] == [2]
    assert [(finding.code, finding.line) for finding in found.findings] == [(code, 1)]


@pytest.mark.parametrize(("code", "names"), CASES["functions_are_found_at_the_outermost_level"])
def test_functions_are_found_at_the_outermost_level(code: str, names: list[str]) -> None:
    assert find_defined_functions(code) == {*names}


@given(st.text(max_size=200))
def test_no_text_is_too_strange_to_look_through(code: str) -> None:
    assert isinstance(find_defined_functions(code), set)


def test_the_shared_tasks_are_read_whole() -> None:
    found = load_humaneval(shared("benchmarks/humaneval"))
    assert (len(found.items), found.findings) == (60, ())
