"""Attributes and keys of segments are recognised by the values that surveys write."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.errors import SurveyError
from dtef_pipeline.survey.attributes import (
    classify_groups,
    find_candidates,
    find_profile_attribute,
    is_non_answer,
    make_segment_key,
    normalise_attribute_name,
    segment,
    slugify,
)

CASES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("value", "attribute"), CASES["a_value_tells_its_attribute"])
def test_a_value_tells_its_attribute(value: str, attribute: str) -> None:
    assert find_candidates(value) == {attribute}


@pytest.mark.parametrize("value", ["Martian", "Africa", "Branch A", "44", "Yes", "Agree", ""])
def test_a_value_of_no_vocabulary_has_no_attribute(value: str) -> None:
    assert find_candidates(value) == frozenset()


def test_an_ambiguous_value_follows_the_majority_of_its_group() -> None:
    found = classify_groups({3: ["Female", "Male", "Other"], 6: ["Islam", "Other", "Prefer not to say"]})
    assert (found[3, "Other"], found[6, "Other"], found[6, "Prefer not to say"]) == ("gender", "religion", "religion")


def test_each_value_is_classified_by_itself_even_in_a_strange_group() -> None:
    assert classify_groups({4: ["Rural", "Urban", "Kenya", "Mars"]}) == {
        (4, "Rural"): "environment",
        (4, "Urban"): "environment",
        (4, "Kenya"): "country",
        (4, "Mars"): None,
    }


@pytest.mark.parametrize(("attribute", "value", "key"), CASES["segment_keys"])
def test_segment_keys(attribute: str, value: str, key: str) -> None:
    assert make_segment_key(attribute, value) == key


@given(st.text())
def test_slugs_are_fit_for_partition_keys_and_stable(value: str) -> None:
    made = slugify(value)
    assert made == made.casefold() or not made.isascii()
    assert not set("/:.+%") & set(made)
    assert all(c.isprintable() for c in made)
    assert slugify(made) == made


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Age group", "ageGroup"), ("age", "ageGroup"), ("COUNTRY", "country"), ("education level", "education-level")],
)
def test_attribute_names_have_one_spelling(name: str, expected: str) -> None:
    assert normalise_attribute_name(name) == expected


def test_a_value_that_makes_no_key_is_refused() -> None:
    with pytest.raises(SurveyError, match=r"file:3: .*a letter or digit.*'\?\?\?'"):
        segment({"country": "???"}, 12, where="file", line=3)


def test_profile_questions_ask_who_the_respondent_is() -> None:
    values = {"country": ["Kenya", "India", "Turkey", "Japan", "Brazil"], "ageGroup": ["<18", "18-25", "65+"]}
    assert find_profile_attribute(["Less than 18", "18-25", "65+"], values) == "ageGroup"
    assert find_profile_attribute(["Kenya", "India", "Türkiye", "Japan", "Brazil", "Other"], values) == "country"
    assert find_profile_attribute(["Female", "Male", "Other"], values) == "gender"


@pytest.mark.parametrize("value", CASES["a_segment_of_people_who_gave_no_answer_is_reported_by_its_key"])
def test_a_segment_of_people_who_gave_no_answer_is_reported_by_its_key(value: str) -> None:
    assert is_non_answer(make_segment_key("party", value))
    assert is_non_answer(f"{make_segment_key('party', value)}+gender:male")


@pytest.mark.parametrize("key", CASES["an_answer_is_no_non_answer"])
def test_an_answer_is_no_non_answer(key: str) -> None:
    assert not is_non_answer(key)
