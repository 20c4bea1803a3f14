"""What stands beneath a table on the terminal: a line on each of its columns."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence

_UNBREAKABLE = "\N{NO-BREAK SPACE}"
_COMMAND = re.compile(r"`[^`]+`|(?<=: )dtef [^;`]+")


def heading(name: str) -> str:
    """What a column is called in a table for people."""
    return name.replace("_", " ")


def for_people(meaning: str) -> str:
    """What a column means, in the words of a table for people, in which what is null is a dash."""
    return meaning.replace("null: ", "- means ").replace("null unless", "- unless")


def column_lines(columns: Sequence[str], meanings: Mapping[str, str], width: int | None = None) -> str:
    """A line for each of the columns that has a meaning to be told, with an empty line before them.

    What is longer than `width` goes on in the next line, beneath where it began.
    """
    told = {heading(name): for_people(meanings[name]) for name in columns if name in meanings}
    longest = max(map(len, told), default=0)
    return "\n".join(["", *(in_width(f"{name:<{longest}}  {meaning}", width, longest + 2) for name, meaning in told.items())])


def in_width(line: str, width: int | None, indent: int = 0) -> str:
    """The line in as many lines as the width makes of it, those after the first indented; as it is where no width is given.

    A command to be copied, between backticks or behind a colon, is never broken: the terminal goes on with it by itself.
    """
    if width is None or len(line) <= width:
        return line
    room = max(width, indent + 20)
    whole = _COMMAND.sub(lambda found: found[0].replace(" ", _UNBREAKABLE), line)
    wrapped = textwrap.wrap(whole, room, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(wrapped).replace(_UNBREAKABLE, " ")
