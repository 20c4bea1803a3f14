"""Reading the command in a player's text, shared by all scenarios.

The first rule that applies decides:

1. the text after the last `ACTION:`, on its line or the next one: a legal command, optionally followed by other words. If it is not one,
   nothing else is searched: a text with `ACTION: raise` does not mean `call`. Two commands there, except in brackets, are not a move either;
2. the last line that is only a legal command;
3. the only legal command that occurs in the text as whole words. Two different ones are not a move; none is picked at random.

Thinking is removed first. Case, spaces, emphasis, quotes and the forms of arrows do not matter, and a scenario's own normalisation of
commands, `normalise`, is applied to texts and legal commands alike. All functions are linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from dtef_pipeline.games.contract import Illegal
from dtef_pipeline.text.plain import normalise_text, strip_thinking
from dtef_pipeline.text.printable import escape_terminal

NO_COMMAND = "no command was found; end the reply with a line ACTION: <command>"
TWO_COMMANDS = "several commands were found; end the reply with one line ACTION: <command>"
_LONGEST_QUOTED = 60
_ACTION_MARK = re.compile(r"(?<![^\W_])action[\s*_`\"']{0,4}[:\uff1a]", re.IGNORECASE)
_OPENS_CODE = re.compile(r"[`~]{3,}(?:json|text|plaintext)?")
_AROUND_ACTION = " \t*_`\"'“”‘’"
_AROUND_COMMAND = " .,;:!?<>[](){}|"
_BEFORE_COMMAND = re.compile(r"(?:[-–•>#+] |\d{1,2}[.)] )+")
_LATEX_AROUND = re.compile(r"(?: ?(?:boxed|text\w{0,2}|math\w{0,2}) ?\{)+")
_ANY_ARROW = re.compile(r" ?(?:[-–=]{1,2}(?:>|&gt;)|[→⟶➜➝➞⟹⇢↦]) ?")
_RANK_LETTERS = {"ace": "A", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9",
          "ten": "T", "10": "T", "jack": "J", "queen": "Q", "king": "K"}  # fmt: skip
_SUIT_LETTERS = {"♣": "c", "♧": "c", "♦": "d", "♢": "d", "♥": "h", "♡": "h", "♠": "s", "♤": "s"}
_SPELLED_CARD = re.compile(
    rf"(?<!\w)(10|[2-9atjqk]|{'|'.join(name for name in _RANK_LETTERS if name != '10')})"
    r"(?: ?([♣♧♦♢♥♡♠♤])\ufe0f?|([cdhs])(?!\w)| of (club|diamond|heart|spade)s?(?!\w))",
    re.IGNORECASE,
)
_DECLINES_TO_PLAY = re.compile(
    r"\b(?:cannot|cant|can not|could not|wont|will not|unable to|not able to|refuse to|decline to|not going to|not comfortable"
    r"|not willing to|do not want to|dont want to|would rather not|prefer not to|not appropriate|against my)\b[^.!?\n]{0,40}?"
    r"\b(?:play(?:ing)?(?! (?:the |a |an |my |any |card ){0,3}(?:\d|card|ace|king|queen|jack|ten))|help|assist|participat\w{1,3}"
    r"|take part|continu\w{1,3}|engag\w{1,3}|compl(?:y|ying)|gambl\w{1,3}|do (?:that|this)|fulfil\w{0,4}|guidelines|principles)\b"
    r"|\b(?:do not|dont) (?:participate|engage|take part|gamble|assist|play games?)\b"
    r"|\bi (?:must |have to |will )?(?:respectfully )?(?:decline|refuse)(?= ?(?:[.!,;\n]|\Z))"
)
"""Matches a refusal near a word for taking part; `I cannot play the 7 yet` is about a card."""


def normalise_command(text: str) -> str:
    """Normalise a text with commands: lower case, single spaces, no emphasis or quotes, `->` for every arrow. Line breaks stay."""
    return _ANY_ARROW.sub("->", normalise_text(text))


def read_command(
    text: str, legal: Sequence[str], normalise: Callable[[str], str] = normalise_command, single: Sequence[str] = ()
) -> str | Illegal:
    """Return one of the legal commands by the rules of the module, or why there is none: unparsed, refused, or an illegal `ACTION:`.

    `normalise`: normalises the spelling of commands in a text of any length and several lines (default: `normalise_command`). `single`:
    legal commands that rule 3 skips, because a player may mention them in a sentence without meaning them.
    """
    commands = _prepare_commands(tuple(legal), normalise, tuple(single))
    action_text = find_action(text)
    if action_text is not None:
        return commands.read_action_command(action_text)
    words = commands.normalise(strip_thinking(text))
    if command := commands.find_last_line(words):
        return command
    matches = commands.find_mentioned(words)
    if len(matches) == 1:
        return matches.pop()
    if matches:
        return Illegal(TWO_COMMANDS, "unparsed")
    return Illegal("the reply declines to play", "refused") if is_declining(text) else Illegal(NO_COMMAND, "unparsed")


def find_action(text: str) -> str | None:
    """Return the text after the last `ACTION:` outside the thinking, without emphasis or quotes around it, or None.

    It ends with its line. If that line is empty or opens a code block, it is the next line that is neither.
    """
    reply = strip_thinking(text)
    end = len(reply)
    for mark in reversed(list(_ACTION_MARK.finditer(reply))):
        for line in reply[mark.end() : end].splitlines():
            action_text = line.strip(_AROUND_ACTION)
            if action_text and not _OPENS_CODE.fullmatch(line.strip()):
                return action_text
        end = mark.start()
    return None


def strip_command(action_text: str, normalise: Callable[[str], str] = normalise_command) -> str:
    """Normalise the text given as a command, without punctuation or brackets around it."""
    words = normalise(action_text)
    match = _LATEX_AROUND.match(words)
    return (words[match.end() :] if match else words).strip(_AROUND_COMMAND)


def normalise_cards(text: str) -> str:
    """Convert every card in a text to its rank and the letter of its suit: `10♠`, `10s`, `ts`, `T of spades` and `ten of spades` to
    `Ts`."""
    return _SPELLED_CARD.sub(_card, text)


def _card(match: re.Match[str]) -> str:
    rank = match[1].casefold()
    suit = _SUIT_LETTERS[match[2]] if match[2] else (match[3] or match[4])[0].casefold()
    return _RANK_LETTERS.get(rank, rank.upper()) + suit


def is_declining(text: str) -> bool:
    """Return whether a text without a command declines: `I can't play`, `I cannot help with that`."""
    return _DECLINES_TO_PLAY.search(normalise_text(strip_thinking(text))) is not None


def _reject_action(action_text: str) -> Illegal:
    if is_declining(action_text):
        return Illegal("the reply declines to play", "refused")
    text = escape_terminal(action_text)
    return Illegal(f"not a legal command now: {text[:_LONGEST_QUOTED]}{'...' if len(text) > _LONGEST_QUOTED else ''}")


def _strip_mark(line: str) -> str:
    mark = _BEFORE_COMMAND.match(line)
    return line[mark.end() :] if mark else line


class _Commands(NamedTuple):
    """The legal commands of a turn, prepared for searching texts."""

    normalise: Callable[[str], str]
    commands_by_spelling: dict[str, str]
    anywhere_pattern: re.Pattern[str]
    standalone: tuple[str, ...]

    def read_action_command(self, action_text: str) -> str | Illegal:
        """Return the command that the words after `ACTION:` are, or begin with if they name no other one before a bracket."""
        words = strip_command(action_text, self.normalise)
        if words in self.commands_by_spelling:
            return self.commands_by_spelling[words]
        words = words.partition(" (")[0]
        first = self.anywhere_pattern.match(words)
        if first is None:
            return _reject_action(action_text)
        if any(match[0] != first[0] for match in self.anywhere_pattern.finditer(words)):
            return Illegal(TWO_COMMANDS, "unparsed")
        return self.commands_by_spelling[first[0]]

    def find_last_line(self, words: str) -> str | None:
        for line in reversed(words.split("\n")):
            bare = _strip_mark(line.strip()).strip(_AROUND_COMMAND)
            if bare in self.commands_by_spelling:
                return self.commands_by_spelling[bare]
        return None

    def find_mentioned(self, words: str) -> set[str]:
        return {self.commands_by_spelling[match[0]] for match in self.anywhere_pattern.finditer(words)} - set(self.standalone)


@lru_cache(maxsize=1024)
def _prepare_commands(legal: tuple[str, ...], normalise: Callable[[str], str], single: tuple[str, ...]) -> _Commands:
    by_spelling = {normalise(command): command for command in legal}
    longest_first = sorted(by_spelling, key=len, reverse=True)
    alternatives = "|".join(map(re.escape, longest_first)) or r"(?!)"
    anywhere = re.compile(rf"(?<!\w)(?<!->)(?<!\d[.,])(?:{alternatives})(?!\w|[.,]\d|->)")
    return _Commands(normalise, by_spelling, anywhere, single)
