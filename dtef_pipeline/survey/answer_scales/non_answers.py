"""Answer options that do not answer the question: don't know, refused, not applicable, and codes that only the interviewer records.

They have no position on a scale. Some phrases are answers among certain others (`not sure` below `very sure`): `find_word_of_degree`
returns the word that shows this.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

from dtef_pipeline.identity import normalize_text
from dtef_pipeline.survey.answer_scales.opposites import TABLES

Role = Literal["substantive", "dont_know", "refused", "volunteered"]
"""What an option is: an answer, or one of three that have no place on the scale; volunteered ones are not read to respondents."""
OPTION_ROLES: tuple[Role, ...] = get_args(Role)

_NOT_READ_OUT = (
    r"(?:vol(?:\.|unteered)?|do not read(?: out)?|don't read(?: out)?|not read(?: out)?|dnr|spontaneous(?:ly)?|spont\.?)"
)
_MARK_OF_NOT_READ = re.compile(
    rf"[(\[{{]\s*{_NOT_READ_OUT}\s*[.:]?\s*[)\]}}]|^{_NOT_READ_OUT}\s*[:–—-]|\s[–—-]\s{_NOT_READ_OUT}\Z|\svol\.?\Z"
)
"""`(VOL)`, `[DO NOT READ]`, `DO NOT READ: ...`, `... - volunteered`."""

_WORDS = TABLES["non_answers"]


def _fill_fragments(pattern: str) -> str:
    for name, fragment in _WORDS["fragments"].items():
        pattern = pattern.replace(f"<{name}>", fragment)
    return pattern


_COMPILED = [
    (re.compile(_fill_fragments(phrase)), re.compile(rf"\b(?:{_fill_fragments(words[0])})\b") if words else None)
    for phrase, *words in _WORDS["phrases"]
]
"""Patterns of phrases, each with the word by which it is an answer where another option has it too, or None."""
_ABBREVIATED = (
    (r"\bn/a\b", "na"),
    (r"\bn\.?s\.?\s?[/-]\s?n\.?c\.?(?!\w)", "nsnc"),
    (r"\bn\.?s\.?\s?[/-]\s?n\.?r\.?(?!\w)", "nsnr"),
)
_CODE_OF_LABEL = re.compile(r"^-?\d{1,4}[.):]?\s+(?=\D)")
"""The code before a label: `99 Refused`."""
_BESIDE_A_PHRASE = re.compile(
    r"(?:it |this |that )?(?:all )?depends\b.*|multiple answers\b.*|other|nr|nc|it's hard\b.*|it is hard\b.*|don't care"
    r"|none of (?:the above|these|those|them)"
)
"""Texts that may be added to a phrase: `Unsure / It depends on the specifics`, `Other/Don't know`."""
_SEPARATOR = re.compile(r"\s*(?:[/;,|()\[\]]|\b(?:or|and|ou|et|oder|und|o|y|e)\b|\s[–—-]\s)\s*")

_UNSURE = re.compile(
    r"(?:i'm |i am )?(?:not sure|unsure|not certain|uncertain|undecided)|(?:it's |it is )?hard to say|(?:i have )?no opinion"
)

_OTHER_LANGUAGES = re.compile("|".join(map(normalize_text, _WORDS["other_languages"])))


def is_non_answer(text: str) -> bool:
    """Return whether an option by itself is a non-answer: `DK/Refused`, `Missing; Not available`, `Other (VOL)`, `No sabe / No contesta`."""
    plain = _strip_label_code(text)
    return bool(_MARK_OF_NOT_READ.search(plain)) or _is_phrase(plain)


def can_be_middle(text: str) -> bool:
    """Return whether a non-answer may mean a position between two answers, such as `not sure` and `hard to say`, rather than no answer."""
    plain = _strip_label_code(text)
    return not _MARK_OF_NOT_READ.search(plain) and bool(_UNSURE.fullmatch(plain))


def find_word_of_degree(text: str) -> re.Pattern[str] | None:
    """Return the word that makes a non-answer an answer if other options contain it, such as `sure` of `not sure`, or None without such a
    word.
    """
    plain = _strip_label_code(text)
    return next((word for pattern, word in _COMPILED if pattern.fullmatch(plain)), None)


def _strip_label_code(text: str) -> str:
    text = normalize_text(text).replace("’", "'").replace("‘", "'").rstrip(" .,!。")
    for pattern, short in _ABBREVIATED:
        text = re.sub(pattern, short, text)
    return _CODE_OF_LABEL.sub("", text)


def _is_phrase(plain: str) -> bool:
    if _is_one(plain):
        return True
    first, *tail = [part.strip(" .'\"") for part in _SEPARATOR.split(plain) if part.strip(" .'\"")] or [""]
    if re.fullmatch(r"(?:other )?missing", first):
        return True
    parts = [_is_one(part) for part in (first, *tail)]
    return any(parts) and all(
        is_known or _BESIDE_A_PHRASE.fullmatch(part) for is_known, part in zip(parts, (first, *tail), strict=True)
    )


def _is_one(phrase: str) -> bool:
    return bool(_OTHER_LANGUAGES.fullmatch(phrase)) or any(pattern.fullmatch(phrase) for pattern, _ in _COMPILED)
