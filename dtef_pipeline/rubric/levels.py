"""The levels of scores, the key columns of each, and means over sorted rows.

A **response** is one draw of a **cell**: a prompt answered by one variant of a model. A **variant** is a model at one temperature and one
place in the list of system prompts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

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


class RowGroups(NamedTuple):
    """The group of each row, and the groups in the order of their keys, regardless of the order of rows."""

    code: Codes  # (rows,)
    keys: pd.DataFrame  # (groups, names)

    def __len__(self) -> int:
        return len(self.keys)


def cast_keys(frame: pd.DataFrame, table: str, columns: Iterable[str] = ()) -> pd.DataFrame:
    """Return the frame with each key column in one type, so that rows of two tables can be joined.

    Raises ConfigError, naming the `table`, if one of `columns` is missing.
    """
    if missing := [name for name in columns if name not in frame]:
        raise ConfigError(f"{table}: no column {', '.join(missing)}; got {', '.join(map(str, frame.columns))}")
    return frame.astype({name: kind for name, kind in _KEY_TYPES.items() if name in frame}).reset_index(drop=True)


def group_rows(frame: pd.DataFrame, names: Sequence[str]) -> RowGroups:
    """Group rows by `names`; groups are sorted, and null is a separate value that comes last."""
    columns = list(names)
    code = _rank_keys(frame, columns)
    first = np.unique(code, return_index=True)[1]
    return RowGroups(code, frame[columns].iloc[first].reset_index(drop=True))


def number_groups(rows: pd.DataFrame, names: Sequence[str]) -> Codes:
    """Return the number of each row's group, (rows,), in the order of first rows; null is a value like any other."""
    return np.asarray(rows.groupby(list(names), dropna=False, sort=False).ngroup(), dtype=np.int64)


def _rank_keys(frame: pd.DataFrame, columns: list[str]) -> Codes:
    places = frame.groupby(columns, sort=True, dropna=False, observed=True).ngroup()
    return np.asarray(places.to_numpy(), dtype=np.int64)


def sort_unique(frame: pd.DataFrame, names: Sequence[str], table: str) -> pd.DataFrame:
    """Return the rows sorted by `names`, a unique key: sums over them have the same bits regardless of the order of `frame`.

    Raises ConfigError, naming the `table`, if two rows have the same key.
    """
    columns = list(names)
    code = _rank_keys(frame, columns)
    order = np.argsort(code, kind="stable")
    if duplicates := np.flatnonzero(np.diff(code[order]) == 0).tolist():
        row = frame[columns].iloc[order[duplicates[0]]].to_dict()
        raise ConfigError(f"{table}: two rows with {row}; allowed: one row per {', '.join(columns)}")
    return frame.iloc[order].reset_index(drop=True)


def sum_by_code(code: Codes, values: npt.ArrayLike, size: int) -> Floats:
    """Return the sum of each group, (size,), added in the order of rows; `values` (rows,) without nulls."""
    return np.asarray(np.bincount(code, weights=np.asarray(values, dtype=np.float64), minlength=size), dtype=np.float64)


def weighted_mean(code: Codes, values: Floats, weights: Floats, size: int) -> Floats:
    """Return the mean of each group's known `values` (rows,) by `weights` (rows,) above 0: (size,); NaN if none is known."""
    is_known = ~np.isnan(values)
    below = sum_by_code(code[is_known], weights[is_known], size)
    above = sum_by_code(code[is_known], weights[is_known] * values[is_known], size)
    return np.asarray(np.divide(above, below, out=np.full(size, np.nan), where=below > 0))


def count(code: Codes, mask: npt.ArrayLike, size: int) -> Codes:
    """Return the number of true values of `mask` (rows,) in each group, (size,)."""
    return np.bincount(code[np.asarray(mask, dtype=bool)], minlength=size).astype(np.int64)


Reasons = tuple[tuple[str, int], ...]
"""How often each reason was given, the most frequent first: a map of Arrow and DuckDB."""


def count_reasons(code: Codes, reasons: Sequence[str] | pd.Series, size: int) -> list[Reasons]:
    """Return the reasons of each group's rows with their counts; `reasons` (rows,) are not null."""
    reason_rows = pd.DataFrame({"code": code, "reason": np.asarray(reasons, dtype=object)}, columns=["code", "reason"])
    counts = reason_rows.groupby(["code", "reason"], as_index=False).size()
    counts = counts.sort_values(["code", "size", "reason"], ascending=[True, False, True])
    by_group: list[Reasons] = [()] * size
    for group, reason, n in zip(counts["code"].tolist(), counts["reason"].tolist(), counts["size"].tolist(), strict=True):
        by_group[group] = (*by_group[group], (str(reason), int(n)))
    return by_group


def display_id(model: str, temperature: float | None, system_index: int, n_systems: int) -> str:
    """Return the name of a variant as shown to people: `gpt-4o[temp:0.5][sp_idx:1]`.

    The temperature is omitted if not set, the place of the system prompt if there are fewer than two.
    """
    has_temperature = temperature is not None and not np.isnan(temperature)
    return "".join(
        (
            model,
            f"[temp:{temperature:g}]" if has_temperature else "",
            f"[sp_idx:{system_index}]" if n_systems > 1 else "",
        )
    )
