"""Statements of a reply that name the chosen option, by its letter or by its text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from dtef_pipeline.qa.reading.expressions import find_boxes, find_foreign_cues, strip_latex
from dtef_pipeline.qa.reading.numeric import find_corrections
from dtef_pipeline.text.plain import normalise_text

_MARKS = " .,;:!?\n"
_JOINT_OF_TEXTS = re.compile(r",? (?:and|or) ")
_IN_A_NUMBER = "-^/*+.,"


class OptionTexts:
    """The texts of an item's options, compared without case, quotes, emphasis and outer punctuation; inner punctuation counts."""

    def __init__(self, options: Sequence[str]) -> None:
        self._options = tuple(options)

    @cached_property
    def _texts(self) -> list[tuple[str, int]]:
        """Plain texts and numbers of options, longest first."""
        texts = [(normalise_text(option).strip(_MARKS), number) for number, option in enumerate(self._options)]
        return sorted(((text, number) for text, number in texts if text), key=lambda pair: -len(pair[0]))

    def find_named_options(self, stretch: str) -> set[int]:
        """Return the numbers of the options whose whole texts occur in the stretch; the longest text wins a place."""
        remainder = normalise_text(stretch)
        named: set[int] = set()
        for text, number in self._texts:
            place = _find_whole_words(text, remainder)
            if place >= 0:
                named.update(index for option, index in self._texts if option == text)
                remainder = remainder[:place] + "\0" * len(text) + remainder[place + len(text) :]
            elif text in remainder:
                named.discard(number)
        return named

    def match_start(self, stretch: str, *, is_whole: bool = False) -> set[int]:
        """Return the numbers of the options with the longest text at the start of the stretch, and of an option that `or` joins to it.

        `is_whole`: only if a sentence or line ends after the text.
        """
        tail = normalise_text(stretch).lstrip(_MARKS + "(")
        for text, _ in self._texts:
            if (
                tail.startswith(text)
                and _is_end(tail, len(text))
                and (not is_whole or tail[len(text) :].lstrip(" )")[:1] in ("", *_MARKS))
            ):
                joint = _JOINT_OF_TEXTS.match(tail, len(text))
                return {
                    number
                    for option, number in self._texts
                    if option == text
                    or (joint and tail.startswith(option, joint.end()) and _is_end(tail, joint.end() + len(option)))
                }
        return set()


def _is_end(text: str, end: int) -> bool:
    """Return whether no word or number continues here."""
    after = text[end : end + 1]
    if not after or not text[end - 1].isalnum():
        return True
    return not (after.isalnum() or after in "%^" or (after in ".," and text[end + 1 : end + 2].isdigit()))


def _find_whole_words(text: str, stretch: str) -> int:
    """Find the text as whole words; -1: not found. Only the first fifty places are tried."""
    place, attempts = stretch.find(text), 0
    while place >= 0 and attempts < 50:
        before = stretch[place - 1 : place]
        is_begin = (
            not before or not text[0].isalnum() or not (before.isalnum() or (text[0].isdigit() and before in _IN_A_NUMBER))
        )
        if is_begin and _is_end(stretch, place + len(text)):
            return place
        place, attempts = stretch.find(text, place + 1), attempts + 1
    return -1


LETTER_OPENING = r"(?:[\s*_\"'`$(\[{<]|\\(?:text|textbf|mathrm|mathbf|boxed|rm|bf)?\s?\{|\\[(\[]){0,12}"
"""Characters that may separate a cue and its letter."""
LETTER_CLOSING = r"[)\]}>*_\"'`$]{0,6}"
_ONE_LETTER = re.compile(
    rf"({LETTER_OPENING})([A-J](?!(?![\u3040-\u30ff\u4e00-\u9fff])\w|['-]\w)|[a-j](?=[)\]}}*.,;:!\"'$]|\s*\Z|\s*\n))({LETTER_CLOSING})"
)
_JOINED = re.compile(
    r"\s{0,3}(?:,\s{0,3}(?:and|or)?|and(?:/or)?|or|&|/|\+)\s{0,3}(?:also\s)?(?:(?:the\s)?(?:option|choice|answer|letter)s?\s)?"
)
_PREDICATE_FOLLOWS = re.compile(r"\s{1,3}(?:is|was|isn|has|would|does|cannot|can|could|states?|says)\b")
_LOWER_CASE_WORD_FOLLOWS = re.compile(r"[ \t]+([a-z]+)")
_AFTER_A_LETTER = {
    "because", "since", "as", "and", "or", "nor", "but", "which", "with", "due", "given", "while", "is", "in", "per", "though", "if", "so",
    "where", "when", "that", "rather", "instead", "not", "by", "from", "for", "according", "based", "assuming", "the", "it", "was",
    "will", "would", "can",
}  # fmt: skip
_MAX_LETTERS = 12


class NamedLetters(NamedTuple):
    """The letters that one place names, in capitals, and their start and end including brackets."""

    letters: tuple[str, ...]
    start: int
    end: int
    is_bare: bool
    """Whether no bracket closes the last one."""


def read_letters_at(text: str, place: int) -> NamedLetters | None:
    """Return the letters A-J at a place after optional brackets and emphasis; several if joined; None if none."""
    first = _match_letter_at(text, place)
    if first is None:
        return None
    letters, end = [first[2].upper()], first.end()
    while len(letters) < _MAX_LETTERS and (joint := _JOINED.match(text, end)):
        following = _match_letter_at(text, joint.end())
        if following is None or _PREDICATE_FOLLOWS.match(text, following.end()):
            break
        letters.append(following[2].upper())
        end = following.end()
    return NamedLetters(tuple(dict.fromkeys(letters)), first.start(2), end, not first[3].strip("*_ "))


def _match_letter_at(text: str, place: int) -> re.Match[str] | None:
    match = _ONE_LETTER.match(text, place)
    return None if match is None or is_a_word(text, match) else match


def is_a_word(text: str, match: re.Match[str]) -> bool:
    """Return whether the `A` or `I` of a match is a word: the lower-case word after it cannot follow an option's letter."""
    if match[2] not in "AI" or match[3]:
        return False
    following = _LOWER_CASE_WORD_FOLLOWS.match(text, match.end(2))
    return following is not None and following[1] not in _AFTER_A_LETTER


LETTERS_OF_OPTIONS = "ABCDEFGHIJ"
_LAST_PLACES = 60
"""Number of places of a cue that are examined, counted from the end: a bound for hostile text."""
_VERB = re.compile(
    r"""answers?\b[*_"')\]]{0,4}(?:[^\S\n]{1,3}[^\s.:=!?]{1,25}){0,8}?
        (?:\s{1,3}(?P<verb>is|are|was|(?:would|will|should|must|has\s+to)\s+be)
            (?P<negated>n't\b|\s+n[o']t\b|\s+(?:neither|none|never)\b|\b)
          |[^\S\n]{0,3}["*_]{0,4}(?:[:=]|->|→))[ \t]{0,3}""",
    re.VERBOSE,
)
_CANNOT_BE = re.compile(
    r"""answers?\b[*_"')\]]{0,4}(?:[^\S\n]{1,3}[^\s.:=!?]{1,25}){0,8}?
        \s{1,3}(?P<negated>(?:would|will|should|must|could|can|ca|wo|may|might)(?:n't|\s{0,3}not|\s{1,3}never)\s{1,3}be\b)[ \t]{0,3}""",
    re.VERBOSE,
)
_FILLER = re.compile(
    r"""(?:[\s*_:,]{0,4}\b(?:most\s+likely|probably|likely|clearly|therefore|thus|hence|definitely|simply|obviously|actually|still|then|indeed|also
        |the\s+closest\s+to|closest\s+to|closest|nearest\s+to|given\s+by|option|choice|letter|answer|statement|alternative|response|correct|both
        |either|the|as\s+follows)s?\b[\s:,]{0,4}){1,4}""",
    re.VERBOSE | re.IGNORECASE,
)
_DENIED = re.compile(
    r"(?:\s{1,3}not|,\s{0,3}not|(?:,\s{0,3}|\s{1,3})(?:(?:and|or|nor)\s{1,3}not|nor))\s{1,3}(?:the\s)?(?:(?:option|choice|answer|letter)\s)?"
)
_OF_OPTION = re.compile(r"\s{0,3}(?:the\s)?(?:option|choice|answer|letter)\s")
_NOT_ONLY = re.compile(r"\s{0,3}(?:only|just|merely|simply|solely)\s(?:(?:option|choice|answer|letter)\s)?")
_MAX_DENIED = 9
_CONTRAST_FOLLOWS = re.compile(
    r"""\s{0,3}[,;.:-]{0,2}\s{0,3}(?:but|rather|instead|(?:it|this|that)(?:\s{1,3}is|'s|\s{1,3}(?:must|would|will|should|has\sto)\sbe))\b
        (?:,?\s{1,3}(?:rather|instead|actually|also|it|this|that|is|option|choice|it's)\b){0,4},?""",
    re.VERBOSE | re.IGNORECASE,
)
_SENTENCE_OF_ONE = re.compile(
    rf"[^\S\n]{{0,3}}[.;!]\s{{1,3}}(?={LETTER_OPENING}[A-J]{LETTER_CLOSING}[.!]?{LETTER_CLOSING}[^\S\n]{{0,9}}(?:\n|\Z))"
)
_DIRECT = re.compile(r"(?i:answers?(?:[ ](?:choice|option|letter))?)[*_: ]{0,4}(?=[(\[A-J*])")
_ENDS_STATEMENT = re.compile(r"\s*(?:[.,;:!?)。]|\Z|\n)")
_PREDICATE_OF_STATEMENT = re.compile(
    r"\s{1,3}(?:is|was|isn|would|does|do|cannot|can|could|has|states?|suggests?|refers?|describes?)\b"
)
_BECAUSE = re.compile(r"\s{1,3}(?:because|since)\b")
_REVERSED = re.compile(
    r"""(?:^|[\s(*"\[])(?:[(\[*"]{0,3}([A-J])(?P<closed>[).:*"\]]{0,4})(?P<between>(?:\s[^.\n;]{0,60})?))
        \s(?:is|must\sbe|would\sbe|should\sbe)\s(?:therefore\s|thus\s)?the\s
        (?:(?:most|correct|right|best|only|likely|appropriate|accurate|final|closest)\s){0,3}\Z""",
    re.VERBOSE,
)
_CLOSEST = re.compile(
    r"closest\b(?:[^\n.]|\.\d){0,100}?\b(?:is|to|:)\s{0,3}(?:option |choice |answer )?(?=\(?[*_]{0,3}\(?[A-J]\b)"
)
_END_OF_STATEMENT = re.compile(r"\n|[.!?](?=\s|\Z)")
_OPTION = r"(?:option|choice|letter|statement)"
_OPTION_CUES = ("option", "choice", "letter", "statement")
_CHOOSING_CUES = ("choose", "chose", "select", "pick", "go with", "say")
_SO_CUES = ("so", "therefore", "thus", "hence", "consequently", "leaving", "which leaves")
_LETTER_AHEAD = rf"(?={LETTER_OPENING}[A-J]\b)"
_AFTER_OPTION = re.compile(rf"{_OPTION}\s*(?P<verb>is\b|:|=)?\s*(?:{_OPTION}\s+)?{_LETTER_AHEAD}", re.IGNORECASE)
_BEFORE_STATED = re.compile(r"\b(?:correct|right|best|appropriate|closest|suitable|accurate)\s+\Z")
_BEFORE_CHOSEN = re.compile(
    r"(?:\b(?:is|be|choose|chose|select|pick|with|so|therefore|thus|hence),?\s+(?:the\s+)?|(?:^|\n)[^\w\n]{0,6})\Z"
)
_CALLED_CORRECT = re.compile(
    r"\s+(?:is|must be|seems|appears)\s+(?:therefore\s+)?(?:the\s+)?(?:most\s+)?(?:correct|right|best|accurate|appropriate)\b"
)
_BEFORE_NOT = re.compile(r"\b(?:it|this|that)(?:'s|\s{1,3}is)\Z")
_CHOSEN_IN_CHINESE = re.compile(r"[\u9009\u9078](?:[\u62e9\u64c7])?[\s:]{0,3}(?=[(\[*]{0,3}[A-J])")
_AFTER_CHOOSING = re.compile(rf"(?:choose|chose|select|pick|go with|say)\s+{_LETTER_AHEAD}", re.IGNORECASE)
_BEFORE_CHOOSING = re.compile(r"\b(?:i|we)(?:'d| would| will|'ll)?\s+\Z")
_AFTER_SO = re.compile(
    rf"""(?:so|therefore|thus|hence|consequently|(?:leaving|which\sleaves)(?:\s(?:us|only|with)){{0,3}})[,:]?\s{{1,3}}
        (?:(?:it|this)(?:'s|\sis|\smust\sbe)\s{{1,3}})?
        (?={LETTER_OPENING}[A-J]{LETTER_CLOSING}
            (?:[.!]?[^\S\n]{{0,9}}(?:\n|\Z)
            |\s(?:(?:is|must\sbe)\s(?:the\s)?(?:most\s)?(?:correct|right|best|appropriate|answer)|because|since)\b))""",
    re.IGNORECASE | re.VERBOSE,
)


class Statement(NamedTuple):
    """The letters that one statement names (capitals; several: undecided), its start and end, and the rule that read it."""

    start: int
    end: int
    letters: tuple[str, ...]
    read_by: str = "statement"


class Denial(NamedTuple):
    """The letters that a statement rules out, and its end."""

    letters: tuple[str, ...]
    end: int


def find_strong_statements(text: str, lower: str, texts: OptionTexts | None) -> list[Statement]:
    """Return statements with `answer`, boxes and `closest`, in order; `lower` is the text in lower case, of the same length."""
    statements: list[Statement] = []
    if "answer" in lower:
        statements += _find_answer_statements(text, lower, texts)
    for cue in find_foreign_cues(lower):
        statements += _read_named_letters(text, cue.end)
    if "closest" in lower:
        statements += _find_closest_statements(text, lower)
    if "box" in lower or "oxed" in lower:
        statements += _find_boxed_options(text, texts)
    if statements:
        statements += _take_backs(text, lower, min(statements).end)
    return sorted(set(statements))


def find_weak_statements(text: str, lower: str) -> list[Statement]:
    """Return statements with `option` and `choice`, `I choose X`, `so X` at the end of a line, and `it is not X, it is Y`, in order."""
    return sorted(
        {
            *_find_option_statements(text, lower),
            *_find_choosing(text, lower),
            *_find_corrections_in_text(text, lower),
            *_take_backs(text, lower, 0),
        }
    )


def _take_backs(text: str, lower: str, begins: int) -> Iterator[Statement]:
    """Yield `Wait, no, it is C`, if the sentence ends or gives its reason there."""
    for place, _ in find_corrections(lower, begins):
        letters = read_letters_at(text, filler.end() if (filler := _FILLER.match(text, place)) else place)
        if letters and (_ENDS_STATEMENT.match(text, letters.end) or _BECAUSE.match(lower, letters.end)):
            yield Statement(letters.start, letters.end, letters.letters)


def _find_option_statements(text: str, lower: str) -> Iterator[Statement]:
    for place in (place for cue in _OPTION_CUES for place in _find_cue_places(cue, lower)):
        cue = _AFTER_OPTION.match(text, place)
        letters = read_letters_at(text, cue.end()) if cue else None
        if cue is None or letters is None:
            continue
        match = _CALLED_CORRECT.match(lower, letters.end)
        before = _BEFORE_STATED if cue["verb"] else _BEFORE_CHOSEN
        if match or (before.search(lower, max(0, place - 25), place) and not _PREDICATE_OF_STATEMENT.match(lower, letters.end)):
            yield Statement(letters.start, letters.end, letters.letters)


def _find_choosing(text: str, lower: str) -> Iterator[Statement]:
    """Yield `I choose X`, and `so X` at a line's end."""
    for place in (place for cue in _CHOOSING_CUES for place in _find_cue_places(cue, lower)):
        cue = _AFTER_CHOOSING.match(text, place)
        if cue and _BEFORE_CHOOSING.search(lower, max(0, place - 12), place):
            yield from _read_named_letters(text, cue.end())
    for place in (place for cue in _SO_CUES for place in _find_cue_places(cue, lower)):
        cue = None if lower[place - 1 : place].isalnum() else _AFTER_SO.match(text, place)
        if cue and (letters := read_letters_at(text, cue.end())):
            yield Statement(letters.start, letters.end, letters.letters)


def _find_corrections_in_text(text: str, lower: str) -> Iterator[Statement]:
    """Yield `it is not A, it is B`, and Chinese `选 B`."""
    for place in _find_cue_places(" not ", lower):
        is_stated = _BEFORE_NOT.search(lower, max(0, place - 12), place)
        denial = _read_denied_letters(text, _DENIED.match(text, place)) if is_stated else None
        corrected = _read_corrected(text, denial.end) if denial else None
        if corrected:
            yield corrected
    for match in islice(_CHOSEN_IN_CHINESE.finditer(text), _LAST_PLACES):
        yield from _read_named_letters(text, match.end())


def _read_named_letters(text: str, place: int) -> Iterator[Statement]:
    letters = read_letters_at(text, place)
    if letters and not _PREDICATE_OF_STATEMENT.match(text, letters.end):
        yield Statement(letters.start, letters.end, letters.letters)


def _find_cue_places(cue: str, lower: str) -> list[int]:
    """Return the last places of a cue, from left to right."""
    places: list[int] = []
    place = lower.rfind(cue)
    while place >= 0 and len(places) < _LAST_PLACES:
        places.append(place)
        place = lower.rfind(cue, 0, place)
    return places[::-1]


def _find_answer_statements(text: str, lower: str, texts: OptionTexts | None) -> Iterator[Statement]:
    for place in _find_cue_places("answer", lower):
        statement = _read_answer_at(text, lower, place, texts) or _read_reversed(text, place)
        if statement:
            yield statement


def _read_answer_at(text: str, lower: str, place: int, texts: OptionTexts | None) -> Statement | None:
    verb: re.Match[str] | None = None
    for verb in _match_verbs(lower, place):
        denial = _read_denial(text, verb)
        corrected = _read_corrected(text, denial.end) if denial else None
        if corrected or (denial and verb.re is _VERB):
            return corrected
    if verb is None or verb.re is _CANNOT_BE:
        return _read_direct(text, place)
    if verb["negated"]:
        return _read_not_only(text, verb.end())
    begins = verb.end()
    letters = read_letters_at(text, begins)
    if letters is None and (filler := _FILLER.match(text, begins)):
        letters = read_letters_at(text, filler.end())
    if texts and (letters is None or (letters.is_bare and text[letters.end : letters.end + 1] == ".")):
        named = _read_option_text(text, begins, texts, letters)
        if named:
            return named
    return Statement(letters.start, letters.end, letters.letters) if letters else _read_direct(text, place)


def _match_verbs(lower: str, place: int) -> list[re.Match[str]]:
    """Match the verb of the statement here, and a preceding `cannot be`."""
    verb, cannot = _VERB.match(lower, place), _CANNOT_BE.match(lower, place)
    if cannot and verb and cannot.end() > verb.end():
        cannot = None
    return [match for match in (cannot, verb) if match]


def find_denials(text: str, lower: str) -> Iterator[Denial]:
    """Return the letters that statements with `answer` rule out, from left to right."""
    for place in _find_cue_places("answer", lower):
        denials = (denial for verb in _match_verbs(lower, place) if (denial := _read_denial(text, verb)))
        yield from islice(denials, 1)


def _read_denial(text: str, verb: re.Match[str]) -> Denial | None:
    """Read `not A`, `not A, not B`, `neither A nor B`, `n't A`, after a statement's verb."""
    begins = verb.end()
    if verb["negated"]:
        return _read_letters_denied_at(text, opening.end() if (opening := _OF_OPTION.match(text, begins)) else begins)
    return _read_denied_letters(text, _DENIED.match(text, begins))


def _read_denied_letters(text: str, opening: re.Match[str] | None) -> Denial | None:
    return _read_letters_denied_at(text, opening.end()) if opening else None


def _read_letters_denied_at(text: str, begins: int) -> Denial | None:
    letters: list[str] = []
    end = begins
    for _ in range(_MAX_DENIED):
        named = read_letters_at(text, begins)
        if named is None:
            break
        letters += named.letters
        end = named.end
        match = _DENIED.match(text, end)
        if match is None:
            break
        begins = match.end()
    return Denial(tuple(letters), end) if letters else None


def _read_corrected(text: str, place: int) -> Statement | None:
    """Read the answer given instead: `(not A), it is B`, `(not A) but B`, `(not A). B`."""
    instead = _CONTRAST_FOLLOWS.match(text, place) or _SENTENCE_OF_ONE.match(text, place)
    letters = read_letters_at(text, instead.end()) if instead else None
    return Statement(letters.start, letters.end, letters.letters) if letters else None


def _read_not_only(text: str, place: int) -> Statement | None:
    """Read `(not) only A but also B` as both."""
    only = _NOT_ONLY.match(text, place)
    letters = read_letters_at(text, only.end()) if only else None
    if letters is None:
        return None
    addition = _CONTRAST_FOLLOWS.match(text, letters.end)
    also = read_letters_at(text, addition.end()) if addition else None
    all_letters = (*letters.letters, *(also.letters if also else ()))
    return Statement(letters.start, also.end if also else letters.end, tuple(dict.fromkeys(all_letters)))


def _read_direct(text: str, place: int) -> Statement | None:
    """Read `answer (F)`, `answer F.`; not `answer (F) would be`."""
    cue = _DIRECT.match(text, place)
    letters = read_letters_at(text, cue.end()) if cue else None
    if letters is None or _PREDICATE_OF_STATEMENT.match(text, letters.end):
        return None
    if letters.is_bare and not _ENDS_STATEMENT.match(text, letters.end):
        return None
    return Statement(letters.start, letters.end, letters.letters)


def _read_option_text(text: str, begins: int, texts: OptionTexts, letters: NamedLetters | None) -> Statement | None:
    """Return the one option whose text the statement gives. A bare letter with a dot (`C. elegans`) yields only to a text that begins with
    it.
    """
    end = _END_OF_STATEMENT.search(text, begins + 1 if text[begins : begins + 1] == "\n" else begins, begins + 400)
    stretch = text[begins : end.start() if end else begins + 400]
    named = texts.match_start(text[begins : begins + 400])
    if letters is not None:
        named = {number for number in named if number != LETTERS_OF_OPTIONS.find(letters.letters[0])}
    elif len(named) != 1:
        named = texts.find_named_options(stretch)
    if len(named) != 1:
        return None
    return Statement(begins, begins + len(stretch), (LETTERS_OF_OPTIONS[named.pop()],), "option_text")


def _read_reversed(text: str, place: int) -> Statement | None:
    """Read `(C) is the correct answer`."""
    cue = _REVERSED.search(text, max(0, place - 110), place)
    if cue is None or (cue["between"] and not cue["closed"]):
        return None
    return Statement(cue.start(1), place + len("answer"), (cue[1],))


def _find_closest_statements(text: str, lower: str) -> Iterator[Statement]:
    for place in _find_cue_places("closest", lower):
        cue = _CLOSEST.match(text, place)
        letters = read_letters_at(text, cue.end()) if cue else None
        if letters and (not letters.is_bare or _ENDS_STATEMENT.match(text, letters.end)):
            yield Statement(letters.start, letters.end, letters.letters)


def _find_boxed_options(text: str, texts: OptionTexts | None) -> Iterator[Statement]:
    for box in find_boxes(text):
        content = strip_latex(box.content).strip()
        letters = read_letters_at(content, 0)
        named = texts.match_start(content, is_whole=True) if texts else set()
        if letters and (
            content[letters.end :].strip(" .") == ""
            or content[letters.end : letters.end + 1] in (".", ":")
            or not letters.is_bare
        ):
            yield Statement(box.start, box.end, letters.letters, "boxed")
        elif len(named) == 1:
            yield Statement(box.start, box.end, (LETTERS_OF_OPTIONS[named.pop()],), "boxed")
