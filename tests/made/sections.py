"""Frames that sections of the report are made of, and the cells of what they become."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pandas as pd

OTHERS = "baseline/leave-one-out-marginal"


def frame(*rows: dict[str, Any], level: str = "all") -> pd.DataFrame:
    plain = {"context_level": level, "condition": "c", "n_pairs": 10, "metric": "js"}
    filled = [{**plain, "model_variant": row.get("model"), **row} for row in rows]
    return pd.DataFrame(filled)


def cells(markup: str) -> list[list[str]]:
    """The texts of a table's body, row by row."""
    rows = re.findall(r"<tr>(.*?)</tr>", markup.split("<tbody>")[1].split("</tbody>")[0])
    return [
        [
            unescape(re.sub(r"<[^>]+>", " ", cell.replace("<wbr>", ""))).strip()
            for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row)
        ]
        for row in rows
    ]
