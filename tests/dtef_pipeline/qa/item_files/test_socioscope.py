"""Questions about interviews: what cannot be scored is kept and said, what cannot be read is left out and said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.qa.item_files.item_log import FileAnswer, LoadedItems
from dtef_pipeline.qa.item_files.rows import find_member_lines
from dtef_pipeline.qa.item_files.socioscope import SOCIOSCOPE_TYPES, load_socioscope
from dtef_pipeline.qa.model import ItemError, QaItem, Quote
from tests.dtef_pipeline.qa.transcripts.interviews import INTERVIEWS, needs_interviews, shared_corpus

QUESTION = {"text": "Where did she work?", "type": "ListOne", "metric": '{"harbour": 1, "port": 0.5}'}
SEVERAL = ["harbour", "railway"]


def written(path: Path, *pairs: object) -> Path:
    path.write_text(json.dumps({"qa_pairs": pairs}, indent=1), encoding="utf-8")
    return path


def loaded(tmp_path: Path, *pairs: object, **settings: Any) -> LoadedItems:
    return load_socioscope(written(tmp_path / "talks.json", *pairs), **settings)


def test_a_pair_is_an_item_of_its_file_and_hangs_on_its_transcript(tmp_path: Path) -> None:
    pair = {"id": "q7", "question": QUESTION, "evidence": [{"file": "a.csv", "turn": 3}], "quotes": ["I worked in the harbour"]}
    (item,) = loaded(tmp_path, pair).items
    assert item == QaItem(
        item_id="talks/q7",
        suite="socioscope",
        part="talks",
        type="ListOne",
        text="Where did she work?",
        reference='{"harbour": 1, "port": 0.5}',
        cluster="a.csv",
        source_line=3,
        quotes=(Quote("I worked in the harbour", "a.csv", 3),),
    )


def test_without_an_id_the_place_names_an_item_which_is_its_own_cluster(tmp_path: Path) -> None:
    found = loaded(tmp_path, {"question": QUESTION}, {"question": QUESTION})
    assert [(item.item_id, item.cluster) for item in found.items] == [("talks/0", "talks/0"), ("talks/1", "talks/1")]


@pytest.mark.parametrize("type_", SOCIOSCOPE_TYPES)
def test_types_are_known_in_any_spelling(type_: str, tmp_path: Path) -> None:
    question = {**QUESTION, "type": f"  {type_.upper().replace(' ', '  ')} ", "options": SEVERAL}
    assert loaded(tmp_path, {"question": question}).items[0].type == type_


def test_a_type_that_nobody_scores_is_kept_with_a_warning(tmp_path: Path) -> None:
    found = loaded(tmp_path, {"question": {**QUESTION, "type": "Essay"}}, check_metric=never)
    assert [(item.type, item.flags) for item in found.items] == [("Essay", ("unknown_type",))]
    (finding,) = found.findings
    assert (finding.level, finding.found) == ("warning", "'Essay'")
    assert "Yes/No with Rationale" in str(finding)


@pytest.mark.parametrize("metric", ["", "  ", None])
def test_an_item_that_expects_nothing_is_kept_with_a_warning(metric: str | None, tmp_path: Path) -> None:
    found = loaded(tmp_path, {"question": {**QUESTION, "metric": metric}}, check_metric=never)
    assert [item.flags for item in found.items] == [("empty_metric",)]
    assert [(finding.level, finding.code) for finding in found.findings] == [("warning", "empty_metric")]


def never(item: QaItem) -> None:
    raise AssertionError(item)


@pytest.mark.parametrize(
    ("metric", "reference"),
    [("Yes", "Yes"), ({"a": 1}, '{"a": 1}'), (["a", "é"], '["a", "é"]'), (278, "278"), (True, "true"), ("{broken", "{broken")],
)
def test_a_metric_is_text_or_becomes_json(metric: object, reference: str, tmp_path: Path) -> None:
    assert loaded(tmp_path, {"question": {**QUESTION, "metric": metric}}).items[0].reference == reference


@pytest.mark.parametrize("type_", ["PickOne", "PickMany"])
def test_options_are_needed_to_pick_from(type_: str, tmp_path: Path) -> None:
    picks = [
        {"question": {**QUESTION, "type": type_, "options": options}}
        for options in (None, ["one"], list("abcdefghijk"), SEVERAL)
    ]
    found = loaded(tmp_path, *picks, {"question": {**QUESTION, "type": type_}})
    assert [item.options for item in found.items] == [("harbour", "railway")]
    assert {finding.code for finding in found.findings} == {"options"}


def test_equal_options_are_kept_with_a_warning(tmp_path: Path) -> None:
    found = loaded(tmp_path, {"question": {**QUESTION, "type": "PickOne", "options": ["port", "Port"]}})
    assert (found.items[0].flags, [finding.code for finding in found.findings]) == (("equal_options",), ["equal_options"])


@pytest.mark.parametrize(
    ("pair", "code"),
    [
        (5, "no_object"),
        ({}, "question"),
        ({"question": "Where?"}, "question"),
        ({"question": {**QUESTION, "text": " "}}, "text"),
        ({"question": {**QUESTION, "type": None}}, "text"),
        ({"question": QUESTION, "evidence": {"file": "a.csv"}}, "evidence"),
        ({"question": QUESTION, "evidence": [{"file": "a.csv", "turn": "3"}]}, "evidence"),
        ({"question": QUESTION, "evidence": [{"file": "a.csv", "turn": True}]}, "evidence"),
        ({"question": QUESTION, "evidence": [{"turn": 3}]}, "missing"),
        ({"question": QUESTION, "quotes": "I worked"}, "quotes"),
        ({"question": QUESTION, "quotes": ["I worked"]}, "quotes"),
        ({"question": QUESTION, "quotes": [" "], "evidence": [{"file": "a.csv"}]}, "quotes"),
        ({"question": QUESTION, "id": 1.5}, "id"),
        ({"question": {**QUESTION, "metric": "\ud800"}}, "encoding"),
    ],
)
def test_a_fault_of_a_pair_has_its_word(pair: object, code: str, tmp_path: Path) -> None:
    found = loaded(tmp_path, {"question": QUESTION}, pair, {"question": QUESTION})
    assert [item.item_id for item in found.items] == ["talks/0", "talks/2"]
    first, last = (item.source_line or 0 for item in found.items)
    assert [(finding.level, finding.code, first < (finding.line or 0) < last) for finding in found.findings] == [
        ("error", code, True)
    ]
    with pytest.raises(ItemError, match=r"talks\.json:\d+: talks/1: "):
        loaded(tmp_path, {"question": QUESTION}, pair, strict=True)


def test_an_id_that_two_pairs_state_is_that_of_the_first(tmp_path: Path) -> None:
    found = loaded(tmp_path, {"id": "a", "question": QUESTION}, {"id": "a", "question": {**QUESTION, "text": "Other?"}})
    assert [item.text for item in found.items] == ["Where did she work?"]
    assert [finding.code for finding in found.findings] == ["duplicate_id"]


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"car": 1, "car": 1}'])
def test_a_metric_written_as_an_object_has_each_value_once(text: str, tmp_path: Path) -> None:
    pair = f'{{"question": {{"text": "Where?", "type": "ListOne", "metric": {text}}}}}'
    (tmp_path / "x.json").write_text(f'{{"qa_pairs": [{pair}]}}', encoding="utf-8")
    assert [finding.code for finding in load_socioscope(tmp_path / "x.json").findings] == ["metric"]


def test_quotes_must_stand_in_the_turn_that_is_named_character_by_character(tmp_path: Path) -> None:
    turns = {("a.csv", 1): "We think the sea is cold in May.", ("a.csv", None): "We think the sea is cold in May. Yes."}
    evidence = [{"file": "a.csv", "turn": 1}, {"file": "a.csv", "turn": 1}, {"file": "a.csv", "turn": 9}, {"file": "b.csv"}]
    pair = {"question": QUESTION, "evidence": evidence, "quotes": [" the sea is cold ", "The sea", "We", "We"]}
    again = {**pair, "evidence": evidence[2:], "quotes": ["We", "We"]}
    found = loaded(tmp_path, pair, {**pair, "quotes": ["in May. Yes."]}, again, turn_text=lambda *place: turns.get(place))
    assert len(found.items) == 3
    assert [(finding.level, finding.code, finding.found) for finding in found.findings] == [
        ("warning", "quote_not_found", "'The sea'"),
        ("warning", "no_such_turn", "'a.csv, turn 9'"),
        ("warning", "no_such_turn", "'b.csv'"),
        ("warning", "no_such_turn", "'a.csv, turn 9'"),  # of each item; a missing file once
    ]


def test_answers_of_the_file_are_kept_beside_their_items(tmp_path: Path) -> None:
    answers = [
        {
            "answer": "the harbour",
            "source": "x",
            "context": [{"page_content": "..."}],
            "citations": [{"source_index": 0, "quote": "."}],
        },
        {"answer": None},
        {"answer": ["a", "b"]},
        {"text": "harbour"},
        {"answer": "a", "citations": "none"},
    ]
    found = loaded(tmp_path, {"id": "q", "question": QUESTION, "answers": answers}, {"question": QUESTION, "answers": {}})
    assert found.answers == (
        FileAnswer("talks/q", 0, "the harbour", "x", ({"page_content": "..."},), ({"source_index": 0, "quote": "."},)),
        FileAnswer("talks/q", 1, None),
        FileAnswer("talks/q", 2, '["a", "b"]'),
    )
    assert [finding.text for finding in found.findings] == [
        "answer 3 cannot be read",
        "answer 4 cannot be read",
        "answers is not a list",
    ]
    assert len(found.items) == 2


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b'{"qa_pairs": []}', "empty"),
        (b"[]", "qa_pairs"),
        (b'{"qa_pairs": {}}', "qa_pairs"),
        (b'{"qa_pairs": [], "qa_pairs": []}', "qa_pairs"),
        (b'{"qa_pairs": [', "json"),
        (b"[" * 100_000, "json"),
        ('{"qa_pairs": []}'.encode("utf-16"), "encoding"),
        (b'{"qa_pairs": ["\xe9"]}', "encoding"),
    ],
)
def test_a_file_that_is_none_is_one_finding(data: bytes, code: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(data)
    found = load_socioscope(tmp_path / "x.json")
    assert (found.items, [(finding.level, finding.code) for finding in found.findings]) == ((), [("error", code)])


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ItemError, match="a folder; allowed: a JSON file with qa_pairs"):
        load_socioscope(tmp_path)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8"), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["text", "qa_pairs", "a"]), inner, max_size=3),
    max_leaves=10,
)


@given(_VALUES)
def test_no_pair_raises_anything(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    found = loaded(
        tmp_path_factory.mktemp("any"), {"question": QUESTION, "answers": value}, value, {"question": value, "quotes": value}
    )
    assert len(found.items) == 1
    assert len(found.errors) >= 2


@given(st.lists(_VALUES, max_size=5), _VALUES, st.integers(0, 3))
def test_members_are_counted_as_the_parser_counts_them(members: list[object], other: object, indent: int) -> None:
    text = json.dumps({"before": other, "list": members, "after": [other]}, indent=indent)
    lines = find_member_lines(text, "list")
    assert len(lines) == len(members)
    assert len(find_member_lines(json.dumps(members, indent=indent))) == len(members)
    if indent:
        starts = [
            number
            for number, line in enumerate(text.split("\n"), 1)
            if line.startswith(" " * (2 * indent)) and line[2 * indent] not in " ]}"
        ]
        assert set(lines) <= set(starts)


@needs_interviews
def test_the_shared_questions_stand_on_their_transcripts() -> None:
    corpus = shared_corpus()
    found = load_socioscope(INTERVIEWS / "questions.json", turn_text=corpus.turn_text)
    assert (len(found.items), found.findings) == (42, ())
    assert {item.type for item in found.items} == set(SOCIOSCOPE_TYPES)
    assert {item.cluster for item in found.items} <= {one.file for one in corpus.transcripts}
