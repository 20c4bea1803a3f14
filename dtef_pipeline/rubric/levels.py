"""The levels of scores, the key columns of each, and means over sorted rows.

A **response** is one draw of a **cell**: a prompt answered by one variant of a model. A **variant** is a model at one temperature and one
place in the list of system prompts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from dtef_pipeline.errors import ConfigError

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

RUN_KEYS = ("blueprint", "snapshot")
PROMPT_KEYS = (*RUN_KEYS, "prompt")
VARIANT_KEYS = (*RUN_KEYS, "model", "model_variant", "temperature", "system_index")
CELL_KEYS = (*PROMPT_KEYS, "model", "model_variant", "temperature", "system_index")
RESPONSE_KEYS = (*CELL_KEYS, "draw")
CRITERION_KEYS = ("block", "path", "position")
MODEL_KEYS = (*RUN_KEYS, "model")
_KEY_TYPES = {
    **dict.fromkeys(("blueprint", "snapshot", "prompt", "model", "model_variant", "block"), "str"),
    "temperature": "float64",
    **dict.fromkeys(("system_index", "draw", "path", "position"), "Int64"),
}


@dataclass(frozen=True)
class RowGroups:
    """The group of each row, and the groups in the order of their keys, regardless of the order of rows."""

    code: Codes  # (rows,)
    keys: pd.DataFrame  # (groups, names)

    def __len__(self) -> int:
        return len(self.keys)

    def sum(self, values: npt.ArrayLike) -> Floats:
        """Return the sum of each group, (groups,), added in the order of rows; `values` (rows,) without nulls."""
        sums = np.bincount(self.code, weights=np.asarray(values, dtype=np.float64), minlength=len(self))
        return np.asarray(sums, dtype=np.float64)

    def mean(self, values: npt.ArrayLike, weights: npt.ArrayLike = 1.0) -> Floats:
        """Return the mean of each group's known `values` (rows,) by `weights` above 0, (rows,): (groups,); NaN if none is known."""
        numbers = convert_to_numbers(values)
        is_known = ~np.isnan(numbers)
        known_weights = np.where(is_known, weights, 0.0)
        total = self.sum(known_weights)
        sums = self.sum(known_weights * np.where(is_known, numbers, 0.0))
        return np.asarray(np.divide(sums, total, out=np.full(len(self), np.nan), where=total > 0))

    def count(self, mask: npt.ArrayLike | None = None) -> Codes:
        """Return the number of rows in each group where `mask` (rows,) is true, by default of all rows: (groups,)."""
        code = self.code if mask is None else self.code[np.asarray(mask, dtype=bool)]
        return np.bincount(code, minlength=len(self)).astype(np.int64)


def convert_to_numbers(values: npt.ArrayLike) -> Floats:
    """Return a column as numbers, (rows,); NaN: null."""
    return np.asarray(pd.Series(values).to_numpy(dtype=np.float64, na_value=np.nan))


def cast_keys(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with each key column in one type, so that rows of two tables can be joined."""
    return frame.astype({name: kind for name, kind in _KEY_TYPES.items() if name in frame}).reset_index(drop=True)


def group_rows(frame: pd.DataFrame, names: Sequence[str]) -> RowGroups:
    """Group rows by `names`; groups are sorted, and null is a separate value that comes last."""
    code = _rank_keys(frame, names)
    first = np.unique(code, return_index=True)[1]
    return RowGroups(code, frame[list(names)].iloc[first].reset_index(drop=True))


def number_groups(rows: pd.DataFrame, names: Sequence[str]) -> Codes:
    """Return the number of each row's group, (rows,), in the order of first rows; null is a value like any other."""
    return np.asarray(rows.groupby(list(names), dropna=False, sort=False).ngroup(), dtype=np.int64)


def _rank_keys(frame: pd.DataFrame, names: Sequence[str]) -> Codes:
    places = frame.groupby(list(names), sort=True, dropna=False, observed=True).ngroup()
    return np.asarray(places.to_numpy(), dtype=np.int64)


def sort_unique(frame: pd.DataFrame, names: Sequence[str], table: str) -> pd.DataFrame:
    """Return the rows sorted by `names`, a unique key: sums over them have the same bits regardless of the order of `frame`.

    Raises ConfigError, naming the `table`, if two rows have the same key.
    """
    code = _rank_keys(frame, names)
    order = np.argsort(code, kind="stable")
    if duplicates := np.flatnonzero(np.diff(code[order]) == 0).tolist():
        row = frame[list(names)].iloc[order[duplicates[0]]].to_dict()
        raise ConfigError(f"{table}: two rows with {row}; allowed: one row per {', '.join(names)}")
    return frame.iloc[order].reset_index(drop=True)


Reasons = tuple[tuple[str, int], ...]
"""How often each reason was given, the most frequent first: a map of Arrow and DuckDB."""


def count_reasons(groups: RowGroups, reasons: pd.Series) -> list[Reasons]:
    """Return the reasons of each group's rows with their counts; `reasons` (rows,): null where there is none."""
    rows = pd.DataFrame({"code": groups.code, "reason": reasons.to_numpy(dtype=object)}).dropna()
    counts = rows.groupby(["code", "reason"], as_index=False).size()
    counts = counts.sort_values(["code", "size", "reason"], ascending=[True, False, True])
    by_group: list[Reasons] = [()] * len(groups)
    for group, reason, n in counts.itertuples(index=False, name=None):
        by_group[group] = (*by_group[group], (str(reason), int(n)))
    return by_group


def display_id(model: str, temperature: float | None, system_index: int, n_systems: int) -> str:
    """Return the name of a variant as shown to people: `gpt-4o[temp:0.5][sp_idx:1]`.

    The temperature is omitted if not set, the place of the system prompt if there are fewer than two.
    """
    heat = "" if temperature is None or np.isnan(temperature) else f"[temp:{temperature:g}]"
    return f"{model}{heat}" + (f"[sp_idx:{system_index}]" if n_systems > 1 else "")
