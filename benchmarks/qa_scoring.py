"""How long scoring takes: MMLU at its full size (14,042 items x 10 models), as the stage `qa_scores` does it.

    python benchmarks/qa_scoring.py [items] [models]

Items and replies are made up: letters alone, statements, working before a statement, and some that cannot be read.
"""

from __future__ import annotations

import random
import sys
import time

import pyarrow as pa

from dtef_pipeline.qa.item_files.loaded import LoadedItems
from dtef_pipeline.qa.item_rows import item_tables
from dtef_pipeline.qa.model import QaItem
from dtef_pipeline.qa.prompt_rows import AskedHow, plain_prompts
from dtef_pipeline.qa.score_rows import score_rows
from dtef_pipeline.qa.scoring import PartScoring, asked_items, formulas, response_keys
from dtef_pipeline.qa.tables import QA_RESPONSES

LETTERS_SHOWN = "ABCD"
WORKING = "Let us look at each of the options in turn, and see what speaks for it and what against it. "


def reply(rng: random.Random) -> str:
    letter = rng.choice(LETTERS_SHOWN)
    forms = (
        letter,
        f"({letter})",
        f"The answer is ({letter}).",
        f"{WORKING * rng.randint(2, 15)}So the answer is {letter}.",
        f"{WORKING * rng.randint(2, 8)}None of it is sure.",
    )
    return rng.choices(forms, (30, 20, 20, 25, 5))[0]


def made_items(number: int) -> list[QaItem]:
    subjects = max(1, number // 246)
    return [
        QaItem(
            f"subject_{at % subjects}/{at}",
            "mmlu",
            "all",
            "choice",
            f"What is thing number {at}?",
            tuple(f"the {word} of {at}" for word in ("first", "second", "third", "fourth")),
            LETTERS_SHOWN[at % 4],
            f"subject_{at % subjects}",
        )
        for at in range(number)
    ]


def made_responses(items: list[QaItem], models: int) -> pa.Table:
    rng = random.Random(0)
    rows = len(items) * models
    columns = {
        "suite": ["mmlu"] * rows,
        "part": ["all"] * rows,
        "item_id": [item.item_id for _ in range(models) for item in items],
        "condition": ["letters"] * rows,
        "snapshot": ["base"] * rows,
        "model": [f"model-{model}" for model in range(models) for _ in items],
        "model_variant": [f"made/model-{model}" for model in range(models) for _ in items],
        "draw": [0] * rows,
        "call_status": ["answered"] * rows,
        "response": [reply(rng) for _ in range(rows)],
        "finish_reason": ["stop"] * rows,
    }
    return pa.table([pa.array(columns.get(one.name, [None] * rows), one.type) for one in QA_RESPONSES], schema=QA_RESPONSES)


def main() -> None:
    number, models = (int(sys.argv[at]) if len(sys.argv) > at else usual for at, usual in ((1, 14_042), (2, 10)))
    items = made_items(number)
    tables = item_tables("mmlu", "all", LoadedItems(tuple(items)), lambda _: ["exact_choice"])
    prompts = plain_prompts(items, [], AskedHow()).qa_prompts
    responses = made_responses(items, models)
    began, used = time.perf_counter(), time.process_time()
    asked = asked_items(tables.qa_items, prompts)
    scoring = PartScoring(asked, formulas(asked.values()), keys=response_keys(responses))
    rows = score_rows(responses, tables.qa_items, scoring.scores_of, scoring.measures())
    wall, cpu = time.perf_counter() - began, time.process_time() - used
    statuses = {row["values"]: row["counts"] for row in rows["status"].value_counts().to_pylist()}
    print(f"{len(rows):,} responses scored in {wall:.1f} s ({cpu:.1f} s of processor): {statuses}")


if __name__ == "__main__":
    main()
