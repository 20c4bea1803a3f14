"""Whether an everyday word that is also a name (Together, Command, Opus) is written as one.

It is where a hyphen, an underscore, a slash or nothing ties it to another name or a version (`phi-3`, `cohere/command`), in any case. With a
capital letter it is also inside a sentence ("I am Command"), and beside a name, a version with a point or a `v`, or AI ("Together AI").
At the beginning of a sentence, and among other words with capitals (Chain Of Command), a capital letter says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

Spot = tuple[int, int]
"""The first character of a word in the folded text, and the one past its last."""
_VERSION_TIED = re.compile(r"[_-]?v?\d")
_VERSION_BESIDE = re.compile(
    r"[\s_-]{1,3}(?:v\d|\d+\.\d|\d+b(?![a-z])|ai(?![a-z0-9])|labs(?![a-z0-9]))|[\s_-]{1,3}r(?:\+|(?![a-z0-9]))"
)
_NEAR = 3
"""Characters that may stand between a word and the name it stands beside."""
_SENTENCE_LOOKED_BACK = 200
_QUOTES = " \t\"'`*_([{<#>~|“”„‘’«»"
_ENDS_A_SENTENCE = ".!?:;…。！？：；-•–—"
_MAY_BEGIN_BIG = frozenset({"I", "I'm", "I’m"})


def written_as_names(
    text: str, plain: str, places: Sequence[int], words: Sequence[Spot], names: Sequence[Spot]
) -> Iterator[Spot]:
    """Those of the words that are written as names.

    Args:
        text: as it was written.
        plain: folded.
        places: of each character of `plain`, where it stands in `text`.
        words: where everyday words that are names stand, in order.
        names: where other names stand.
    """
    ends = {last for _, last in names}
    starts = {first for first, _ in names}
    for first, last in words:
        gaps = [plain[end:first] for end in range(max(0, first - _NEAR), first) if end in ends]
        gaps += [plain[last:start] for start in range(last, last + _NEAR + 1) if start in starts]
        versioned = any(one.isdigit() for one in plain[first:last])
        at_once = versioned and not any(one.isspace() for one in plain[first:last])
        tied = at_once or any(gap in {"-", "_", "/"} for gap in gaps) or _VERSION_TIED.match(plain, last) is not None
        beside = versioned or any(gap.strip() in {"", "'s"} for gap in gaps) or _VERSION_BESIDE.match(plain, last) is not None
        if tied or (text[places[first]].isupper() and (beside or _is_inside_a_sentence(text, places[first]))):
            yield first, last


def _is_inside_a_sentence(text: str, place: int) -> bool:
    before = text[max(0, place - _SENTENCE_LOOKED_BACK) : place].rpartition("\n")[2].rstrip(_QUOTES)
    if not before or before[-1] in _ENDS_A_SENTENCE:
        return False
    earlier, _, word = before.replace("\t", " ").rpartition(" ")
    word, earlier = word.strip(_QUOTES), earlier.rstrip(_QUOTES)
    if not word[:1].isupper() or word.rstrip(",") in _MAY_BEGIN_BIG:
        return True
    return not earlier or earlier[-1] in _ENDS_A_SENTENCE
