"""The sections on rubrics of a model's page: its best and worst blueprints and tags compared with others, and its worst criteria."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import pandas as pd

from dtef_pipeline.report.row_reader import StoredRow
from dtef_pipeline.rubric.blueprint.model import SHOULD_NOT
from dtef_pipeline.rubric.results.blueprint_run import describe_criterion
from dtef_pipeline.rubric.site.prompt_parts import describe_point_state, format_class, truncate_model_text
from dtef_pipeline.rubric.site.rubric_rows import RubricRows, judge_words
from dtef_pipeline.site.content import Link, Section, TemplateBlock, convert_to_rows, is_unknown
from dtef_pipeline.site.leads import compare_with_others, leads_section
from dtef_pipeline.text.shortening import shorten_to_line

_MAX_WORST, _LONGEST_HEADING = 5, 300
_WORST_HOW = (
    "Criteria on which its mean point is farthest below that of the other models, with its worst response. The point is 0-1, higher is "
    "better, and reversed for should_not."
)
_CRITERION = ["blueprint", "snapshot", "prompt", "block", "path", "position"]
_RESPONSE_OF_MODEL = ["model_variant", "temperature", "system_index", "draw"]


class RubricsOfModel:
    """A callable that takes a model's name on the leaderboard."""

    def __init__(self, rows: RubricRows) -> None:
        self._rows = rows

    def __call__(self, name: str) -> Sequence[Section]:
        """Return sections on blueprints, tags and worst criteria."""
        blueprints = self._build_part_rows(self._blueprint_rows, name, "blueprint")
        tags = self._build_part_rows(self._tag_rows, name, "tag")
        return [
            leads_section("blueprints", "by blueprint", "Blueprint", blueprints),
            leads_section("tags", "by tag", "Tag", tags),
            self._build_worst_section(name),
        ]

    @cached_property
    def _blueprint_rows(self) -> pd.DataFrame:
        return compare_with_others(self._rows.cut("blueprint"), ["blueprint"])

    @cached_property
    def _tag_rows(self) -> pd.DataFrame:
        return compare_with_others(self._rows.cut("tag"), ["tag"])

    def _build_part_rows(self, parts: pd.DataFrame, name: str, part: str) -> list[dict[str, Any]]:
        link = self._rows.link if part == "blueprint" else self._rows.tag_link
        # A tag with a single blueprint would repeat the blueprint's row.
        several = [tag for tag, blueprints in self._rows.tags.items() if len(blueprints) > 1]
        names = list(self._rows.about) if part == "blueprint" else several
        rows = parts[(parts["model"] == name) & parts[part].isin(names)].sort_values(["lead", part], ascending=[False, True])
        return [{**row, "part": link(row[part])} for row in convert_to_rows(rows)]

    def _build_worst_section(self, name: str) -> Section:
        items = [item for item in self._worst if item["model"] == name]
        part = [TemplateBlock("rubric/worst.html.j2", {"items": items})] if items else []
        return Section("worst", "criteria on which it is farthest behind other models", part, "", _WORST_HOW if items else "")

    @cached_property
    def _worst(self) -> list[dict[str, Any]]:
        """The criteria with the largest gaps of all models, each with prompt, response and judgements; read together."""
        criteria = _find_worst_criteria(self._rows.cut("criterion"))
        if not len(criteria):
            return []
        points = self._select_rows("rubric_points", ["model", *_CRITERION], criteria)
        points = points[points["score"].notna()].sort_values(["score", *_RESPONSE_OF_MODEL], kind="stable")
        points = points.drop_duplicates(["model", *_CRITERION])
        texts = self._select_rows("rubric_responses", ["model", *_CRITERION[:3], *_RESPONSE_OF_MODEL], points)
        verdicts = self._select_rows("rubric_judgements", ["model", *_CRITERION, *_RESPONSE_OF_MODEL], points)
        words = {
            tuple(map(_simplify_value, (row[key] for key in ("blueprint", *_CRITERION[2:])))): describe_criterion(row)
            for row in convert_to_rows(self._select_rows("rubric_criteria", ["blueprint", *_CRITERION[2:]], criteria))
        }
        items = criteria.merge(
            points[["model", *_CRITERION, *_RESPONSE_OF_MODEL, *_POINT]],
            "inner",
            ["model", *_CRITERION],
            suffixes=("_mean", ""),
        )
        return [self._build_item(row, words, texts, verdicts) for row in convert_to_rows(items)]

    def _build_item(
        self, row: StoredRow, words: Mapping[Any, str], texts: pd.DataFrame, verdicts: pd.DataFrame
    ) -> dict[str, Any]:
        response = ["model", *_CRITERION[:3], *_RESPONSE_OF_MODEL]
        judgements = sorted(
            convert_to_rows(_filter_same(verdicts, row, [*response, *_CRITERION[3:]])),
            key=lambda one: (one["judge"], one.get("judge_draw") or 0),
        )
        text = convert_to_rows(_filter_same(texts, row, response))
        number, prompt = self._rows.prompts.get((row["blueprint"], row["prompt"]), (0, row["prompt"]))
        point = {name: None if is_unknown(row.get(name)) else row[name] for name in _POINT}
        return {
            "model": row["model"],
            "link": Link(
                f"{self._rows.title(row['blueprint'])}, prompt {number}",
                self._rows.build_prompt_address(row["blueprint"], row["prompt"]),
            ),
            "criterion": shorten_to_line(
                words.get(tuple(_simplify_value(row[key]) for key in ("blueprint", *_CRITERION[2:])), ""), _LONGEST_HEADING
            ),
            "is_unwanted": row["block"] == SHOULD_NOT,
            "score": row["score"],
            "others": row["others"],
            "prompt": prompt,
            "text": truncate_model_text(text[0]["text"]) if text else "",
            "states": [state for state in (describe_point_state(point, judgements), point["explanation"]) if state],
            "verdicts": [
                (judge_words(item["judge"]), format_class(item), truncate_model_text(item["reflection"])) for item in judgements
            ],
        }

    def _select_rows(self, table: str, keys: Sequence[str], key_rows: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of a table whose keys match a row of `key_rows`; null matches null."""
        columns = self._rows.rows.columns(table)
        if not {*keys} <= columns:
            return pd.DataFrame(columns=[*keys, "score", "text", "judge", "class", "reflection", "kind", "fn", "args"])
        connection = self._rows.rows.connection
        connection.register("chosen_keys", key_rows[list(keys)].drop_duplicates())
        condition = " AND ".join(f"rows.{key} IS NOT DISTINCT FROM chosen.{key}" for key in keys)
        query = f"SELECT rows.* FROM {table} AS rows SEMI JOIN chosen_keys AS chosen ON {condition}"
        matches: pd.DataFrame = connection.sql(query).to_arrow_table().to_pandas()
        connection.unregister("chosen_keys")
        return matches


_POINT = ["score", "partial", "low", "high", "reason", "labelled", "judge_score", "n_answered", "n_judges", "explanation"]


def _find_worst_criteria(criteria: pd.DataFrame) -> pd.DataFrame:
    """Return for each model the criteria on which it is farthest below the other models."""
    rows = compare_with_others(criteria, _CRITERION)
    behind = rows[rows["lead"] < 0].sort_values(["model", "lead", *_CRITERION], kind="stable")
    return behind.groupby("model", sort=True).head(_MAX_WORST)[["model", *_CRITERION, "score", "others", "lead"]]


def _filter_same(frame: pd.DataFrame, row: Mapping[str, Any], keys: Sequence[str]) -> pd.DataFrame:
    mask = pd.Series(True, frame.index)
    for key in keys:
        mask &= frame[key].isna() if is_unknown(row[key]) else frame[key] == row[key]
    return frame[mask]


def _simplify_value(value: Any) -> Any:
    return None if is_unknown(value) else value
