"""Lines that people write for a game at the terminal: what they stand for, and the choices there are, one per line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, islice

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.contract import Scenario, SpokenScenario
from dtef_pipeline.games.in_play import ACTION_WORD
from dtef_pipeline.text.counted import counted

_MOST_NUMBERED, _FEWEST_IN_A_RANGE = 100, 6
_WITH_A_CHOICE = "=>"
_ENDS_IN_NUMBER = re.compile(r"(.*?)(0|[1-9][0-9]{0,8})", re.DOTALL)
_PART_OF_LINE = re.compile(r'[{};"]|[^{};"]+')
_QUOTED_PART = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def commands_in(text: str) -> list[str]:
    """The commands in a list with semicolons. A semicolon within braces or double quotes parts nothing: it belongs to JSON or to words."""
    commands, depth = [""], 0
    for part in _parts(text):
        depth = max(0, depth + (part == "{") - (part == "}"))
        if part == ";" and not depth:
            commands.append("")
        else:
            commands[-1] += part
    return [command for one in commands if (command := one.strip())]


def _parts(text: str) -> Iterator[str]:
    """The text in parts: what stands in double quotes, braces, semicolons, and the rest. A quote that nothing closes is a mark like others."""
    place, closes = 0, True
    while found := _PART_OF_LINE.match(text, place):
        if found[0] == '"' and closes:
            quoted = _QUOTED_PART.match(text, place)
            found, closes = quoted or found, quoted is not None  # after a quote that stays open no later one is closed either
        yield found[0]
        place = found.end()


def text_of(line: str, scenario: Scenario[object]) -> str:
    """The text that a command from outside stands for: a message as it was written where moves are messages, else an `ACTION:`."""
    return line if isinstance(scenario, SpokenScenario) or ACTION_WORD in line.casefold() else f"ACTION: {line}"


def typed_text(line: str, scenario: Scenario[object], legal: Sequence[str]) -> str:
    """The text that a person's line stands for: a choice by its number or as the list shows it, else what `text_of` says.

    Where moves are messages, `WORDS => CHOICE` is both. Raises ConfigError for a number or a choice that the list does not have.
    """
    spoken = isinstance(scenario, SpokenScenario)
    words, mark, choice = line.rpartition(_WITH_A_CHOICE) if spoken else ("", "", line)
    choice = choice.strip() if mark else line
    command = _chosen(choice, scenario, legal)
    if command is not None:
        return f"{words.strip()}\n{command}".strip() if spoken else f"ACTION: {command}"
    if mark and not choice.startswith("{"):
        raise ConfigError(
            f"{_WITH_A_CHOICE} {choice}: no choice; allowed: a number or a line of the list that ? shows, or JSON"
        )
    return text_of(f"{words.strip()}\n{choice}" if mark else line, scenario)


def free_lines(commands: Sequence[str]) -> list[str]:
    """A line on the commands that may be given in every turn; none where there are none."""
    return [f"  and in every turn: {', '.join(commands)}"] if commands else []


def choice_lines(scenario: Scenario[object], legal: Sequence[str]) -> list[str]:
    """The choices for people, one per line and numbered; numbers in a row as one range, without a number in front."""
    if not _is_numbered(legal):
        return [f"  {one}" for one in _ranges(legal)]
    width = len(str(min(len(legal), _MOST_NUMBERED)))
    lines = [f"  {number:>{width}}  {_words(scenario, one)}" for number, one in enumerate(islice(legal, _MOST_NUMBERED), 1)]
    if len(legal) > _MOST_NUMBERED:
        lines.append(
            f"  and {counted(len(legal) - _MOST_NUMBERED, 'other choice')}, up to {len(legal)}  {_words(scenario, legal[-1])}"
        )
    return lines


def how_to_write(scenario: Scenario[object]) -> str:
    """What a person is told of the lines it may write."""
    if isinstance(scenario, SpokenScenario):
        return (
            "A line is your message, in words. ? lists the offers and answers: the number of one plays it without words,\n"
            f"and WORDS {_WITH_A_CHOICE} NUMBER says words with it. quit ends the game."
        )
    return "? lists the commands, which may be given by their numbers where the list has some. quit ends the game."


def _chosen(choice: str, scenario: Scenario[object], legal: Sequence[str]) -> str | None:
    if not _is_numbered(legal):
        return None
    if choice.isdecimal() and choice.isascii():
        number = int(choice) if len(choice) < 9 else 0
        if not 1 <= number <= len(legal):
            raise ConfigError(f"{choice}: no choice of that number; allowed: 1 to {len(legal)}")
        return legal[number - 1]
    if not isinstance(scenario, SpokenScenario):
        return None
    return next((one for one in legal if _alike(_words(scenario, one)) == _alike(choice)), None)


def _alike(words: str) -> str:
    return "".join(words.casefold().split())


def _words(scenario: Scenario[object], command: str) -> str:
    return scenario.choice_words(command) if isinstance(scenario, SpokenScenario) else command


def _is_numbered(legal: Sequence[str]) -> bool:
    """Whether choices have numbers: not where they are numbers themselves, and a person's number is one of those."""
    return len(_ranges(legal)) == len(legal)


def _ranges(legal: Sequence[str]) -> list[str]:
    """The commands, with `bid 0 .. bid 100` for those that differ only in a number at their end, which goes up by 1."""
    return [line for key, run in groupby(enumerate(legal), _place_in_a_range) for line in _range([one for _, one in run])]


def _place_in_a_range(numbered: tuple[int, str]) -> tuple[str, int]:
    place, command = numbered
    found = _ENDS_IN_NUMBER.fullmatch(command)
    return (found[1], int(found[2]) - place) if found else (f"{command} at {place}", 0)


def _range(run: list[str]) -> Iterator[str]:
    if len(run) >= _FEWEST_IN_A_RANGE:
        yield f"{run[0]} .. {run[-1]}"
    else:
        yield from run
