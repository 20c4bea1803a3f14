"""Multiple choice: every layout gives the same items, texts are never values, and a row that is not usable harms no other."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.qa.item_files.benchmarks import load_mmlu
from dtef_pipeline.qa.item_files.item_log import LoadedItems
from dtef_pipeline.qa.model import QaItem
from tests.made.qa_items import written_lines
from tests.made.shared_cases import cases_beside, shared

CASES = cases_beside(__file__)
CELLS = ["Which is a river?", "Elbe", "Rigi", "Malta", "Ural Mountains", "A"]


def written(path: Path, rows: Sequence[Sequence[str]], encoding: str = "utf-8") -> Path:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.getvalue().encode(encoding))
    return path


def codes(found: LoadedItems) -> list[tuple[str, str, int | None]]:
    """All findings but that a row stands there twice, as rows of these tests often do."""
    return [(finding.level, finding.code, finding.line) for finding in found.findings if finding.code != "repeated"]


def test_a_row_without_a_header_is_an_item_of_its_file(tmp_path: Path) -> None:
    (item,) = load_mmlu(written(tmp_path / "rivers_test.csv", [CELLS])).items
    assert item == QaItem(
        item_id="rivers/0",
        suite="mmlu",
        part="rivers",
        type="choice",
        text="Which is a river?",
        options=("Elbe", "Rigi", "Malta", "Ural Mountains"),
        reference="A",
        cluster="rivers",
        source_line=1,
    )


@pytest.mark.parametrize(
    "rows",
    [
        [["question", "A", "B", "C", "D", "answer"], CELLS],
        [["question", "choice0", "choice1", "choice2", "choice3", "answer"], [*CELLS[:-1], "0"]],
        [["Question", "subject", "choice_0", "choice_1", "choice_2", "choice_3", "Answer"], [CELLS[0], "rivers", *CELLS[1:]]],
    ],
)
def test_every_header_gives_the_item_of_the_bare_row(rows: list[list[str]], tmp_path: Path) -> None:
    (bare,) = load_mmlu(written(tmp_path / "bare" / "rivers_test.csv", [CELLS])).items
    (headed,) = load_mmlu(written(tmp_path / "headed" / "rivers_test.csv", rows)).items
    assert (bare.item_id, bare.options, bare.reference, bare.part) == (
        headed.item_id,
        headed.options,
        headed.reference,
        headed.part,
    )
    assert (bare.source_line, headed.source_line) == (1, 2)


@pytest.mark.parametrize("answer", [0, "A", "a", " A "])
def test_lines_and_parquet_give_the_item_of_the_bare_row(answer: object, tmp_path: Path) -> None:
    row = {"question": CELLS[0], "subject": "rivers", "choices": CELLS[1:5], "answer": answer}
    (line,) = load_mmlu(written_lines(tmp_path / "test.jsonl", row)).items
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "test-00000-of-00001.parquet")
    (packed,) = load_mmlu(tmp_path / "test-00000-of-00001.parquet").items
    (bare,) = load_mmlu(written(tmp_path / "rivers_test.csv", [CELLS])).items
    assert line == bare
    assert (packed.item_id, packed.options, packed.reference, packed.source_line) == (bare.item_id, bare.options, "A", None)


def test_rows_of_mmlu_pro_have_up_to_ten_options_and_their_own_numbers(tmp_path: Path) -> None:
    row = {"question_id": 70, "question": "Which?", "options": list("0123456789"), "answer": "J", "answer_index": 9}
    (item,) = load_mmlu(written_lines(tmp_path / "test.jsonl", {**row, "category": "computer science"})).items
    assert (item.item_id, item.reference, len(item.options)) == ("computer science/70", "J", 10)


def test_the_words_none_nan_and_zero_are_texts(tmp_path: Path) -> None:
    cells = ["Which of these?", "None", "nan", "N/A", "0", "C"]
    (item,) = load_mmlu(written(tmp_path / "words_test.csv", [cells])).items
    assert item.options == ("None", "nan", "N/A", "0")
    headed = [["question", "A", "B", "C", "D", "answer"], cells]
    assert load_mmlu(written(tmp_path / "headed_test.csv", headed)).items[0].options == item.options


def test_cells_hold_line_breaks_and_no_byte_order_mark(tmp_path: Path) -> None:
    first = ["Read:\r\none\ntwo", "a\nb", "c", "d", "e", "B"]
    found = load_mmlu(written(tmp_path / "breaks_test.csv", [first, CELLS]))
    assert found.items[0].text == "Read:\r\none\ntwo"
    assert [item.source_line for item in found.items] == [1, 5]
    assert load_mmlu(written(tmp_path / "x_test.csv", [CELLS], "utf-8-sig")).items[0].text == CELLS[0]


def test_a_bad_row_is_named_and_the_others_keep_their_numbers(tmp_path: Path) -> None:
    rows = [CELLS, CELLS[:5], [*CELLS[:-1], "E"], ["  ", *CELLS[1:]], CELLS]
    path = written(tmp_path / "rivers_test.csv", rows)
    found = load_mmlu(path)
    assert [item.item_id for item in found.items] == ["rivers/0", "rivers/4"]
    assert codes(found) == [("error", "columns", 2), ("error", "letter", 3), ("error", "text", 4)]
    assert str(found.findings[1]).startswith(f"{path}:3: rivers/2: ")
    assert str(found.findings[1]).endswith("got 'E'; allowed: A-D, or 0-3")


def test_the_same_with_other_options_is_no_repetition(tmp_path: Path) -> None:
    other = ["Which?", "Elbe", "Oder", "Rhine", "Main", "A"]
    rows = [other, ["Which?", "Elbe", "Oder", "Rhine", "Ems", "A"], [" which?", *other[1:-1], "B"]]
    found = load_mmlu(written(tmp_path / "x_test.csv", rows))
    assert (len(found.items), [(one.code, one.line, one.found) for one in found.findings]) == (
        3,
        [("repeated", 3, "'x/0 in line 1'")],
    )


def test_options_that_are_equal_but_for_case_and_blanks_are_kept_with_a_warning(tmp_path: Path) -> None:
    path = written(
        tmp_path / "x_test.csv",
        [["Which?", "the  Elbe", "Rigi", "The Elbe ", "-1", "A"], ["Which?", "−1", "1", "x+y", "x-y", "A"]],
    )
    found = load_mmlu(path)
    assert [item.flags for item in found.items] == [("equal_options",), ()]
    assert codes(found) == [("warning", "equal_options", 1)]
    assert found.findings[0].found == "'The Elbe '"
    assert load_mmlu(path, strict=True).items == found.items


@pytest.mark.parametrize(("change", "code"), CASES["a_fault_of_a_row_has_its_word"])
def test_a_fault_of_a_row_has_its_word(change: dict[str, object], code: str, tmp_path: Path) -> None:
    row = {"question": CELLS[0], "subject": "rivers", "choices": CELLS[1:5], "answer": 0}
    found = load_mmlu(written_lines(tmp_path / "x.jsonl", row, {**row, **change}, row))
    assert (len(found.items), codes(found)) == (2, [("error", code, 2)])
    assert found.findings[0].allowed


def test_missing_columns_are_named(tmp_path: Path) -> None:
    found = load_mmlu(
        written_lines(tmp_path / "x.jsonl", {"question": "Which?"}, {"question": "Which?", "choices": ["a", "b"]}, {}, 5)
    )
    assert [finding.text for finding in found.findings] == [
        "there are no options",
        "answer is missing",
        "question is missing",
        "the row is not an object",
    ]


def test_a_folder_gives_its_test_files_and_the_dev_files_beside_as_examples(tmp_path: Path) -> None:
    for name in ("b", "a"):
        written(tmp_path / "test" / f"{name}_test.csv", [CELLS])
        written(tmp_path / "dev" / f"{name}_dev.csv", [CELLS, CELLS])
        written(tmp_path / "val" / f"{name}_val.csv", [CELLS])
    whole, inner = load_mmlu(tmp_path), load_mmlu(tmp_path / "test")
    assert whole == inner
    assert [item.item_id for item in whole.items] == ["a/0", "b/0"]
    assert [item.item_id for item in whole.examples] == ["a/dev/0", "a/dev/1", "b/dev/0", "b/dev/1"]
    examples = tuple(item for item in whole.examples if item.part == "b")
    assert [item.item_id for item in examples] == ["b/dev/0", "b/dev/1"]
    assert load_mmlu(tmp_path / "test" / "b_test.csv").examples == examples


def test_findings_say_which_part_they_concern(tmp_path: Path) -> None:
    written(tmp_path / "a_test.csv", [CELLS[:5], ['"' * 3, *CELLS[1:]]])
    (tmp_path / "b_test.csv").write_bytes(b"")
    row = {"question": CELLS[0], "choices": CELLS[1:5], "answer": 9}
    path = written_lines(tmp_path / "c_test.jsonl", {**row, "subject": "law"}, {**row, "subject": 5}, 7)
    path.write_bytes(path.read_bytes() + b"{")
    found = load_mmlu(tmp_path)
    assert [(finding.code, finding.part) for finding in found.findings] == [
        ("columns", "a"),
        ("empty", "b"),
        ("letter", "law"),
        ("part", None),
        ("no_object", "c"),
        ("json", None),
    ]


@given(
    st.lists(
        st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\x00")), min_size=6, max_size=6),
        min_size=1,
        max_size=5,
    )
)
def test_what_was_written_is_what_is_read(tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]]) -> None:
    rows = [[f"Q{cells[0]}", *cells[1:5], "B"] for cells in rows]
    found = load_mmlu(written(tmp_path_factory.mktemp("any") / "any_test.csv", rows))
    assert [[item.text, *item.options] for item in found.items] == [cells[:5] for cells in rows]
    assert found.errors == ()


@given(st.binary(max_size=400))
def test_no_bytes_raise_anything(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    for name in ("x_test.csv", "x.jsonl", "x.jsonl.gz", "x.parquet"):
        (folder / name).write_bytes(data)
        found = load_mmlu(folder / name)
        assert found.items or found.findings


def test_the_shared_subjects_are_read_whole() -> None:
    found = load_mmlu(shared("benchmarks/mmlu"))
    assert (len(found.items), len({item.part for item in found.items}), len(found.examples)) == (1026, 57, 285)
    assert found.errors == ()
    assert Counter(item.part for item in found.examples) == dict.fromkeys({item.part for item in found.items}, 5)
    assert sum("None" in item.options for item in found.items) == 3
    assert [finding.code for finding in found.findings] == ["equal_options"]
    assert all(len(item.options) == 4 and item.reference in "ABCD" for item in found.items)
