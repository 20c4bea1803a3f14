"""Lists of options are ordinal only where every option stands in order."""

from __future__ import annotations

import pytest

from dtef_pipeline.survey.answer_scales.scales import detect_scale

ORDINAL = [
    "Strongly Distrust | Somewhat Distrust | Neither Trust Nor Distrust | Somewhat Trust | Strongly Trust",
    "Strongly Disagree | Disagree | Neutral/No Opinion, | Agree | Strongly Agree",
    "Agree | Disagree",
    "daily | weekly | monthly | annually | never",
    "Never | Rarely | Sometimes | Often / Always",
    "Risks far outweigh benefits | Risks slightly outweigh benefits | Risks and benefits are equal"
    " | Benefits slightly outweigh risks | Benefits far outweigh risks",
    "More excited than concerned | Equally concerned and excited | More concerned than excited",
    "Profoundly Worse\t | Noticeably Worse\t | No Major Change\t | Noticeably Better\t | Profoundly Better",
    "0 | 1 | 2 | 3 | more than 3",
    "Less than $10,000 | $10,000 - $20,000 | $20,001 - $50,000 | $50,001 or more",
    "Not at all familiar (never heard of it) | Slightly familiar (heard of it) | Moderately familiar (x) | Very familiar | Extremely familiar",
    "Completely Unacceptable | Mostly Unacceptable  | Neutral / No Opinion | Mostly Acceptable | Completely Acceptable",
    "Yes, definitely | Yes, possibly | Maybe, I'm unsure | No, probably not | No, definitely not",
    "Very likely | Somewhat likely | Neutral / Not sure | Somewhat unlikely | Very unlikely",
    "Not at all | A little | Somewhat | Quite a bit |  A great deal",
    "Not at all | I know someone who has lost their job | I know several people who have | I know many people who have lost theirs",
    "Very negatively (e.g., upset) | Somewhat negatively (e.g., uneasy) | Neutral (e.g., indifferent | Somewhat positively | Very positively",
    "Strongly believe | Somewhat believe | Neutral | Somewhat skeptical  | Strongly skeptical",
    "Very interested | Somewhat interested | Neutral | Somewhat disinterested | Very disinterested",
    "Not appealing | Somewhat appealing | Very appealing",
    "Yes – it would | Mostly – it mostly would | Somewhat – in part | No – it would not",
    "Very poor | Poor | Fair | Good | Excellent",
    "Too little | About right | Too much",
    "Much more | A little more | About the same | A little less | Much less",
    "Low | Medium | High",
]
OF_OTHER_SURVEYS = [  # health, trust and social surveys: SF-36, PHQ-9, WHO-5, EQ-5D, CES-D, ESS, ISSP, Eurobarometer, WVS, Pew
    "All of the time | Most of the time | Some of the time | A little of the time | None of the time",
    "All of the time | Most of the time | More than half of the time | Less than half of the time | Some of the time | At no time",
    "Rarely or none of the time (less than 1 day) | Some or a little of the time (1-2 days)"
    " | Occasionally or a moderate amount of time (3-4 days) | Most or all of the time (5-7 days)",
    "Hardly ever | Some of the time | Often",
    "Always | Usually | Sometimes | Rarely | Never",
    "Almost always | Often | Sometimes | Seldom | Never",
    "Very frequently | Frequently | Occasionally | Rarely | Very rarely | Never",
    "Never | Once or twice a month | Once or twice a week | Nearly every day | Every day",
    "Never | Less than once a month | About once a month | Two or three times a month | About once a week | Several times a week | Every day",
    "More than once a week | Once a week | At least once a month | Less often | Never",
    "Excellent | Good | Only fair | Poor",
    "Very good | Fairly good | Neither good nor bad | Fairly bad | Very bad",
    "Much better now than one year ago | Somewhat better now than one year ago"
    " | About the same as one year ago | Somewhat worse now than one year ago | Much worse now than one year ago",
    "Yes, limited a lot | Yes, limited a little | No, not limited at all",
    "None | Very mild | Mild | Moderate | Severe | Very severe",
    "No pain | Mild pain | Moderate pain | Severe pain",
    "I have no problems in walking about | I have slight problems in walking about"
    " | I have moderate problems in walking about | I have severe problems in walking about | I am unable to walk about",
    "No difficulty | Some difficulty | A lot of difficulty | Cannot do at all",
    "Definitely true | Mostly true | Mostly false | Definitely false",
    "Not at all true | Hardly true | Moderately true | Exactly true",
    "A great deal | Only some | Hardly any",
    "Complete trust | A lot of trust | Some trust | A little trust | No trust at all",
    "Completely trust | Mostly trust | Partly trust | Hardly trust | Do not trust at all",
    "Tend to trust | Tend not to trust",
    "Very satisfied | Fairly satisfied | Neither satisfied nor dissatisfied | Fairly dissatisfied | Very dissatisfied",
    "Totally agree | Tend to agree | Tend to disagree | Totally disagree",
    "Strongly agree | Agree | Slightly agree | Neither agree nor disagree | Slightly disagree | Disagree | Strongly disagree",
    "Very important | Rather important | Not very important | Not at all important",
    "Essential | Very important | Fairly important | Not very important | Not important at all",
    "Very happy | Pretty happy | Not too happy",
    "Very much like me | Like me | Somewhat like me | A little like me | Not like me | Not like me at all",
    "Very easy | Fairly easy | Neither easy nor difficult | Fairly difficult | Very difficult",
    "Very safe | Fairly safe | A bit unsafe | Very unsafe",
    "Very worried | Fairly worried | Not very worried | Not at all worried",
    "Strongly favor | Favor | Oppose | Strongly oppose",
    "Strongly support | Somewhat support | Neither support nor oppose | Somewhat oppose | Strongly oppose",
    "Strongly approve | Somewhat approve | Somewhat disapprove | Strongly disapprove",
    "Definitely will | Probably will | Probably will not | Definitely will not",
    "Increased a lot | Increased a little | Stayed the same | Decreased a little | Decreased a lot",
    "Far too much | Too much | About right | Too little | Far too little",
    "A very big problem | A moderately big problem | A small problem | Not a problem at all",
    "Very serious | Somewhat serious | Not too serious | Not at all serious",
    "A major problem | A minor problem | Not a problem",
    "To a very great extent | To a great extent | To some extent | To a small extent | Not at all",
    "Well above average | Above average | Average | Below average | Well below average",
    "Very accurate | Somewhat accurate | Somewhat inaccurate | Very inaccurate",
    "Very confident | Somewhat confident | Not too confident | Not at all confident",
    "Very close | Fairly close | Not very close | Not at all close",
    "Constantly | Frequently | Sometimes | Rarely | Never",
    "All of them | Most of them | Some of them | A few of them | None of them",
    "Very willing | Somewhat willing | Somewhat unwilling | Very unwilling",
]
OF_MORE_SURVEYS = [  # WHOQOL, GHQ, EQ-5D, PROMIS, Washington Group, PSQI, WEMWBS, AUDIT, WVS, ESS, GSS, Eurobarometer, Afrobarometer, EU-SILC
    "A great deal of confidence | Only some confidence | Hardly any confidence at all",
    "Allow many to come and live here | Allow some | Allow a few | Allow none",
    "Always wrong | Almost always wrong | Wrong only sometimes | Not wrong at all",
    "Better than usual | Same as usual | Less than usual | Much less than usual",
    "Everyday or almost everyday | Two or three times a week | About once a week | Two or three times a month"
    " | Less often | Never",
    "Everyone | Most people | Some people | Few people | No one",
    "Extremely liberal | Liberal | Slightly liberal | Moderate, middle of the road | Slightly conservative"
    " | Conservative | Extremely conservative",
    "Far too much power | Too much power | About the right amount | Too little power | Far too little power",
    "Great influence | Some influence | Little influence | No influence",
    "Heard a lot | Heard a little | Heard nothing",
    "I am not anxious or depressed | I am slightly anxious or depressed | I am moderately anxious or depressed"
    " | I am severely anxious or depressed | I am extremely anxious or depressed",
    "Living comfortably on present income | Coping on present income | Finding it difficult on present income"
    " | Finding it very difficult on present income",
    "Living comfortably | Doing alright | Just about getting by | Finding it quite difficult | Finding it very difficult",
    "More than once a week | Once a week | Once a month | Only on special holy days | Once a year | Less often"
    " | Never, practically never",
    "Most of the time | From time to time | Almost never or never",
    "Never | Less than once a year | About once or twice a year | Several times a year | About once a month"
    " | 2-3 times a month | Nearly every week | Every week | Several times a week",
    "No risk | Slight risk | Moderate risk | Great risk",
    "No | Yes, but not in the last year | Yes, during the last year",
    "Not at all stressful | Not very stressful | A bit stressful | Quite a bit stressful | Extremely stressful",
    "Not at all sure | Several days | Over half the days | Nearly every day",
    "Not at all | A little | A moderate amount | Very much | An extreme amount",
    "Not bothered at all | Bothered a little | Bothered a lot",
    "Too harshly | About right | Not harshly enough",
    "Totally in favour | Somewhat in favour | Somewhat opposed | Totally opposed",
    "Very easily | Easily | Fairly easily | With some difficulty | With difficulty | With great difficulty",
    "Very favorable | Mostly favorable | Mostly unfavorable | Very unfavorable",
    "Very liberal | Liberal | Moderate | Conservative | Very conservative",
    "Very satisfied | Moderately satisfied | A little dissatisfied | Very dissatisfied",
    "Very widespread | Fairly widespread | Fairly rare | Very rare",
    "With great difficulty | With some difficulty | Fairly easily | Easily",
    "Within past year (anytime less than 12 months ago) | Within past 2 years (1 year but less than 2 years ago)"
    " | Within past 5 years (2 years but less than 5 years ago) | 5 or more years ago",
    "Without any difficulty | With a little difficulty | With some difficulty | With much difficulty | Unable to do",
]
NOMINAL = [
    "For | Against | Abstain",
    "Close to home | Close to work | Far away",
    "Yes, with a friend | Yes, alone | No",
    "A little help | Some money | A lot of time | No plan",
    "Yes | No",
    "Yes | No | It depends | Not sure",
    "Future A: Building relationships | Future B: Including all voices | Future C: Granting legal rights",
    "Single | Married | Divorced | Widowed | Prefer not to say",
    "Strengthen social connection | Weaken social connection | Have no impact on connection | Have mixed effects",
    "Yes, they should vote through guardians. | Yes, but only on laws that affect them. | No, they should not take part. | Other",
    "the human that recorded it | the animal itself | the local government | Other",
    "Parliament | The offices themselves | Independent experts",
    "Only one",
    "Yes | No | I have no children",
    "Daily | Weekly | I do not drink alcohol",  # the last is never, and not aside
    "Employed full time | Employed part time | Retired | I am not working",
    "For work | For school | I do not travel",
    "Married | Single",
    "Government | Companies | Both equally | Neither",
    "Red | Blue | I have no car",
]


@pytest.mark.parametrize("options", ORDINAL + OF_OTHER_SURVEYS + OF_MORE_SURVEYS)
def test_ordered_lists_are_ordinal_in_both_directions(options: str) -> None:
    texts = options.split(" | ")
    assert detect_scale(texts).kind == "ordinal"
    assert detect_scale(texts[::-1]).kind == "ordinal"


@pytest.mark.parametrize("options", NOMINAL)
def test_other_lists_are_nominal(options: str) -> None:
    assert detect_scale(options.split(" | ")).kind == "nominal"


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
        ("Agree | Disagree | Does not apply", "ordinal", ["Does not apply"]),
        ("Always | Often | Never | Not applicable to me", "ordinal", ["Not applicable to me"]),
        ("Very good | Good | Poor | I did not go | Refused", "ordinal", None),
        ("Completely | Mostly | Not at all | I have no family doctor", "ordinal", ["I have no family doctor"]),
        ("I have no children | Daily | Weekly | Never", "ordinal", ["I have no children"]),
    ],
)
def test_do_not_know_is_set_aside_but_a_neutral_middle_is_not(options: str, kind: str, aside: list[str] | None) -> None:
    texts = options.split(" | ")
    scale = detect_scale(texts)
    assert scale.kind == kind
    expected = texts[-2:] if aside is None else aside
    assert [o for o, off in zip(texts, scale.dont_know, strict=True) if off] == expected
    assert all(repr(o) in scale.reason for o in expected)


def test_a_stated_scale_is_taken_as_stated() -> None:
    scale = detect_scale(["Red", "Blue", "Don't know"], stated_kind="ordinal")
    assert (scale.kind, scale.dont_know) == ("ordinal", (False, False, True))
    assert scale.reason.startswith('stated by the survey; set aside: "Don\'t know"')
