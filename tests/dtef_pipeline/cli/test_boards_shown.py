"""What the terminal says of boards: the sample, notes, readable responses alone, design effects and linked rounds."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from dtef_pipeline.boards.comparisons import compare_all_pairs
from dtef_pipeline.boards.pairs import COMPARED_FAMILIES
from dtef_pipeline.cli.survey.survey_board import describe_readable_only, describe_samples
from dtef_pipeline.cli.terminal import print_rows
from dtef_pipeline.cli.warehouse_access import query_rounds
from dtef_pipeline.qa.qa_boards import QA_BOARDS
from dtef_pipeline.survey.answer_scales.batteries import load_question_clusters
from dtef_pipeline.survey.boards.survey_subject import SurveyBoardOptions
from dtef_pipeline.survey.observations import describe_n
from dtef_pipeline.survey.tables import SCORES, SURVEY_RESPONSES
from resources.warehouse import Warehouse
from tests.dtef_pipeline.boards.test_comparisons import OPTIONS, panel, unread
from tests.dtef_pipeline.cli.commands import CHOSEN, SAMPLE, ok

PAIRS = [(name, segment, question) for name in ("R1", "R2") for segment in "abcd" for question in ("q1", "q2", "q3")]


def lines(asked: list[tuple[str, str, str]], *rounds: str) -> list[str]:
    """The lines for scores of a model on these pairs, and of a baseline on all."""
    keys = ["round", "segment", "question_id"]
    models = {"openai/m": asked, "baseline/uniform": PAIRS}
    scores = pd.concat([pd.DataFrame(pairs, columns=keys).assign(model_variant=name) for name, pairs in models.items()])
    with duckdb.connect() as connection:
        connection.register("scores", scores.assign(model=scores["model_variant"], snapshot="base"))
        connection.register("survey_responses", pd.DataFrame(PAIRS, columns=keys))
        return [*describe_samples(connection, SurveyBoardOptions(rounds=rounds))]


def test_pairs_segments_and_questions_are_those_that_were_asked() -> None:
    """The line named the smallest draw that contains the pairs: "all segments; 13 of 16 questions" for 6 pairs."""
    asked = [("R1", "a", "q1"), ("R1", "b", "q3"), ("R1", "d", "q3"), ("R2", "c", "q2")]
    (first, second) = lines(asked)
    assert first.startswith("R1: ")
    assert "3 of 12 pairs" in first
    assert "3 of 4 segments, 2 of 3 questions" in first
    assert "1 of 4 segments, 1 of 3 questions" in second
    assert lines(asked, "R2") == [second]


def test_a_whole_round_has_no_line() -> None:
    assert lines([pair for pair in PAIRS if pair[0] == "R1"]) == []


QA_VIEW_BY_NAME = {view.name: view for view in QA_BOARDS}


def test_rows_without_a_note_stand_beside_rows_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    """`dtef qa board --by pass-at-k` ended in a fault where there were draws enough for some k alone: no note is not a note."""
    view = QA_VIEW_BY_NAME["pass-at-k"]
    rows = {"part": ["all", "all"], "model": ["mine", "mine"], "k": [1, 5], "pass_at_k": [0.5, None]}
    frame = pd.DataFrame({**rows, "note": pd.Series([None, "no item has 5 scored draws"], dtype="str")})
    print_rows(view, frame, "table", (), {})
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "scored draws" in line] == ["all, mine: no item has 5 scored draws"]


def compared(frame: pd.DataFrame) -> pd.DataFrame:
    return compare_all_pairs(frame, OPTIONS).sort_values(
        "adjusted_over", key=lambda names: names.map(COMPARED_FAMILIES.index), kind="stable"
    )


def test_what_readable_responses_alone_say_otherwise_is_reported_for_the_first_rows() -> None:
    often = unread(panel("often-unread", *"abcdefg", questions=60), "often-unread", slice(None, None, 5))
    *said, more = describe_readable_only(compared(often))
    assert said[0].startswith("by only the readable responses: a against often-unread: better by the published policy")
    assert sum("no difference is found" in line for line in said) == 5
    assert more == "2 more rows: --csv has them all, as parsed_note"
    assert list(describe_readable_only(compared(panel("a", "b")))) == []


SAID = "design effect given at ingest: 1.5 for S1"


@pytest.mark.thorough
def test_boards_and_report_say_which_rounds_have_which_design_effect(ingested: Path) -> None:
    """It was said at ingest alone, and lowered ceilings and moved skill in silence."""
    ok("add", SAMPLE, "--design-effect", "1.5")
    what = ["--round", "S1", *CHOSEN, "--model", "baseline/uniform", "--questions", "3"]
    assert SAID in ok("run", *what, "--no-roll-ups")
    assert SAID in ok("board")
    assert SAID not in ok("board", "--by", "metric")
    assert SAID not in ok("board", "--csv")
    ok("report", "--out", ingested / "site")
    assert f"D{SAID[1:]}" in (ingested / "site" / "data.html").read_text(encoding="utf-8")


def test_rounds_of_one_design_effect_are_named_together() -> None:
    stated = [
        {"round": name, "code": "design-effect", "items": [effect]}
        for name, effect in (("S1", "1.5"), ("S2", "2"), ("S3", "1.5"))
    ]
    with duckdb.connect() as connection:
        connection.register("survey_findings", pa.Table.from_pylist(stated))
        (line,) = describe_n(connection)
        assert "1.5 for S1, S3; 2 for S2;" in line
        assert describe_n(connection, ["S4"]) == []


TEXTS = {"q1": "How much do you trust newspapers?", "q2": "Which of these did you do last week?"}


def answered_in(round_id: str, **batteries: str) -> pa.Table:
    """What one segment of a round answered to the questions of `batteries`."""
    known = {"round": round_id, "segment": "age:18-25", "options": ["yes", "no"], "observed": [0.5, 0.5], "n": 20}
    rows = [
        known | {"question_id": question, "question_text": TEXTS[question], "battery": battery}
        for question, battery in batteries.items()
    ]
    return pa.Table.from_pylist(rows, schema=SURVEY_RESPONSES)


def test_a_battery_of_another_round_holds_questions_together_where_one_round_alone_is_read(tmp_path: Path) -> None:
    house, tables = Warehouse(tmp_path), ("scores", "survey_responses")
    house.write("survey_responses", answered_in("R1", q1="media", q2="media"), round="R1", segment="age:18-25")
    house.write("survey_responses", answered_in("R2", q1="trust", q2="did"), round="R2", segment="age:18-25")
    for round_id in ("R1", "R2"):
        house.write("scores", SCORES.empty_table(), round=round_id, segment="age:18-25", snapshot="base")
    alone = house.query(load_question_clusters, only=tables, first=["R2"])
    assert len(set(alone["cluster"])) == 2
    for rounds in (["R2"], []):
        assert len(set(query_rounds(house, load_question_clusters, tables, rounds)["cluster"])) == 1
