"""The previous-round baseline over a long series: what it says does not depend on the order of a run, what it reads does not grow with it."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assets.survey.predictor import Predictor, SegmentPredictions
from dtef_pipeline.asking.models import load_models
from dtef_pipeline.survey.baselines.names import BASELINES
from dtef_pipeline.survey.changes import SAME_SURVEY
from dtef_pipeline.survey.tables import PREDICTIONS, SURVEY_FINDINGS
from resources.warehouse import Warehouse
from tests.assets.survey.predict_setup import put, settings_of_run

(PREVIOUS,) = load_models("", computed=BASELINES).resolve(["baseline/previous-round"])
SEGMENT = "country:kenya"
ANSWERS = {
    round_id: [number / 100, 1 - number / 100 - 0.1, 0.1]
    for number, round_id in enumerate([f"A{n}" for n in range(1, 8)] + ["B2"])
}


def asked(house: Warehouse, contents: dict[str, set[int]]) -> None:
    """Rounds that asked some of three questions; each has one answer to all of them."""
    for round_id, questions in contents.items():
        rows = (
            {"question_id": f"{round_id}q{q}", "question_text": f"Question number {q}?", "observed": ANSWERS[round_id]}
            for q in questions
        )
        put(house, f"{round_id}/{SEGMENT}", *rows)


def said(predictor: Predictor, round_id: str) -> dict[str, list[float] | None]:
    segment = SegmentPredictions(predictor, f"{round_id}/{SEGMENT}")
    rows = segment.merge_with_stored(segment.rows(PREDICTIONS.empty_table(), {}))["predictions"]
    shares = [None if text is None else [share / 100 for share in json.loads(text)] for text in rows["response"].to_pylist()]
    return dict(zip(rows["question_id"].to_pylist(), shares, strict=True))


def predictor_of(house: Warehouse) -> Predictor:
    return Predictor(house, settings_of_run(), (PREVIOUS,), lookup=lambda keys: PREDICTIONS.empty_table())


def in_words(contents: dict[str, set[int]], round_id: str, question: int) -> list[float] | None:
    """The definition: the newest earlier round of the series that asked it."""
    earlier = [r for r in contents if r[0] == round_id[0] and int(r[1:]) < int(round_id[1:]) and question in contents[r]]
    return ANSWERS[max(earlier, key=lambda r: int(r[1:]))] if earlier else None


@settings(max_examples=settings.default.max_examples // 2)
@given(data=st.data())
def test_each_question_has_its_latest_earlier_answer_in_whatever_order_rounds_are_run(data: st.DataObject) -> None:
    contents = data.draw(
        st.dictionaries(st.sampled_from(sorted(ANSWERS)), st.sets(st.integers(0, 2), min_size=1), min_size=2, max_size=6)
    )
    order = data.draw(st.permutations(sorted(contents)))
    with tempfile.TemporaryDirectory() as folder:
        house = Warehouse(Path(folder))
        asked(house, contents)
        predictor = predictor_of(house)
        for round_id in order:
            for question_id, shares in said(predictor, round_id).items():
                wanted = in_words(contents, round_id, int(question_id[-1]))
                assert (shares is None) == (wanted is None)
                assert shares is None or all(abs(a - b) < 1e-12 for a, b in zip(shares, wanted or [], strict=True))


def test_a_run_over_a_series_reads_each_round_once_for_its_later_ones(tmp_path: Path) -> None:
    # Each round read all earlier ones again: 200 rounds of 50 segments were a million reads.
    house = Warehouse(tmp_path)
    rounds = [f"A{n}" for n in range(1, 8)]
    asked(house, {round_id: {0, 1} for round_id in rounds})
    reads: Counter[tuple[str, bool]] = Counter()
    plain = house.rows

    def counting(table: str, *to: Any, **given: Any) -> pa.Table:
        if table == "survey_responses":
            reads[given["round"], given["columns"] is not None] += 1
        return plain(table, *to, **given)

    house.rows = counting  # type: ignore[method-assign]
    predictor = predictor_of(house)
    for round_id in rounds:
        said(predictor, round_id)
    assert reads == {(round_id, True): 1 for round_id in rounds[:-1]}


def test_a_copy_of_the_survey_under_another_id_is_no_earlier_round(tmp_path: Path) -> None:
    """The baseline repeated the truth itself and ranked first with a score of 1."""
    house = Warehouse(tmp_path)
    asked(house, {round_id: {0} for round_id in ("A1", "A2", "A3")})
    finding = {"round": "A3", "level": "warning", "code": SAME_SURVEY, "message": "", "items": ["A3", "A2"]}
    house.write("survey_findings", pa.Table.from_pylist([finding], schema=SURVEY_FINDINGS), round="A3")
    predictor = predictor_of(house)
    for round_id in ("A3", "A2"):
        assert said(predictor, round_id)[f"{round_id}q0"] == pytest.approx(ANSWERS["A1"])
