"""What scores of criteria vary by: the answers, the judges, and repeated judgements of one judge.

A score is of an **item**, a criterion of a response: total variance = items (answers) + judges within items (how they differ on the same
text, in general and about it) + repeats (one judge, the same text). Estimates by the sums of squares of the nested analysis of variance with
unequal numbers (Searle, Casella & McCulloch 1992, 3.6 and appendix F), 0 where they come out below.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.rubric.label_keys import ITEM_KEYS

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

VARIED_BY = ("answers", "judges", "repeats")
NO_REPEATS = "each judge judged once: what repeats vary by is counted with the judges"
ONE_JUDGE = "one judge: what judges vary by is counted with the answers"


def variance_shares(judgements: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """One row per group of `by` (none: one row in all): the columns `by`, then `answers`, `judges`, `repeats` (shares, 0-1, which sum to 1; null
    where they cannot be told), `variance` (of a single score), `n` (scores), `n_items`, `reason`.

    `judgements` as rubric_judgements; those without a class play no part.
    """
    rows = judgements[judgements["score"].notna()]
    parts = [((), rows)] if not by else list(rows.groupby(list(by), sort=True))
    found = []
    for key, own in parts:
        names = dict(zip(by, key, strict=True))
        item = _numbered(own, list(ITEM_KEYS))
        found.append(
            {**names, **_shares_of(own["score"].to_numpy(dtype=np.float64), item, _numbered(own, [*ITEM_KEYS, "judge"]))}
        )
    return pd.DataFrame(found)


def _shares_of(score: Floats, item: Codes, cell: Codes) -> dict[str, object]:
    """`cell`: an item and a judge."""
    row: dict[str, object] = {
        **dict.fromkeys((*VARIED_BY, "variance"), np.nan),
        "n": len(score),
        "n_items": len(np.unique(item)),
    }
    repeats, judges, answers, reason = components(score, item, cell) if len(score) else (np.nan, np.nan, np.nan, "no scores")
    known = np.nan_to_num([answers, judges, repeats])
    total = float(known.sum())
    if total > 0:
        row |= {name: part / total for name, part in zip(VARIED_BY, (answers, judges, repeats), strict=True)}
    return {**row, "variance": total if len(score) else np.nan, "reason": reason}


def components(score: Floats, item: Codes, cell: Codes) -> tuple[float, float, float, str]:
    """Variances of repeats, of judges within items, and of items, 0 or more; NaN where the data cannot tell, and why."""
    centred = score - score.mean()
    n_cell, first = np.bincount(cell), np.unique(cell, return_index=True)[1]
    n_item, of_item = np.bincount(item), item[first]
    n, cells, items = len(score), len(n_cell), len(n_item)
    in_cells = float((np.bincount(cell, centred) ** 2 / n_cell).sum())
    in_items = float((np.bincount(item, centred) ** 2 / n_item).sum())
    squares = float((n_cell**2 / n_item[of_item]).sum())
    repeats = max(((centred**2).sum() - in_cells) / (n - cells), 0.0) if n > cells else np.nan
    of_repeats = np.nan_to_num(repeats)
    rest = in_cells - in_items - (cells - items) * of_repeats
    judges = max(rest / (n - squares), 0.0) if cells > items else np.nan
    of_judges = np.nan_to_num(judges)
    spread = n - float((n_item**2).sum()) / n
    shared = squares - float((n_cell**2).sum()) / n
    between = in_items - (items - 1) * of_repeats - shared * of_judges
    answers = max(between / spread, 0.0) if items > 1 else np.nan
    reason = ONE_JUDGE if cells == items else NO_REPEATS if n == cells else ""
    return float(repeats), float(judges), float(answers), reason


def _numbered(rows: pd.DataFrame, names: list[str]) -> Codes:
    return np.asarray(rows.groupby(names, dropna=False, sort=False).ngroup(), dtype=np.int64)
