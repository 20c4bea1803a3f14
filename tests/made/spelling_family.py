"""A family in one file, which the engine makes everything of: a word is described, and a model says and spells it.

Each CSV file `LANGUAGE-LIST.csv` is a partition, with the columns word, meaning and topic.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa

from dtef_pipeline.asking.request import Message
from dtef_pipeline.boards.family_calls import FamilyCalls, calls_by_key
from dtef_pipeline.boards.mean_columns import RIGHT_METRIC
from dtef_pipeline.errors import SourceError
from dtef_pipeline.family.item_scores import SCORED_ITEM, ItemScores, plan_items
from dtef_pipeline.family.record import Family, LoadedPart
from dtef_pipeline.family.run_settings import ASKING_ITEMS, PartSettings, Setting
from dtef_pipeline.family.stage import (
    CallPlan,
    Inputs,
    Lengths,
    Replies,
    Stage,
    Tables,
    make_failure_check,
    make_uniqueness_check,
)
from dtef_pipeline.identity import digest
from dtef_pipeline.keys import Space
from dtef_pipeline.tables import CALL, TableSpec, field

SPACE = Space("word_list", first="language", second="list", order=str.casefold)
_LEVELS = (field("language", pa.string(), "Language of the words"), field("list", pa.string(), "List that the word stands in"))
_WORD = (
    field("item_id", pa.string(), "Number of the word in its list, from 1"),
    field("word", pa.string(), "Word as it is spelled"),
)
WORDS = pa.schema(
    [
        *_LEVELS,
        *_WORD,
        field("meaning", pa.string(), "Meaning that is told"),
        field("topic", pa.string(), "Topic, whose words hang together"),
    ]
)
RESPONSES = pa.schema([*_LEVELS, *_WORD, field("topic", pa.string(), "Topic of the word"), *CALL])
SCORES = pa.schema([*_LEVELS, *SCORED_ITEM])


class SpellingSettings(PartSettings):
    """What runs of lists of words are given."""

    exact: Annotated[bool, Setting()] = False
    """Capital letters must be right, too."""


def load_words(path: Path) -> Iterator[LoadedPart]:
    """The list of a file. Raises SourceError for a name that is none, and for a row without a word or a meaning."""
    language, _, name = path.stem.partition("-")
    if not name:
        raise SourceError("cannot be added", where=str(path), arrived=path.name, allowed="LANGUAGE-LIST.csv")
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    for line, row in enumerate(rows, start=2):
        if not (row.get("word") or "").strip() or not (row.get("meaning") or "").strip():
            raise SourceError("a row lacks something", where=str(path), line=line, arrived=str(row), allowed="word and meaning")
    words = [
        {**row, "language": language, "list": name, "item_id": str(number), "topic": row.get("topic") or ""}
        for number, row in enumerate(rows, start=1)
    ]
    yield LoadedPart(SPACE.key(language, name), pa.Table.from_pylist(words, WORDS))


def ask_words(inputs: Inputs, settings: SpellingSettings) -> CallPlan:
    """What models are asked of a list."""

    def ask(word: Mapping[str, Any]) -> list[Message]:
        return [
            Message("user", f"Which word of the language {word['language']} means: {word['meaning']}? Reply with it alone.")
        ]

    return plan_items(inputs, settings, "spelling_responses", RESPONSES, inputs.read("spelling_words"), ask)


def score_words(inputs: Inputs, settings: SpellingSettings) -> Tables:
    """The scores of all responses of a list."""
    rows = [{**row, **_score(row, exact=settings.exact)} for row in inputs.read("spelling_responses").to_pylist()]
    return {"spelling_scores": pa.Table.from_pylist(rows, SCORES)}


def _score(row: Mapping[str, Any], *, exact: bool) -> dict[str, Any]:
    about = {"cluster": row["topic"], "truth_id": digest(row["word"]), "metric": RIGHT_METRIC}
    if row["call_status"] != "answered":
        return {**about, "status": row["call_status"], "reason": row["error"]}
    said, word = (row["response"] or "").strip(), row["word"]
    is_right = said == word if exact else said.casefold() == word.casefold()
    return {**about, "status": "ok" if len(said.split()) == 1 else "unparseable", "score": float(is_right)}


_ROW = ("item_id", "model_variant", "draw", "snapshot")
STAGES = (
    Stage(
        "spelling_responses",
        "What the models wrote: one row per word, model variant and draw of a list and snapshot. Earlier models stay.",
        ask_words,
        after=("spelling_words",),
        settings=ASKING_ITEMS,
        asks=True,
        checks=(
            make_uniqueness_check("spelling_responses", _ROW),
            make_failure_check("spelling_calls_succeed", "spelling_responses", "call_status", "calls"),
        ),
        preview=("word", "model", "response"),
        counted_columns=("call_status",),
        replies=Replies((Lengths("spelling_responses"),)),
    ),
    Stage(
        "spelling_scores",
        "Whether the words are right: one row per response, 1 where it is the word and 0 where it is not. No model is asked.",
        score_words,
        after=("spelling_responses",),
        settings=("snapshot", "exact"),
        checks=(make_uniqueness_check("spelling_scores", _ROW),),
        preview=("item_id", "model", "status", "score"),
        counted_columns=("status",),
    ),
)
_AGAIN = "dtef spelling run {part} {models} --max-calls 0"
SPELLING = Family(
    name="spelling",
    space=SPACE,
    tables={
        "spelling_words": TableSpec(WORDS, SPACE, ("language", "list"), "dtef spelling run {part} --from ingest --max-calls 0"),
        "spelling_responses": TableSpec(RESPONSES, SPACE, ("language", "list", "snapshot"), _AGAIN),
        "spelling_scores": TableSpec(SCORES, SPACE, ("language", "list", "snapshot"), _AGAIN),
    },
    calls=FamilyCalls(SPACE, (calls_by_key("spelling_responses"),)),
    scores_table="spelling_scores",
    settings=SpellingSettings,
    help="Have models spell words that are described to them.",
    load=load_words,
    stages=lambda: STAGES,
    scores=ItemScores(cluster_noun="topic"),
)
