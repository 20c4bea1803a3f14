"""Anchors as they are kept, and what judges are asked about them in a night."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from dtef_pipeline.asking.episodes import Played
from dtef_pipeline.drift.anchored import night_times
from dtef_pipeline.drift.options import WatchOptions
from dtef_pipeline.judging.judges import JudgeConfig
from dtef_pipeline.judging.prompts import Case
from dtef_pipeline.rubric.anchors import anchors, judge_drifts
from dtef_pipeline.rubric.judge_requests import Judging, judgement_rows
from dtef_pipeline.rubric.label_draws import as_table
from dtef_pipeline.rubric.label_keys import ITEM_KEYS
from dtef_pipeline.rubric.label_sheet import label_items
from dtef_pipeline.rubric.label_tables import RUBRIC_ANCHOR_ITEMS
from dtef_pipeline.rubric.model import TEXT_KIND, Turn
from dtef_pipeline.rubric.validity_tables import RUBRIC_ANCHORS, RUBRIC_JUDGE_DRIFT

NOTHING_TO_JUDGE_AGAIN = "nothing to judge again: no scored response with a criterion in words; `dtef rubric run` makes some"
_PROMPT_OF_ANCHOR = ["blueprint", "prompt"]


def more_anchors(kept: pa.Table, n: int, seed: int, material: Mapping[str, pd.DataFrame]) -> pa.Table:
    """`rubric_anchor_items` filled up to `n`: those that are kept stay as they are, whatever became of their blueprint.

    `material`: `responses`, `criteria` (with `criterion_id`) and `prompts`, as of `label_material`. Fewer where there are fewer.
    """
    items = label_items(material["responses"], material["criteria"], material["prompts"])
    known = set(kept["item"].to_pylist())
    chosen = anchors(items[~items["item"].isin(known)], max(0, n - len(kept)), seed=seed)
    if chosen.empty:
        return kept
    judged = material["criteria"][material["criteria"]["kind"] == TEXT_KIND].rename(columns={"text": "criterion"})
    listed = judged.groupby(_PROMPT_OF_ANCHOR)["criterion"].agg(list).reset_index(name="criteria")
    rows = (
        chosen.merge(material["responses"], on=list(ITEM_KEYS[:8]))
        .merge(judged.drop(columns="kind"), on=[*_PROMPT_OF_ANCHOR, *ITEM_KEYS[8:]])
        .merge(listed, on=_PROMPT_OF_ANCHOR)
        .merge(material["prompts"][[*_PROMPT_OF_ANCHOR, "messages"]], on=_PROMPT_OF_ANCHOR)
    )
    return pa.concat_tables([kept, as_table(rows.assign(seed=seed), RUBRIC_ANCHOR_ITEMS)])


def anchor_judgings(kept: pa.Table, judges: Mapping[str, Sequence[JudgeConfig]], snapshot: str) -> list[Judging]:
    """Every judgement of the anchors in this snapshot: each by the judges of its blueprint."""
    found = []
    for row in kept.to_pylist():
        turns = tuple(Turn(message["role"], message["text"]) for message in row["messages"])
        case = Case(row["text"], row["criterion"], turns, tuple(row["criteria"]))
        response = {name: row[name] for name in ITEM_KEYS[1:8]} | {"snapshot": snapshot}
        found += [Judging(response, row, case, judge, 0) for judge in judges[row["blueprint"]]]
    return found


def anchor_rows(episodes: Sequence[Judging], played: Sequence[Played]) -> pa.Table:
    """The rows of `rubric_anchors`, in the order of the episodes."""
    rows = judgement_rows("", episodes, played)
    of_anchor: dict[str, Any] = {
        name: pa.array([one.criterion[name] for one in episodes], pa.string()) for name in ("blueprint", "item")
    }
    return pa.table(
        [of_anchor.get(one.name, rows[one.name] if one.name not in of_anchor else None) for one in RUBRIC_ANCHORS],
        schema=RUBRIC_ANCHORS,
    )


def judge_drift_rows(judged: pa.Table, options: WatchOptions | None = None) -> pa.Table:
    """RUBRIC_JUDGE_DRIFT: one row per judge, from the rows of `rubric_anchors`."""
    frame = judged.to_pandas().astype({"snapshot": "str"})
    found = judge_drifts(frame, night_times(frame["snapshot"].tolist()), options)
    return pa.Table.from_pylist([one.row for one in found], schema=RUBRIC_JUDGE_DRIFT)
