"""The number that a reply gives: the rules in order, published replies, hostile text."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.qa.model import ItemError, ItemScore, ScorerSettings, WrittenResponse
from dtef_pipeline.qa.reading.numeric import Numeric, read_number
from dtef_pipeline.text.numbers import is_same_number, parse_exact_number
from tests.dtef_pipeline.qa.reading.published import BENCHMARKS, json_rows, vectors

BY_RULE = {
    "marker": {
        "#### 72": 72,
        "####72": 72,
        "####\n72": 72,
        "x #### 24 then #### 72": 72,
        "#### **72**": 72,
        "#### seventy-two": 72,
        "#### $70,000": 70_000,
        "#### \\$72": 72,
        "#### 4 + 2 = 6": 6,
        "#### The final answer is 9": 9,
        "#### minus five": -5,
        "#### 3/4": Fraction(3, 4),
        "The answer is 5. #### 64": 64,
        "#### 72\n#### ": 72,
    },
    "boxed": {
        r"It is $\boxed{18}$. The answer is 5.": 18,
        r"\boxed{18 \text{ dollars}}": 18,
        r"\boxed{\$18}": 18,
        r"\boxed{1,234}": 1234,
        r"\boxed{1{,}234}": 1234,
        r"\boxed{1\,234}": 1234,
        r"\boxed{\frac{1}{2}}": Fraction(1, 2),
        r"\boxed{-\dfrac{1}{2}}": Fraction(-1, 2),
        r"\boxed{\frac34}": Fraction(3, 4),
        r"\boxed{2\frac{1}{2}}": Fraction(5, 2),
        r"\boxed{18\%}": 18,
        r"\boxed{\text{Ten}}": 10,
        r"\boxed{x = 5}": 5,
        r"\boxed{3 \times 10^{4}}": 30_000,
        r"\boxed{5 \mathrm{~kg}}": 5,
        r"\boxed{90^\circ}": 90,
        r"\boxed{{{7}}}": 7,
        r"\fbox{7}": 7,
        r"\boxed{7} and \boxed{?}": 7,
    },
    "statement": {
        "So 9*2=18\nThe answer is: 18": 18,
        "The answer is $18$.": 18,
        "The answer is\n\n$$\n18\n$$": 18,
        r"The answer is \(18\).": 18,
        "The answer is ½": Fraction(1, 2),
        r"Answer: $\frac{3}{4}$": Fraction(3, 4),
        "A: 18 dollars": 18,
        "A: $1,234.50": Fraction(2469, 2),
        "A: 50%": 50,
        "**Answer**: 72": 72,
        "### Final Answer\n72": 72,
        "the correct answer is therefore 72": 72,
        "The final answer is 4 + 2 = 6 bolts.": 6,
        "The answer is <<9*2=18>>18 dollars": 18,
        "The answer is 3 hours and 20 minutes": 3,
        "The answer is approx. 5 m.": 5,
        "The answer is 5. I hope this answer is helpful!": 5,
        "The answer to the task is 18 dollars": 18,
        "The final result is –3": -3,
        "The answer is 7 (7 = 3 + 4).": 7,
        "The answer is 5 apples, since 2 + 2 = 4 and 1 is left.": 5,
        "The answer is 5 (dollars) * 3 = 15": 15,
        "Answer: Janet makes 18 dollars.\nExplanation: 16-3-4=9": 18,
        "Q: John\nA: She has 5+4=9 eggs. The answer is 9.": 9,
        "{\"answer\": 18}": 18,
    },
    "last": {
        "18": 18,
        "eighteen": 18,
        "3/4": Fraction(3, 4),
        "It is 15.\n1. foo\n2. bar": 15,
        "Step 1: 5+5=10\nStep 2: done": 10,
        "She has one": 1,
        "18 eggs for the last one": 18,
        "To answer this: first 5, then 6. So 11.": 11,
        "She has to answer 20 of them and gets 15": 15,
        "Answer: It takes 2/2=1 bolt of white. In total that is 3 bolts.": 3,
        "<think>The answer is 5</think>6": 6,
        "```python\nanswer = 5\nprint(answer)\n```\n```output\n7\n```\nSo 7 cars.": 7,
    },
}  # fmt: skip
UNREAD = (
    "", "no number", "3:45", "The answer is ____.", "5 + 4 = 9. The answer is", "Answer: unknown", "We have 5. The answer is not clear",
    "<think>5", "The 5th", "```python\nprint(5)\n```",
)  # fmt: skip
AMBIGUOUS = (
    "The answer is twenty twenty-four", "1,23", "We pay 7. The answer is 5,000,00", "The answer is between 3 and 5", "Answer: 10 - 15",
    "Answer: $10 - $15", "\\boxed{3 \\text{ or } 5}", "#### 3 to 5", "The answer is 3 and 5", "between 3 km and 5 km",
    "She has 9 hens, or two dozen",
    "a dozen", "The answer is 2^n", "The answer is 5 6", "20% - 30%", "The answer is two dozen eggs in 3 boxes",
    "The answer is 3 through 5", "It was 20 through 12",
    "The answer is 3 to 5 digits", "The answer is between 5 and 10 eggs", "The answer is two dozen: 24 or 30",
    "The answer is between 5 and 10: 7 or 8", "The answer is 1,23 (0 of it left)",
)  # fmt: skip
ONE_OF_TWO_SPELLINGS = {
    "The answer is 10^3": 1000, "The answer is 2^{10}": 1024, "1_000": 1000, "12 345": 12_345, "The answer is 12 345": 12_345,
    "The answer is 1/2 or 50%": Fraction(1, 2), "The answer is 20 dozens": 20, "The answer is 20 - 5 = 15": 15, "65, 81 and 74": 74,
    "The answer is 3 (three) or more": 3, "She pays 5 * 1": 1, "The answer is 20, or 30 counting the green ones": 20,
    "The answer is 3.33 to 2 decimal places": Fraction(333, 100), "The answer is 3.33 to two decimal places.": Fraction(333, 100),
    "The answer is 3.33 (rounded to 2 d.p.)": Fraction(333, 100), "So it is 3.33 to 2 decimal places": Fraction(333, 100),
    "The answer is 333 to 3 significant figures": 333, "The answer is 333 to 3 digits": 333, "So it is 330 to the nearest 10": 330,
    "The answer is two dozen, or 24 eggs": 24, "The answer is two dozen (24) eggs.": 24, "The answer is 24 or two dozen": 24,
    "The answer is half a dozen (6)": 6, "Answer: 3 dozen": 3, "The answer is between 5 and 10: 7": 7,
    "The answer is between 5 and 10 eggs, namely 7": 7, "The answer is 10 through 3 steps": 10, "The answer is 10 5-dollar bills": 10,
    "The answer is - 5": -5, "The answer is **- 5**.": -5, "The answer = - 5": -5, "The change equals - 5": -5, "\\boxed{- 5}": -5,
    "The answer is: - 5": 5, "Answer: - 5": 5, "The answer is\n- 5": 5, "- 5": 5,
}  # fmt: skip
ARITHMETIC = {
    r"\boxed{3 \times 4}": 12, r"\boxed{\sqrt{16}}": 4, r"\boxed{5!}": 120, r"\boxed{\frac{3+1}{2}}": 2, r"\boxed{2^3 + 1}": 9,
    r"\boxed{20 - 5}": 15, r"\boxed{5-3}": 2, r"\boxed{(3+4)^2}": 49, r"\boxed{12 \div 4}": 3, r"\boxed{-3 + 1}": -2,
    r"\boxed{\left(3+1\right)\cdot 2}": 8, r"\boxed{9 \times 2 \text{ dollars}}": 18, r"\boxed{2\sqrt{9}}": 6,
    r"\boxed{3\frac{1}{2}}": Fraction(7, 2), r"\boxed{3 \cdot 4 = 12}": 12, "#### 9 * 2": 18, "#### $9 * $2": 18,
    "#### 18 (9 * 2)": 18, "#### 5!": 5,
    "#### 3! * 2": 12, "#### 4!/2!": 12, "The answer is 5!": 5, "The answer is 3 * 4.": 12, "The answer is 4 + 2 bolts": 6,
    "The answer is 3 x 4": 12, r"\boxed{5 m^2}": 5, r"\boxed{18 m/s}": 18,
}  # fmt: skip
NO_ARITHMETIC = (
    r"\boxed{3, 5}", r"\boxed{3, 4, 5}", "#### 3, 5", r"\boxed{x=3, y=5}", r"\boxed{3x+4}", r"\boxed{3 + x}", r"\boxed{2\pi}",
    r"\boxed{2 + }", r"\boxed{1/0}", r"\boxed{10-15}", r"\boxed{10^{10^{10}}}", r"\boxed{1000!}", r"\boxed{(((((((((((((((1+1)))))))))))))))}",
    r"\boxed{(-4)^{\frac{1}{2}}}",
)  # fmt: skip
CORRECTED = {
    "The answer is not 5 but 7": 7, "The answer is not 5. It is 7.": 7, "The answer is not 5 dollars, it is 7": 7, "The answer is not 5.": None,
    "The answer is 5. Wait, I forgot the last two. So it is 7.": 7, "The answer is 5. Wait, let me check: 2+3 = 5. Yes.": 5,
    "The answer is 5. Wait, there are 3 more. No, they were counted.": 5,
    "Wait, so it is 3. Then 4 more are 7.": 7,
    'Die Antwort ist nicht 5, sondern 7.': 7,
    '答えは5ではなく7です。': 7,
    'The answer is 5. Wait, no, it is 7.': 7,
    'The answer is 5. Actually, it is 7.': 7,
    'The answer is 5. Oops, I made a mistake. It should be 7.': 7,
    "La réponse n'est pas 5 mais 7.": 7,
    'La respuesta no es 5 sino 7.': 7,
    'Ответ не 5, а 7.': 7,
    'Ответ: не 5, а 7.': 7,
    '答案不是5，而是7。': 7,
    '答案并不是5，是7': 7,
    "La réponse n'est pas 5, c'est 7.": 7,
    'Die Antwort ist nicht 5. Sie ist 7.': 7,
    'Die Antwort ist nicht 5.': None,
    "La réponse n'est pas 5.": None,
    'La respuesta no es 5.': None,
    'Ответ не 5.': None,
    '答案不是5。': None,
    '答えは5ではありません。': None,
    '答えは5ではありません。7です。': 7,
    '答えは5じゃなくて7です。': 7,
    'The answer is 5. Sorry, it is 7 dollars.': 7,
    'The answer is 5. No, 7.': 7,
    "The answer is 5. Wait, no: it's 3 + 4 = 7.": 7,
    'The answer is 5. Hmm, actually, that is wrong. The total should be **7**.': 7,
    'The final result is 5. Wait, no, it is 7.': 7,
    'A: 5. Actually, it should have been 7 apples.': 7,
    'Answer: 5. I made a calculation error. It should be $1,007.50.': Fraction(2015, 2),
    'The answer is 5. Wait, it is 3 more than 2, fine.': 5,
    'The answer is 5. Wait, is it? Yes, it is 5.': 5,
    'The answer is 5. No, 7 apples are not enough.': 5,
    'The answer is 5. Actually, it is 3 per child and 2 more.': 5,
    'The answer is 5. There is no 3.': 5,
    'The answer is 5. Actually, it is 7. Wait, no, it is 6.': 6,
    'Die Antwort ist 5. Nein, es ist 7.': 7,
    "La réponse est 5. Non, c'est 7.": 7,
    'La respuesta es 5. No, es 7.': 7,
    'Ответ: 5. Нет, это 7.': 7,
    '答案是5。不对，应该是7。': 7,
    'The answer is 5. I mean 7.': 7,
    "The answer is 5. No, it isn't 7.": 5,
    'Die Antwort ist nicht nur 5, sondern auch 7.': None,
    'The answer is 1.5. Scratch that, it is 2.5.': Fraction(5, 2),
}  # fmt: skip
OTHER_LANGUAGES = {
    "Die Antwort ist 18, weil 20 - 2 Fische weg sind.": 18, "Das Ergebnis lautet 1.319 Euro.": 1319, "Die Antwort ist 12,5": Fraction(25, 2),
    "Die Lösung beträgt 1.319,50 Euro, bei 2 Käufern": Fraction(2639, 2), "La réponse est 18 car il en reste 2.": 18,
    "La réponse finale est donc 18, et 2 restent": 18, "La respuesta es 18, pues quedan 2": 18, "El resultado final es 1.319": 1319,
    "Ответ: 18. Осталось 2 яблока": 18, "Ответ — 18, потому что 2": 18, "答案是18。因为20减2。": 18,
    "答案：1,319元，剩2": 1319,
    "答えは18です。20から2を引く": 18, "答案是1.319。": Fraction(1319, 1000), "Das sind 1.319 Euro": 1319, "It costs 1.319 €": 1319,
    "The value is 1.319": Fraction(1319, 1000),
}  # fmt: skip
CUT = {
    "So, the answer is 4000": None,
    "#### 72": None,
    r"\boxed{72}": None,
    "It is 72. And then": None,
    "The answer is 72 cl": 72,
    "The answer is 72.\n\nThe answer is": 72,
    "#### 72\n\nNow": 72,
}
PIECES = (
    "####", "#### ", "\\boxed{", "\\fbox{", "}", "\\frac{", "{", "The answer is ", "answer: ", "\nA: ", "final result ", "= ", "1,234", "5",
    " seven hundred ", "one ", "-", "$", "%", ".", "\n", "/", ":", "```python\n", "```", "<think>", "</think>", "\ud800", "\x00", "½", "((((",
    "9" * 40, "1e9", "^", "_000", " 345", "dozen", " to ", "\\sqrt", "!", "(", ")",
    " not ", " nicht ", ", sondern ", "不是", "ではなく", ". No, ", "答案是", "Antwort ist ", "Wait ", "so it is ",
    "€1.319", "between ", "Step ", "____", "\\", "٣", "İ",
)  # fmt: skip


def scored(response: str | None, reference: str, finish_reason: str | None = None) -> ItemScore:
    return Numeric().prepare_item(reference, (), ScorerSettings())(WrittenResponse(response, finish_reason))


@pytest.mark.parametrize(("how", "text"), [(how, text) for how, texts in BY_RULE.items() for text in texts])
def test_each_rule_reads_its_number(how: str, text: str) -> None:
    read = read_number(text)
    assert (read.number, read.read_by) == (BY_RULE[how][text], how)


@pytest.mark.parametrize("text", UNREAD)
def test_a_reply_without_an_answer_is_unparseable_and_counts_nothing_but_0(text: str) -> None:
    score = scored(text, "5")
    assert (score.status, score.value, score.score, score.details) == ("unparseable", None, 0.0, {"number": None})


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_a_number_that_is_one_of_two_or_not_clear_is_no_answer(text: str) -> None:
    assert read_number(text) == (None, None, ("ambiguous",))


@pytest.mark.parametrize("text", ONE_OF_TWO_SPELLINGS)
def test_a_number_is_read_in_every_spelling(text: str) -> None:
    assert read_number(text).number == ONE_OF_TWO_SPELLINGS[text]


@pytest.mark.parametrize("text", ARITHMETIC)
def test_plain_arithmetic_is_worked_out(text: str) -> None:
    """Its first number was taken for the answer."""
    assert read_number(text).number == ARITHMETIC[text]


@pytest.mark.parametrize("text", NO_ARITHMETIC)
def test_several_values_and_what_cannot_be_worked_out_are_no_answer(text: str) -> None:
    assert read_number(text)[::2] == (None, ("ambiguous",))


@pytest.mark.parametrize("text", CORRECTED)
def test_a_statement_that_is_corrected_does_not_count(text: str) -> None:
    assert read_number(text).number == CORRECTED[text]


@pytest.mark.parametrize("text", OTHER_LANGUAGES)
def test_statements_of_other_languages_are_read(text: str) -> None:
    """The last number was taken, and 1.319 for a little more than one."""
    assert read_number(text).number == OTHER_LANGUAGES[text]


@pytest.mark.parametrize("text", CUT)
def test_a_cut_reply_counts_only_where_the_text_goes_on_behind_its_number(text: str) -> None:
    read = read_number(text, was_cut=True)
    assert read.number == CUT[text]
    assert ("truncated" in read.flags) == (read.number is None)


def test_statements_that_differ_are_flagged() -> None:
    assert read_number("The answer is 5. Wait. The answer is 6.").flags == ("several",)
    assert read_number("The answer is 5. Yes, the answer is 5.0.").flags == ()


def test_the_expected_number_is_a_number_or_a_solution_that_ends_in_one() -> None:
    assert scored("72", "It is 48+24=72\n#### 72").value == 1.0
    assert scored("#### 70,000", "70000").value == 1.0
    assert scored("71", "72").value == 0.0
    assert scored("0.333333", "1/3").value == 1.0
    assert scored(None, "72").status == "unparseable"


def test_without_an_expected_number_the_reply_is_read_and_has_no_value() -> None:
    """With null the published examples are `ok`; with an empty text there is nothing to be scored."""
    for reference, status in (("null", "ok"), ("", "unscorable")):
        score = scored("The answer is 14.8.", reference)
        assert (score.status, score.value, score.score, score.details) == (status, None, None, {"number": 14.8})
        assert "there is no reference" in str(score.reason)


def test_a_reference_that_is_no_number_is_an_error() -> None:
    with pytest.raises(ItemError, match=r"reference: the expected number; got 'many'; allowed: a number, or a solution"):
        scored("5", "many")


def test_every_vector_is_met() -> None:
    for case in vectors(scorer="numeric"):
        given_in, out = case["in"], case["out"]
        score = scored(given_in["response"], json.dumps(given_in["reference"]).strip('"'), given_in.get("finish_reason"))
        assert score.status == out["status"], case["id"]
        assert score.details["number"] == (None if out["number"] is None else pytest.approx(out["number"], abs=1e-9)), case[
            "id"
        ]
        if "score" in out:
            assert score.score == pytest.approx(out["score"]), case["id"]


def test_the_vectors_of_equal_numbers_are_met() -> None:
    for case in vectors(fn="number_equal"):
        a, b = parse_exact_number(case["in"]["a"]), parse_exact_number(case["in"]["b"])
        assert a is not None
        assert b is not None
        assert is_same_number(a, b) is case["out"], case["id"]


def expected_numbers() -> dict[int, Fraction]:
    rows = json_rows("gsm8k/test.jsonl")
    index = json.loads((BENCHMARKS / "gsm8k" / "index.json").read_text(encoding="utf-8"))
    numbers = {place: parse_exact_number(row["answer"].rpartition("####")[2]) for place, row in zip(index, rows, strict=True)}
    return {place: number for place, number in numbers.items() if number is not None}


def test_published_replies_of_2021_get_their_published_verdicts() -> None:
    rows, expected = json_rows("gsm8k/outputs/openai-gpt3-2021.jsonl"), expected_numbers()
    assert len(rows) == 1600
    for row in rows:
        number = read_number(row["text"]).number
        is_right = number is not None and is_same_number(number, expected[row["index"]])
        assert is_right is row["published_correct"], row


def test_published_replies_with_programs_are_read_as_published_but_for_two() -> None:
    """98 ends in prose after its output (`5 cars ... in the first 15 minutes`), 146 is a program without output, whose reading is no number."""
    differing = set()
    for row in json_rows("gsm8k/outputs/tora-70b.jsonl"):
        over, _, under = row["published_prediction"].removeprefix("\\frac{").removesuffix("}").partition("}{")
        published, number = parse_exact_number(f"{over}/{under}" if under else over), read_number(row["text"]).number
        if number is None or published is None or not is_same_number(number, published):
            differing.add(row["index"])
    assert differing <= {98, 146}


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text(), st.booleans())
def test_no_text_breaks_the_reader(text: str, was_cut: bool) -> None:
    read = read_number(text, was_cut=was_cut)
    assert (read.number is None) == (read.read_by is None)
    json.dumps(scored(text, "5").details)


@pytest.mark.parametrize("piece", ["(", "####", "\\boxed{", "one\n", "answer is 5. Wait, no, it is ", "不是5"])
def test_a_long_text_of_one_piece_is_read(piece: str) -> None:
    read_number(piece * (100_000 // len(piece)))


@given(
    st.integers(-(10**6), 10**9),
    st.sampled_from(["", "$", "£"]),
    st.sampled_from(["", ".", " dollars", "%", "**"]),
    st.booleans(),
)
def test_a_number_survives_currency_commas_units_and_thinking(number: int, before: str, behind: str, commas: bool) -> None:
    said = f"{before}{number:,}{behind}" if commas else f"{before}{number}{behind}"
    noise = "<think>or is it 7?</think>We have 3 + 4 = 7 first.\n\n"
    for form in ("#### {}", "\\boxed{{{}}}", "The answer is {}", "**Final answer:** {}", "A: {}", "So she has {}"):
        assert read_number(noise + form.format(said)).number == number, form
