"""Small files of items, invented, as users have them, and what a model replies to these."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.fake_llm_server import Call

BIRDS = [
    ("Which one dives deepest?", "Tern", "Gannet", "Gull", "None", "B"),
    ("Which one steals food?", "Skua", "Auk", "Puffin", "Eider", "A"),
    ("Which one digs burrows?", "Tern", "Gull", "Puffin", "Skua", "C"),
]
WINDS = [
    ("Which is the strongest?", "Breeze", "Calm", "Air", "Storm", "D"),
    ("Which one blows at night?", "Sea breeze", "Land breeze", "Neither", "Both", "B"),
]
"""Questions of two subjects, as rows of MMLU."""
_SHOWN = [
    ("Which one is white?", "Gull", "Crow", "Coot", "Rook", "A"),
    ("Which one is black?", "Gull", "Swan", "Tern", "Coot", "D"),
]
OARS = [
    "3 boats have 4 oars each. How many oars?",
    "5 boats have 2 oars each. How many oars?",
    "A boat has 6 oars, 1 breaks. How many?",
]
_COUNTS = (12, 10, 5)
RIGHT_REPLIES: Mapping[str, str] = {
    **{row[0]: row["ABCD".index(row[-1]) + 1] for row in (*BIRDS, *WINDS)},
    **{text: f"Counted.\n#### {count}" for text, count in zip(OARS, _COUNTS, strict=True)},
}
"""By the text of an item: the option that is right, or what a model replies."""


def write_choices(folder: Path, **subjects: Sequence[Sequence[str]]) -> Path:
    """A folder of MMLU's layout, with two examples for each subject; by default of birds and winds."""
    for name, rows in (subjects or {"sea_birds": BIRDS, "winds": WINDS}).items():
        for split, own in (("test", rows), ("dev", _SHOWN)):
            (folder / split).mkdir(parents=True, exist_ok=True)
            lines = [",".join(f'"{cell}"' for cell in row) for row in own]
            (folder / split / f"{name}_{split}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def write_sums(path: Path) -> Path:
    """A file of GSM8K's layout."""
    rows = [{"question": text, "answer": f"We count.\n#### {count}"} for text, count in zip(OARS, _COUNTS, strict=False)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def right_reply(call: Call) -> str:
    """What is right, with the letter under which it is shown; `A` to what is not known."""
    reply = next((reply for text, reply in RIGHT_REPLIES.items() if text in call.user), "A")
    shown = re.findall(rf"^([A-D])\. {re.escape(reply)}$", call.user, re.MULTILINE)
    return f"The answer is {shown[-1]}." if shown else reply
