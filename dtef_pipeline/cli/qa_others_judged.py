"""What `dtef qa run` and `estimate` say of judgements of models that are not named: a judge looks at all that is stored of a part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import pyarrow as pa

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.cli.terminal_width import say
from dtef_pipeline.qa.arbiter import Arbiter, judge_snapshot
from dtef_pipeline.qa.judged_rows import JUDGED_ITEM_COLUMNS, judged_items
from dtef_pipeline.qa.others_judged import judgements_of_others
from dtef_pipeline.qa.space import QA_SPACE
from dtef_pipeline.text.counted import and_more, counted

_COUNTED_OF_RESPONSES = ("item_id", "model", "model_variant", "call_status", "request_key", "response")
_COUNTED_OF_JUDGEMENTS = ("answer_key", "evaluator", "judge_variant", "judge_snapshot", "raw")
_OTHERS_NAMED = 3


def say_others_judged(
    read: Callable[..., pa.Table],
    keys: Sequence[str],
    specs: Sequence[ModelSpec],
    snapshot: str,
    arbiter: Arbiter | None,
    rejudge: str | None,
) -> None:
    """One line on standard error where models are named, and stored responses of others are judged too.

    `read`: rows of a table, given its name, the columns and the levels.
    """
    if arbiter is None or not specs:
        return
    named, label, found = {spec.variant for spec in specs}, judge_snapshot(rejudge or None), Counter[str]()
    for key in keys:
        at = QA_SPACE.levels(key)
        if items := judged_items(read("qa_items", columns=JUDGED_ITEM_COLUMNS, **at)):
            responses = read("qa_responses", columns=_COUNTED_OF_RESPONSES, **at, snapshot=snapshot)
            judgements = read("qa_judgements", columns=_COUNTED_OF_JUDGEMENTS, **at, snapshot=snapshot)
            found += judgements_of_others(responses, judgements, items, arbiter, label, named)
    if found:
        told = and_more([f"{model} ({number:,})" for model, number in found.most_common()], _OTHERS_NAMED)
        judged = f"{counted(found.total(), 'judgement')} of stored responses of models that are not named"
        say(f"note: the judge is asked for all that is stored of a part, also for {judged}: {told}", err=True)
