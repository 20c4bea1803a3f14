"""Answers made elsewhere, read from files: which item each is about, which draw it is, and what is refused."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.identity import request_key
from dtef_pipeline.qa.item_files.answer_import import (
    ImportedAnswer,
    ImportedFile,
    ImportRules,
    build_imported_model,
    build_imported_responses,
    read_imported,
    read_numbers,
)
from dtef_pipeline.qa.model import ItemError

SUMS = ["sums/0", "sums/1", "sums/2"]
SUBJECTS = ["art/0", "art/1", "law/0"]
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def read(folder: Path, rows: Sequence[Any], ids: Sequence[str] = SUMS, suite: str = "sums", **rules: Any) -> ImportedFile:
    path = folder / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return read_imported(path, suite, ids, ImportRules(**rules))


def test_prompts_in_which_the_item_does_not_stand_are_counted(tmp_path: Path) -> None:
    prompts = ["  Add 1 and 2.\n", "Example: 3.\nAdd 1 and 2.\nAnswer:", "Add 1 and 3.", None, ["Add"]]
    path = tmp_path / "answers.jsonl"
    rows = [{"index": 1, "model": "m", "draw": draw, "text": "3", "prompt": one} for draw, one in enumerate(prompts)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert read_imported(path, "sums", SUMS, ImportRules(), {"sums/1": "Add 1 and 2."}).n_foreign_prompts == 1
    assert read_imported(path, "sums", SUMS, ImportRules()).n_foreign_prompts == 0


def named(file: ImportedFile) -> list[tuple[str, str, int, str]]:
    return [(one.model, one.item_id, one.draw, one.text) for one in file.answers]


class TestItems:
    @pytest.mark.parametrize(
        ("row", "ids", "item"),
        [
            ({"item_id": "sums/1"}, SUMS, "sums/1"),
            ({"index": 1}, SUMS, "sums/1"),
            ({"index": "1"}, SUMS, "sums/1"),
            ({"task_id": "HumanEval/4"}, ["HumanEval/4", "HumanEval/14"], "HumanEval/4"),
            ({"subject": "law", "index": 0}, SUBJECTS, "law/0"),
            ({"category": "law", "index": 0}, SUBJECTS, "law/0"),
            ({"subject": "law", "item_id": "law/0"}, SUBJECTS, "law/0"),
            ({"id": "s01"}, ["interviews/s01", "interviews/s02"], "interviews/s01"),
        ],
    )
    def test_an_item_is_named_by_id_or_number_with_its_subject(
        self, tmp_path: Path, row: dict[str, Any], ids: list[str], item: str
    ) -> None:
        (found,) = read(tmp_path, [{**row, "model": "m", "text": ""}], ids).answers
        assert found.item_id == item

    def test_the_numbers_of_a_larger_file_are_reported_by_place(self, tmp_path: Path) -> None:
        rows = [{"index": number, "model": "m", "text": str(number)} for number in (7, 30, 2)]
        assert [one.item_id for one in read(tmp_path, rows, numbers=[2, 7, 30]).answers] == ["sums/1", "sums/2", "sums/0"]
        by_subject = [{"subject": "law", "index": 9, "model": "m", "text": ""}]
        (found,) = read(tmp_path, by_subject, SUBJECTS, numbers={"art": [9, 1], "law": [9]}).answers
        assert found.item_id == "law/0"
        with pytest.raises(ItemError, match=r"answers.jsonl:1: .* sums; got '8 "):
            read(tmp_path, [{"index": 8, "model": "m", "text": ""}], numbers=[2, 7, 30])

    def test_a_field_of_another_name_is_the_item_where_that_is_stated(self, tmp_path: Path) -> None:
        rows = [{"item_id": 5, "problem": 2, "model": "m", "text": ""}]
        assert read(tmp_path, rows, key="problem").answers[0].item_id == "sums/2"

    def test_an_end_that_several_items_share_names_none(self, tmp_path: Path) -> None:
        with pytest.raises(ItemError, match=r"no such item in sums; got '0'; allowed: .*art/0"):
            read(tmp_path, [{"index": 0, "model": "m", "text": ""}], SUBJECTS)

    def test_unknown_items_are_counted_where_they_are_passed_over(self, tmp_path: Path) -> None:
        rows = [{"index": number, "model": "m", "text": ""} for number in (0, 1, 5, 6)]
        found = read(tmp_path, rows, skips_unknown=True)
        assert (len(found.answers), found.skipped) == (2, 2)


class TestDraws:
    def test_samples_are_draws_in_their_order(self, tmp_path: Path) -> None:
        row = {"index": 1, "model": "m", "samples": ["a", "b", "c"]}
        assert named(read(tmp_path, [row])) == [("m", "sums/1", draw, text) for draw, text in enumerate("abc")]
        assert [one.draw for one in read(tmp_path, [row | {"draw": 4}]).answers] == [4, 5, 6]

    def test_repeats_are_draws_where_that_is_stated(self, tmp_path: Path) -> None:
        rows = [{"index": at, "model": model, "text": f"{at}{model}{n}"} for n in range(2) for at in (0, 1) for model in "pq"]
        found = read(tmp_path, rows, repeats_are_draws=True)
        assert {(one.model, one.item_id, one.text[-1], one.draw) for one in found.answers} == {
            (model, f"sums/{at}", str(n), n) for n in range(2) for at in (0, 1) for model in "pq"
        }


class TestRefused:
    @pytest.mark.parametrize(
        ("row", "told"),
        [
            ({"index": 9, "model": "m", "text": ""}, "no such item in sums; got '9'; allowed: sums/0, sums/1, sums/2"),
            ({"item_id": "sums/11", "model": "m", "text": ""}, "no such item in sums; got 'sums/11'; allowed: sums/1"),
            ({"model": "m", "text": ""}, "item_id names no item"),
            ({"index": True, "model": "m", "text": ""}, "index names no item; got True"),
            ({"index": 1.0, "model": "m", "text": ""}, "index names no item; got 1.0"),
            ({"index": 0, "model": "m"}, "the row has no text; got"),
            ({"index": 0, "model": "m", "text": None}, "text is not text"),
            ({"index": 0, "model": "m", "text": 3}, "text is not text; got 3"),
            ({"index": 0, "model": "m", "samples": []}, r"samples .*; got \[\]"),
            ({"index": 0, "model": "m", "samples": ["a", None]}, r"samples .*; got \['a', None\]"),
            ({"index": 0, "text": ""}, "model .*--model NAME"),
            ({"index": 0, "model": "a b", "text": ""}, "model .*; got 'a b'"),
            ({"index": 0, "model": "m", "text": "", "draw": -1}, "draw .*; got -1"),
            ({"index": 0, "model": "m", "text": "", "cost_usd": -1}, "cost_usd .*; got -1; allowed: US dollars"),
            ({"index": 0, "model": "m", "text": "", "finish_reason": 1}, "finish_reason .*; got 1"),
            (["a"], "the row is not an object"),
        ],
    )
    def test_a_faulty_line_is_named_with_what_is_allowed(self, tmp_path: Path, row: Any, told: str) -> None:
        good = {"index": 2, "model": "m", "text": "x"}
        with pytest.raises(ItemError, match=rf"answers\.jsonl:2: {told}"):
            read(tmp_path, [good, row])

    def test_the_same_draw_twice_is_refused_with_both_lines(self, tmp_path: Path) -> None:
        rows = [{"index": 0, "model": "m", "text": text} for text in "ab"]
        with pytest.raises(
            ItemError, match=r":2: .*twice; got 'draw 0 of sums/0 by m, as in line 1'; allowed: .*--repeats-are-draws"
        ):
            read(tmp_path, rows)
        with pytest.raises(ItemError, match="draw 1 of sums/0 by m, as in line 1"):
            read(
                tmp_path, [{"index": 0, "model": "m", "samples": ["a", "b"]}, {"index": 0, "model": "m", "draw": 1, "text": ""}]
            )

    @pytest.mark.parametrize("text", ["3", "[1, 1]", '["1"]', '{"law": 1}', "[true]", "nothing"])
    def test_numbers_are_whole_and_stand_once(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "index.json").write_text(text, encoding="utf-8")
        with pytest.raises(ItemError, match=r"index\.json: .*allowed: a JSON list of whole numbers"):
            read_numbers(tmp_path / "index.json")

    def test_a_file_of_another_kind_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "answers.txt").write_text("x", encoding="utf-8")
        with pytest.raises(ItemError, match=r"answers\.txt: .*; got 'answers.txt'; allowed: .jsonl"):
            read_imported(tmp_path / "answers.txt", "sums", SUMS, ImportRules())


def test_packed_lines_and_parquet_hold_the_same(tmp_path: Path) -> None:
    rows = [{"index": 0, "model": "m", "text": "ä"}, {"index": 1, "model": "m", "text": "b"}]
    plain = read(tmp_path, rows)
    packed, table = tmp_path / "answers.jsonl.gz", tmp_path / "answers.parquet"
    packed.write_bytes(gzip.compress((tmp_path / "answers.jsonl").read_bytes()))
    pq.write_table(pa.Table.from_pylist(rows), table)
    assert [read_imported(one, "sums", SUMS, ImportRules()) for one in (packed, table)] == [plain, plain]


class TestStored:
    def test_an_answer_is_stored_under_the_request_that_would_have_asked_for_it(self) -> None:
        used = {"finish_reason": "length", "prompt_tokens": 3, "completion_tokens": 2, "cost_usd": 0.5, "latency_s": 1.5}
        made = build_imported_responses([ImportedAnswer("sums/0", "m", 3, "x", used)], {"sums/0": "p" * 32}, "night", NOW)
        (one,) = made.responses
        assert one.request_key == request_key("p" * 32, build_imported_model("m").variant, 3, "night")
        assert (one.model, one.model_variant, one.text, one.role) == ("imported/m", "imported/m", "x", "candidate")
        assert {name: getattr(one, name) for name in used} == used

    def test_items_of_one_prompt_share_the_first_answer_and_others_are_counted(self) -> None:
        answers = [ImportedAnswer(f"sums/{at}", "m", 0, text, {}) for at, text in enumerate("aab")]
        made = build_imported_responses(answers, dict.fromkeys(SUMS, "p" * 32), "base", NOW)
        assert ([one.text for one in made.responses], made.n_conflicting) == (["a"], 1)

    @given(st.lists(st.tuples(st.sampled_from(SUMS), st.sampled_from("mn"), st.integers(0, 3)), unique=True))
    def test_every_answer_has_a_key_of_its_own(self, drawn: list[tuple[str, str, int]]) -> None:
        answers = [ImportedAnswer(item, model, draw, "x", {}) for item, model, draw in drawn]
        prompts = {item: item.replace("/", "") for item in SUMS}
        made = build_imported_responses(answers, prompts, "base", NOW)
        assert len({one.request_key for one in made.responses}) == len(made.responses) == len(drawn)
