"""Where a plain text names answer options, by the full label or by an unambiguous beginning.

Labels are compared word by word (numbers are words, too); punctuation between words is ignored, so that `Yes – often`,
`yes, often` and `YES (often)` are one label, and `Agree` is not found inside `Strongly agree`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from dtef_pipeline.text.plain import normalise_text

_WORD = re.compile(r"[0-9]+|[^\W0-9_]+")
_BETWEEN_WORDS = re.compile(r"[^\w\n]{0,5}")
_LAST_MARKS = re.compile(r"(?<![.,;:])[.,;:]*+\Z")
_MANY = -1


class Mention(NamedTuple):
    """A mention of option number `option` that ends at `end`; `whole` if by its full label."""

    option: int
    end: int
    whole: bool


class _Node:
    """A word in the tree of labels: the option that ends here, and the only option that continues here (or _MANY)."""

    __slots__ = ("children", "ends", "only")

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self.ends: int | None = None
        self.only: int | None = None


class Labels:
    """The labels of one list of options, prepared for searching."""

    def __init__(self, options: Sequence[str]) -> None:
        self.names = tuple(options)
        self._root = _Node()
        self._tails = tuple(_LAST_MARKS.search(normalise_text(option))[0] for option in options)  # type: ignore[index]
        self.distinct = True
        """False when two labels are the same words (`-1` and `+1`): then labels decide nothing."""
        self.numeric = False
        """True when a label begins with a digit: then a number before a separator may be a label."""
        for index, option in enumerate(options):
            self._add(index, _WORD.findall(normalise_text(option)))
        starts = "|".join(sorted(map(re.escape, self._root.children), key=len, reverse=True))
        self._starts = re.compile(rf"(?<![^\W_])(?:{starts})(?![^\W_])") if starts else None

    def _add(self, index: int, words: list[str]) -> None:
        node = self._root
        for word in words:
            node = node.children.setdefault(word, _Node())
            node.only = index if node.only is None else _MANY
        if not words or node.ends is not None:
            self.distinct = False
            return
        node.ends = index
        self.numeric = self.numeric or words[0].isdigit()

    def find_starts(self, text: str) -> Iterator[re.Match[str]]:
        """Return each position where a label may begin."""
        return self._starts.finditer(text) if self._starts else iter(())

    def find_mentions(self, text: str, start: int) -> list[Mention]:
        """Return the options that the words from `start` on may name, longest match first."""
        mentions: list[Mention] = []
        node, place = self._root, start
        while (word := _WORD.match(text, place)) and (child := node.children.get(word[0])):
            node = child
            if node.ends is not None:
                mentions.append(Mention(node.ends, word.end(), True))
                if (tail := self._tails[node.ends]) and text.startswith(tail, word.end()):
                    mentions.append(Mention(node.ends, word.end() + len(tail), True))
            elif node.only != _MANY and node.only is not None and (word.end() - start > 1 or word[0].isdigit()):
                mentions.append(Mention(node.only, word.end(), False))
            gap = _BETWEEN_WORDS.match(text, word.end())
            place = gap.end() if gap else word.end()
        return mentions[::-1]

    def match_exactly(self, text: str) -> int | None:
        """Return the option whose label equals the text, ignoring punctuation, or None."""
        node = self._root
        for word in _WORD.finditer(text) if self.distinct else ():
            child = node.children.get(word[0])
            if child is None:
                return None
            node = child
        return node.ends

    def remove_mentions(self, text: str) -> str:
        """Return the text without the options that it names in full."""
        parts: list[str] = []
        position = 0
        for match in self.find_starts(text):
            mentions = [m for m in self.find_mentions(text, match.start()) if m.whole] if match.start() >= position else []
            if mentions:
                parts.append(text[position : match.start()])
                position = mentions[0].end
        return " ; ".join([*parts, text[position:]])

    def order_in(self, text: str) -> list[int]:
        """Return the options that the text names, in order of first mention."""
        order: list[int] = []
        position = 0
        for match in self.find_starts(text):
            if match.start() < position:
                continue
            mentions = self.find_mentions(text, match.start())
            if mentions:
                position = mentions[0].end
                if mentions[0].option not in order:
                    order.append(mentions[0].option)
        return order


@lru_cache(maxsize=4096)
def build_labels(options: tuple[str, ...]) -> Labels:
    """Build `Labels`, once per list of options."""
    return Labels(options)
