"""What models really write, and what must be made of it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtef_pipeline.survey.reading.parsing import parse_response, parse_responses

FOUR = ("Strongly agree", "Agree", "Disagree", "Strongly disagree")
THREE = ("Agree", "Disagree", "Unsure")
AGES = ("18-25", "26-35", "36+")
COUNTS = ("0", "1", "2", "more than 7")
EXCITED = ("More excited than concerned", "Equally concerned and excited", "More concerned than excited")
LONG = (
    "Yes – these things would definitely make a large positive difference in my life",
    "Maybe – these things might make some positive difference in my life",
    "No – these things won’t really make any difference in my life",
)
COMMA_END = ("Support,", "Oppose", "Neutral/No Opinion,")
DOT_END = ("I agree.", "I disagree.")
VOTED = ("I was unable to vote", "I voted")
GOOD4 = (45.2, 30.1, 15.5, 9.2)
GOOD3 = (50, 30, 20)

OK = [
    # the four documented formats
    ("[45.2, 30.1, 15.5, 9.2]", FOUR, GOOD4),
    ("45.2, 30.1, 15.5, 9.2", FOUR, GOOD4),
    ("45.2%, 30.1%, 15.5%, 9.2%", FOUR, GOOD4),
    ("a. Option A: 45.2%\nb. Option B: 30.1%\nc. Option C: 15.5%\nd. Option D: 9.2%", FOUR, GOOD4),
    # arrays
    ("```json\n[45.2, 30.1, 15.5, 9.2]\n```", FOUR, GOOD4),
    ("[\n  45.2,\n  30.1,\n  15.5,\n  9.2\n]", FOUR, GOOD4),
    ("Here is my prediction: [50, 30, 20]. Young people tend to agree.", THREE, GOOD3),
    ("[0.5, 0.3, 0.2]", THREE, GOOD3),
    ("[50%, 30%, 20%]", THREE, GOOD3),
    ('["50%", "30%", "20%"]', THREE, GOOD3),
    ('{"distribution": [50, 30, 20], "confidence": 0.8}', THREE, GOOD3),
    ("[5e1, 3E+1, 2.0e1]", THREE, GOOD3),
    ("[50. 30. 20.]", THREE, GOOD3),
    ("[50; 30; 20]", THREE, GOOD3),
    ("\\boxed{[50, 30, 20]}", THREE, GOOD3),
    ("[５０, ３０, ２０]", THREE, GOOD3),
    ("[٥٠, ٣٠, ٢٠]", THREE, GOOD3),
    ("[5, 3, 2]", THREE, GOOD3),
    ("[1, 2]", ("Yes", "No"), (1, 2)),
    ("[50,2; 29,8; 20,0]", THREE, (50.2, 29.8, 20)),
    # the last one counts
    ("First thought [40, 40, 20]. On reflection: [50, 30, 20]", THREE, GOOD3),
    ("[50, 30, 20]\n(compare [40, 60])", THREE, GOOD3),
    ("Draft: [10, 20, 70]\nDISTRIBUTION: 50, 30, 20", THREE, GOOD3),
    ("Agree: 60\nDisagree: 30\n\nFinal answer:\nAgree: 50\nDisagree: 30\nUnsure: 20", THREE, GOOD3),
    ("**Final Answer:** 50%, 30%, 20%", THREE, GOOD3),
    ("Agree: 10%\nDisagree: 80%\nUnsure: 10%\n\nNo, I revise:\n\nAgree: 50%\nDisagree: 30%\nUnsure: 20%", THREE, GOOD3),
    # thinking and citations
    ("<think>maybe [10, 10, 80]?</think>\n[50, 30, 20]", THREE, GOOD3),
    ("maybe [10, 10, 80]?</think>[50, 30, 20]", THREE, GOOD3),
    ("[50, 30, 20]<think>or [10, 10, 80]", THREE, GOOD3),
    ("As surveys show [1], most agree [2][3].\n[50, 30, 20]\n\nSources: [1, 2, 3]", THREE, GOOD3),
    ("[50, 30, 20] as several studies found [1, 2, 4].", THREE, GOOD3),
    ("Agree: 50% [1]\nDisagree: 30% [2]\nUnsure: 20% [3]", THREE, GOOD3),
    # lists of values
    ("45,30,15,10", FOUR, (45, 30, 15, 10)),
    ("I expect 50%, 30%, and 20% respectively.", THREE, GOOD3),
    ("50 / 30 / 20", THREE, GOOD3),
    ("50% | 30% | 20%", THREE, GOOD3),
    ("50 %, 30 %, 20 %", THREE, GOOD3),
    ("~50%, ~30%, ~20%", THREE, GOOD3),
    ("about 50 percent, approximately 30 percent and roughly 20 percent", THREE, GOOD3),
    ("50\n30\n20", THREE, GOOD3),
    ("- 50%\n- 30%\n- 20%", THREE, GOOD3),
    ("(50, 30, 20)", THREE, GOOD3),
    ("50.2%; 29.8%; 20%", THREE, (50.2, 29.8, 20)),
    ("45,2%; 30,1%; 24,7%", THREE, (45.2, 30.1, 24.7)),
    ("45,2%, 30,1%, 24,7%", THREE, (45.2, 30.1, 24.7)),
    ("1,200; 800; 500", THREE, (1200, 800, 500)),
    # labels
    ("Agree: 50%\nDisagree: 30%\nUnsure: 20%", THREE, GOOD3),
    ("Disagree: 15%\nStrongly Disagree: 9%\nAgree: 30%\nStrongly Agree: 46%", FOUR, (46, 30, 15, 9)),
    ("- **Unsure**: 20%\n- **Agree**: 50%\n- **Disagree**: 30%", THREE, GOOD3),
    ("Agree – 50%\nDisagree — 30%\nUnsure - 20%", THREE, GOOD3),
    ("Agree = 50, Disagree = 30, Unsure = 20", THREE, GOOD3),
    ("Agree 50%, Disagree 30%, Unsure 20%", THREE, GOOD3),
    ("Agree (50%), Disagree (30%), Unsure (20%)", THREE, GOOD3),
    ("50% Agree, 30% Disagree, 20% Unsure", THREE, GOOD3),
    ("50% - Agree\n30% - Disagree\n20% - Unsure", THREE, GOOD3),
    ("I think 50% agree, 30% disagree and 20% unsure.", THREE, GOOD3),
    ("1. Disagree: 30%\n2. Agree: 50%\n3. Unsure: 20%", THREE, GOOD3),
    ("Agree: 1,200\nDisagree: 800\nUnsure: 500", THREE, (1200, 800, 500)),
    ("Agree: 45,2%\nDisagree: 30,1%\nUnsure: 24,7%", THREE, (45.2, 30.1, 24.7)),
    ("Agree: 50%\nDisagree: 30%\nUnsure: 20%\nTotal: 100%", THREE, GOOD3),
    ("Agree: 50% because they trust it.\nDisagree: 30% of them, mostly older.\nUnsure: 20%.", THREE, GOOD3),
    ("Yes: 50%\nMaybe: 30%\nNo: 20%", LONG, GOOD3),
    ("\n".join(f"{o}: {v}%" for o, v in zip(LONG, GOOD3, strict=True)), LONG, GOOD3),
    (
        "More concerned than excited: 20%\nMore excited than concerned: 50%\nEqually concerned and excited: 30%",
        EXCITED,
        GOOD3,
    ),
    ("18-25: 50%\n26–35: 30%\n36+: 20%", AGES, GOOD3),
    ("18-25 - 50%, 26-35 - 30%, 36+ - 20%", AGES, GOOD3),
    ("0: 40%\n1: 30%\n2: 20%\nMore than 7: 10%", COUNTS, (40, 30, 20, 10)),
    ('{"0": 40, "1": 30, "2": 20, "more than 7": 10}', COUNTS, (40, 30, 20, 10)),
    ("0: 40,1: 30,2: 20,more than 7: 10", COUNTS, (40, 30, 20, 10)),
    ("a. 0: 40%\nb. 1: 30%\nc. 2: 20%\nd. more than 7: 10%", COUNTS, (40, 30, 20, 10)),
    ('{"Agree": 50, "Disagree": 30, "Unsure": 20}', THREE, GOOD3),
    ('{"distribution": {"Unsure": 0.2, "Agree": 0.5, "Disagree": 0.3}}', THREE, GOOD3),
    ('[{"option": "Disagree", "percentage": 30}, {"option": "Agree", "percentage": 50}, '
     '{"option": "Unsure", "percentage": 20}]', THREE, GOOD3),
    ('{"strongly_agree": 46, "agree": 30, "disagree": 15, "strongly_disagree": 9}', FOUR, (46, 30, 15, 9)),
    ('[["Agree", 50], ["Disagree", 30], ["Unsure", 20]]', THREE, GOOD3),
    ("option,percent\nAgree,50\nDisagree,30\nUnsure,20", THREE, GOOD3),
    ("1 - Not at all: 10%\n2 - A little: 30%\n3 - A lot: 60%", ("Not at all", "A little", "A lot"), (10, 30, 60)),
    ("1: 10%\n2: 30%\n3: 60%", ("1 - Not at all", "2", "3 - A lot"), (10, 30, 60)),
    ("Agree ..... 50%\nDisagree ... 30%\nUnsure ..... 20%", THREE, GOOD3),
    ("Under 50%: 30\nMore than 50%: 70", ("Under 50%", "More than 50%"), (30, 70)),
    ("**Agree**\n50%\n\n**Disagree**\n30%\n\n**Unsure**\n20%", THREE, GOOD3),
    # an explanation does not displace the answer
    ("[50, 30, 20]\n\nExplanation: overall 60% agree, 40% disagree and 0% unsure.", THREE, GOOD3),
    ("Yes: 60% [55, 65]\nNo: 40% [35, 45]", ("Yes", "No"), (60, 40)),
    ("[60, 40] with a 95% interval [55, 65]", ("Yes", "No"), (60, 40)),
    # letters and numbers
    ("A: 50%\nB: 30%\nC: 20%", THREE, GOOD3),
    ("(a) 50% (b) 30% (c) 20%", THREE, GOOD3),
    ("c) 20\nb) 30\na) 50", THREE, GOOD3),
    ('{"b": 30, "a": 50, "c": 20}', THREE, GOOD3),
    ("1. 50%\n2. 30%\n3. 20%", THREE, GOOD3),
    ("Option A: 50%\nOption B: 30%\nOption C: 20%", THREE, GOOD3),
    # options that end in punctuation
    ("a. Support,: 50%\nb. Oppose: 30%\nc. Neutral/No Opinion,: 20%", COMMA_END, GOOD3),
    ("**Neutral/No Opinion,**: 20%\n**Support,**: 50%\n**Oppose**: 30%", COMMA_END, GOOD3),
    ('{"Neutral/No Opinion,": 20, "Support,": 50, "Oppose": 30}', COMMA_END, GOOD3),
    ('{"Neutral/No Opinion": 20, "Support": 50, "Oppose": 30}', COMMA_END, GOOD3),
    ("| Option | % |\n|---|---|\n| Neutral/No Opinion, | 20 |\n| Support, | 50 |\n| Oppose | 30 |", COMMA_END, GOOD3),
    ("Neutral/No Opinion, - 20%\nSupport, - 50%\nOppose - 30%", COMMA_END, GOOD3),
    ("Neutral/No Opinion,\t20%\nSupport,\t50%\nOppose\t30%", COMMA_END, GOOD3),
    ("**I disagree.** 40%\n**I agree.** 60%", DOT_END, (60, 40)),
    ("I disagree. - 40%\nI agree. - 60%", DOT_END, (60, 40)),
    # words of refusal in an option
    ("I voted: 40%\nI was unable to vote: 60%", VOTED, (60, 40)),
    # forms that need a second look
    ("Unsure\t20\nAgree\t50\nDisagree\t30", THREE, GOOD3),
    ('{"Oui, \\u00e9videmment": 60, "Non": 40}', ("Oui, évidemment", "Non"), (60, 40)),
    ("1,200, 800, 500, 100", FOUR, (1200, 800, 500, 100)),
    ("A=45 B=30 C=15 D=10", FOUR, (45, 30, 15, 10)),
    ("[\n  45, // Strongly agree\n  30, // Agree\n  15, // Disagree, somewhat\n  10 // Strongly disagree\n]", FOUR, (45, 30, 15, 10)),
    ("[45 (Strongly agree), 30 (Agree), 15 (Disagree), 10 (Strongly disagree)]", FOUR, (45, 30, 15, 10)),
    ("60% would say yes and 40% would say no.", ("Yes", "No"), (60, 40)),
    # in a JSON object only the distribution counts
    ('{"distribution": [50, 30, 20], "reasoning": "more than [40, 40, 20]"}\nHope this helps!', THREE, GOOD3),
    ('{"result": {"reasoning": "not [40, 40, 20]", "distribution": {"Unsure": 20, "Agree": 50, "Disagree": 30}}}', THREE, GOOD3),
    # tables
    ("| Option | Share |\n|---|---|\n| Unsure | 20% |\n| Agree | 50% |\n| Disagree | 30% |", THREE, GOOD3),
    ("| Unsure | Agree | Disagree |\n|---|---|---|\n| 20% | 50% | 30% |", THREE, GOOD3),
    ("Agree\t50%\nDisagree\t30%\nUnsure\t20%", THREE, GOOD3),
]  # fmt: skip

NOT_OK = [
    (None, THREE, "unparseable", "empty"),
    ("", THREE, "unparseable", "empty"),
    (" \n ", THREE, "unparseable", "empty"),
    ("<think>[50, 30, 20]", THREE, "unparseable", "thinking"),
    ("I am not certain.", THREE, "unparseable", "no distribution"),
    ("Around half will agree [1].", THREE, "unparseable", "no distribution"),
    ("Studies [1, 2, 3] disagree.", THREE, "unparseable", "no distribution"),
    ("In 2021, 2022, 2023 the share grew.", THREE, "unparseable", "no distribution"),
    ("It grew by 5%, 7% and 9%.", THREE, "unparseable", "no distribution"),
    ("Date: 2024/01/15", THREE, "unparseable", "no distribution"),
    ("[-5, 55, 50]", THREE, "unparseable", "negative"),
    ("Agree: -5%\nDisagree: 55%\nUnsure: 50%", THREE, "unparseable", "negative"),
    ("[0, 0, 0]", THREE, "unparseable", "zero"),
    ("[NaN, 50, 50]", THREE, "unparseable", "not a finite number"),
    ("[1e999, 50, 50]", THREE, "unparseable", "not a finite number"),
    (f"[{10**400}, 50, 50]", THREE, "unparseable", "not a finite number"),
    ("[1e308, 1e308, 1e308]", THREE, "unparseable", "infinity"),
    ("Agree: null\nDisagree: 50\nUnsure: 50", THREE, "unparseable", "not a number"),
    ("Agree: 40-45%\nDisagree: 35-40%\nUnsure: 15-20%", THREE, "unparseable", "range"),
    ("[40-45, 30, 25]", THREE, "unparseable", "range"),
    ("40-45%, 30%", ("Yes", "No"), "unparseable", "no distribution"),
    ("Between 40% and 60% would say yes.", ("Yes", "No"), "unparseable", "no distribution"),
    ("Agree: 1.200\nDisagree: 800\nUnsure: 500", THREE, "unparseable", "thousands separator"),
    ("Agree: from 40 to 45%", THREE, "unparseable", "no distribution"),
    ("| Agree | 25 | 50% |\n| Disagree | 40 | 30% |\n| Unsure | 35 | 20% |", THREE, "unparseable", "second number"),
    ("[50, 30, 2", THREE, "unparseable", "without its end"),
    ("30% and 70% for Disagree and Agree", ("Agree", "Disagree"), "unparseable", "another order"),
    ("Agree: 5 points higher\nDisagree: 3 points lower\nUnsure: 2 points lower", THREE, "unparseable", "no dist"),
    ("I'm sorry, but I can't help with that.", THREE, "refused", "refusal"),
    ("As an AI, I cannot predict the views of a group.", THREE, "refused", "refusal"),
    ("I am unable to answer that.", VOTED, "refused", "refusal"),
    ("Most would say I was unable to vote.", VOTED, "unparseable", "no distribution"),
    ("I agree. 60% of them are young. I disagree. 30% of them are old.", DOT_END, "unparseable", "no distribution"),
    ("[50, 50]", THREE, "wrong_length", "2 values for 3"),
    ("50%, 20%, 20%, 10%", THREE, "wrong_length", "4 values for 3"),
    ("[10, 20, 30, 20, 20] or [50, 50]", THREE, "wrong_length", "2 values for 3"),
    ("Agree: 50%\nDisagree: 50%", THREE, "wrong_length", "without 'Unsure'"),
    ("Agree: 50%\nAgree: 20%\nDisagree: 10%\nUnsure: 20%", THREE, "wrong_length", "'Agree' two values"),
    ("Agree: 50%\nDisagree: 30%\nUnsure: 15%\nOther: 5%", THREE, "wrong_length", "'other'"),
    ("Somewhat agree: 50%\nDisagree: 30%\nUnsure: 20%", THREE, "wrong_length", "without 'Agree'"),
    ("10,20, 30, 40", THREE, "wrong_length", "4 values for 3"),
    ("1,200,800,500,100", FOUR, "wrong_length", "5 values for 4"),
    ("Agree\t50\nDisagree\t30\nOther\t20", THREE, "unparseable", "no distribution"),
    ("Agree 1\nDisagree 2\nUnsure 3", THREE, "unparseable", "no distribution"),
    ("[45 (Agree), 30 (Strongly agree), 15 (Disagree), 10 (Strongly disagree)]", FOUR, "unparseable", "another order"),
    ("60% would not say yes and 40% would say no.", ("Yes", "No"), "unparseable", "no distribution"),
]  # fmt: skip


def fractions(values: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(v / sum(values) for v in values)


@pytest.mark.parametrize(("text", "options", "values"), OK)
def test_a_realistic_answer_is_read_as_meant(text: str, options: tuple[str, ...], values: tuple[float, ...]) -> None:
    parsed = parse_response(text, len(options), options)
    assert parsed.status == "ok", parsed.reason
    assert parsed.distribution == pytest.approx(fractions(values), abs=1e-12)


@pytest.mark.parametrize(("text", "options", "status", "reason"), NOT_OK)
def test_what_is_no_distribution_says_why(text: str | None, options: tuple[str, ...], status: str, reason: str) -> None:
    parsed = parse_response(text, len(options), options)
    assert (parsed.status, parsed.distribution) == (status, None)
    assert reason in parsed.reason


def test_tail_of_a_very_long_response_is_read() -> None:
    assert parse_response("word " * 100_000 + "[50, 30, 20]", 3, THREE).distribution == (0.5, 0.3, 0.2)
    assert parse_response("<think>" + "word " * 100_000 + "</think>[50, 30, 20]", 3, THREE).status == "ok"
    assert parse_response("<think>" + "[50, 30, 20] " * 10_000, 3, THREE).status == "unparseable"


def test_total_far_from_a_whole_is_told_and_normalised() -> None:
    parsed = parse_response("[40, 30, 10]", 3, THREE)
    assert parsed.reason == "array; raw total 80"
    assert parsed.distribution == (0.5, 0.375, 0.125)
    assert parse_response("[50, 30, 19]", 3, THREE).reason == "array"


def test_labels_are_taken_in_written_order_when_options_are_not_known() -> None:
    assert parse_response("Yes: 60%\nNo: 40%\nTotal: 100%", 2).distribution == (0.6, 0.4)
    assert parse_response('{"yes": 60, "no": 40}', 2).distribution == (0.6, 0.4)


def test_labels_of_the_same_words_decide_nothing() -> None:
    assert parse_response("-1: 30\n+1: 70", 2, ("-1", "+1")).status != "ok"
    assert parse_response("[30, 70]", 2, ("-1", "+1")).distribution == (0.3, 0.7)


def test_two_readings_of_the_same_words_are_not_guessed_between() -> None:
    parsed = parse_response("Yes: 60% No: 40% Yes", 2, ("Yes", "No"))
    assert parsed.status == "unparseable"
    assert "two readings" in parsed.reason


def test_a_question_with_one_option_is_never_ok() -> None:
    assert parse_response("[100]", 1, ("Yes",)).status == "unparseable"


def test_options_of_another_number_are_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="n_options is 3, but 2 options"):
        parse_response("[1, 2, 3]", 3, ("Yes", "No"))


WORDS = (
    "Strongly agree",
    "Agree",
    "Neither",
    "Disagree",
    "Strongly disagree",
    "18-25",
    "More than 7",
    "Don't know",
    "No, never",
)
PROSE = st.sampled_from(
    ["", "Here is my prediction:\n", "Based on the context, this group leans liberal [1].\n\n", "Sure!\n", "<think>[1, 2, 3]</think>"]
)  # fmt: skip
TAIL = st.sampled_from(["", "\n", "\n\nThis reflects the context above.", "\nSources: [1], [2]", "\n\nHope this helps!"])


@st.composite
def distributions(draw: st.DrawFn) -> tuple[list[str], list[float]]:
    options = draw(st.lists(st.sampled_from(WORDS), min_size=2, max_size=9, unique=True))
    tenths = draw(st.lists(st.integers(0, 1000), min_size=len(options), max_size=len(options)).filter(any))
    return options, [round(t * 100 / sum(tenths), 1) for t in tenths]


def rendered(style: str, options: list[str], values: list[float], order: list[int]) -> str:
    pairs = [(options[i], values[i]) for i in order]
    letters = [("abcdefghi"[i], values[i]) for i in order]
    return {
        "array": str(values),
        "fractions": str([round(v / 100, 5) for v in values]),
        "commas": ", ".join(map(str, values)),
        "percent": ", ".join(f"{v}%" for v in values),
        "column": "\n".join(f"- {v}%" for v in values),
        "labels": "\n".join(f"- **{o}**: {v}%" for o, v in pairs),
        "object": "{" + ", ".join(f'"{o}": {v}' for o, v in pairs) + "}",
        "table": "| Option | % |\n|---|---|\n" + "\n".join(f"| {o} | {v} |" for o, v in pairs),
        "values first": "\n".join(f"{v}% {o}" for o, v in pairs),
        "letters": "\n".join(f"{a}) {v}%" for a, v in letters),
        "letters and labels": "\n".join(f"{'abcdefghi'[i]}. {options[i]}: {values[i]}%" for i in order),
    }[style]


STYLES = (
    "array", "fractions", "commas", "percent", "column", "labels", "object", "table", "values first", "letters",
    "letters and labels",
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(case=distributions(), prose=PROSE, tail=TAIL, random=st.randoms(use_true_random=False))
@pytest.mark.parametrize("style", STYLES)
def test_any_distribution_in_any_format_amid_prose_is_recovered(
    style: str, case: tuple[list[str], list[float]], prose: str, tail: str, random: object
) -> None:
    options, values = case
    order = list(range(len(options)))
    random.shuffle(order)  # type: ignore[attr-defined]
    text = prose + rendered(style, options, values, order) + tail
    parsed = parse_response(text, len(options), options)
    assert parsed.status == "ok", (text, parsed.reason)
    assert parsed.distribution == pytest.approx(fractions(tuple(values)), abs=1e-4)


FRAGMENTS = st.lists(
    st.sampled_from(
        ["[", "]", "{", "}", "(", ")", ",", ";", ":", "|", "/", "-", "–", "%", " ", "\n", '"', "*", "~", "1", "45", "1,200",
         "0.5", ".", "e", "nan", "inf", "null", "<think>", "</think>", "Agree", "Disagree: 40%", "a.", "b) ", "1. ", "Answer:",
         "between ", "\x00", "\ud800", "٤", "½", "²", "％", "−", "İ", "ﷺ", "\u0301", "to ", "9" * 400, "=", "→", "1e999"]
    ),
    max_size=60,
).map("".join)  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(text=st.one_of(FRAGMENTS, st.text(max_size=200)), options=st.sampled_from([THREE, FOUR, AGES, COUNTS, ("", "")]))
def test_no_text_breaks_the_parser(text: str, options: tuple[str, ...]) -> None:
    parsed = parse_response(text, len(options), options)
    assert parsed.status in ("ok", "unparseable", "wrong_length", "refused")
    assert parsed.reason
    assert (parsed.distribution is not None) == (parsed.status == "ok")
    if parsed.distribution is not None:
        assert len(parsed.distribution) == len(options)
        assert min(parsed.distribution) >= 0
        assert sum(parsed.distribution) == pytest.approx(1, abs=1e-9)
    assert parse_response(text, len(options)).status in ("ok", "unparseable", "wrong_length", "refused")


@pytest.mark.parametrize("text", ["[" * 100_000, "{" * 100_000, "1" * 100_000, "a: 1 b: 2 " * 20_000, "<think>" * 50_000])
def test_endless_repetition_is_survived(text: str) -> None:
    assert parse_response(text, 3, THREE).status in ("unparseable", "wrong_length")


def as_rows(texts: list[str | None], options: list[tuple[str, ...]]) -> list[tuple[object, ...]]:
    columns = parse_responses(texts, pa.array([list(o) for o in options], pa.list_(pa.string())))
    lists = [None if d is None else tuple(d) for d in columns.distribution.to_pylist()]
    return list(zip(columns.status.to_pylist(), lists, columns.reason.to_pylist(), strict=True))


def by_row(texts: list[str | None], options: list[tuple[str, ...]]) -> list[tuple[object, ...]]:
    parsed = [parse_response(t, len(o), o) for t, o in zip(texts, options, strict=True)]
    return [(p.status, p.distribution, p.reason) for p in parsed]


def test_columns_are_read_as_rows_are() -> None:
    cases = [(t, o) for t, o, *_ in [*OK, *NOT_OK]] + [("[1]", ("Yes",)), ("[007, 3, 1]", THREE), ("[0,0,0]", THREE)]
    texts, options = [t for t, _ in cases], [o for _, o in cases]
    assert as_rows(texts, options) == by_row(texts, options)
    assert as_rows([], []) == []


NUMBER = st.one_of(
    st.floats(0, 1e17, allow_nan=False).map(repr),
    st.floats(0, 1).map(lambda v: f"{v:.3f}"),
    st.integers(0, 10**18).map(str),
    st.from_regex(r"[0-9]{1,18}(\.[0-9]{1,21})?(e-?[0-9]{1,3})?", fullmatch=True).map(str),
)
ARRAYS = st.lists(NUMBER, min_size=2, max_size=5).flatmap(
    lambda v: st.sampled_from([", ", ",", " , ", ",\n\t"]).map(lambda s: f"[{s.join(v)}]")
)


@settings(max_examples=300, deadline=None)
@given(texts=st.lists(st.one_of(ARRAYS, st.none(), FRAGMENTS.filter(lambda t: "\ud800" not in t)), max_size=12))
def test_the_fast_path_gives_the_identical_result(texts: list[str | None]) -> None:
    options = [THREE if i % 3 else FOUR for i in range(len(texts))]
    assert as_rows(texts, options) == by_row(texts, options)
