"""Blind sheets are drawn with known chances, and what people write on them is read, kept and used."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.errors import SourceError
from dtef_pipeline.rubric.label_sheet import (
    SHEET_COLUMNS,
    LabelSample,
    apply_human_labels,
    blind_rows,
    build_label_items,
    draw_id,
    read_labels,
    sample_labels,
    select_in_force,
    write_sheet_csv,
)
from dtef_pipeline.rubric.tables import RUBRIC_LABELS
from tests.made.rubric_tables import CLASSES, RESPONSE, rubric_tables

MADE = rubric_tables()
RESPONSE_BY_NAME = ["name" if name == "prompt" else name for name in RESPONSE]
EARLY, LATE = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)


def sample(**options: Any) -> LabelSample:
    return sample_labels(MADE.responses, MADE.criteria, MADE.prompts, **{"n_prompts": 4, "seed": 7, **options})


def read(text: str, at: datetime = EARLY, **options: Any) -> pd.DataFrame:
    return read_labels(text, file="sheet.csv", scale=CLASSES, imported_at=at, **options)


def test_the_sheet_names_no_model_and_no_verdict() -> None:
    sheet, drawn, items = sample()
    assert tuple(sheet.columns) == SHEET_COLUMNS
    assert len(sheet) == sheet["item"].nunique() == 4 * 4 * 4  # prompts x responses x criteria
    assert len(drawn) == 12
    assert drawn["drawn"].sum() == 4
    assert set(items["item"]) == set(sheet["item"])
    assert (sheet[["class", "reason", "author"]] == "").all(axis=None)
    assert sheet["item"].tolist() != sorted(sheet["item"])


def test_names_are_hidden_in_texts_and_items_are_the_same_without() -> None:
    named = MADE.responses.assign(text=MADE.responses["text"] + ", as ChatGPT", model="openai/gpt-4o")
    named = named.assign(model_variant=named["model_variant"].radd("openai/gpt-4o"))
    blind = sample_labels(named, MADE.criteria, MADE.prompts, n_prompts=4, seed=7)
    open_ = sample_labels(named, MADE.criteria, MADE.prompts, n_prompts=4, seed=7, show_names=True)
    assert blind.sheet["text"].str.endswith(", as [model]").all()
    assert open_.sheet["text"].str.endswith(", as ChatGPT").all()
    assert (blind.sheet["hidden"].eq(1).all(), open_.sheet["hidden"].eq(0).all()) == (True, True)
    assert blind.sheet["item"].tolist() == open_.sheet["item"].tolist()
    assert draw_id(blind) == draw_id(open_)
    filled = write_sheet_csv(blind.sheet.assign(**{"class": "UNMET", "author": "Ada"}))
    assert read(filled, items=set(open_.items["item"]))["item"].tolist() == blind.sheet["item"].tolist()


def test_equal_seeds_draw_alike_whatever_the_order_of_rows() -> None:
    mixed = [part.sample(frac=1, random_state=3) for part in (MADE.responses, MADE.criteria, MADE.prompts)]
    again = sample_labels(mixed[0], mixed[1], mixed[2], n_prompts=4, seed=7, per_model=1)
    assert again.sheet.equals(sample(per_model=1).sheet)
    assert not sample(seed=8).sheet.equals(sample().sheet)


def test_chances_are_recorded_and_follow_the_weights_of_prompts() -> None:
    assert (sample(n_prompts=12).draws["probability"] == 1).all()
    some = pd.concat([sample(seed=seed).draws for seed in range(12)]).merge(MADE.prompts)
    # Weights 2 1 1 2 1 1 in each of two blueprints, 4 of 12 drawn: 4 x weight / 16.
    assert some["probability"].to_numpy() == pytest.approx(some["weight"].to_numpy() / 4)
    often = some.groupby("weight")["drawn"].mean()
    assert often.to_numpy() == pytest.approx([0.25, 0.5], abs=0.2)


def test_equal_texts_share_an_item_and_an_edited_criterion_is_another_one() -> None:
    same = MADE.responses.assign(text="The same.")
    items = build_label_items(same, MADE.criteria, MADE.prompts)
    assert items["item"].nunique() == len(MADE.criteria)
    edited = MADE.criteria.assign(text=MADE.criteria["text"] + "!")
    assert set(build_label_items(same, edited, MADE.prompts)["item"]).isdisjoint(items["item"])


def test_what_has_a_label_is_not_put_on_a_sheet_again() -> None:
    sheet = sample().sheet
    again = sample(known_items=sheet["item"].tolist()[:10])
    assert len(again.sheet) == len(sheet) - 10
    assert len(again.items) == len(sample().items)


@given(st.lists(st.text(max_size=30), min_size=1, max_size=6))
def test_no_cell_of_a_sheet_is_a_formula_and_texts_come_back(cells: list[str]) -> None:
    written = write_sheet_csv(pd.DataFrame({"text": cells})).removeprefix("\ufeff")
    for (read_back,), cell in zip(list(csv.reader(io.StringIO(written, newline="")))[1:], cells, strict=True):
        assert not read_back.lstrip(" \n").startswith(("=", "+", "-", "@", "\t", "\r"))
        assert read_back in {cell.replace("\0", ""), "'" + cell.replace("\0", "")}


def test_a_filled_in_sheet_is_read_as_it_was_written() -> None:
    sheet = sample().sheet
    classes = ["exactly_met", *[""] * (len(sheet) - 2), "CLASS_UNMET"]
    filled = sheet.assign(**{"class": classes, "author": "Ada", "reason": 'So, "it" is'})
    found = read(write_sheet_csv(filled), items=set(sheet["item"]))
    assert found["class"].tolist() == ["CLASS_EXACTLY_MET", "CLASS_UNMET"]
    assert found["score"].tolist() == [1.0, 0.0]
    assert found["item"].tolist() == [sheet["item"].iloc[0], sheet["item"].iloc[-1]]
    assert set(found["reason"]) == {'So, "it" is'}
    assert list(found.columns) == RUBRIC_LABELS.names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "item,class,author\nx1,GREAT,Bo\n",
            r"sheet\.csv:2: unknown class; got 'GREAT'; allowed: CLASS_UNMET, CLASS_PARTIALLY_MET",
        ),
        ('item,text,class,author\nx1,"a\nb",UNMET,Bo\nx1,c,GREAT,Bo\n', r"sheet\.csv:4: unknown class"),
        ("item,class,author\nx9,UNMET,Bo\n", r"sheet\.csv:2: unknown item; got 'x9'"),
        ("item,class\nx1,UNMET\n", r"sheet\.csv:2: a label without an author"),
        ("item,verdict\nx1,UNMET\n", r"sheet\.csv:1: no column class"),
        ("", r"sheet\.csv:1: no column item, class"),
        ("item,class,author\nx1,UNMET,Bo,more\n", r"sheet\.csv:2: more cells than columns; got 4; allowed: 3"),
    ],
)
def test_a_fault_of_a_sheet_is_named_with_file_line_and_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        read(text, items={"x1"})


def in_force(labels: pd.DataFrame) -> list[float]:
    items = build_label_items(MADE.responses, MADE.criteria, MADE.prompts).iloc[:1].assign(item="x1")
    scores: list[float] = select_in_force(items, labels)["human"].tolist()
    return scores


def test_a_later_label_of_an_author_overrules_and_both_stay() -> None:
    first = read("item,class,author\nx1,UNMET,Ada\nx1,EXACTLY_MET,Bo\n")
    later = read("item,class,author\nx1,MODERATELY_MET,Ada\n", LATE)
    kept = pd.concat([first, later])
    assert in_force(kept) == [0.75]


def test_of_two_labels_on_one_sheet_the_lower_line_counts() -> None:
    assert in_force(read("item,class,author\nx1,UNMET,Ada\nx1,EXACTLY_MET,Ada\n")) == [1.0]


def test_a_label_overrules_its_point_and_is_inverted_where_the_point_is() -> None:
    items = build_label_items(MADE.responses, MADE.criteria, MADE.prompts)
    good = items.loc[items["block"] == "should", "item"].iloc[0]
    bad = items.loc[items["block"] == "should_not", "item"].iloc[0]
    text = f"item,class,author\n{good},PARTIALLY_MET,A\n{bad},PARTIALLY_MET,A\n"
    found = apply_human_labels(MADE.points, items, read(text))
    assert found["labelled"].sum() == 2
    assert sorted(found.loc[found["labelled"], "score"]) == pytest.approx([0.25, 0.75])
    untouched = ~found["labelled"].to_numpy()
    assert found.loc[untouched, "score"].equals(MADE.points.loc[untouched, "score"])


def test_a_point_that_no_judge_could_score_is_scored_by_its_label() -> None:
    items = build_label_items(MADE.responses, MADE.criteria, MADE.prompts)
    item = items.loc[items["block"] == "should", "item"].iloc[0]
    unscored = MADE.points.assign(score=np.nan, reason="unreadable")
    found = apply_human_labels(unscored, items, read(f"item,class,author\n{item},EXACTLY_MET,A\n"))
    assert found.loc[found["labelled"], ["score", "reason"]].to_numpy().tolist() == [[1.0, None]]
    assert found.loc[~found["labelled"], "score"].isna().all()


def test_each_row_of_the_sheet_shows_the_text_and_the_criterion_of_its_item() -> None:
    sheet, _, items = sample(show_names=True)
    keys = items.drop_duplicates("item").rename(columns={"prompt": "name"})
    one = sheet.merge(keys, on="item").merge(
        MADE.responses.rename(columns={"prompt": "name", "text": "said"}), on=RESPONSE_BY_NAME
    )
    assert len(one) == len(sheet)
    assert (one["text"] == one["said"]).all()
    assert (one["prompt"] == "Explain " + one["name"] + " of " + one["blueprint"] + ".").all()
    assert one["criterion"].str.endswith(" of " + one["name"].iloc[0]).sum() == (one["name"] == one["name"].iloc[0]).sum()
    assert set(one.loc[one["block"] == "should_not", "criterion"].str[:11]) == {"Criterion 3"}


ANSWERED = pd.DataFrame(
    {
        "blueprint": ["b", "b", "c"],
        "model": ["fast", "claude-haiku", "fast"],
        "model_variant": [
            "openai/gpt-4o-mini[temperature=0]",
            "openrouter/anthropic/claude-3-5-haiku[temperature=0]",
            "openai/gpt-4o-mini",
        ],
        "served_model": ["gpt-4o-mini-2024-07-18", None, "sparrow-7"],
    }
)


def hidden(
    text: str, shown: str = "Who wrote the law?", criterion: str = "Names the author.", blueprint: str = "b"
) -> tuple[str, int]:
    rows = pd.DataFrame({"blueprint": [blueprint], "shown": [shown], "text": [text], "criterion": [criterion]})
    found = blind_rows(rows, ANSWERED).iloc[0]
    return found["text"], int(found["hidden"])


def test_what_a_model_was_served_as_is_hidden_in_its_own_blueprint() -> None:
    assert hidden("sparrow-7 speaking", blueprint="c") == ("[model] speaking", 1)
    assert hidden("sparrow-7 speaking", blueprint="b") == ("sparrow-7 speaking", 0)


@pytest.mark.parametrize("where", ["shown", "criterion"])
def test_a_name_that_the_row_is_about_stays(where: str) -> None:
    text = "OpenAI was founded in 2015, says Claude."
    assert hidden(text, **{where: "When was OpenAI founded?"}) == ("OpenAI was founded in 2015, says [model].", 1)
    assert hidden(text) == ("[company] was founded in 2015, says [model].", 2)


def test_rows_keep_their_order_and_their_other_columns() -> None:
    rows = pd.DataFrame(
        {"blueprint": "b", "shown": "x", "criterion": "y", "text": ["I am ChatGPT", "no", "Claude"], "item": ["2", "1", "3"]},
        index=[5, 1, 3],
    )
    found = blind_rows(rows, ANSWERED)
    assert found["text"].tolist() == ["I am [model]", "no", "[model]"]
    assert found["hidden"].tolist() == [1, 0, 1]
    assert found[["item", "shown", "criterion"]].equals(rows[["item", "shown", "criterion"]])
    assert rows["text"].tolist()[0] == "I am ChatGPT"
