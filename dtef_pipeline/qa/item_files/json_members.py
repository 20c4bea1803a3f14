"""In which line each member of a list in a JSON text begins: Python's parser does not tell."""

from __future__ import annotations

import re
from bisect import bisect_right

_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{},:]|[^\s"\[\]{},:]+', re.DOTALL)


def member_lines(text: str, key: str) -> list[int]:
    """The lines, from 1, in which the members of the list begin that stands under a key of the outermost object. The text must be JSON."""
    starts, depth, before, latest, inside = [], 0, "", "", False
    for token in _JSON_TOKEN.finditer(text):
        mark = token[0]
        if inside and depth == 2 and before in ("[", ",") and mark != "]":
            starts.append(token.start())
        if mark in "[{":
            inside = inside or (depth == 1 and mark == "[" and before == ":" and latest == f'"{key}"')
            depth += 1
        elif mark in "]}":
            depth -= 1
            if inside and depth < 2:
                break
        elif depth == 1 and mark[0] == '"':
            latest = mark
        before = mark
    ends = [found.start() for found in re.finditer("\n", text)]
    return [bisect_right(ends, start) + 1 for start in starts]
