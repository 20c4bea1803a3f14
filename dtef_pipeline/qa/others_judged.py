"""What a run has judged beside the responses of the models that it names: everything that is stored of its parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.qa.arbiter import Arbiter
from dtef_pipeline.qa.judged_rows import JudgedItem, looks_at, to_be_judged


def judgements_of_others(
    responses: pa.Table,
    judgements: pa.Table,
    items: Mapping[str, JudgedItem],
    arbiter: Arbiter,
    label: str,
    named: Collection[str],
) -> Counter[str]:
    """By model the judgements that a judge has yet to give of stored responses of models whose variant is not `named`.

    `responses`, `judgements`: rows of `qa_responses` and `qa_judgements` of one part and snapshot; `items`: as of `judged_items`; `label`: the
    snapshot of the judgements. Answers that read the same are judged once, so a run asks for so many at most.
    """
    chosen, _ = to_be_judged(responses, items, arbiter.sample_rate)
    others = chosen.filter(pc.invert(pc.is_in(chosen["model_variant"], pa.array(list(named), pa.string()))))
    own = pc.and_(pc.equal(judgements["judge_variant"], arbiter.model.variant), pc.equal(judgements["judge_snapshot"], label))
    given = judgements.filter(pc.and_(own, pc.greater(pc.list_value_length(judgements["raw"]), 0)))
    there = set(zip(given["answer_key"].to_pylist(), given["evaluator"].to_pylist(), strict=True))
    found = Counter[str]()
    rows = zip(*(others[name].to_pylist() for name in ("model", "item_id", "request_key", "response")), strict=True)
    for model, item, key, response in rows:
        found[model] += sum((key, one.evaluator) not in there for one in looks_at(items[item], response or "", arbiter, label))
    return +found
