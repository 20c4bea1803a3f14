r"""Reading the number that a free reply gives as its answer, and the `numeric` scorer.

The first rule that applies decides (`read_by` names it):

1. `marker`: the last `####` with a number in its line;
2. `boxed`: the last `\boxed{}` or `\fbox{}` with a number;
3. `statement`: the last `answer is`, `answer:`, `final answer|number|result is`, or line `A:`. The number after the last `=` of
   that sentence, else its first number (`4 + 2 = 6 bolts` is 6; equations in brackets after the number, and after `because`, are
   reasons). If the last statement is prose without a number, the one before it counts. If no statement has a number (`The answer is
   ____`) the reply is unparseable: a number of the working is never used. `Answer:` followed by a whole working is a heading, not a
   statement. `not 5 but 7` states 7, and after a correction (`Wait`) `it is 7` is a statement. Statements are also
   found in German, French, Spanish, Russian, Chinese and Japanese (`expressions.py`), but in no other language;
4. `last`: the last number of the text. The word `one` and numbers of steps and list items count only if there is no other.

Thinking and fenced programs (not their output) are removed first. A reply that the token limit cut off is read only by rules 1-3, and only
if text follows the number. `dtef_pipeline/text/numbers.py` defines what a number is. A number that is one of two (`between 3 and 5`, `10 -
15`, `3 or 5`, `twenty twenty-four`), or whose value is not clear (`1,23`, `5,000,00`, `two dozen`), makes the reply unparseable; only a number
that explains it can replace it (`two dozen (24)`, `between 5 and 10: 7`). Two numbers replace one only if `to`, `or`, `-`, `through` or a
blank joins them directly, or `between` or `from` opens a range: `3, or 5 with the red ones` and `10 through 3 steps` give one number and an
aside. A precision is not a second number: `3.33 to 2 decimal places`, `130 to the nearest 10`.
`3 dozen` in digits is 3, because items of GSM8K expect dozens. In rules 1-3 plain arithmetic is evaluated (`3 \times 4` is 12:
`expressions.py`); several values (`3, 5`) after a marker or in a box, and variables in a box (`3x + 4`), are not clear. A reply ends before
the next question that the model asks itself (`reply_end.py`). Flags: `run_on` (it went on), `several` (the statements, boxes or markers
gave different numbers), `ambiguous` (one of two, or not clear), `truncated` (cut). All patterns examine a bounded stretch after each cue,
so that reading is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import islice, pairwise
from typing import NamedTuple

from dtef_pipeline.qa.model import (
    OK_STATUS,
    UNPARSEABLE_STATUS,
    ItemError,
    ItemScore,
    ScoreResponse,
    ScorerSettings,
    WrittenResponse,
)
from dtef_pipeline.qa.reading.expressions import (
    evaluate,
    find_boxes,
    find_foreign_cues,
    normalize_euros,
    normalize_points,
    strip_latex,
    strip_programs,
)
from dtef_pipeline.qa.reading.reply_end import cut_at_end, cut_before_next_turn
from dtef_pipeline.text.alignment import align_lower, align_text
from dtef_pipeline.text.numbers import FoundNumber, convert_to_json_number, find_numbers, is_same_number, parse_exact_number
from dtef_pipeline.text.plain import strip_thinking

_SUBJECT_OF_STATEMENT = re.compile(
    r"""(?:(?:it|that|this|the\s(?:(?:correct|right|actual|final)\s)?(?:value|number|result|total|option|choice|letter))
          (?:'s|\s(?:is|was|equals|(?:must|should|would|has\sto|ought\sto)\s(?:be|have\sbeen)))
        |(?:es|sie)\sist|(?:c|elle\s|il\s)'?est|es|это|она)
        \s(?:(?:actually|really|in\sfact|indeed|rather)\s)?""",
    re.VERBOSE,
)
_WORDS_OF_CORRECTION = r"""(?:(?:wait|oops|whoops|sorry|no|nope|hmm+|actually|correction|scratch\sthat|hold\son
      |my\s(?:mistake|bad|apologies)|apologies
      |i\s(?:was\swrong|apologi[sz]e|mis[a-z]{3,12}|mean|meant|(?:have\s)?made\s(?:an?\s)?(?:[a-z]{1,12}\s)?(?:mistake|error))
      |that(?:'s|\sis|\swas)\s(?:wrong|incorrect|not\s(?:right|correct))
      |nein|moment|warte|halt|non|attendez|pard[oó]n|perd[oó]n|espera|нет|стоп|подождите)\b[\s,.;:!\u2026\u2014-]{1,6}
    |(?:不对|不對|错了|錯了|等等|等一下|不)[\s,。!;]{1,4}(?:(?:应该|應該)?是\s?)?)"""
_BEGIN_OF_CORRECTION = re.compile(
    rf"(?:(?<=[.!?;,:\u2026\u2014)*-]\s)|(?<=[\n(\u2014\u2026。])){_WORDS_OF_CORRECTION}{{1,6}}", re.VERBOSE
)
_MAX_CORRECTIONS = 200
_VALUE = r"(?:[^\n.;!?。]|\.(?=[0-9])){1,40}?"
_END = r"(?=\s{0,3}(?:[.!?。](?![0-9])|\n|\Z))"
_DENIED_VALUES = (
    (rf"\bnicht\s(?!nur\b|allein\b|blo(?:ß|ss)\b){_VALUE}(?:,?\ssondern\s|[.;,]\s(?:sie|es|das)\sist\s)", ""),
    (
        rf"\bn'est\spas\s(?!seulement\b|uniquement\b){_VALUE}(?:,?\smais\s(?:plutôt\s|bien\s)?|[.;,]\s(?:c'|elle\s)est\s)",
        "est ",
    ),
    (rf"\bno\ses\s(?!s[oó]lo\b|solamente\b){_VALUE}(?:,?\ssino\s|[.;,]\ses\s)", "es "),
    (rf"(?<!\w)не\s(?!только\b){_VALUE}(?:,\sа\s|[.;,]\s(?:а|это)\s)", ": "),
    (rf"(?<!是)不是(?!只|仅|僅|唯一){_VALUE}[,。;]?\s?而?(?:应该|應該|应|應)?是", "是"),
    (
        r"(?<=[はが])(?:[^\n.。はが]|\.(?=[0-9])){1,20}?(?<!だけ)(?:では|じゃ)(?:なく(?:て)?|ありません|ないです|ない)[、,。]?\s?",
        "",
    ),
    (rf"(?<=antwort ist )nicht\s{_VALUE}{_END}", ""),
    (rf"(?<=réponse )n'est\spas\s{_VALUE}{_END}", "est "),
    (rf"(?<=respuesta )no\ses\s{_VALUE}{_END}", "es "),
    (rf"(?<=ответ) не\s{_VALUE}{_END}", ": "),
    (rf"(?<=答案)(?:并|並)?不是{_VALUE}{_END}", "是"),
)
_DENIAL_PATTERNS = tuple((re.compile(pattern, re.IGNORECASE), replacement) for pattern, replacement in _DENIED_VALUES)
_WORDS_OF_DENIAL = re.compile(r"nicht|n'est|no es|не\s|不是|では|じゃ", re.IGNORECASE)


def find_corrections(lower: str, begins: int) -> Iterator[tuple[int, bool]]:
    """Return the starts of corrected values after correcting words (`wait, no, it is `), and whether these introduce them (`it is`)."""
    for opening in islice(_BEGIN_OF_CORRECTION.finditer(lower, begins), _MAX_CORRECTIONS):
        end = opening.end()
        subject = _SUBJECT_OF_STATEMENT.match(lower, end)
        yield subject.end() if subject else end, subject is not None or lower[end - 1 : end] == "是"


def drop_denials(text: str) -> str:
    """Convert `ist nicht 5, sondern 7` to `ist 7`, also in the other languages of `find_foreign_cues`."""
    if not _WORDS_OF_DENIAL.search(text):
        return text
    for pattern, replacement in _DENIAL_PATTERNS:
        text = pattern.sub(replacement, text)
    return text


_SENTENCE = 400
"""Characters after a cue that are examined."""
_LAST_CUES = 60
"""Number of cues that are examined, counted from the end: a bound for hostile text."""
_PIECE_LENGTH = 4_000
"""The last number is searched for in pieces of this length, from the end, ..."""
_LOOKED_BACK = 40_000
"""... and at most this far back."""
_MARKER = re.compile(r"#{4,}[ \t]*\n?")
_HEADING = re.compile(r"[\s*_]*[0-9]{1,2}[.)]\s+[*_]*[^\W\d]")
_BEFORE_MARKED = re.compile(r"[^\w\n]*(?:(?:the|my|final|correct|answer|result|total|is)\b[^\w\n]*){0,5}\Z")
_DECORATION = re.compile(r"(?:[\s*_#>:=`'\"$~]|\\[\[(]|\()*")
_END_OF_SENTENCE = re.compile(r"\n|。|(?<!approx)(?<!\bca)(?<!\brs)(?<!\bno)[.!?](?=[\s\"')*_]|\Z)")
_LEADS_ON = re.compile(r"[:$]|\\[\[(]")
_WORKED_OUT = re.compile(r"[^\w]*(?:explanation|reason|because|solution|steps?|working|calculation|this is)\b")
_EQUATION_ASIDE = re.compile(r"(?<=[0-9%] )\([^()\n]*=[^()\n]*\)")
_REASON_FOLLOWS = re.compile(r"([0-9][0-9,.]*%?(?: \w+){0,3}),? (?:because|since)\b")
_OPENING_MINUS = re.compile(r"\A[ $]{0,3}- {1,3}(?=[0-9.])")
_OPENS_LIST = re.compile(r"[:\n]")
_ONE_VALUE = r"(?:[a-z] ?= ?)?-?[$€£]?[0-9]"
_LISTED_VALUES = re.compile(
    rf"{_ONE_VALUE}[0-9.]*%?(?:,[0-9]{{3}})*(?:(?: ?[,;] (?:and )?|,(?![0-9]{{3}})| ?;| and ){_ONE_VALUE}[0-9.,]*[%.]?){{1,9}}\s*\Z"
)
_FORMULA = re.compile(
    r".*(?:(?<![a-zA-Z\\])[a-z](?:\^[0-9])?\s*[-+*]\s*[0-9a-z]|[0-9]\s*[-+*]\s*[0-9]*[a-z](?![a-z]))|[0-9 ]*\\pi\b", re.DOTALL
)
"""Variables in arithmetic: `3x + 4`, `3 + x`, `2\\pi`."""
_CORRECTED_AT_ONCE = re.compile(
    r"""[\s*_]{0,3}not\s{1,3}[^\n]{1,60}?
        (?:(?P<instead>(?:,|;|\.|\s-)?\s{1,3}(?:but(?:\s(?:rather|instead))?|(?:it|that)(?:'s|\sis)|rather)\b)(?![ ]not\b)
        |[.!?](?=\s|\Z)|\n|\Z)""",
    re.VERBOSE,
)
_BLANK = re.compile(r"[\s*]*[_.?\u2026]{2,}")
_LIST_NUMBER = re.compile(r"[.)]\s+[*_]*[^\W\d]")
_AFTER_STEP = re.compile(r"\bsteps? *#?\Z")

NO_REFERENCE = ("", "null")
"""References that expect nothing: replies to these items get no value."""
NOTHING_EXPECTED = "there is no reference"


class Numeric:
    """A scorer: 1 if a reply gives the expected number, within one millionth, else 0."""

    name = "numeric"
    version = 2

    def prepare_item(self, reference: str, options: Sequence[str], settings: ScorerSettings) -> ScoreResponse:
        """See `Scorer`; the reference is a number or a solution that ends in `#### number`; `null`: replies are read but not scored."""
        expected = _parse_expected_number(reference)

        def score(response: WrittenResponse) -> ItemScore:
            read = read_number(response.text, was_cut=response.is_truncated)
            details = {"number": None if read.number is None else convert_to_json_number(read.number)}
            if not reference.strip():
                return ItemScore("unscorable", None, read.read_by, read.flags, details, NOTHING_EXPECTED)
            if read.number is None:
                return ItemScore(UNPARSEABLE_STATUS, flags=read.flags, details=details)
            if expected is None:
                return ItemScore(
                    OK_STATUS, None, read.read_by, read.flags, details, f"{NOTHING_EXPECTED}: the number is read but not scored"
                )
            return ItemScore(OK_STATUS, float(is_same_number(read.number, expected)), read.read_by, read.flags, details)

        return score


def _parse_expected_number(reference: str) -> Fraction | None:
    if reference.strip() in NO_REFERENCE:
        return None
    expected = parse_exact_number(reference.rpartition("####")[2])
    if expected is None:
        raise ItemError(
            "the expected number",
            where="reference",
            arrived=reference[-200:],
            allowed="a number, or a solution with #### and a number",
        )
    return expected


class NumberReading(NamedTuple):
    """The number in a reply, exact, or None if unreadable."""

    number: Fraction | None
    read_by: str | None = None
    flags: tuple[str, ...] = ()


class _StatedNumber(NamedTuple):
    """A number from a marker, a box or a statement, and whether the text continues after it."""

    number: Fraction | None
    continues: bool
    is_blank: bool = False
    is_clear: bool = True
    """As in FoundNumber."""


def read_number(text: str | None, *, was_cut: bool = False) -> NumberReading:
    """Read the number that a reply gives as its answer, by the rules at the top of this file. Never raises."""
    reply = cut_at_end(strip_thinking(text or ""))
    outside = drop_denials(align_text(normalize_euros(strip_programs(reply.text))))
    before = cut_before_next_turn(outside)
    if before is not None and (reading := _read_stated_number(before, was_cut=False)) != NumberReading(None):
        return reading._replace(flags=(*reading.flags, "run_on"))
    was_cut = was_cut and not reply.has_mark
    reading = _read_stated_number(outside, was_cut)
    if was_cut and reading.number is None:
        return NumberReading(None, None, ("truncated",))
    return reading


def _read_stated_number(text: str, was_cut: bool) -> NumberReading:
    lower = align_lower(text)
    for method, candidates in (("marker", _find_marked(text)), ("boxed", _find_boxed_numbers(text))):
        numbers = [entry for entry in candidates if entry.number is not None and (entry.continues or not was_cut)]
        if numbers:
            return _choose_last(numbers, method)
    statements = list(_iterate_statements(text, lower))
    counting = [statement for statement in statements if statement.continues or not was_cut]
    numbers = [statement for statement in counting if statement.number is not None]
    if numbers and not counting[-1].is_blank:
        return _choose_last(numbers, "statement")
    if statements or was_cut:
        return NumberReading(None)
    last = _find_last_number(lower)
    return NumberReading(None) if last is None else _read_as(last.value, "last", is_clear=last.is_clear)


def _choose_last(statements: list[_StatedNumber], method: str) -> NumberReading:
    numbers = [statement.number for statement in statements if statement.number is not None]
    several = any(not is_same_number(number, numbers[-1]) for number in numbers[:-1])
    return _read_as(numbers[-1], method, ("several",) if several else (), is_clear=statements[-1].is_clear)


def _read_as(number: Fraction, method: str, flags: tuple[str, ...] = (), *, is_clear: bool) -> NumberReading:
    return NumberReading(number, method, flags) if is_clear else NumberReading(None, None, ("ambiguous",))


def _find_marked(text: str) -> Iterator[_StatedNumber]:
    for marker in deque(_MARKER.finditer(text), maxlen=_LAST_CUES) if "####" in text else ():
        line = text[marker.end() : marker.end() + _SENTENCE].partition("\n")[0]
        if _HEADING.match(line):
            continue
        stretch = line.partition("####")[0]
        plain = strip_latex(stretch)
        number = _evaluate_stretch(stretch, plain) or read_sentence_number(plain)
        if number and (_BEFORE_MARKED.match(align_lower(plain[: number.start])) or "=" in plain[: number.start]):
            goes_on = _is_continued(plain[number.end :], text, marker.end() + len(line))
            yield _StatedNumber(number.value, goes_on, is_clear=number.is_clear)


def _find_boxed_numbers(text: str) -> Iterator[_StatedNumber]:
    for box in find_boxes(text):
        plain = _join_sign(strip_latex(box.content))
        number = _evaluate_stretch(box.content, plain, is_boxed=True) or read_sentence_number(plain)
        if number:
            yield _StatedNumber(number.value, _is_continued("", text, box.end), is_clear=number.is_clear)


def _evaluate_stretch(raw: str, plain: str, *, is_boxed: bool = False) -> FoundNumber | None:
    r"""Return the value of an arithmetic stretch (`3 \times 4`), unclear if it has none, or None if it is not arithmetic.

    `raw`: unchanged; `plain`: without LaTeX, of a length that fits places. Several values in a box or after a marker (`3, 5`; `x = 3, y =
    5`), and a formula with variables in a box (`3x + 4`), have none.
    """
    if _LISTED_VALUES.match(plain.strip(" $*_")) or (is_boxed and _FORMULA.match(raw)):
        return FoundNumber(Fraction(0), 0, len(plain), is_clear=False)
    stretch = raw.strip(" *_$.")
    behind = stretch.rpartition("=")[2]
    result = evaluate(behind if any(map(str.isdigit, behind)) else stretch, as_formula=is_boxed)
    if result is None:
        return None
    return FoundNumber(result.value or Fraction(0), 0, len(plain), is_clear=result.value is not None)


def _is_continued(tail: str, text: str, place: int) -> bool:
    """Return whether anything but blanks and marks of emphasis follows."""
    return any(part and not part.isspace() for part in (tail.strip("*_$} "), text[place : place + _SENTENCE].strip("*_$} ")))


def _iterate_statements(text: str, lower: str) -> Iterator[_StatedNumber]:
    """Yield the numbers that statements give, from left to right."""
    for cue in deque(find_number_cues(text, lower), maxlen=_LAST_CUES):
        start, end, is_heading = cue[:3]
        begins = end
        if decoration := _DECORATION.match(text, end, end + _SENTENCE):
            begins = decoration.end()
        if not is_heading and "\n\n" in text[end:begins] and not _LEADS_ON.search(text, start, begins):
            begins = end
        if denial := _CORRECTED_AT_ONCE.match(lower, begins, begins + _SENTENCE):
            if denial["instead"] is None:
                yield _StatedNumber(None, True)
                continue
            begins = denial.end()
        ends = _find_end_of_sentence(lower, begins)
        stretch = normalize_points(text[begins:ends]) if cue.has_commas else text[begins:ends]
        sentence = _strip_reasons(strip_latex(stretch))
        if not _OPENS_LIST.search(text, end - 1, begins):
            sentence = _join_sign(sentence)
        number = _evaluate_stretch(_strip_reasons(stretch), sentence) or read_sentence_number(sentence)
        if is_heading and number and _is_working(sentence[: number.start], lower[ends : ends + _SENTENCE]):
            continue
        blank = number is None and _BLANK.match(text, end, end + 20) is not None
        tail = sentence[number.end :] if number else ""
        yield _StatedNumber(
            number.value if number else None, _is_continued(tail, text, ends), blank, number is None or number.is_clear
        )


def _strip_reasons(sentence: str) -> str:
    """Remove equations that only support the sentence's number: `7 (7 = 3 + 4)`, `7 because 3 + 4 = 7`."""
    text = _EQUATION_ASIDE.sub(" ", sentence)
    reason = _REASON_FOLLOWS.search(text)
    return text[: reason.end(1)] + " because" if reason else text


def _join_sign(sentence: str) -> str:
    """Join `- 5` to `-5`, unless it may be a list's dash."""
    return _OPENING_MINUS.sub("-", sentence, count=1)


def _is_working(before: str, behind: str) -> bool:
    """Return whether `Answer:` opens a working: words precede its first number, and more numbers follow its first sentence."""
    return before.strip(" $*_-(") != "" and not _WORKED_OUT.match(behind) and next(find_numbers(behind), None) is not None


def _find_end_of_sentence(lower: str, begins: int) -> int:
    stop = _END_OF_SENTENCE.search(lower, begins, begins + _SENTENCE)
    return stop.start() if stop else min(len(lower), begins + _SENTENCE)


def _find_last_number(lower: str) -> FoundNumber | None:
    """Return the last number; unlikely answers (`one`, numbers of steps, items, decimal places) only if there is no other."""
    hardly: FoundNumber | None = None
    end = len(lower)
    while end > max(0, len(lower) - _LOOKED_BACK):
        start = _find_line_start(lower, end)
        piece = lower[start:end]
        numbers = list(find_numbers(piece))
        for place, number in reversed(list(enumerate(numbers))):
            is_aside = place > 0 and is_stating_precision(piece, numbers[place - 1], number)
            if not is_aside and not _is_implausible(piece, number):
                return compare_with_neighbours(piece, numbers, number, is_stated=False)
            hardly = number if hardly is None else hardly
        end = start
    return hardly


def _find_line_start(lower: str, end: int) -> int:
    """Return the start of the piece that ends here: a line start within the last few thousand characters."""
    start = max(0, end - _PIECE_LENGTH)
    return lower.find("\n", start, end - 1) + 1 or start if start else 0


def _is_implausible(piece: str, token: FoundNumber) -> bool:
    if is_the_word_one(piece, token) or _AFTER_STEP.search(piece, max(0, token.start - 8), token.start):
        return True
    begins = piece.rfind("\n", 0, token.start) + 1
    return (
        token.value <= 30 and not piece[begins : token.start].strip(" *_#") and _LIST_NUMBER.match(piece, token.end) is not None
    )


_CUE = re.compile(
    r"""(?:\banswer\b|\bfinal\s{1,3}(?:number|result)\b)[^\s.:=!?]{0,25}
        (?:[^\S\n]{1,3}[^\s.:=!?]{1,25}){0,8}?
        (?:\s{1,3}(?:is|are|was|equals|becomes|comes\s+to|(?:would|will|should|must|has\s+to)\s+be)\b|[^\S\n*_]{0,3}[*_]{0,3}[:=])""",
    re.VERBOSE,
)
_BARE_CUE = re.compile(r"\banswer[^\w\n]{0,8}\n?[^\w\n]{0,8}(?=[-$0-9\\])")
_LETTERED_LINE = re.compile(r"^[^\S\n]*[*_>]{0,3}A[*_]{0,3}:", re.MULTILINE)
_ASKED_TO = re.compile(r"\b(?:to|can|must|should|could|will|we|i|you|they|he|she|each|students?)[ *]{1,3}\Z")
_LONE_LINE_START = re.compile(r"(?:^|\n)[^\w\n]*(?:the\s+)?(?:(?:final|correct)\s+)?\Z")
_CORRECTS = re.compile(
    r"""\b(?:wait\b|actually,|hold\son|scratch\sthat|correction:|let\sme\sre-?(?:check|calculate|consider|do)|i\smade\san?\s(?:mistake|error)
        |that(?:'s|\sis)\s(?:wrong|not\sright|incorrect))""",
    re.VERBOSE,
)
_CONCLUDES = re.compile(
    r"""\b(?:so|thus|therefore|hence)\b,?\s(?:it|this|that|the\s(?:total|result|number|sum))\s(?:is|must\sbe|should\sbe|equals|becomes)\b
        (?=[\s$*]{1,4}[-0-9])""",
    re.VERBOSE,
)
_NUMBER_TO_THE_END = re.compile(
    r"[$€£*_]{0,4}-?[$€£]?[0-9](?:[0-9,]|\.[0-9]){0,20}%?[*_]{0,3}(?:[.!;,。](?![0-9])|\s{0,3}(?:\n|\Z))"
)
_ENDS_IN_VALUE = re.compile(
    r"""[$€£*_]{0,4}-?[$€£]?[0-9](?:[-0-9,+*/×=()$%]|\.[0-9]|\s(?=[-0-9+*/×=($])){0,40}[*_]{0,3}
        (?:\s(?!more|less|fewer|plus|minus|times|of|from|per|and|or|for|short|off|because|since)[^\W\d_]{1,15}){0,3}[*_]{0,3}
        (?:[.!;,。](?![0-9])|\s{0,3}(?:\n|\Z)|\s(?:because|since)\b)""",
    re.VERBOSE,
)


class NumberCue(NamedTuple):
    """Words that open a statement, with their properties."""

    start: int
    end: int
    is_heading: bool
    """Whether it may be a heading: `Answer:`."""
    has_commas: bool = False
    """Whether numbers after it use decimal commas."""


def find_number_cues(text: str, lower: str) -> Iterator[NumberCue]:
    """Return the cues of statements and corrections, from left to right; `lower` is the text in lower case, of the same length.

    `Answer: the answer is 5` is one statement: a heading gives way to the cue right after it.
    """
    stating = sorted(_find_stating_cues(text, lower))
    correcting = _find_correcting_cues(lower, stating[0].end) if stating else ()
    previous: NumberCue | None = None
    for cue in sorted([*stating, *correcting]):
        if previous and not (previous.is_heading and cue.start - previous.end < 15):
            yield previous
        previous = cue
    if previous:
        yield previous


def _find_stating_cues(text: str, lower: str) -> Iterator[NumberCue]:
    for word in ("answer", "final"):
        last_end, place = 0, lower.find(word)
        while place >= 0:
            match = _match_cue_at(lower, max(0, place - 1), place) if place >= last_end else None
            if match:
                yield NumberCue(place, match.end(), word == "answer" and match[0].endswith(":"))
                last_end = match.end()
            place = lower.find(word, place + len(word))
    for line in _LETTERED_LINE.finditer(text) if "A" in text else ():
        yield NumberCue(line.start(), line.end(), True)
    yield from (NumberCue(cue.start, cue.end, False, cue.has_commas) for cue in find_foreign_cues(lower))


def _find_correcting_cues(lower: str, begins: int) -> Iterator[NumberCue]:
    """Yield `Wait, no, it is 7` after a statement, and `so it is 7` after a correction."""
    for place, is_named in find_corrections(lower, begins):
        if (_ENDS_IN_VALUE if is_named else _NUMBER_TO_THE_END).match(lower, place):
            yield NumberCue(place, place, False)
    if correction := _CORRECTS.search(lower, begins):
        yield from (NumberCue(match.start(), match.end(), False) for match in _CONCLUDES.finditer(lower, correction.end()))


def _match_cue_at(lower: str, before: int, place: int) -> re.Match[str] | None:
    match = _CUE.match(lower, place)
    if _ASKED_TO.search(lower, max(0, place - 15), place):
        return None
    if match:
        return match
    return _BARE_CUE.match(lower, place) if _LONE_LINE_START.search(lower, max(0, place - 30), place) else None


_SIDE_BY_SIDE = re.compile(r"[*_]{0,3}[ \t]+[*_]{0,3}")
_IN_A_WORD = re.compile(r"-[a-z]")
_BY_MEANS_OF = re.compile(r"[ %*_]*\bthrough[ *_]*")
_JOINS_TWO = re.compile(r"%?[*_]{0,3}[ \t]*(?:-|\u2014|\b(?:to|or|through)\b)[ \t]*[*_]{0,3}")
_JOINS_EQUALS = re.compile(r"%?[*_]{0,3}[ \t]+and[ \t]+[*_]{0,3}")
_JOINS_ENDS = re.compile(r"[ %*_]*(?:[a-z]{1,15}[ *_]+)?(?:and|to)[ *_]+")
_OPENS_RANGE = re.compile(r"\b(?:between|from)[ *_]*\Z")
_LONGEST_JOINT = 30
_SAYS_HOW_EXACT = re.compile(
    r"[ %*_,(]{1,5}(?P<words>(?:[a-z]{1,15}[ ,(*_]{1,3}){0,3})to[ ](?:the[ ])?(?P<nearest>nearest[ $]{1,2})?"
)
_PLACES_BEHIND = re.compile(
    r"(?:[ ]\([^()\n]{1,10}\))?[ -](?:(?P<certain>decimals?|significant|sig|d\.?p|s\.?f)|digits?|figures?|places?)\b"
)
_NAMES_IT = re.compile(r"(?:[ ][a-z]{1,15}){0,3}[ *_]{0,4}(?::|,?[ ]namely[,:]?)[ *_$(]{0,5}")


def read_sentence_number(sentence: str) -> FoundNumber | None:
    """Read the number after the last `=`, else the first one; `one` only if there is no other. One of two numbers is not clear."""
    lower = align_lower(sentence)
    numbers = list(find_numbers(lower))
    behind = sentence.rfind("=") + 1
    after = [number for number in numbers if number.start >= behind]
    candidates = [*(after if behind else ()), *numbers]
    stated_number = next((value for value in candidates if not is_the_word_one(sentence, value)), next(iter(candidates), None))
    if stated_number is None:
        return None
    result = compare_with_neighbours(lower, numbers, stated_number, is_stated=True)
    named = None if result.is_clear else _read_number_behind(lower, numbers[numbers.index(stated_number) :])
    return compare_with_neighbours(lower, numbers, named, is_stated=True) if named else result


def compare_with_neighbours(
    lower: str, numbers: Sequence[FoundNumber], stated_number: FoundNumber, *, is_stated: bool
) -> FoundNumber:
    """Return the number; it is not clear if another number is joined to it, before or after. `is_stated`: `and` joins numbers too, asides
    do not."""
    place = numbers.index(stated_number)
    for pair in pairwise(numbers[max(0, place - 1) : place + 2]):
        gap = (pair[0].end, pair[1].start)
        if is_stated and _is_aside(lower, *pair):
            continue
        if _is_pair(lower, *pair) or (
            is_stated and _JOINS_EQUALS.fullmatch(lower, *gap) and not _is_same_in_other_spelling(lower, *pair)
        ):
            return stated_number._replace(is_clear=False)
    return stated_number


def is_the_word_one(text: str, number: FoundNumber) -> bool:
    """Return whether the number is `one`, which is often a pronoun."""
    return number.in_words and number.value == 1 and number.end - number.start == len("one")


def is_stating_precision(lower: str, first: FoundNumber, second: FoundNumber) -> bool:
    """Return whether the second number is the precision of the first: `3.33 to 2 decimal places`, `130, rounded to the nearest 10`."""
    joint = _SAYS_HOW_EXACT.fullmatch(lower, first.end, second.start)
    if joint is None or joint["nearest"]:
        return joint is not None
    places = _PLACES_BEHIND.match(lower, second.end)
    if places is None or places["certain"]:
        return places is not None
    return not joint["words"] and (first.value.denominator > 1 or second.value < first.value)


def _read_number_behind(lower: str, numbers: Sequence[FoundNumber]) -> FoundNumber | None:
    """Read the value that explains the first number, which is not clear: `two dozen, or 24`, `between 5 and 10: 7`; None: there is none."""
    first, *tail = numbers
    if first.in_words and not first.is_clear:
        return next((number for number in tail if number.is_clear and is_same_number(number.value, first.value)), None)
    if len(tail) > 1 and _NAMES_IT.fullmatch(lower, tail[0].end, tail[1].start):
        return tail[1]
    return None


def _is_same_in_other_spelling(lower: str, first: FoundNumber, second: FoundNumber) -> bool:
    """Return whether two numbers are equal in two spellings: `1/2 or 50%`."""
    values = [number.value / 100 if lower[number.end : number.end + 1] == "%" else number.value for number in (first, second)]
    return is_same_number(first.value, second.value) or is_same_number(*values)


def _is_pair(lower: str, first: FoundNumber, second: FoundNumber) -> bool:
    """Whether two numbers are given in place of one: `3 to 5`, `10 - 15`, `3 or 5`, `between 3 km and 5 km`, `five six`."""
    gap = (first.end, second.start)
    if gap[1] - gap[0] > _LONGEST_JOINT or _is_same_in_other_spelling(lower, first, second):
        return False
    if _SIDE_BY_SIDE.fullmatch(lower, *gap):
        return first.in_words == second.in_words and (lower[second.start].isalnum() or lower[second.start] == "-")
    if _OPENS_RANGE.search(lower, max(0, first.start - 12), first.start):
        return _JOINS_ENDS.fullmatch(lower, *gap) is not None
    return _JOINS_TWO.fullmatch(lower, *gap) is not None and not is_stating_precision(lower, first, second)


def _is_aside(lower: str, first: FoundNumber, second: FoundNumber) -> bool:
    """Return whether the second number only describes the first: `10 5-dollar bills`, `10 through 3 steps` (a range ascends)."""
    if _IN_A_WORD.match(lower, second.end):
        return True
    return second.value < first.value and _BY_MEANS_OF.fullmatch(lower, first.end, second.start) is not None
