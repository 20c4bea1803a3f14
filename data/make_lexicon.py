"""Writes the lexicon of synonyms, `dtef_pipeline/qa/lexicon/wordnet-3.0.txt.gz`, and the licence beside it, from WordNet's own files.

    python data/make_lexicon.py [WORDNET] [LICENCE]

WORDNET is the folder of `data.noun`, `index.noun` and so on, by default that of Debian's package wordnet-base; LICENCE is the copyright file
of that package. One line is one set of synonyms, normalised, in order, separated by `|`: `bike|*bicycle|cycle|wheel`. A star marks a word
of which this is the first sense. Of each file the nouns come first, then verbs, then adjectives: the first sense of a word that is a noun
and a verb is that of the noun.
"""

from __future__ import annotations

import gzip
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from dtef_pipeline.qa.metric import normalise
from dtef_pipeline.qa.socioscope.words import convert_numbers_to_digits

FOLDER = Path(__file__).resolve().parent.parent / "dtef_pipeline" / "qa" / "lexicon"
PARTS_OF_SPEECH = ("noun", "verb", "adj")
FUNCTION_WORDS = (
    "a am an and any are as at be been but by can could de did do does for from get go had has have he her him his how i id if in into is it "
    "its just la let like ma may me might mine most must my no nor not now of off oh ok on one or our out over pa per she should so some such "
    "than that the their them then there they this those thus to too two up us very was we well were what when where which who whom why "
    "will with would yes you your hi ha al co en et il md mi nd"
)
"""Words of grammar and what is spelled like them. They are left out, as the state of Oregon, `OR`, would else be in every answer with an or."""
_LEFT_OUT = frozenset(FUNCTION_WORDS.split())
_MARKER = re.compile(r"\((?:a|p|ip)\)$")
_NOTICE = """wordnet-3.0.txt.gz is made from WordNet 3.0 by data/make_lexicon.py: its sets of synonyms of nouns, verbs and adjectives, with
normalised spelling, without sets of one word, numerals, single characters and words of grammar.

"""


def synonym_sets(wordnet: Path) -> Iterator[tuple[str, list[str]]]:
    """The key of each set of synonyms, and its words as WordNet spells them."""
    for part in PARTS_OF_SPEECH:
        for line in _entries(wordnet / f"data.{part}"):
            offset, _, _, count, *rest = line.split(" ")
            spelled = rest[: 2 * int(count, 16) : 2]
            yield f"{part} {offset}", [_MARKER.sub("", word).replace("_", " ") for word in spelled]


def first_senses(wordnet: Path) -> dict[str, str]:
    """The key of the first sense of each normalised word. Where two spellings are one when normalised, the first in WordNet's order counts."""
    found: dict[str, str] = {}
    for part in PARTS_OF_SPEECH:
        for line in _entries(wordnet / f"index.{part}"):
            lemma, _, count, *rest = line.split()
            found.setdefault(normalise(lemma.replace("_", " ")), f"{part} {rest[-int(count)]}")
    return found


def _entries(file: Path) -> Iterator[str]:
    """The lines of a file of WordNet below its licence."""
    return (line for line in file.read_text(encoding="ascii").splitlines() if not line.startswith(" "))


def is_kept(word: str) -> bool:
    """Whether a normalised word may stand for another: no numeral, no single character, no word of grammar."""
    if len(word) < 2 or word in _LEFT_OUT:
        return False
    return not all(is_number for _, is_number in convert_numbers_to_digits(word.split()))


def lines(wordnet: Path) -> list[str]:
    """The sets of two words and more, as they are written."""
    first = first_senses(wordnet)
    found = set()
    for key, spelled in synonym_sets(wordnet):
        kept = sorted({word for word in map(normalise, spelled) if is_kept(word)})
        if len(kept) > 1:
            found.add("|".join(f"*{word}" if first.get(word) == key else word for word in kept))
    return sorted(found)


def licence(copyright_file: Path) -> str:
    """WordNet's licence, from a Debian copyright file: the first stanza about files, without the marks of that format."""
    stanza = next(part for part in copyright_file.read_text(encoding="utf-8").split("\n\n") if part.startswith("Files: *"))
    text = stanza.split("License: ", 1)[1].split("\n", 1)[1]
    return _NOTICE + "\n".join(line.strip().removeprefix(".") for line in text.splitlines()) + "\n"


def main(wordnet: Path, copyright_file: Path) -> None:
    FOLDER.mkdir(exist_ok=True)
    text = "\n".join(lines(wordnet))
    (FOLDER / "wordnet-3.0.txt.gz").write_bytes(gzip.compress(text.encode("ascii"), 9, mtime=0))
    (FOLDER / "LICENSE-wordnet.txt").write_text(licence(copyright_file), encoding="utf-8")


if __name__ == "__main__":
    folder, copyright_path = [
        *sys.argv[1:],
        *("/usr/share/wordnet", "/usr/share/doc/wordnet-base/copyright")[len(sys.argv) - 1 :],
    ]
    main(Path(folder), Path(copyright_path))
