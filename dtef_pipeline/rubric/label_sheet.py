"""The sheet on which people label how far criteria are met, without seeing the models and the judgements, and what they wrote on it.

Whole prompts are drawn, each with a recorded probability, because labels of one prompt are correlated. An **item** is a response's text and
a criterion; responses with equal texts share it in all snapshots, and an edited criterion makes another item.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from dtef_pipeline.errors import ConfigError, SourceError
from dtef_pipeline.identity import digest
from dtef_pipeline.judging.hidden_names import HiddenNames, collect_hidden_names
from dtef_pipeline.rubric.blueprint.model import TEXT_KIND
from dtef_pipeline.rubric.tables import ITEM_KEYS, RUBRIC_LABEL_DRAWS, RUBRIC_LABEL_ITEMS, RUBRIC_LABELS
from dtef_pipeline.statistics.prediction_powered import compute_chances, draw_sample
from dtef_pipeline.tables import convert_to_schema

SHEET_COLUMNS = ("item", "prompt", "text", "hidden", "criterion", "class", "reason", "author")
"""Columns of the sheet; people fill in the last three. `hidden`: the number of names left out of the text."""
DRAWN_COLUMNS = ("blueprint", "prompt", "probability", "drawn", "seed")
_PROMPT_NAME = ["blueprint", "prompt"]
_ITEM_DIGITS = 16
_BEGINS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class LabelSample(NamedTuple):
    """A draw of prompts."""

    sheet: pd.DataFrame
    """One row per item, SHEET_COLUMNS, in random order."""
    draws: pd.DataFrame
    """One row per prompt that could have been drawn (DRAWN_COLUMNS), with its probability, which corrected scores need. Not for labellers."""
    items: pd.DataFrame
    """One row per point that a label of the sheet is about: ITEM_KEYS and `item`. Not for labellers."""


def build_label_items(responses: pd.DataFrame, criteria: pd.DataFrame, prompts: pd.DataFrame) -> pd.DataFrame:
    """Return one row per judged criterion of a response that has a text: ITEM_KEYS and `item`.

    The arguments are rows of rubric_responses, rubric_criteria and rubric_prompts. The item is a hash of the blueprint and of the
    conversation, text and criterion that labellers see, computed from hashes, because the texts of all rows together would fill the memory.
    """
    answers = responses.loc[_has_text(responses), [*ITEM_KEYS[:8], "text"]]
    points = criteria.loc[criteria["kind"] == TEXT_KIND, [*_PROMPT_NAME, *ITEM_KEYS[8:], "text"]]
    answers = answers.assign(text_hash=[digest(text) for text in answers["text"]]).drop(columns="text")
    points = points.assign(criterion_hash=[digest(text) for text in points["text"]]).drop(columns="text")
    conversations = prompts[_PROMPT_NAME].assign(
        shown_hash=[digest(_format_sheet_conversation(messages)) for messages in prompts["messages"]]
    )
    rows = answers.merge(points, on=_PROMPT_NAME).merge(conversations, on=_PROMPT_NAME)
    hash_rows = zip(*(rows[name].tolist() for name in ("blueprint", "shown_hash", "criterion_hash", "text_hash")), strict=True)
    return rows[list(ITEM_KEYS)].assign(item=[digest(*hashes)[:_ITEM_DIGITS] for hashes in hash_rows])


def add_texts(items: pd.DataFrame, responses: pd.DataFrame, criteria: pd.DataFrame, prompts: pd.DataFrame) -> pd.DataFrame:
    """Return rows of `build_label_items` with the texts that labellers and judges see: `shown` (the conversation, without the model's
    turns), `text` and `criterion`.
    """
    turns = prompts[_PROMPT_NAME].assign(shown=[_format_sheet_conversation(messages) for messages in prompts["messages"]])
    texts = responses[[*ITEM_KEYS[:8], "text"]]
    criterion_rows = criteria[[*_PROMPT_NAME, *ITEM_KEYS[8:], "text"]].rename(columns={"text": "criterion"})
    rows = items.merge(turns, on=_PROMPT_NAME, how="left").merge(texts, on=list(ITEM_KEYS[:8]), how="left")
    return rows.merge(criterion_rows, on=[*_PROMPT_NAME, *ITEM_KEYS[8:]], how="left")


def sample_labels(
    responses: pd.DataFrame,
    criteria: pd.DataFrame,
    prompts: pd.DataFrame,
    *,
    n_prompts: int,
    seed: int,
    per_model: int | None = None,
    known_items: Sequence[str] = (),
    show_names: bool = False,
) -> LabelSample:
    """Return a blind sheet of `n_prompts` prompts, drawn in proportion to their part of the board: blueprints equally, prompts by weight
    within each.

    Every model has responses to every drawn prompt that it answered: all of them, or `per_model`, chosen at random. Items in `known_items`
    are already labelled and are left out. Names in responses that reveal their model are hidden (`blind_rows`) unless `show_names`; this
    changes neither items nor draws. Equal seeds and tables give equal draws, regardless of the order of rows. Raises ConfigError if there
    is nothing to label.
    """
    units = _list_labelable_prompts(responses, criteria, prompts)
    if units.empty:
        raise ConfigError("labels: found no response with a text and a judged criterion; at least one is needed")
    rng = np.random.default_rng(seed)
    chance = compute_chances(units["size"], n_prompts)
    units = units.assign(probability=chance, drawn=draw_sample(chance, rng), seed=seed)
    sample = units.loc[units["drawn"], _PROMPT_NAME]
    rows = build_label_items(*(part.merge(sample, on=_PROMPT_NAME) for part in (responses, criteria, prompts)))
    rows = _limit_per_model(rows, per_model, rng).sort_values("item", kind="stable")
    pool = rows[~rows["item"].isin(list(known_items))].drop_duplicates("item").reset_index(drop=True)
    pool = add_texts(pool.iloc[rng.permutation(len(pool))], responses, criteria, prompts)
    pool = pool.assign(hidden=0) if show_names else blind_rows(pool, responses)
    sheet = pool.assign(prompt=pool["shown"])[list(SHEET_COLUMNS[:5])]
    return LabelSample(
        sheet.assign(**dict.fromkeys(SHEET_COLUMNS[5:], "")).reset_index(drop=True),
        units[list(DRAWN_COLUMNS)],
        rows[[*ITEM_KEYS, "item"]].reset_index(drop=True),
    )


def write_sheet_csv(sheet: pd.DataFrame) -> str:
    """Return the sheet as CSV that spreadsheets open as text: with a byte order mark, quoted cells, and no cell that begins a formula.

    A cell that begins with = + - @ or a tab gets an apostrophe before it; reading a sheet back needs none of these.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(sheet.columns)
    writer.writerows([_escape_cell(str(cell)) for cell in row] for row in sheet.itertuples(index=False))
    return "\ufeff" + buffer.getvalue()


def _escape_cell(cell: str) -> str:
    begins = cell.lstrip(" \n").startswith(_BEGINS_A_FORMULA)
    return f"'{cell}".replace("\0", "") if begins or cell.startswith("\0") else cell.replace("\0", "")


def _format_sheet_conversation(messages: Sequence[dict[str, str | None]]) -> str:
    """Format a single turn as its text, several turns with their roles."""
    turns = list(messages)
    if len(turns) == 1:
        return turns[0]["text"] or ""
    return "\n\n".join(f"[{turn['role']}] {turn['text'] or '(written by the model, see the text)'}" for turn in turns)


def _list_labelable_prompts(responses: pd.DataFrame, criteria: pd.DataFrame, prompts: pd.DataFrame) -> pd.DataFrame:
    """Return one row per prompt that can be labelled, with its `size`: its part of a mean over blueprints of weighted means over prompts."""
    answered_prompts = responses.loc[_has_text(responses), _PROMPT_NAME].drop_duplicates()
    judged_prompts = criteria.loc[criteria["kind"] == TEXT_KIND, _PROMPT_NAME].drop_duplicates()
    units = answered_prompts.merge(judged_prompts).merge(prompts[[*_PROMPT_NAME, "weight"]])
    units = units.sort_values(_PROMPT_NAME).reset_index(drop=True)
    return units.assign(size=units["weight"] / units.groupby("blueprint")["weight"].transform("sum"))


def _has_text(responses: pd.DataFrame) -> pd.Series:
    return responses["text"].fillna("").str.strip() != ""


def _limit_per_model(rows: pd.DataFrame, limit: int | None, rng: np.random.Generator) -> pd.DataFrame:
    """Choose at most `limit` responses of each model per prompt at random."""
    if limit is None:
        return rows
    response = list(ITEM_KEYS[:8])
    units = rows[response].drop_duplicates().sort_values(response).reset_index(drop=True)
    units = units.iloc[rng.permutation(len(units))]
    sample = units[units.groupby(["blueprint", "snapshot", "prompt", "model"]).cumcount() < limit]
    return rows.merge(sample, on=response)


def blind_rows(rows: pd.DataFrame, responses: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with [model], [company] or [provider] in place of each name in `text`; `hidden` is the number of these names.

    `rows`: blueprint, `shown` (the prompt), `text` and `criterion`, see `add_texts`. `responses`: see rubric_responses; the names of a
    blueprint are those of the models that answered it, by `model`, `model_variant` and, if it is a column, `served_model`. A name in the
    prompt or criterion of the row is not hidden: the row is about it.
    """
    names = {blueprint: _collect_names(answers) for blueprint, answers in responses.groupby("blueprint", sort=False)}

    @cache
    def hide_in_row(blueprint: str, conversation: str, criterion: str) -> HiddenNames:
        return names[blueprint].remove_names_in(f"{conversation}\n{criterion}")

    columns = (rows[name].tolist() for name in ("blueprint", "shown", "criterion", "text"))
    hidden_texts = []
    for blueprint, conversation, criterion, text in zip(*columns, strict=True):
        row_names = hide_in_row(blueprint, conversation, criterion)
        hidden_texts.append((row_names.hide(text), len(row_names.find_names(text))))
    return rows.assign(text=[text for text, _ in hidden_texts], hidden=[number for _, number in hidden_texts])


def _collect_names(responses: pd.DataFrame) -> HiddenNames:
    variants, names, served = (
        {value for value in responses.get(column, ()) if isinstance(value, str) and value}
        for column in ("model_variant", "model", "served_model")
    )
    return collect_hidden_names(sorted(variants), sorted(names | served))


_DRAW_DIGITS = 12
_OF_A_LABEL = ["item", "author"]


def draw_id(sample: LabelSample) -> str:
    """Return a hash of the draw and its probabilities: equal for the same draw from the same tables."""
    prompt_rows = sample.draws.sort_values(["blueprint", "prompt"], kind="stable").to_numpy().tolist()
    return digest("label draw", prompt_rows, sorted(sample.items["item"].tolist()))[:_DRAW_DIGITS]


def add_draw(draws: pa.Table, items: pa.Table, sample: LabelSample, drawn_at: datetime) -> tuple[pa.Table, pa.Table]:
    """Return `rubric_label_draws` and `rubric_label_items` with one draw added; unchanged if they already have it."""
    name = draw_id(sample)
    if name not in set(draws["draw_id"].to_pylist()):
        rows = sample.draws.assign(draw_id=name, drawn_at=drawn_at, imported=False)
        draws = pa.concat_tables([draws, convert_to_schema(rows, RUBRIC_LABEL_DRAWS)])
    if name not in set(items["draw_id"].to_pylist()):  # also where their file was lost
        items = pa.concat_tables([items, convert_to_schema(sample.items.assign(draw_id=name), RUBRIC_LABEL_ITEMS)])
    return draws, items


def mark_imported(draws: pa.Table, names: Collection[str]) -> pa.Table:
    """Return `rubric_label_draws` with these draws marked as imported, so that they count."""
    flags = [
        was or name in names for was, name in zip(draws["imported"].to_pylist(), draws["draw_id"].to_pylist(), strict=True)
    ]
    index = draws.schema.get_field_index("imported")
    return draws.set_column(index, draws.schema.field(index), pa.array(flags, pa.bool_()))


def find_draws(items: pa.Table, labels: Collection[str]) -> set[str]:
    """Return the draws whose sheets have any item of `labels`, for sheets that do not name their draw."""
    keys = set(labels)
    return {name for name, item in zip(items["draw_id"].to_pylist(), items["item"].to_pylist(), strict=True) if item in keys}


def select_new_labels(history: pd.DataFrame, additions: pd.DataFrame) -> pd.DataFrame:
    """Return the labels of `additions` that differ from the author's latest label of the item, so a sheet that is imported again adds none.

    Both: columns of RUBRIC_LABELS.
    """
    columns = [*_OF_A_LABEL, "class", "reason"]
    last, now = (_select_latest_labels(labels)[columns].fillna("") for labels in (history, additions))
    repeats = now.merge(last, on=columns)[_OF_A_LABEL]
    rows = additions.merge(repeats, "left", _OF_A_LABEL, indicator="known")
    return pd.DataFrame(rows.loc[rows["known"] == "left_only", RUBRIC_LABELS.names]).reset_index(drop=True)


def merge_label_rows(history: pa.Table, additions: pd.DataFrame) -> pa.Table:
    """Return `rubric_labels` with the new labels of `additions`; unchanged if there are none."""
    new = select_new_labels(history.to_pandas(), additions)
    return pa.concat_tables([history, convert_to_schema(new, RUBRIC_LABELS)]) if len(new) else history


def _select_latest_labels(labels: pd.DataFrame) -> pd.DataFrame:
    sorted_labels = labels.sort_values(["imported_at", "line"], kind="stable")
    return sorted_labels.drop_duplicates(_OF_A_LABEL, keep="last")


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


def select_in_force(items: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """Return one row per labelled point, sorted as `items` (from `build_label_items`): ITEM_KEYS and `human`, the mean of its authors' latest
    labels. A missing path is -1.
    """
    means = _select_latest_labels(labels).groupby("item", sort=True)["score"].mean().rename("human")
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
