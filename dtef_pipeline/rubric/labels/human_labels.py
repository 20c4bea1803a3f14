"""People's labels on how far criteria are met: reading a filled-in sheet, storing the history, and replacing judges' points."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dtef_pipeline.errors import SourceError
from dtef_pipeline.rubric.tables import ITEM_KEYS
from dtef_pipeline.tables import field

RUBRIC_LABELS = pa.schema(
    [
        field("item", pa.string(), "Hash of prompt, response text and criterion of the label"),
        field("class", pa.string(), "Class that a person chose, such as CLASS_PARTIALLY_MET"),
        field(
            "score", pa.float64(), "Extent to which the criterion is met, 0-1, before should_not is inverted: higher is better"
        ),
        field("author", pa.string(), "Name of the person"),
        field("reason", pa.string(), "Explanation by the person; null: none"),
        field(
            "imported_at",
            pa.timestamp("us", tz="UTC"),
            "Time of the import; a later label of the same author replaces an earlier one",
        ),
        field("line", pa.int32(), "Line of the sheet, from 1; a later line of one import replaces an earlier one"),
        field("sheet", pa.string(), "File of the label"),
    ]
)
"""One row per imported label, including replaced ones."""
_NEEDED_CELLS = ("item", "class")
_CELL_SEPARATORS = (",", ";", "\t")
_AN_AUTHOR = "an author in the column author, or an author for the whole sheet"


def read_labels(
    text: str,
    *,
    file: str,
    scale: Mapping[str, float],
    imported_at: datetime,
    author: str | None = None,
    items: Collection[str] | None = None,
) -> pd.DataFrame:
    """Return the labels of a filled-in sheet, columns of RUBRIC_LABELS; rows without a class are ignored.

    `text`: CSV with the columns item and class, and optionally reason and author, in any order, separated by commas, semicolons or tabs.
    `scale`: number of each class; `CLASS_` and upper case may be omitted. `author`: author of rows that name none. `items`: known items; None:
    any. Raises SourceError with file, line, value and allowed values if a column is missing, a class or item is unknown, or a row has no author.
    """
    known_items = None if items is None else set(items)
    rows = []
    for line, row in _read_sheet_rows(text, file):
        if not row["class"].strip():
            continue
        name = _find_class(row["class"], scale, file, line)
        item = row["item"].strip()
        if not item or (known_items is not None and item not in known_items):
            raise SourceError(
                "unknown item", where=file, line=line, arrived=item, allowed="the items of a sheet written by labels sample"
            )
        row_author = (row.get("author") or "").strip() or author
        if not row_author:
            raise SourceError("a label without an author", where=file, line=line, arrived=row.get("author"), allowed=_AN_AUTHOR)
        reason = (row.get("reason") or "").strip() or None
        rows.append((item, name, float(scale[name]), row_author, reason, imported_at, line, file))
    table = pa.Table.from_pandas(pd.DataFrame(rows, columns=RUBRIC_LABELS.names), RUBRIC_LABELS, preserve_index=False)
    return pd.DataFrame(table.to_pandas())


def list_named_draws(text: str, *, file: str) -> set[str]:
    """Return the draws in the column draw of rows with a class; none if the sheet has no such column. Raises as `read_labels` does."""
    rows = (row for _, row in _read_sheet_rows(text, file) if row["class"].strip())
    return {row["draw"].strip() for row in rows if row.get("draw", "").strip()}


def merge_history(history: pd.DataFrame, additions: pd.DataFrame) -> pd.DataFrame:
    """Return all labels without duplicates, even if imported twice."""
    labels = pd.concat([history, additions], ignore_index=True) if len(history) else additions
    return labels.drop_duplicates(["item", "class", "author", "reason", "imported_at", "line"]).reset_index(drop=True)


def select_in_force(items: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """Return one row per labelled point, sorted as `items` (from `build_label_items`): ITEM_KEYS and `human`, the mean of its authors' latest
    labels. A missing path is -1.
    """
    latest = labels.sort_values(["imported_at", "line"], kind="stable").drop_duplicates(["item", "author"], keep="last")
    means = latest.groupby("item", sort=True)["score"].mean().rename("human")
    rows = fill_path(items[[*ITEM_KEYS, "item"]].merge(means, on="item"))
    return rows[[*ITEM_KEYS, "human"]].drop_duplicates(list(ITEM_KEYS))


def fill_path(points: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with -1 in place of a missing path, so that they can be joined."""
    return points.assign(path=points["path"].astype("Int64").fillna(-1))


def apply_human_labels(points: pd.DataFrame, items: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """Return the points with a label in place of `score`, `low` and `high` if there is one, and the column `labelled`.

    `points`: see rubric_points (an unscored point gets the score of its label). `items`: from `build_label_items`. A label is the extent to
    which the criterion is met; an `inverted` one scores 1 minus that.
    """
    joined = fill_path(points)[list(ITEM_KEYS)].merge(select_in_force(items, labels), on=list(ITEM_KEYS), how="left")
    label_values = joined["human"].to_numpy(dtype=np.float64)
    score = np.where(points["inverted"].to_numpy(dtype=bool), 1 - label_values, label_values)
    has_label = np.isfinite(score)
    columns: dict[str, Any] = {
        name: np.where(has_label, score, points[name].to_numpy(dtype=np.float64))
        for name in ("score", "low", "high")
        if name in points
    }
    if "reason" in points:
        columns["reason"] = points["reason"].astype(object).where(~has_label, None)
    return points.assign(**columns, labelled=has_label)


def _find_class(text: str, scale: Mapping[str, float], file: str, line: int) -> str:
    name = text.strip().upper().replace(" ", "_")
    for spelling in (name, f"CLASS_{name}"):
        if spelling in scale:
            return spelling
    raise SourceError("unknown class", where=file, line=line, arrived=text, allowed=list(scale))


def _read_sheet_rows(text: str, file: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the first line and the cells by column of each row that is not blank."""
    text = text.removeprefix("\ufeff")
    head = text.splitlines()[0] if text.strip() else ""
    separator = max(_CELL_SEPARATORS, key=head.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    columns = [name.strip().lower() for name in next(reader, [])]
    if missing := [name for name in _NEEDED_CELLS if name not in columns]:
        raise SourceError(
            f"no column {', '.join(missing)}", where=file, line=1, arrived=head, allowed="the columns of a sheet of labels"
        )
    begins = reader.line_num + 1
    for cells in reader:
        if any(cell.strip() for cell in cells):
            if len(cells) > len(columns):
                raise SourceError(
                    "more cells than columns",
                    where=file,
                    line=begins,
                    arrived=len(cells),
                    allowed=f"{len(columns)}, as in the first line",
                )
            yield begins, dict(zip(columns, [*cells, *[""] * (len(columns) - len(cells))], strict=True))
        begins = reader.line_num + 1
