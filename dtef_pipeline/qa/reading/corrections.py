"""Corrections within a reply: `5. Wait, no, it is 7`, and `not 5 but 7` in other languages than English."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

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
_MOST_CORRECTIONS = 200
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
    for opening in islice(_BEGIN_OF_CORRECTION.finditer(lower, begins), _MOST_CORRECTIONS):
        end = opening.end()
        subject = _SUBJECT_OF_STATEMENT.match(lower, end)
        yield subject.end() if subject else end, subject is not None or lower[end - 1 : end] == "是"


def drop_denials(text: str) -> str:
    """Convert `ist nicht 5, sondern 7` to `ist 7`, also in the other languages of `foreign_cues.py`."""
    if not _WORDS_OF_DENIAL.search(text):
        return text
    for pattern, replacement in _DENIAL_PATTERNS:
        text = pattern.sub(replacement, text)
    return text
