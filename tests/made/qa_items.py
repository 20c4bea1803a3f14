"""Items of each suite, invented, and an interview that one of them is about."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from dtef_pipeline.qa.item_files.item_log import LoadedItems
from dtef_pipeline.qa.model import QaItem, Quote
from dtef_pipeline.qa.prompt_rows import build_item_tables
from dtef_pipeline.qa.tables import QA_RESPONSES
from dtef_pipeline.qa.transcripts.chunks import build_documents_table, split_into_chunks
from dtef_pipeline.qa.transcripts.corpus import SpokenTurn, Transcript
from tests.fake_llm_server import Call

_BIRDS = ("Tern", "Gannet", "Gull", "None")
BIRD = QaItem("sea_birds/0", "mmlu", "sea_birds", "choice", "Which one dives “deepest”?", _BIRDS, "B", "sea_birds")
BIRDS_SHOWN = tuple(
    QaItem(f"example/{at}", "mmlu", "sea_birds", "choice", f"Which is number {at}?", BIRD.options, "ABCD"[at])
    for at in range(2)
)
"""The examples of its part."""
_ROWED = "3 boats with 4 rowers each. How many rowers?"
ROWERS = QaItem("gsm8k/0", "gsm8k", "all", "number", _ROWED, reference="12", solution="3 * 4 = 12")
TWICE = QaItem(
    "Demo/0",
    "humaneval",
    "all",
    "code",
    'def twice(x: int) -> int:\n    """Twice x."""\n',
    reference=(
        '{"prompt": "def twice(x: int) -> int:\\n    \\"\\"\\"Twice x.\\"\\"\\"\\n", "entry_point": "twice", '
        '"test": "def check(candidate):\\n    assert candidate(2) == 4\\n"}'
    ),
    solution="    return 2 * x\n",
)
_KEPT = Quote("Ada kept it, summer and winter.", "light.csv", 1)
KEEPER = QaItem(
    "d01", "socioscope", "talks", "PickOne", "Who kept the light?", ("Ada", "Bo"), '{"Ada": 1}', "light.csv", quotes=(_KEPT,)
)
_LONG_ANSWER = " ".join(f"On day {day} the sea was grey and the boat stayed in." for day in range(30))
LIGHTHOUSE = Transcript(
    "light.csv",
    (
        SpokenTurn(0, "Who lived out there?", "Interviewer"),
        SpokenTurn(1, "Ada kept it, summer and winter. The light, I mean.", "Ines"),
        SpokenTurn(2, _LONG_ANSWER, "Ines"),
        SpokenTurn(3, "Bo mended “the nets”.", "Ines"),
    ),
    {"NAME": "Ines Holm", "PROJECT": "DEMO", "YEAR": 2020, "FILE": "light.csv"},
)
"""It comes to three chunks: the first two turns, the third, and the fourth."""
SCORERS_OF_SUITES = {
    "mmlu": ("exact_choice",),
    "gsm8k": ("judge", "numeric"),
    "humaneval": ("code_execution",),
    "socioscope": ("pick_one", "verbatim"),
}


def written_lines(path: Path, *values: object) -> Path:
    """The path of a new file with a line of JSON per value, packed if its name ends in `.gz`."""
    text = "".join(f"{json.dumps(value)}\n" for value in values).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def rows_of_items(*items: QaItem) -> pa.Table:
    """Rows of `qa_items`, as for one part."""
    made = [
        build_item_tables(one.suite, one.part, LoadedItems((one,)), lambda item: SCORERS_OF_SUITES[item.suite]) for one in items
    ]
    return pa.concat_tables([one.qa_items for one in made])


def light_documents() -> pa.Table:
    """The chunks of the interview."""
    return build_documents_table(split_into_chunks([LIGHTHOUSE]))


def responses_to(item: QaItem, *texts: str | None, **columns: object) -> pa.Table:
    """Rows of `qa_responses`: one per text, as a draw of its own; None: the call failed."""
    rows = [
        {
            "suite": item.suite,
            "part": item.part,
            "item_id": item.item_id,
            "condition": "plain",
            "snapshot": "base",
            "model": "m",
            "model_variant": "p/m",
            "draw": draw,
            "request_key": f"key {draw}",
            "prompt_id": f"prompt of {item.item_id}",
            "call_status": "error" if text is None else "answered",
            "response": text,
            "finish_reason": "stop",
            **columns,
        }
        for draw, text in enumerate(texts)
    ]
    return pa.Table.from_pylist(rows, schema=QA_RESPONSES)


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
