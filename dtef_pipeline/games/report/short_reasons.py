"""Reasons that would fill a narrow column: their first words stand in the cell, and each whole reason once beneath the table."""

from __future__ import annotations

from html import escape
from typing import Any

import pandas as pd

from dtef_pipeline.games.same_games import GAMES_NOTE, UNPLAYED_NOTE
from dtef_pipeline.report.isolated import inline
from dtef_pipeline.report.markup import is_unknown
from dtef_pipeline.text.counted import and_more

_FITS_A_CELL = 36
"""Characters of a reason that stand in a cell as they are."""
_MOST_SHARING_A_REASON = 4
_REASON_COLUMNS = ("reason", UNPLAYED_NOTE, GAMES_NOTE)
"""Columns of a board that say something of a mean in a sentence; a board may lack one."""


def short_reason(reason: Any) -> str:
    """What stands beneath a mean: the reason, or of a long one what stands before its colon, and the whole when it is pointed at."""
    if is_unknown(reason) or not reason:
        return ""
    words = _first_words(str(reason))
    told = f' title="{escape(str(reason))}"' if words != reason else ""
    return f'<span class="ci wrapped"{told}>{inline(words)}{"*" if told else ""}</span>'


def reasons_beneath(rows: pd.DataFrame) -> str:
    """One line per reason that was cut in the cells of a board, with the players that it is about; nothing where none was."""
    lines = []
    for column in (name for name in _REASON_COLUMNS if name in rows):
        for reason, own in rows[rows[column].notna()].groupby(column, sort=False)["player"]:
            if reason and _first_words(str(reason)) != reason:
                players = and_more(list(own), _MOST_SHARING_A_REASON)
                lines.append(f'<p class="count">* {inline(str(reason))} ({inline(players)})</p>')
    return "".join(lines)


def _first_words(reason: str) -> str:
    if len(reason) <= _FITS_A_CELL:
        return reason
    return reason.partition(": ")[0][:_FITS_A_CELL]
