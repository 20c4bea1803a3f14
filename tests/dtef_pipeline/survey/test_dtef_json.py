"""The DTEF JSON adapter: canonical segments, clean options, bad distributions in quarantine, faults with their place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dtef_pipeline.errors import SurveyError
from dtef_pipeline.survey.adapters import read_survey
from dtef_pipeline.survey.observations import observe


def example() -> dict[str, Any]:
    questions = {
        "q1": {"text": "Good?", "type": "single-select", "options": ["Yes\t", "No"]},
        "q2": {"text": "Bad?", "type": "single-select", "options": ["Yes", "No"]},
    }
    turkey = {"id": "country:turkiye", "label": "Türkiye", "attributes": {"country": "Türkiye"}, "sampleSize": 40}
    old = {"id": "ageGroup:65", "attributes": {"ageGroup": "65+"}, "sampleSize": 20}
    of_turkey = [{"questionId": "q1", "distribution": [60, 40]}, {"questionId": "q2", "distribution": [50, 50], "n": 12}]
    segments = [{**turkey, "responses": of_turkey}, {**old, "responses": [{"questionId": "q1", "distribution": [70, 30]}]}]
    return {"surveyId": "global-dialogues-gd9", "surveyName": "Nine", "questions": questions, "segments": segments}


@pytest.fixture
def write(tmp_path: Path) -> Callable[[object], Path]:
    def write_json(data: object) -> Path:
        path = tmp_path / "survey.json"
        path.write_text(data if isinstance(data, str) else json.dumps(data, indent=1, ensure_ascii=False), encoding="utf-8-sig")
        return path

    return write_json


Write = Callable[[object], Path]


def test_segments_get_canonical_keys_and_questions_clean_options(write: Write) -> None:
    survey = read_survey(write(example()))
    assert (survey.round, survey.name) == ("GD9", "Nine")
    assert [s.key for s in survey.segments] == ["country:turkey", "ageGroup:65-plus"]
    assert survey.questions[0].options == ("Yes", "No")


def test_other_question_types_are_left_out_with_their_responses(write: Write) -> None:
    data = example()
    data["questions"]["q2"]["type"] = "multi-select"
    survey = read_survey(write(data))
    assert [q.id for q in survey.questions] == ["q1"]
    assert {a.question_id for a in survey.answers} == {"q1"}
    assert [(f.code, f.items) for f in survey.findings] == [("question-type", ("Bad?",))]


def test_a_stated_battery_is_kept(write: Write) -> None:
    data = example()
    data["questions"]["q1"]["battery"] = "B1"
    assert observe(read_survey(write(data))).responses["battery"].to_pylist() == ["given:B1", "rule:q2", "given:B1"]
    data["questions"]["q1"]["battery"] = 1
    with pytest.raises(SurveyError, match=r"json:\d+: battery of question q1 is not usable; got 1; allowed: a text"):
        read_survey(write(data))


@pytest.mark.parametrize(
    ("distribution", "reason"),
    [
        ("[60, 30, 10]", "wrong-length"),
        ("[NaN, 40]", "nan"),
        ("[120, -20]", "negative"),
        ("[0, 0]", "all-zero"),
        ("[60, null]", "blank-cells"),
        ("[60, 38.9]", "sum-not-100"),
        ("[null, null]", "no-data"),
    ],
)
def test_a_bad_distribution_is_quarantined_and_the_rest_goes_on(write: Write, distribution: str, reason: str) -> None:
    data = example()
    second(data)["distribution"] = "HERE"
    text = json.dumps(data, indent=1).replace('"HERE"', distribution)
    observed = observe(read_survey(write(text)))
    row = observed.quarantine.to_pylist()[0]
    assert (row["segment"], row["question_id"], row["reason"]) == ("country:turkey", "q2", reason)
    assert text.splitlines()[row["line"] - 1].strip() == '"questionId": "q2",'
    assert observed.responses.num_rows == 2


def second(data: dict[str, Any]) -> dict[str, Any]:
    """The second response of the first segment."""
    response: dict[str, Any] = data["segments"][0]["responses"][1]
    return response


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("segments"), r"not a survey: missing segments; got 'fields surveyId, .*'; allowed: fields sur"),
        (lambda d: d.update(questions={}), r"no question to predict"),
        (lambda d: d.update(questions=[1]), r"questions of the survey is not usable; got \[1\]; allowed: an object"),
        (lambda d: d["questions"]["q1"].pop("options"), r"json:5: options of question q1 is missing; allowed: a list"),
        (lambda d: d["questions"]["q1"].update(options=["Yes", " yes"]), r"json:5: .*same option twice; got \['Yes', 'yes'"),
        (lambda d: second(d).update(questionId="q7"), r"json:\d+: .*:turkey to an unknown question; got 'q7'; allowed: .*: q"),
        (lambda d: second(d).update(questionId="q1"), r"json:\d+: two answers of segment country:turkey to question q1"),
        (lambda d: d["segments"].append(d["segments"][0]), r"json:\d+: duplicate segment id 'country:turkiye'; allowed: each"),
        (lambda d: d["segments"].append({**d["segments"][0], "id": "x"}), r"two segments have the same key 'country:turkey'"),
        (lambda d: d["segments"][0].update(sampleSize="many"), r"json:\d+: sampleSize of .*:turkiye' is not a number of resp"),
    ],
)
def test_survey_level_faults_stop_and_say_what_is_allowed(
    write: Write, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    data = example()
    change(data)
    with pytest.raises(SurveyError, match=message):
        read_survey(write(data))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", r"not a survey; got 'a JSON list'; allowed: a .json file in the DTEFSurveyData form"),
        ("", "the file is empty"),
        ('{"surveyId": ' + "[" * 100_000, r"not a survey; got 'maximum recursion depth"),
        ('{"surveyId": ' + "9" * 5_000 + "}", r"not a survey; got 'Exceeds the limit"),
        ('{\n"surveyId": ', r"json:2: not JSON; got 'Expecting value'; allowed: .* after 13 characters, with '{\\n\"sur"),
        ('{"surveyId":\n"s9', r"json:2: not JSON; got 'Unterminated string starting at'; .* after 16 characters"),
        ('{"surveyId": x,\n"questions": {}}', r"json:1: not JSON; got 'Expecting value'$"),
    ],
)
def test_other_json_is_no_survey(write: Write, text: str, message: str) -> None:
    with pytest.raises(SurveyError, match=message):
        read_survey(write(text))


def test_stated_roles_and_positions_are_kept(write: Write) -> None:
    data = example()
    data["questions"]["q1"] |= {"options": ["More", "Less", "As now", "Pass"], "position": [1, 2, 1.5, None]}
    data["questions"]["q1"]["role"] = [None, None, "substantive", "refused"]
    data["segments"] = data["segments"][:1]
    data["segments"][0]["responses"] = [{"questionId": "q1", "distribution": [40, 30, 20, 10]}]
    survey = read_survey(write(data))
    assert survey.questions[0].roles == (None, None, "substantive", "refused")
    (row,) = observe(survey).responses.to_pylist()
    assert (row["scale"], row["positions"], row["dont_know"]) == ("ordinal", [1, 2, 1.5, None], [False, False, False, True])


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("role", ["quiet", None], r"json:\d+: .*role.*'quiet'.*substantive, dont_know, refused, volunteered"),
        ("role", ["refused"], r"json:\d+: role of question q1 .*2 values"),
        ("role", "refused", r"json:\d+: role of question q1 .*list"),
        ("position", [1, "last"], r"json:\d+: .*position.*'last'.*number"),
        ("position", [1, True], r"json:\d+: .*position.*[Tt]rue.*number"),
    ],
)
def test_wrong_roles_and_positions_are_refused_with_their_place(write: Write, field: str, value: object, message: str) -> None:
    data = example()
    data["questions"]["q1"][field] = value
    with pytest.raises(SurveyError, match=message):
        read_survey(write(data))
