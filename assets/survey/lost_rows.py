"""What stood in a file of a stage that cannot be read any more, as the files beside it and the response store tell.

A run makes what its own options say. What earlier runs had put into the file would be gone from the tables without a word: other ways of
asking, and the responses of other models, which were paid for and are in the response store. What cannot be told is said.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import pyarrow as pa

from dtef_pipeline.asking.models import ModelSpec, is_computed
from dtef_pipeline.asking.variants import spec_of
from dtef_pipeline.errors import ConfigError, WarehouseError
from dtef_pipeline.keys import MODEL
from dtef_pipeline.survey.blueprint.options import BlueprintOptions
from dtef_pipeline.survey.identity import SPACE
from dtef_pipeline.survey.keys import KEYS
from dtef_pipeline.survey.tables import BLUEPRINTS
from dtef_pipeline.text.counted import counted
from resources.responses.store import StoredModel
from resources.warehouse import TABLES, Warehouse

RECIPE = ("condition", "context_level", "recipe")
"""The columns of `blueprints` that say in which ways prompts were made."""
_WAY = RECIPE[:2]
_OF_PROMPT = (KEYS.item, *_WAY)
_WITHOUT_RESPONSE = ("error", "budget")
"""States of rows whose calls a run may make again."""

_DRAWN_BY = ("--questions", "--sample-segments")
Order = Mapping[str, tuple[int, ...]]
"""By question, its places in the draw that the options of `_DRAWN_BY` cut off, from 0."""
InStore = Callable[[str], Iterable[StoredModel]]
"""The models with stored responses in a snapshot."""


class LostRecipes(NamedTuple):
    """The ways in which a partition was asked whose `blueprints` cannot be read."""

    rows: pa.Table
    """The columns RECIPE."""
    notes: list[str]
    """What cannot be told, a line for each."""


def lost_recipes(warehouse: Warehouse, at: Mapping[str, str]) -> LostRecipes:
    """The ways in which the partition was asked, as its other tables tell, made as in the rest of its round."""
    tables = ("predictions", "scores", "segment_results", "drift_checks")
    ways = {way for table in tables for way in _rows(_readable(warehouse, table, _WAY, at))}
    notes = []
    if not ways and warehouse.values("predictions", "snapshot", **at):
        notes.append(
            f"{_named(at)}: nothing that can be read tells in which conditions and at which context levels it was asked; prompts are made "
            "for those of the other segments of the round; `dtef run` with --condition and --context makes others, and asks nothing twice"
        )
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
    if lacking := sorted(ways - set(recipes)):
        which = ", ".join(f"{condition} at context {level}" for condition, level in lacking)
        notes.append(f"{_named(at)}: the words of a prompt are not known: {which}; the run that made it, given again, makes it")
    found = [dict(zip(RECIPE, (*way, recipes[way]), strict=True)) for way in sorted(ways) if way in recipes]
    return LostRecipes(pa.Table.from_pylist(found, pa.schema([BLUEPRINTS.field(name) for name in RECIPE])), notes)


class LostRows(NamedTuple):
    """The rows of one model in a partition of `predictions` that cannot be read."""

    model: ModelSpec
    draws: int
    rows: frozenset[tuple[str, ...]] | None = None
    """Of each the question, the condition, the context level and the draw; None: all that have a stored response."""
    answered: int = 0
    """How many of them had a response, as far as it is told."""

    def prompts(self, blueprints: pa.Table) -> pa.Table:
        """The prompts that it was asked."""
        if self.rows is None:
            return blueprints
        asked = {row[:-1] for row in self.rows}
        return blueprints.filter(pa.array([row in asked for row in _rows(blueprints.select(_OF_PROMPT))], pa.bool_()))

    def kept(self, made: pa.Table) -> pa.Table:
        """Those of the rows made anew that were there; not those without a response, which a run may ask again."""
        rows = zip(_rows(made.select([*_OF_PROMPT, "draw"])), made["call_status"].to_pylist(), strict=True)
        there = [status != "error" and (self.rows is None or row in self.rows) for row, status in rows]
        return made.filter(pa.array(there, pa.bool_()))


class LostPredictions(NamedTuple):
    """What a partition of `predictions` held that cannot be read."""

    at: Mapping[str, str]
    models: list[LostRows]
    misspelled: list[tuple[str, str]]
    """Names and variants that stand for no model any more."""
    is_told: bool
    """Whether a table of the partition itself told it."""
    elsewhere: frozenset[str] | None = None
    """Where none told it, the variants that another partition of the round held; None: nothing tells of one."""

    def require_all(self, kept: Sequence[pa.Table], let_go: Collection[str], order: Order, remake: str) -> None:
        """Raises WarehouseError where rows are not had again that scores or results of the partition still have: they would go there too.

        `kept`: the rows that are had again, of each of the models. `let_go`: names of models whose rows may go. `order`: the places of each
        question in the draw. `remake`: the command that makes the file again.
        """
        if not self.is_told:
            return
        lacking = [(one, one.answered - len(rows)) for one, rows in zip(self.models, kept, strict=True)]
        lost = [(one, n) for one, n in lacking if n > 0 and one.model.name not in let_go]
        unknown = [name for name, _ in self.misspelled if name not in let_go]
        if not lost and not unknown:
            return
        which = [f"{counted(n, 'row')} of {one.model.name} (no response in the response store)" for one, n in lost]
        which += [f"all rows of {name} (its settings cannot be read)" for name in unknown]
        rows = {row for one, _ in lost for row in one.rows or ()}
        names = [one.model.name for one, _ in lost]
        ask = f"ask them again: `{_asking(self.at, rows, order, names)}`, or " if lost else ""
        gone = " ".join(f"--let-go {shlex.quote(name)}" for name in [*names, *unknown])
        raise WarehouseError(
            f"snapshot {self.at['snapshot']}: the damaged file of predictions was left as it is, since these rows cannot be made again and "
            f"would go from scores and results too: {', '.join(which)}; {ask}let them go: `{remake} {gone}`"
        )

    def notes(self, kept: Sequence[pa.Table], order: Order) -> list[str]:
        """What may not be had again where no table of the partition told what it held, a line for each. As for `require_all`."""
        if self.is_told:
            return []
        lines = [
            f"{_named(self.at)}: the variant {variant} is not spelled as a model, so its rows are gone"
            for _, variant in self.misspelled
        ]
        there = {one.model.variant for one, rows in zip(self.models, kept, strict=True) if len(rows)}
        is_as_elsewhere = self.elsewhere is not None and self.elsewhere <= there
        return lines if is_as_elsewhere else [*lines, self._untold(kept, order)]

    def _untold(self, kept: Sequence[pa.Table], order: Order) -> str:
        had = {one.model.name: rows for one, rows in zip(self.models, kept, strict=True) if not one.model.is_computed}
        stored = ", ".join(f"{counted(len(rows), 'row')} of {name}" for name, rows in had.items() if len(rows)) or "none"
        computed = (
            ", ".join(one.model.name for one in self.models if one.model.is_computed) or "the two that stand in every run"
        )
        asked = {row for rows in had.values() for row in _rows(rows.select([*_OF_PROMPT, "draw"]))}
        return (
            f"{_named(self.at)}: predictions, scores and results cannot be read, so nothing tells which models it held. Made again: all that "
            f"the response store has ({stored}) and baselines ({computed}); where it had other baselines, this makes them again: "
            f"`{_asking(self.at, asked, order, ['baselines'])}`"
        )


def _asking(at: Mapping[str, str], rows: Collection[tuple[str, ...]], order: Order, models: Sequence[str]) -> str:
    """The command that asks models for these rows: of each the question, the condition, the context level and the draw."""
    options = [(f"--{level}", at[level]) for level in (SPACE.first, SPACE.second)]
    by_column = {one.column: one for one in TABLES["predictions"].remake.asked}
    values = {name: sorted({row[place] for row in rows}) for place, name in enumerate(_WAY, start=1)}
    for name, found in {**values, "snapshot": [at["snapshot"]]}.items():
        options += [(by_column[name].option, value) for value in found if found != [by_column[name].usual]]
    asked = {row[0] for row in rows} & set(order)
    for place, option in enumerate(_DRAWN_BY):
        last = max((order[question][place] for question in asked), default=-1)
        within = {question: places for question, places in order.items() if places[place] <= last}
        if 0 < len(within) < len(order):
            options.append((option, str(last + 1)))
            order = within
    if (draws := 1 + max((int(row[-1]) for row in rows), default=0)) > 1:
        options.append(("--draws", str(draws)))
    options += [("--model", name) for name in models]
    return f"dtef run {' '.join(f'{option} {shlex.quote(value)}' for option, value in options)}"


def lost_predictions(warehouse: Warehouse, at: Mapping[str, str], snapshot: str, in_store: InStore) -> LostPredictions:
    """What the file held: by its scores, else by the results of its segment.

    Where neither can be read, language models are those of the response store, and baselines those of another segment of the round.
    """
    here = {**at, "snapshot": snapshot}
    if told := _scored(warehouse, here) or _listed(warehouse, here):
        return LostPredictions(here, *_specs(told), is_told=True)
    another = _of_another(warehouse, here)
    found, misspelled = _specs({who: of for who, of in another.items() if is_computed(who[1])})
    for model in in_store(snapshot):
        if spec := spec_of(model.name, model.variant):
            found.append(LostRows(spec, model.draws))
        else:
            misspelled.append((model.name, model.variant))
    elsewhere = frozenset(variant for _, variant in another) or None
    return LostPredictions(here, found, misspelled, is_told=False, elsewhere=elsewhere)


class _Told(NamedTuple):
    rows: set[tuple[str, ...]]
    answered: int


_ByModel = dict[tuple[str, str], _Told]
"""By model and variant: of each row the question, the condition, the context level and the draw; and how many had a response."""


def _specs(told: _ByModel) -> tuple[list[LostRows], list[tuple[str, str]]]:
    """The models, and the variants that stand for none."""
    found, misspelled = [], []
    for (name, variant), of_model in told.items():
        if (spec := spec_of(name, variant)) is None:
            misspelled.append((name, variant))
        else:
            found.append(
                LostRows(spec, 1 + max(int(row[-1]) for row in of_model.rows), frozenset(of_model.rows), of_model.answered)
            )
    return found, misspelled


def _scored(warehouse: Warehouse, here: Mapping[str, str]) -> _ByModel:
    """By the scores of a partition."""
    found: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    for name, variant, *row, status in _rows(_readable(warehouse, "scores", (*MODEL, *_OF_PROMPT, "draw", "status"), here)):
        if status not in _WITHOUT_RESPONSE:
            found.setdefault((name, variant), set()).add(tuple(row))
    return {who: _Told(rows, len(rows)) for who, rows in found.items()}


def _listed(warehouse: Warehouse, here: Mapping[str, str]) -> _ByModel:
    """By the results of a segment: they list questions and count responses, and do not say which draws had one."""
    columns = (*MODEL, *_WAY, "targets", "n_total", *(f"n_{status}" for status in _WITHOUT_RESPONSE), "questions")
    found: _ByModel = {}
    for row in _readable(warehouse, "segment_results", columns, here).to_pylist():
        if row["targets"] != "all":
            continue
        most = max(-(-row["n_total"] // len(row["questions"])), *(one["n_scored"] for one in row["questions"]))
        rows, answered = found.get((who := (row["model"], row["model_variant"])), _Told(set(), 0))
        for one in row["questions"]:
            # Every draw of a baseline is scored, unless it has nothing to say at all.
            draws = one["n_scored"] or most if is_computed(row["model_variant"]) else most
            rows |= {(one[KEYS.item], *(row[name] for name in _WAY), str(draw)) for draw in range(draws)}
        without = sum(row[f"n_{status}"] for status in _WITHOUT_RESPONSE)
        found[who] = _Told(rows, answered + row["n_total"] - without)
    return found


def _of_another(warehouse: Warehouse, here: Mapping[str, str]) -> _ByModel:
    """By another partition of the round in the snapshot."""
    for other in warehouse.values("predictions", SPACE.second, **{SPACE.first: here[SPACE.first]}):
        there = {**here, SPACE.second: other}
        if other != here[SPACE.second] and (told := _scored(warehouse, there) or _listed(warehouse, there)):
            return told
    return {}


def _elsewhere(warehouse: Warehouse, table: str, columns: Sequence[str], at: Mapping[str, str]) -> Iterator[pa.Table]:
    """The rows of the other partitions of the round that can be read, one after the other."""
    first = {SPACE.first: at[SPACE.first]}
    for other in warehouse.values(table, SPACE.second, **first):
        if other != at[SPACE.second]:
            yield _readable(warehouse, table, columns, {**first, SPACE.second: other})


def _readable(warehouse: Warehouse, table: str, columns: Sequence[str], at: Mapping[str, str]) -> pa.Table:
    return warehouse.read_readable(table, lambda _: None, columns=columns, **at)


def _rows(table: pa.Table) -> Iterator[tuple[str, ...]]:
    """The rows, with all values as text."""
    return zip(*([str(value) for value in table[name].to_pylist()] for name in table.column_names), strict=True)


def _named(at: Mapping[str, str]) -> str:
    """`S1/country:brazil`, with its snapshot where one is given."""
    key = SPACE.key(at[SPACE.first], at[SPACE.second])
    return f"{key}, snapshot {at['snapshot']}" if "snapshot" in at else key
