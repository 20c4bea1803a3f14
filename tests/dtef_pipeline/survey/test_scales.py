"""Lists of options are ordinal only where every option stands in order, and non-answers have no place on a scale."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from dtef_pipeline.survey.answer_scales.scales import detect_scale

LISTS = tomllib.loads(Path(__file__).with_name("scale_lists.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("options", [*LISTS["ordinal"], *LISTS["ordinal_of_other_surveys"], *LISTS["ordinal_of_more_surveys"]])
def test_ordered_lists_are_ordinal_in_both_directions(options: str) -> None:
    texts = options.split(" | ")
    assert detect_scale(texts).kind == "ordinal"
    assert detect_scale(texts[::-1]).kind == "ordinal"


@pytest.mark.parametrize("options", LISTS["ordinal_by_what_is_not_shared"])
def test_lists_that_are_ordered_by_what_their_options_do_not_share_are_ordinal(options: str) -> None:
    """`Top priority | Some priority | No priority` was nominal."""
    texts = options.split(" | ")
    for listed in (texts, texts[::-1]):
        scale = detect_scale(listed)
        assert (scale.kind, scale.positions) == ("ordinal", tuple(range(1, len(texts) + 1)))


@pytest.mark.parametrize("options", [*LISTS["nominal"], *LISTS["several_things"]])
def test_other_lists_are_nominal(options: str) -> None:
    assert detect_scale(options.split(" | ")).kind == "nominal"


@pytest.mark.parametrize("options", LISTS["opposites_of_two_objects"])
def test_opposite_words_about_two_objects_are_no_scale(options: str) -> None:
    """`Improve schools | Worsen traffic | No effect` was a scale of three, wherever its middle stood."""
    first, second, middle = options.split(" | ")
    assert detect_scale([first, second, middle]).kind == "nominal"
    assert detect_scale([first, middle, second]).kind == "nominal"


@pytest.mark.parametrize("options", LISTS["middle_last"])
def test_a_middle_that_is_listed_last_stands_between_the_others(options: str) -> None:
    """`Too much | Not enough | About right` was nominal."""
    for texts in (options.split(" | "), [*options.split(" | "), "Refused"]):
        scale = detect_scale(texts)
        assert (scale.kind, scale.positions) == ("ordinal", (1, 2, 1.5, None)[: len(texts)])


@pytest.mark.parametrize(("options", "kind", "n_aside"), LISTS["kinds_and_set_aside"])
def test_do_not_know_is_set_aside_but_a_neutral_middle_is_not(options: str, kind: str, n_aside: int) -> None:
    texts = options.split(" | ")
    expected = texts[:-n_aside] if n_aside < 0 else texts[len(texts) - n_aside :]
    scale = detect_scale(texts)
    assert scale.kind == kind
    assert [o for o, off in zip(texts, scale.dont_know, strict=True) if off] == expected
    assert all(repr(o) in scale.reason for o in expected)


def test_a_stated_scale_is_taken_as_stated() -> None:
    scale = detect_scale(["Red", "Blue", "Don't know"], stated_kind="ordinal")
    assert (scale.kind, scale.dont_know) == ("ordinal", (False, False, True))
    assert scale.reason.startswith('stated by the survey; set aside: "Don\'t know"')


@pytest.mark.parametrize("option", LISTS["no_answers"])
def test_an_option_that_is_no_answer_is_set_aside_in_every_list(option: str) -> None:
    """`DK/Refused` stayed on the scale: the list was nominal, or the option was its end where the survey said ordinal."""
    for texts in (["Very good", "Good", "Bad", option], [option, "Red", "Blue"]):
        for stated in (None, "ordinal"):
            assert [o for o, off in zip(texts, detect_scale(texts, stated).dont_know, strict=True) if off] == [option]


@pytest.mark.parametrize("option", LISTS["answers"])
def test_an_answer_is_not_taken_for_no_answer(option: str) -> None:
    assert detect_scale(["Red", option, "Blue"]).dont_know == (False, False, False)


@pytest.mark.parametrize("options", LISTS["degrees_of_not_knowing"])
def test_a_phrase_of_not_knowing_is_a_place_on_the_scale_where_the_others_are_degrees_of_it(options: str) -> None:
    """`I don't know anything about it` below `a lot` and `a little` was set aside."""
    texts = options.split(" | ")
    scale = detect_scale(texts)
    assert (scale.kind, any(scale.dont_know)) == ("ordinal", False)
    assert scale.positions == tuple(range(1, len(texts) + 1))


@pytest.mark.parametrize(("options", "positions"), LISTS["set_aside"])
def test_those_set_aside_have_no_position(options: str, positions: str) -> None:
    expected = tuple(None if place == "-" else float(place) for place in positions.split())
    assert detect_scale(options.split(" | ")).positions == expected
