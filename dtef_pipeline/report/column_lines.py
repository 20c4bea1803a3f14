"""What stands beneath a table on the terminal: a line on each of its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def heading(name: str) -> str:
    """What a column is called in a table for people."""
    return name.replace("_", " ")


def for_people(meaning: str) -> str:
    """What a column means, in the words of a table for people, in which what is null is a dash."""
    return meaning.replace("null: ", "- means ").replace("null unless", "- unless")


def column_lines(columns: Sequence[str], meanings: Mapping[str, str]) -> str:
    """A line for each of the columns that has a meaning to be told, with an empty line before them."""
    told = {heading(name): for_people(meanings[name]) for name in columns if name in meanings}
    width = max(map(len, told), default=0)
    return "\n".join(["", *(f"{name:<{width}}  {meaning}" for name, meaning in told.items())])
