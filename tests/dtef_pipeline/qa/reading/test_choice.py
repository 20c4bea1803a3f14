"""The letter that a reply chooses: the rules in order, published replies, noise, hostile text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.qa.model import ItemError, ItemScore
from tests.dtef_pipeline.qa.reading.letters import read_letter, score_choice
from tests.dtef_pipeline.qa.reading.published import json_rows, vectors

CITIES = ("London", "Berlin", "Paris", "Madrid")
ORGANS = ("The heart", "The lung", "The kidney", "The liver", "The skin", "Bone", "Ear", "Eye", "Nose", "Toe")
LISTED = "A. London\nB. Berlin\nC. Paris\nD. Madrid"
READ_AS = {
    "statement": {
        "The answer is C.": "C", "The answer is **C**": "C", "The answer is (c).": "C", "the answer is c": "C", "Answer: C) Paris": "C",
        "ANSWER: C": "C", "Answer C": "C", "**Answer: C**": "C", "Answer:\n\n(C) Paris": "C", "The correct answer is\n\nC. Paris": "C",
        "A. London is wrong. Answer: C": "C", "The answer is: Option (C)": "C", "The answer is most likely C": "C",
        "The answer is A because B is wrong": "A", "The answer is (A), (B) is wrong": "A", "The answer is C rather than D": "C",
        "The answer is not among these, but the closest is (D).": "D",
        "The answer is not among these, but it can be turned into 3, which is choice (D).": "D", "So the velocity doubles, or answer (B).": "B",
        "(C) is the correct answer.": "C", "Option C is correct.": "C", "The correct option is C": "C", "I choose C": "C", "Therefore, C.": "C",
        "The answer is A. The answer is not B.": "A", '{"answer": "C"}': "C", "The answer is $\\mathbf{C}$": "C",
        "A city, so I say C!": "C", "A capital question: the answer is C": "C", "Option A is odd. The answer would be D": "D",
        "The answer is A or B. No: the answer is B": "B", "<think>The answer is A</think>The answer is B": "B",
        "The answer is not A, it is B.": "B", "The answer isn't A, it's B": "B", "The answer is not A or B, but rather (C).": "C",
        "The answer is not A, not B, but C": "C", "The answer is not A. The answer is A": "A",
        "The answer is not A, B or C. D": "D", "The answer is not A. **D**.": "D", "The answer is neither A nor B, but C": "C",
        "The answer is neither option A nor option B, but option C.": "C", "The answer is not option A. It is option B.": "B",
        "The answer would not be A. It would be B": "B", "The answer can't be A. B": "B", "The answer cannot be A.\n\n(B)": "B",
        "The answer won't be (A) but (B)": "B", "The answer can't be A since the value is C": "C", "The answer is B and would not be A": "B",
    },
    "boxed": {r"\boxed{C}": "C", r"So $\boxed{\text{(C) Paris}}$.": "C", r"\boxed{Paris}": "C", "The answer is A.\n\\boxed{B}": "B"},
    "option_text": {"The answer is Paris because it is": "C", "Answer: Paris": "C", "(A) London\n\nThe correct answer is: Madrid": "D",
                    "It is Paris": "C"},
    "line": {"(C) Paris": "C", "C. Paris": "C", "c) Paris": "C", "C: Paris": "C", "It is this:\n(A) London": "A",
             "C\n\nBecause of the Seine.": "C",
             f"{LISTED}\n\nB": "B", f"{LISTED}\n\n**B.**": "B", f"{LISTED}\n\nB. Berlin": "B"},
    "alone": {"C": "C", "c": "C", "(C)": "C", "**C**": "C", "C.": "C", "[C]": "C", "（Ｃ）": "C", "C?": "C", "A": "A"},
    "lone": {"I think B": "B", "Not A, not B, not C. D.": "D", "Neither A nor B. C": "C", "It must be C": "C", "The answer is I think B": "B",
             "It is neither A, B, nor C. D": "D", "Not A, B or C. D": "D"},
}  # fmt: skip
UNREAD = (
    "", "Not A, but D", "It is a tie; none", "C or D", "Both A and C", "The answer is A and C", "The answer is A, B, and C.", "E",
    "The answer is E",
    "It's not A", "The answer isn't A", "The answer is not A.", "A dog", "It is Paris, not London", "A. London\nB. Berlin\nC. Paris\nD. Madrid",
    "<think>The answer is A", "\\boxed{A, B}", "The answer is Berlin or Paris", "Let us look at A first. The answer is", "none of them",
    f"{LISTED}\n\nB. is wrong", f"{LISTED}\n\nB\nC", "A. London\nB. Berlin\nC. Paris\n\nB", "Not A. Not D.", "The answer is not A, but hard",
    "The answer is not only A but also B", "It is not only A but also B", "The answer is not just A. It is also B.", "The answer can't be A",
    "The answer should not be A.", "Not London", "It's not the London one", "The answer is not London.", "The answer cannot be London",
    "Neither London nor Berlin", "The answer is not A. B is wrong, too",
)  # fmt: skip
CUT = {
    "C": None, "The answer is (B)": None, "The answer is B": None, "The answer is (B) because": "B", "(B) stabil": "B", "Paris": None,
    "The answer is (A). The answer is (B)": "A", "Let us look at A first. The answer is": None,
}  # fmt: skip
BY_TEXT = [
    ("The answer is E. coli", ("C. elegans", "E. coli"), "B"),
    ("The answer is C. elegans", ("C. elegans", "E. coli", "x"), "A"),
    ("The answer is 4", ("3", "4", "5", "6"), "B"),
    ("The answer is 4.5", ("3", "4", "5", "6"), None),
    ("The answer is -5", ("5", "-5"), "B"),
    ("The answer is 50%", ("50", "50%"), "B"),
    ("It is New York", ("York", "New York"), "B"),
    ("it is x + 1", ("x + 1", "x - 1"), "A"),
    ("same", ("same", "same"), None),
    ("The answer is None", ("None", "Some"), "A"),
    ("not valid", ("valid", "not valid"), "B"),
    ("It is not far: London", ("London", "Paris"), "A"),
]
PIECES = (
    "The answer is ", "answer", "Answer: ", "A", "B", "(C)", " and ", " or ", "D.", "I ", "E", "\\boxed{", "}", "closest ", "so ", "option ",
    "Paris", "London", "\n", "<think>", "</think>", "not ", "**", "(", "\ud800", "\x00", "\\text{", "is the correct ", "J)", "choice", "a)",
    "it is ", "but ", "isn't ", "A. London\nB. Berlin\nC. Paris\nD. Madrid\n",
)  # fmt: skip


def scored(
    response: str | None, reference: str, options: tuple[str, ...] = CITIES, finish_reason: str | None = None
) -> ItemScore:
    return score_choice(response, reference, options, finish_reason)


@pytest.mark.parametrize(("how", "text"), [(how, text) for how, texts in READ_AS.items() for text in texts])
def test_each_rule_reads_its_letter(how: str, text: str) -> None:
    read = read_letter(text, CITIES)
    assert (read.letter, read.read_by) == (READ_AS[how][text], how)


@pytest.mark.parametrize("text", UNREAD)
def test_a_reply_that_chooses_nothing_is_unparseable_and_counts_0(text: str) -> None:
    score = scored(text, "C")
    assert (score.status, score.value, score.score, score.details) == ("unparseable", None, 0.0, {"letter": None})


@pytest.mark.parametrize("text", CUT)
def test_a_cut_reply_counts_only_where_the_text_goes_on_behind_its_statement(text: str) -> None:
    read = read_letter(text, CITIES, was_cut=True)
    assert read.letter == CUT[text]
    assert ("truncated" in read.flags) == (read.letter is None)


@pytest.mark.parametrize(("text", "options", "letter"), BY_TEXT)
def test_the_text_of_exactly_one_option_is_its_letter(text: str, options: tuple[str, ...], letter: str | None) -> None:
    assert read_letter(text, options).letter == letter


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("答案是C。", "C"), ("正确答案：C", "C"), ("答案是C选项", "C"),
        ("因此选C。", "C"), ("答えはCです。", "C"), ("正解はC", "C"), ("Ответ: C", "C"),
        ("Die richtige Antwort ist C, denn A und B sind falsch.", "C"), ("La réponse est (C), pas A.", "C"), ("La respuesta correcta es C", "C"),
        ("It is not A, it is B.", "B"), ("It is not A. It is B.", "B"), ("It's not A but B.", "B"), ("选项A是错的，B也不对", None),
        ("We can eliminate A, B and D, therefore C", "C"), ("We can eliminate A, B and D, therefore C is correct.", "C"),
        ("Eliminate A, B and D, therefore C because it is wide.", "C"), ("We can eliminate A, B and D, leaving only C.", "C"),
        ('The answer is C. There is no B.', 'C'),
        ('The answer is A. Wait, no, it is C.', 'C'),
        ('答案不是A，而是C。', 'C'),
        ('Die Antwort ist nicht A, sondern C.', 'C'),
        ('Ответ не A, а C.', 'C'),
        ("La réponse n'est pas A mais C.", 'C'),
        ('La respuesta no es A sino C.', 'C'),
        ('答えはAではなくCです。', 'C'),
        ('The answer is A. Actually, it is C.', 'C'),
        ('The answer is (A). Oops, I made a mistake. It should be (C).', 'C'),
        ('It is A. Wait, no, it is C.', 'C'),
        ('The answer is A. No, C.', 'C'),
        ('The answer is A. Sorry, it should be option C because it is wide.', 'C'),
        ('Die Antwort ist A. Nein, es ist C.', 'C'),
        ("La réponse est A. Non, c'est C.", 'C'),
        ('La respuesta es A. No, es C.', 'C'),
        ('Ответ: A. Нет, это C.', 'C'),
        ('答案是A。不对，应该是C。', 'C'),
        ("La réponse n'est pas A.", None),
        ('Die Antwort ist nicht A.', None),
        ('答案不是A。', None),
        ('Ответ не A.', None),
        ('La respuesta no es A.', None),
        ('答えはAではありません。', None),
        ('Es ist nicht A, sondern C.', 'C'),
        ("Ce n'est pas A, c'est C.", 'C'),
        ('The answer is A. Actually, it is a dog.', 'A'),
        ('The answer is C. No, B is wrong.', 'C'),
        ('Die Antwort ist nicht nur A, sondern auch C.', None),
        ('The answer is A. Wait, it is A that is wrong.', 'A'),
        ('\\boxed{A}. Wait, no, it is C.', 'C'),
        ('答案不仅是A，而且是C', None),
        ("The answer is A. My mistake, it's **C**.", 'C'),
    ],
)  # fmt: skip
def test_statements_of_other_forms_and_languages_are_read(text: str, letter: str | None) -> None:
    assert read_letter(text, ("one", "two", "three", "four")).letter == letter


def test_lone_letters_and_texts_count_only_in_short_replies() -> None:
    padding = "This was looked at from many sides, and with care. " * 5
    assert read_letter(f"It must be C. {padding}", CITIES).letter is None
    assert read_letter(f"It must be Paris. {padding}", CITIES).letter is None
    assert read_letter(f"{padding} So C", CITIES).letter == "C"


def test_i_is_a_letter_of_ten_options_and_a_word() -> None:
    for text in ("The answer is I", "(I)", "I", "The answer is I because of it", "I. Nose"):
        assert read_letter(text, ORGANS).letter == "I", text
    assert read_letter("I think it is H", ORGANS).letter == "H"
    assert read_letter("I. is true\nII. is false", ORGANS).letter is None
    assert read_letter("The answer is (E and I).", ORGANS).letter is None


def test_flags_say_what_was_odd() -> None:
    assert read_letter("The answer is (B).\n\nThe answer is (C).", CITIES).flags == ("several",)
    assert read_letter("A) 4", ("3", "4")) == ("A", "line", ("text_mismatch",))
    assert read_letter("The answer is (A) Berlin.", CITIES).flags == ("text_mismatch",)
    assert read_letter("The answer is (A). Berlin is wrong.", CITIES).flags == ()
    assert read_letter("The answer is A. However, the answer is not A.", CITIES) == ("A", "statement", ("denied",))
    assert read_letter("The answer is A. The answer is not B. The answer is A.", CITIES).flags == ()
    assert read_letter("The answer is (B). The answer is (E).", CITIES) == (None, None, ("outside",))
    for both in ("The answer is (A) and (B).", "The answer is not only A but also B"):
        assert read_letter(both, CITIES) == (None, None, ("multi",))
    assert read_letter("Not London", CITIES).flags == ()


def test_without_options_letters_go_to_d_or_to_the_expected_one() -> None:
    assert scored("The answer is G", "A", ()).details == {"letter": None}
    assert scored("The answer is G", "G", ()).value == 1.0
    assert scored("The answer is B", "B", ()).value == 1.0


def test_without_an_expected_letter_the_reply_is_read_and_cannot_be_scored() -> None:
    for reference in ("", "null"):
        assert scored("C", reference) == ItemScore("unscorable", None, "alone", (), {"letter": "C"}, "there is no reference")
        assert scored("", reference).score is None


def test_an_expected_letter_beyond_the_options_is_an_error() -> None:
    with pytest.raises(ItemError, match=r"the expected letter; got 'E'; allowed: A, B, C, D"):
        scored("C", "E")


def test_every_vector_is_met() -> None:
    for case in vectors(scorer="exact_choice"):
        given_in, out = case["in"], case["out"]
        score = scored(given_in["response"], given_in["reference"], tuple(given_in["options"]), given_in.get("finish_reason"))
        assert (score.details["letter"], score.status) == (out["letter"], out["status"]), case["id"]
        assert score.score == pytest.approx(out["score"]), case["id"]


def test_without_their_options_the_vectors_that_name_a_letter_are_met() -> None:
    for case in vectors(scorer="exact_choice", options=list(CITIES)):
        given_in, letter = case["in"], case["out"]["letter"]
        expected = None if given_in["response"] == "Paris" else letter
        assert read_letter(given_in["response"], was_cut=given_in.get("finish_reason") == "length").letter == expected, case[
            "id"
        ]


def test_published_replies_are_read_as_people_read_them() -> None:
    rows = json_rows("mmlu-pro/outputs.jsonl")
    assert len(rows) == 114
    wrong = [row["question_id"] for row in rows if read_letter(row["text"], row["options"]).letter != row["letter"]]
    assert wrong == []


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join) | st.text(), st.integers(0, 10), st.booleans())
def test_a_letter_is_one_of_the_options_or_none(text: str, count: int, was_cut: bool) -> None:
    read = read_letter(text, ORGANS[:count], was_cut=was_cut)
    assert read.letter is None or read.letter in "ABCDEFGHIJ"[: count or 4]
    assert (read.letter is None) == (read.read_by is None)
    json.dumps(scored(text, "", ORGANS[:count]).details)


@given(
    st.sampled_from("ABCD"),
    st.sampled_from(["{}", "({})", "**{}**", "({}).", "`{}`", "[{}]", "$\\text{{{}}}$", "\u201c{}\u201d"]),
    st.sampled_from(["", "\n\n", ".\n\nThis follows from what was said.", "\n\nI hope this helps!"]),
    st.sampled_from(["", "<think>(A)? The answer is B.</think>", "We look at each option. London is large. 3 + 4 = 7.\n\n"]),
)
def test_a_statement_survives_brackets_emphasis_and_text_around_it(letter: str, form: str, behind: str, before: str) -> None:
    for cue in ("The answer is ", "Answer: ", "**Final answer:** ", "The correct answer is option "):
        text = before + cue + form.format(letter) + behind
        assert read_letter(text, CITIES).letter == letter, text


@pytest.mark.parametrize(
    "piece",
    [
        "(",
        "1",
        "answer is ",
        "answer ",
        "closest ",
        "so ",
        "option A is ",
        "A\n",
        "answer is not A, not ",
        "answer would not be neither A nor ",
        "answer is not only A but also ",
        "A. x\nB. y\n",
        "not A. B. ",
        "answer is A. Wait, no, it is ",
        " nicht A",
        "不是A",
        "はAでは",
        " ",
        "\\boxed{",
        "\x00",
        "\ud800",
    ],
)
def test_a_long_text_of_one_piece_is_read(piece: str) -> None:
    read_letter(piece * (100_000 // len(piece)), CITIES)
