"""Options that are no answer have no place on a scale; answers that look like one have."""

from __future__ import annotations

import pytest

from dtef_pipeline.survey.answer_scales.scales import detect_scale

NO_ANSWERS = [
    "Other/Don't know",
    "None of the above / don't know",
    "Other or refused",
    "Sin opinión",
    "Невозможно ответить",
    "Impossible de répondre",
    "DK/Refused",
    "Haven't thought much about this",
    "No answer/refused",
    "Missing; Not available",
    "Missing; Not applicable for other reasons",
    "Other missing; Multiple answers Mail (EVS)",
    "No sabe / No contesta",
    "NS/NC",
    "Não sabe / Não respondeu",
    "Ne sait pas",
    "Weiß nicht / keine Angabe",
    "Nie wiem / trudno powiedzieć",
    "Затрудняюсь ответить",
    "不知道",
    "わからない",
    "모름/무응답",
    "لا أعرف",
    "Bilmiyorum / Cevap yok",
    "Don't know (DK)",
    "(Don’t know)",
    "99 Refused",
    "DK / REF / NA",
    "N/A",
    "Neither (VOL)",
    "Same (VOL.)",
    "Both equally (Volunteered)",
    "Depends [DO NOT READ]",
    "DO NOT READ: Other",
    "Never heard of (VOL)",
    "Can't rate",
    "Don't know enough to say",
    "Unsure / It depends on the specifics",
]
ANSWERS = [
    "Neither",
    "No",
    "Neutral / No opinion",
    "Maybe, I'm unsure",
    "I don't know anything about it",
    "Don't know much about it",
    "I do not remember anything of it",
    "Not sure at all",
    "Volleyball",
    "I do not read newspapers",
    "Nothing",
]


@pytest.mark.parametrize("option", NO_ANSWERS)
def test_an_option_that_is_no_answer_is_set_aside_in_every_list(option: str) -> None:
    """`DK/Refused` stayed on the scale: the list was nominal, or the option was its end where the survey said ordinal."""
    for texts in (["Very good", "Good", "Bad", option], [option, "Red", "Blue"]):
        for stated in (None, "ordinal"):
            assert [o for o, off in zip(texts, detect_scale(texts, stated).dont_know, strict=True) if off] == [option]


@pytest.mark.parametrize("option", ANSWERS)
def test_an_answer_is_not_taken_for_no_answer(option: str) -> None:
    assert detect_scale(["Red", option, "Blue"]).dont_know == (False, False, False)


@pytest.mark.parametrize(
    "options",
    [
        "I know a lot about it | I know a little about it | I don't know anything about it",
        "A lot | A little | I don't know anything about it",
        "Very sure | Fairly sure | Not sure",
        "Very sure | Fairly sure | Not very sure | Not sure at all",
        "Very relevant | Somewhat relevant | Not relevant",
        "Very familiar | Somewhat familiar | Never heard of it",
        "A lot | A little | I have never heard of it",
        "I have heard a lot about it | I have heard a little about it | I have never heard of it",
        "I know exactly what it is | I know roughly what it is | I don't know what it is",
        "I have a clear idea | I have some idea | I have no idea",
        "I use it often | I use it sometimes | I have never used it",
        "I have never used it | I use it sometimes | I use it often",
        "Definitely won't | Maybe won't | Not sure | Maybe will | Definitely will",
        "Agree | Undecided | Disagree",
    ],
)
def test_a_phrase_of_not_knowing_is_a_place_on_the_scale_where_the_others_are_degrees_of_it(options: str) -> None:
    """`I don't know anything about it` below `a lot` and `a little` was set aside."""
    texts = options.split(" | ")
    scale = detect_scale(texts)
    assert (scale.kind, any(scale.dont_know)) == ("ordinal", False)
    assert scale.positions == tuple(range(1, len(texts) + 1))


@pytest.mark.parametrize(
    ("options", "positions"),
    [
        ("Disagree | Hard to say | Agree | Don't know | Missing; Not available", (1, 2, 3, None, None)),
        ("Agree | Don't know | Disagree", (1, None, 2)),
        ("Very favorable | Mostly favorable | Mostly unfavorable | Very unfavorable | Never heard of", (1, 2, 3, 4, None)),
        ("A great deal | Some | Not much | None | Never heard of it", (1, 2, 3, 4, None)),
        ("Very good | Good | Bad | I have never used it", (1, 2, 3, None)),
        ("Good idea | Bad idea | No idea", (1, 2, None)),
        ("Very favorable | Mostly favorable | Very unfavorable | None of the above / don't know", (1, 2, 3, None)),
        ("Agree | Disagree | Not sure", (1, 2, None)),
        ("Very well | Somewhat well | Not well | Not sure", (1, 2, 3, None)),
    ],
)
def test_those_set_aside_have_no_position(options: str, positions: tuple[float | None, ...]) -> None:
    assert detect_scale(options.split(" | ")).positions == positions
