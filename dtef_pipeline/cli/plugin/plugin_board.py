"""`dtef NAME board` of a plugin family, and what it brings to the commands that take `--family`."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import pyarrow as pa

from dtef_pipeline.boards.cuts import of_cut
from dtef_pipeline.boards.family_views import BoardView
from dtef_pipeline.cli.families import CommandFamily, meanings_of, of_models, require_rolled_up
from dtef_pipeline.cli.opened_warehouse import NothingToShowError, reads_tables
from dtef_pipeline.cli.terminal import print_rows
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.family.item_scores import BY_PART, OVERALL, cuts_of
from dtef_pipeline.family.item_subject import item_subject
from dtef_pipeline.family.record import Family
from resources.warehouse import Warehouse, part_of_family

_RANKED = ("rank", "model", "score", "interval", "rank_low", "rank_high", "n_items", "n_clusters", "coverage", "parse_rate")
_HIDDEN_FIRST = ("coverage", "n_clusters", "rank_low", "rank_high", "parse_rate", "metric")
_PAIR_SHOWN = ("model", "other_model", "verdict", "difference", "interval", "n_items", "n_clusters", "p_adjusted")


def views_of(family: Family) -> tuple[BoardView, ...]:
    """What `board --by` shows."""
    needs = f"a score: `dtef {family.name} run --model MODEL` asks and scores"
    own, ends = (*family.scores.board, *_RANKED), ("score_low", "score_high")
    levels, kept = (family.space.first, family.space.second), ("rank", "model", "score")
    shows = "each model's mean score over items, with a 95 % interval"
    in_each = f"the same in each {family.part}"
    return (
        BoardView(OVERALL, family.board, shows, own, kept, needs, _HIDDEN_FIRST, ends=ends),
        BoardView(
            BY_PART,
            family.board,
            in_each,
            (*levels, *own),
            (*levels, *kept),
            needs,
            _HIDDEN_FIRST,
            ends=ends,
            who=(*levels, "model"),
        ),
        BoardView(
            "comparisons",
            "comparisons",
            "every two models on the items that both have a score for",
            _PAIR_SHOWN,
            ("model", "other_model", "difference"),
            f"scores of two models: {needs.partition(': ')[2]}",
            estimate="difference",
            who=("model", "other_model"),
        ),
    )


@reads_tables
def show(warehouse: Warehouse, name: str, by: str, models: Sequence[str], output: str) -> None:
    """The rows of a view, best model first."""
    family = FAMILY_BY_NAME[name]
    view = next(one for one in views_of(family) if one.name == by)
    require_rolled_up(warehouse, name, view.table, family.scored)
    rows = warehouse.rows(view.table, **part_of_family(view.table, name))
    frame: pd.DataFrame = rows.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
    frame = of_models(frame, models, by)
    if view.table == family.board:
        frame = of_cut(frame, by, cuts_of(family.space))
    if not len(frame):
        raise NothingToShowError(f"nothing to show by {by}: it needs {view.needs}")
    print_rows(view, frame, output, (), meanings_of(view.table))


def plugin_commands(family: Family) -> CommandFamily:
    """Its record for `dtef costs`, `drift` and `report`."""
    return CommandFamily(
        name=family.name,
        part=family.part,
        asks=f"dtef {family.name} run --model MODEL",
        subject=item_subject(family),
    )
