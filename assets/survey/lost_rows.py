"""What stood in a file of a stage that cannot be read any more, as the files beside it tell.

A run makes what its own options say. What earlier runs had put into the file would be gone from the tables without a word: other ways of
asking, and the responses of other models, which were paid for and are in the response store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import pyarrow as pa

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.variants import spec_of
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.tables import BLUEPRINTS
from resources.warehouse import Warehouse

RECIPE = ("condition", "context_level", "recipe")
"""The columns of `blueprints` that say in which ways prompts were made."""
_WAY = RECIPE[:2]
_OF_PROMPT = (KEYS.item, *_WAY)


def lost_recipes(warehouse: Warehouse, at: Mapping[str, str]) -> pa.Table:
    """The columns RECIPE of a partition whose `blueprints` cannot be read: the ways in which it was asked, made as in the rest of its round."""
    ways = {way for table in ("predictions", "scores") for way in _rows(_readable(warehouse, table, _WAY, at))}
    recipes: dict[tuple[str, ...], str] = {}
    for rows in _elsewhere(warehouse, "blueprints", RECIPE, at):
        recipes |= {(condition, level): recipe for condition, level, recipe in _rows(rows)}
        # What was never asked of this partition is told by the others: most often all were made alike.
        ways = ways or set(recipes)
        if ways <= set(recipes):
            break
    for condition, level in ways - set(recipes):
        # The words of a system prompt that is not shipped stand in the options of a run alone.
        with suppress(ConfigError):
            recipes[condition, level] = BlueprintOptions.of_condition(condition, [level]).recipe
    found = [dict(zip(RECIPE, (*way, recipes[way]), strict=True)) for way in sorted(ways) if way in recipes]
    return pa.Table.from_pylist(found, pa.schema([BLUEPRINTS.field(name) for name in RECIPE]))


class LostRows(NamedTuple):
    """The rows of one model in a partition of `predictions` that cannot be read."""

    model: ModelSpec
    rows: frozenset[tuple[str, ...]]
    """Of each the question, the condition, the context level and the draw."""
    draws: int

    def prompts(self, blueprints: pa.Table) -> pa.Table:
        """The prompts that it was asked."""
        asked = {row[:-1] for row in self.rows}
        return blueprints.filter(pa.array([row in asked for row in _rows(blueprints.select(_OF_PROMPT))], pa.bool_()))

    def kept(self, made: pa.Table) -> pa.Table:
        """Those of the rows made anew that were there; not those without a response, which a run may ask again."""
        rows = zip(_rows(made.select([*_OF_PROMPT, "draw"])), made["call_status"].to_pylist(), strict=True)
        return made.filter(pa.array([row in self.rows and status != "error" for row, status in rows], pa.bool_()))


def lost_predictions(warehouse: Warehouse, at: Mapping[str, str], snapshot: str) -> Iterator[LostRows]:
    """What the file held, by its scores; without those, by the scores of another partition of the round in the snapshot."""
    columns = ("model", "model_variant", *_OF_PROMPT, "draw")
    asked = _readable(warehouse, "scores", columns, {**at, "snapshot": snapshot})
    if not len(asked):
        others = _elsewhere(warehouse, "scores", columns, at, snapshot=snapshot)
        asked = next((rows for rows in others if len(rows)), asked)
    by_model: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    for name, variant, *row in _rows(asked):
        by_model.setdefault((name, variant), set()).add(tuple(row))
    for (name, variant), rows in by_model.items():
        if spec := spec_of(name, variant):
            yield LostRows(spec, frozenset(rows), 1 + max(int(row[-1]) for row in rows))


def _elsewhere(
    warehouse: Warehouse, table: str, columns: Sequence[str], at: Mapping[str, str], **levels: str
) -> Iterator[pa.Table]:
    """The rows of the other partitions of the round that can be read, one after the other."""
    first = {SPACE.first: at[SPACE.first]}
    for other in warehouse.values(table, SPACE.second, **first):
        if other != at[SPACE.second]:
            yield _readable(warehouse, table, columns, {**first, SPACE.second: other, **levels})


def _readable(warehouse: Warehouse, table: str, columns: Sequence[str], at: Mapping[str, str]) -> pa.Table:
    return warehouse.read_readable(table, lambda _: None, columns=columns, **at)


def _rows(table: pa.Table) -> Iterator[tuple[str, ...]]:
    """The rows, with all values as text."""
    return zip(*([str(value) for value in table[name].to_pylist()] for name in table.column_names), strict=True)
