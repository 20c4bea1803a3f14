r"""Reading the letter that a free reply chooses, and the `exact_choice` scorer.

The first rule that applies decides (`read_by` names it):

1. `statement`: the last explicit statement. Strong ones are `answer is X`, `Answer: X`, `answer (X)`, `X is the answer`,
   `\boxed{X}` (`boxed`), `closest ... is (X)`, and `answer is` with the text of exactly one option (`option_text`). Without
   a strong statement weak ones count: `the correct option is X`, `which is choice (X)`, `I choose X`, `so X` at the end of a line.
   The last one counts because models that see examples answer those first; different ones are flagged `several`. Several letters in
   one statement (`(A) and (B)`, `not only A but also B`) make the reply unparseable (`multi`). Negated letters (`not A`, `neither A
   nor B`, `cannot be A`) are skipped, and the letter after them counts (`not A, it is B`, `not A, B or C. D`). A letter that a later
   statement negates is flagged `denied`;
2. `line`: a letter with a bracket, dot or colon at the start of a line, or alone on it, if all such lines have the same letter
   (a lower-case letter only at the beginning of a short reply); or the one after a list of all options;
3. `alone`: the whole reply is a letter;
4. only in replies below 200 characters, where a match is rarely chance: `lone`, a single isolated capital (`A` and `I` before a
   lower-case letter are words), or a capital after negated ones that is a sentence by itself (`Not A. B.`); then `option_text`,
   the text of exactly one option, if it is not negated (`Not London`).

`Antwort ist C`, `答案是C` and the like (`expressions.py`) are strong statements, `it is not A, it is B` is a weak one. Statements that the
reply corrects (`A. Wait, no, it is C`, `nicht A, sondern C`) do not count (`numeric.py`). Thinking is removed first. A reply ends
before the next question that the model asks itself, flagged `run_on`. A letter beyond the options is not an answer: a reply that ends in
such a statement is unparseable (`outside`). If letter and text disagree (`A) 4`, but 4 is B) the letter counts, flagged `text_mismatch`. In
a reply that the token limit cut off only rules 1 and 2 apply, and only if text follows the letter. Without options the letters are A-D, or
extend to the expected one. Cues are found by plain search and only a bounded stretch around each is examined, so that reading is linear in
the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
from dtef_pipeline.qa.reading.numeric import NO_REFERENCE, NOTHING_EXPECTED, drop_denials
from dtef_pipeline.qa.reading.reply_end import cut_at_end, cut_before_next_turn
from dtef_pipeline.qa.reading.statements import (
    LETTERS_OF_OPTIONS,
    OptionTexts,
    Statement,
    find_denials,
    find_strong_statements,
    find_weak_statements,
    read_letters_at,
)
from dtef_pipeline.text.alignment import align_lower, align_text
from dtef_pipeline.text.plain import strip_thinking

_BELOW_IS_SHORT = 200
_WITHOUT_OPTIONS = 4
_LINE = re.compile(
    r"^[\s*_#>\"'-]{0,10}(?:[(\[{]?([A-Ja-j])[)\]}]?[*_]{0,3}[).:\]](?!\w)|([A-J])[\s*_]{0,5}$)(?! [A-Z]\.)", re.MULTILINE
)
_MAX_LINES = 200
_IS_LETTER = re.compile(r"[^\w]*([A-Ja-j])[^\w]*")
_LONE = re.compile(r"(?<![\w'.-])([A-J])(?![\w'-])(?!\.[A-Z])")
_NEGATED_LETTER = re.compile(
    r"(?:\b(?:not|never|neither|nor|except|cannot)|n't)\s+(?:be\s+)?(?:option |choice )?[(\"'*]{0,3}([A-J])(?!\w)",
    re.IGNORECASE,
)
_NEGATES = re.compile(r"(?:\b(?:not|never|neither|nor|except|cannot)|n't)\s+(?:be\s+)?((?:the\s+)?)", re.IGNORECASE)
_LONE_LAST_LETTER = re.compile(r"[.!?;\n]\s{0,5}[(\"'*]{0,3}([A-J])[^\w]{0,5}\Z")
_FOLLOWING_LOWER_CASE_WORD = re.compile(r"[ \t]+(?!(?:and|or)\s+[A-J]\b|(?:but|nor)\b)[a-z]")
_COUNTS_IN_ROMAN = re.compile(r"\bII\b")
_DANGLING = re.compile(r"answer(?: is|:)\W*\Z")


class LetterReading(NamedTuple):
    """The letter that a reply chooses, or None if unreadable."""

    letter: str | None
    read_by: str | None = None
    flags: tuple[str, ...] = ()


class _LetteredLine(NamedTuple):
    """The letter that begins a line, and its end."""

    letter: str
    end: int


class ExactChoice:
    """A scorer: 1 if the reply chooses the expected letter, else 0."""

    name = "exact_choice"
    version = 2

    def prepare_item(self, reference: str, options: Sequence[str], settings: ScorerSettings) -> ScoreResponse:
        """See `Scorer`; the reference is the letter of an option."""
        expected = reference.strip().upper()
        choices = LETTERS_OF_OPTIONS[: len(options)] if options else LETTERS_OF_OPTIONS
        if expected in NO_REFERENCE or reference.strip() in NO_REFERENCE:
            expected = ""
        elif len(expected) != 1 or expected not in choices:
            raise ItemError("the expected letter", where="reference", arrived=reference[:200], allowed=", ".join(choices))
        letters = len(options) or max(_WITHOUT_OPTIONS, LETTERS_OF_OPTIONS.find(expected) + 1)
        texts = OptionTexts(options)

        def score(response: WrittenResponse) -> ItemScore:
            read = _read(response.text, texts if options else None, letters, was_cut=response.is_truncated)
            details = {"letter": read.letter}
            if not expected:
                return ItemScore("unscorable", None, read.read_by, read.flags, details, NOTHING_EXPECTED)
            if read.letter is None:
                return ItemScore(UNPARSEABLE_STATUS, flags=read.flags, details=details)
            return ItemScore(OK_STATUS, float(read.letter == expected), read.read_by, read.flags, details)

        return score


def _read(text: str | None, texts: OptionTexts | None, count: int, *, was_cut: bool) -> LetterReading:
    choices = LETTERS_OF_OPTIONS[:count]
    reply = cut_at_end(strip_thinking(text or ""))
    body = drop_denials(align_text(reply.text))
    before = cut_before_next_turn(body)
    if before is not None and (reading := _read_reply(before, texts, choices, was_cut=False)) != LetterReading(None):
        return reading._replace(flags=(*reading.flags, "run_on"))
    return _read_reply(body, texts, choices, was_cut=was_cut and not reply.has_mark)


def _read_reply(text: str, texts: OptionTexts | None, choices: str, *, was_cut: bool) -> LetterReading:
    lower = text.lower() if text.isascii() else align_lower(text)
    counting = _select_counting(find_strong_statements(text, lower, texts), text, was_cut)
    counting = counting or _select_counting(find_weak_statements(text, lower), text, was_cut)
    if counting:
        reading = _read_statements(counting, text, texts, choices)
        denial = any(reading.letter in entry.letters for entry in find_denials(text, lower) if entry.end > counting[-1].end)
        return reading._replace(flags=(*reading.flags, "denied")) if denial else reading
    reading = _read_by_line(text, texts, choices, was_cut)
    if reading.letter is None and not was_cut:
        reading = _read_short(text, lower, texts, choices)
    if was_cut and reading.letter is None:
        return LetterReading(None, None, ("truncated",))
    return reading


def _select_counting(statements: list[Statement], text: str, was_cut: bool) -> list[Statement]:
    return [statement for statement in statements if _is_followed(text, statement.end)] if was_cut else statements


def _is_followed(text: str, end: int) -> bool:
    return end < len(text) and not text[end : end + 200].isspace()


def _read_statements(statements: list[Statement], text: str, texts: OptionTexts | None, choices: str) -> LetterReading:
    last = statements[-1]
    if len(last.letters) > 1:
        return LetterReading(None, None, ("multi",))
    letter = last.letters[0]
    if letter not in choices:
        return LetterReading(None, None, ("outside",))
    flags = ("several",) if any(statement.letters != last.letters for statement in statements) else ()
    return LetterReading(letter, last.read_by, (*flags, *_flag_mismatch(letter, text, last.end, texts)))


def _flag_mismatch(letter: str, text: str, end: int, texts: OptionTexts | None) -> tuple[str, ...]:
    """Return a flag if another option's text follows the letter."""
    if texts is None or (text[end : end + 1] in (".", "") and text[end - 1 : end] in ")]}"):
        return ()
    named = texts.match_start(text[end : end + 300], is_whole=True)
    return ("text_mismatch",) if named and LETTERS_OF_OPTIONS.index(letter) not in named else ()


def _read_by_line(text: str, texts: OptionTexts | None, choices: str, was_cut: bool) -> LetterReading:
    lines = list(_find_lettered_lines(text, choices, was_cut))
    letters = {line.letter for line in lines}
    if len(letters) > 1 and (pick := _find_behind_options(text, lines, texts, choices)):
        return LetterReading(pick.letter, "line")
    if len(letters) != 1:
        return LetterReading(None, None, ("multi",) if letters else ())
    letter, end = lines[0]
    if not text[end:].strip() and _IS_LETTER.fullmatch(text.strip()):
        return LetterReading(letter, "alone")
    return LetterReading(letter, "line", _flag_mismatch(letter, text, end, texts))


def _find_lettered_lines(text: str, choices: str, was_cut: bool) -> Iterator[_LetteredLine]:
    """Yield the lines that begin with an option's letter."""
    for number, line in enumerate(_LINE.finditer(text)):
        letter = line[1] or line[2]
        if number == _MAX_LINES or (letter.islower() and (number or len(text.strip()) >= _BELOW_IS_SHORT)):
            break  # `a)` in a long reply is a part of the task
        letter = letter.upper()
        if (
            letter in choices
            and not (letter == "I" and _COUNTS_IN_ROMAN.search(text))
            and (_is_followed(text, line.end()) or not was_cut)
        ):
            yield _LetteredLine(letter, line.end())


def _find_behind_options(
    text: str, lines: list[_LetteredLine], texts: OptionTexts | None, choices: str
) -> _LetteredLine | None:
    """Return the single lettered line after a repetition of all options, if it is only a letter or a letter with the text of its option."""
    if texts is None or len(lines) != len(choices) + 1 or "".join(line.letter for line in lines[:-1]) != choices:
        return None
    last = lines[-1]
    tail = text[last.end : last.end + 300].partition("\n")[0]
    named = texts.match_start(tail, is_whole=True)
    return last if not tail.strip("*_ ") or LETTERS_OF_OPTIONS.index(last.letter) in named else None


def _read_short(text: str, lower: str, texts: OptionTexts | None, choices: str) -> LetterReading:
    reply = text.strip()
    if len(reply) >= _BELOW_IS_SHORT:
        return LetterReading(None)
    if match := _IS_LETTER.fullmatch(reply):
        letter = match[1].upper()
        return LetterReading(letter, "alone") if letter in choices else LetterReading(None, None, ("outside",))
    if _DANGLING.search(lower):
        return LetterReading(None)
    lone = set(_find_lone_letters(reply)) & set(choices)
    last = _LONE_LAST_LETTER.search(reply, max(0, len(reply) - 20)) if len(lone) > 1 else None
    if last and lone - set(_find_negated_letters(reply)) == {last[1]}:
        return LetterReading(last[1], "lone")
    if len(lone) > 1 or (lone and _NEGATED_LETTER.search(reply)):
        return LetterReading(None, None, ("multi",) if len(lone) > 1 else ())
    if lone:
        return LetterReading(lone.pop(), "lone")
    named = texts.find_named_options(reply) if texts else set()
    if texts and len(named) == 1 and not named & _find_negated_texts(reply, texts):
        return LetterReading(LETTERS_OF_OPTIONS[named.pop()], "option_text")
    return LetterReading(None, None, ("multi",) if len(named) > 1 else () if reply else ("empty",))


def _find_negated_letters(text: str) -> Iterator[str]:
    """Yield the letter of `not A`, and all joined to it: `not A, B or C`."""
    for match in _NEGATED_LETTER.finditer(text):
        group = read_letters_at(text, match.start(1))
        yield from group.letters if group else match[1].upper()


def _find_negated_texts(text: str, texts: OptionTexts) -> set[int]:
    """Return the options in `not London`, `neither the sea nor the sky`."""
    places = (place for match in _NEGATES.finditer(text) for place in (match.start(1), match.end()))
    return {number for place in places for number in texts.match_start(text[place:])}


def _find_lone_letters(text: str) -> Iterator[str]:
    counts = _COUNTS_IN_ROMAN.search(text)
    for match in _LONE.finditer(text):
        if match[1] == "I" and counts:
            continue
        if match[1] not in "AI" or not _FOLLOWING_LOWER_CASE_WORD.match(text, match.end()):
            yield match[1]
