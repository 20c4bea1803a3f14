"""Scales that show by what their options do not share, and by two opposites with a middle; nominal lists in ordered words."""

from __future__ import annotations

import pytest

from dtef_pipeline.survey.answer_scales.scales import detect_scale

BY_WHAT_IS_NOT_SHARED = [
    "All of the fields are mown | Some are mown and some are not | None of the fields are mown",
    "Very useful tool | Somewhat useful tool | Not too useful of a tool | Not a tool at all",
    "Contributes a lot | Contributes a little | Does not contribute",
    "Large boat | Midsize boat | Small boat",
    "Working full-time | Working part-time | Not working at all",
    "Yes, often | Yes, on occasion | No",
    "Grow a lot | Grow a little | Stay as it is | Shrink a little | Shrink a lot",
    "Allowed in all cases | Allowed in most cases | Banned in most cases | Banned in all cases",
    "Upper class | Middle class | Lower class",
    "Very similar | Somewhat similar | Somewhat different | Very different",
    "Very effective | Somewhat effective | Somewhat ineffective | Very ineffective",
    "Definitely apples | Probably apples | Probably pears | Definitely pears",
    "Less than 30 minutes | 30 minutes to 1 hour | 1 to 2 hours | More than 2 hours",
    "Never | Once | 2-3 times | 4 or more times",
    "Less than $30,000 | $30,000 to less than $50,000 | $50,000 or more",
    "Very bad | 2 | 3 | 4 | Very good",
    "I do this now | I used to do this | I have never done this",
    "More than enough | Just enough | Not enough",
    "Every few days | Every other week | A couple of times a month | Twice a year",
    "No income | Up to 500 euros | 501 to 1,000 euros | More than 1,000 euros",
    "0-1 years | 2-5 years | 5 years or more",
    "Immediately | Within a few weeks | Within the next year | Longer than a year",
    "Always eats meat | Nearly always eats meat | Eats meat part of the time | Seldom eats meat",
    "Praise strongly - keep | Praise not strongly - keep | Praise not strongly - sell | Praise strongly - sell",
    "Favor a great deal | Favor a moderate amount | Favor a little | Neither | Oppose a little | Oppose a moderate amount | Oppose a great deal",
    "Very strongly feel it is a right | Moderately strongly feel it is a right | Feel it is neither a right nor a gift"
    " | Moderately strongly feel it is a gift | Very strongly feel it is a gift",
    "Very left-wing | Fairly left-wing | Centre | Fairly right-wing | Very right-wing",
    "Lose a lot | Lose some | Don't lose very much",
    "It bothers me a lot | It bothers me a little | It doesn't bother me",
    "A huge number | A moderate number | A small number | None",
    "Almost certain | Very likely | Likely | Unlikely | Very unlikely | Almost impossible",
    "Superb | Good | Mediocre | Poor | Dreadful",
    "Expert | Advanced | Intermediate | Beginner | No experience",
    "Never heard of it | Heard of it but know little | Know some about it | Know a lot about it",
    "No qualifications | Some high school | High school | Some university | Bachelor's degree | Master's degree | Doctorate",
    "Should be a top priority | Should be important, but not a top priority | Should not be a priority",
    "Have done it this year | Have done it in the distant past | Have not done it, but might | Would never do it",
    "All of the soup we eat | Most of the soup we eat | Some of the soup we eat | Hardly any of the soup we eat",
    "Essential for a good life | Important but not essential for a good life | Not important for a good life",
    "Essential | Important | Somewhat important | Unimportant",
    "Deeply affected | Somewhat affected | Slightly affected | Unaffected",
    "Almost all | The majority | About half | A minority | Hardly any",
    "Plenty | Enough | Not quite enough | Far from enough",
    "Today | This week | This month | This year | Longer ago",
    "Before 2000 | 2000-2009 | 2010-2019 | 2020 or later",
    "Younger than 30 | 30 to 49 | 50 to 69 | 70 or older",
    "Much more often than before | A little more often than before | About as often as before | Much less often than before",
    "Have gone too far | Are just about right | Do not go far enough",
    "Not at all | Very slightly | Somewhat | Moderately | Much | Very much | Extremely",
    "Not at all | Slightly mixed | Moderately mixed | Highly mixed",
    "Very poorly | Poorly | Okay | Well | Very well",
    "Same | Somewhat worse | Much worse",
    "No HS | High school graduate | Some college | 2-year college degree | 4-year college degree | Post-grad",
    "Costs greatly outweigh gains | Costs slightly outweigh gains | Costs and gains about equal | Gains greatly outweigh costs",
    "Friend | Competitor | Enemy",
    "Increase | Keep as it is | Decrease",
]
MIDDLE_LAST = [
    "Men | Women | Both equally",
    "Black people are treated less fairly | White people are treated less fairly | Both are treated about equally",
    "Has helped | Has hurt | Hasn't made much of a difference",
    "Will improve | Will worsen | Won’t change",
    "Too many trees in this street | Too few trees in this street | About the right number of trees in this street",
    "A good thing | A bad thing | Neither a good thing nor a bad thing",
    "Benefits the town | Harms the town | Has no impact on the town",
    "Makes it easier | Makes it harder | Makes no difference",
    "Stricter than today | Less strict than today | About right",
    "Gone too far | Not gone far enough | Been about right",
    "Cats like dogs more than dogs like cats | Dogs like cats more than cats like dogs | Neither",
    "Older people work harder | Younger people work harder | Both work equally hard",
    "Inside the house | Outside of the house | Both",
    "Humans are superior | Humans are inferior | Humans are equal",
    "Mostly positive | Mostly negative | A mix of both",
    "Closer to Republicans | Closer to Democrats | Neither",
    "Too fast | Too slow | At the right pace",
    "Rising | Falling | Holding steady",
    "Moving forward | Moving backward | Standing still",
    "Goes too far | Does not go far enough | Is about right",
]
SEVERAL_THINGS = [  # ordered words, of things that are not one
    "Very tall building | Some parks | No cars",
    "All animals | Some plants | No fungi",
    "Some college students | Most teachers | All parents",
    "Often by car | Sometimes by bus | Never by plane",
    "Big dog | Small cat | No pets",
    "A lot of books | Some music | No films",
    "Better schools | More jobs | Less crime",
    "Better pay | Shorter hours | Same job",
    "Increase taxes | Cut spending | Both",
    "Reduce waste | Increase recycling | Neither",
    "Too many visitors | Too few beds | About right",
    "Agree with Smith | Disagree with Jones | Neither",
    "Apple | Android | Both",
    "China | The United States | Both about equally",
    "Doctors | Nurses | About the same",
    "Currently employed | Previously a student | Never went to school",
    "Have a dog | Might get a cat | Would never own a snake",
    "Used to smoke | Drinks alcohol | Never exercises",
    "None of these | One of these | Some other",
    "A major reason | A minor reason | Some other reason",
    "Own | Rent | Live with family",
    "Male | Female | Non-binary",
    "North | South | East | West",
    "Urban | Suburban | Rural",
    "Republican | Democrat | Independent",
    "Employed | Unemployed | Retired",
    "Local government | State government | Federal government",
    "First, family | Second, work | Third, friends",
    "Christian | Muslim | Hindu | None",
]


OPPOSITES_OF_TWO_OBJECTS = [
    "Improve schools | Worsen traffic | No effect",
    "Raise taxes | Cut spending | Neither",
    "More police | Fewer guns | Both",
    "Good for jobs | Bad for nature | Neither",
    "Help farmers | Hurt factories | No impact",
    "Support the strikers | Oppose the government | Neither",
    "Public schools | Private hospitals | Both",
    "Happy with pay | Unhappy with hours | Neither",
    "Too expensive | Too slow | About right",
    "Not enough staff | Too much noise | About right",
    "Young men | Old women | Both",
    "Build more homes | Protect more parks | Do both equally",
    "Improves people's health | Damages the soil | Makes no difference",
    "Increase the minimum wage | Reduce immigration | Keep things the same",
]


@pytest.mark.parametrize("options", BY_WHAT_IS_NOT_SHARED)
def test_ordered_lists_are_ordinal_in_both_directions(options: str) -> None:
    """`Top priority | Some priority | No priority` was nominal."""
    texts = options.split(" | ")
    for listed in (texts, texts[::-1]):
        scale = detect_scale(listed)
        assert (scale.kind, scale.positions) == ("ordinal", tuple(range(1, len(texts) + 1)))


@pytest.mark.parametrize("options", SEVERAL_THINGS)
def test_lists_of_several_things_are_nominal(options: str) -> None:
    assert detect_scale(options.split(" | ")).kind == "nominal"


@pytest.mark.parametrize("options", OPPOSITES_OF_TWO_OBJECTS)
def test_opposite_words_about_two_objects_are_no_scale(options: str) -> None:
    """`Improve schools | Worsen traffic | No effect` was a scale of three, wherever its middle stood."""
    first, second, middle = options.split(" | ")
    assert detect_scale([first, second, middle]).kind == "nominal"
    assert detect_scale([first, middle, second]).kind == "nominal"


@pytest.mark.parametrize("options", MIDDLE_LAST)
def test_a_middle_that_is_listed_last_stands_between_the_others(options: str) -> None:
    """`Too much | Not enough | About right` was nominal."""
    for texts in (options.split(" | "), [*options.split(" | "), "Refused"]):
        scale = detect_scale(texts)
        assert (scale.kind, scale.positions) == ("ordinal", (1, 2, 1.5, None)[: len(texts)])
