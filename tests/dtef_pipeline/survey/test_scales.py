"""Lists of options are ordinal only where every option stands in order."""

from __future__ import annotations

import pytest

from dtef_pipeline.survey.scales import scale_of

ORDINAL = [
    "Strongly Distrust | Somewhat Distrust | Neither Trust Nor Distrust | Somewhat Trust | Strongly Trust",
    "Strongly Disagree | Disagree | Neutral/No Opinion, | Agree | Strongly Agree",
    "Agree | Disagree",
    "daily | weekly | monthly | annually | never",
    "Daily | Weekly | Monthly | Less often | Never",
    "Never | Rarely | Sometimes | Often / Always",
    "Never | Rarely | Sometimes | Often  | Always",
    "Risks far outweigh benefits | Risks slightly outweigh benefits | Risks and benefits are equal"
    " | Benefits slightly outweigh risks | Benefits far outweigh risks",
    "More excited than concerned | Equally concerned and excited | More concerned than excited",
    "Profoundly Worse\t | Noticeably Worse\t | No Major Change\t | Noticeably Better\t | Profoundly Better",
    "0 | 1 | 2 | 3 | more than 3",
    "Less than $10,000 | $10,000 - $20,000 | $20,001 - $50,000 | $50,001 or more",
    "Not at all familiar (never heard of it) | Slightly familiar (heard of it) | Moderately familiar (x) | Very familiar | Extremely familiar",
    "Completely Unacceptable | Mostly Unacceptable  | Neutral / No Opinion | Mostly Acceptable | Completely Acceptable",
    "Completely unacceptable | Somewhat unacceptable | Neutral / Not sure | Somewhat acceptable | Completely acceptable",
    "Yes, definitely | Yes, possibly | Maybe, I'm unsure | No, probably not | No, definitely not",
    "Very likely | Somewhat likely | Neutral / Not sure | Somewhat unlikely | Very unlikely",
    "Very likely | Somewhat likely | Not very likely | Not at all likely",
    "Not at all | Not very much | Neutral | Somewhat | Very much",
    "Not at all | A little | Somewhat | Quite a bit |  A great deal",
    "Not at all | I know someone who has lost their job | I know several people who have | I know many people who have lost theirs",
    "Very negatively (e.g., upset) | Somewhat negatively (e.g., uneasy) | Neutral (e.g., indifferent | Somewhat positively | Very positively",
    "Strongly believe | Somewhat believe | Neutral | Somewhat skeptical  | Strongly skeptical",
    "Very interested | Somewhat interested | Neutral | Somewhat disinterested | Very disinterested",
    "Not appealing | Somewhat appealing | Very appealing",
    "Yes | Maybe a little | No",
    "Yes – it would | Mostly – it mostly would | Somewhat – in part | No – it would not",
    "Very poor | Poor | Fair | Good | Excellent",
    "Too little | About right | Too much",
    "Much more | A little more | About the same | A little less | Much less",
    "Low | Medium | High",
]
NOMINAL = [
    "Yes | No",
    "Yes | No | It depends | Not sure",
    "Humans are superior | Humans are inferior | Humans are equal",
    "Future A: Building relationships | Future B: Including all voices | Future C: Granting legal rights",
    "Single | Married | Divorced | Widowed | Prefer not to say",
    "Strengthen social connection | Weaken social connection | Have no impact on connection | Have mixed effects",
    "Yes, they should vote through guardians. | Yes, but only on laws that affect them. | No, they should not take part. | Other",
    "the human that recorded it | the animal itself | the local government | Other",
    "Agree | Strongly disagree | Disagree | Strongly agree",  # a known scale, but not in order
    "Parliament | The offices themselves | Independent experts",
    "Only one",
]


@pytest.mark.parametrize("options", ORDINAL)
def test_ordered_lists_are_ordinal_in_both_directions(options: str) -> None:
    texts = options.split(" | ")
    assert scale_of(texts).kind == "ordinal"
    assert scale_of(texts[::-1]).kind == "ordinal"


@pytest.mark.parametrize("options", NOMINAL)
def test_other_lists_are_nominal(options: str) -> None:
    assert scale_of(options.split(" | ")).kind == "nominal"


@pytest.mark.parametrize(
    ("options", "kind", "aside"),
    [
        ("Agree | Disagree | Unsure", "ordinal", ["Unsure"]),
        ("Yes | No | Don't Know", "nominal", ["Don't Know"]),
        ("Yes, definitely | Yes, somewhat | No, not at all | Not sure | I've never used an AI companion", "ordinal", None),
        ("Very harmful | Harmful | No real impact | Beneficial | Very beneficial | Never used", "ordinal", ["Never used"]),
        ("Yes | No | Unsure / It depends on the specifics | Prefer not to say", "nominal", None),
        (
            "Yes, Often  | Yes, sometimes | Rarely | Never | I am not sure what this means",
            "ordinal",
            ["I am not sure what this means"],
        ),
        ("Very unlikely | Unlikely | Neutral/Not sure | Likely | Very likely", "ordinal", []),
        ("Disagree | Neutral / No Opinion | Agree", "ordinal", []),
        ("Agree | Disagree | No opinion", "ordinal", ["No opinion"]),
    ],
)
def test_do_not_know_is_set_aside_but_a_neutral_middle_is_not(options: str, kind: str, aside: list[str] | None) -> None:
    texts = options.split(" | ")
    scale = scale_of(texts)
    assert scale.kind == kind
    expected = texts[-2:] if aside is None else aside
    assert [o for o, off in zip(texts, scale.dont_know, strict=True) if off] == expected
    assert all(repr(o) in scale.reason for o in expected)


def test_a_stated_scale_is_taken_as_stated() -> None:
    scale = scale_of(["Red", "Blue", "Don't know"], stated="ordinal")
    assert (scale.kind, scale.dont_know) == ("ordinal", (False, False, True))
    assert scale.reason.startswith('stated by the survey; set aside: "Don\'t know"')
