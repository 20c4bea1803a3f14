"""Items of each suite, invented, and an interview that one of them is about."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa

from dtef_pipeline.qa.item_files.item_log import LoadedItems
from dtef_pipeline.qa.model import QaItem, Quote
from dtef_pipeline.qa.prompt_rows import build_item_tables
from dtef_pipeline.qa.tables import QA_RESPONSES
from dtef_pipeline.qa.transcripts.chunks import build_documents_table, split_into_chunks
from dtef_pipeline.qa.transcripts.corpus import SpokenTurn, Transcript

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
