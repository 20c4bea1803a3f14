"""What a plugin family brings to the commands that read its tables: the views of its board, and what is watched for drift."""

from __future__ import annotations

from dtef_pipeline.boards.family_views import BoardView, comparisons_view
from dtef_pipeline.cli.families import CommandFamily
from dtef_pipeline.family.item_scores import BY_PART, OVERALL, cuts_of
from dtef_pipeline.family.item_subject import item_subject
from dtef_pipeline.family.record import Family

_RANKED = ("rank", "model", "score", "interval", "rank_low", "rank_high", "n_items", "n_clusters", "coverage", "parse_rate")
_HIDDEN_FIRST = ("coverage", "n_clusters", "rank_low", "rank_high", "parse_rate", "metric")


def views_of(family: Family) -> tuple[BoardView, ...]:
    """What `board --by` shows."""
    asks = f"`dtef {family.name} run --model MODEL` asks and scores"

    def ranked(name: str, shows: str, *levels: str) -> BoardView:
        return BoardView(
            (*levels, *family.scores.board, *_RANKED),
            (*levels, "rank", "model", "score"),
            _HIDDEN_FIRST,
            name=name,
            table=family.board,
            shows=shows,
            needs=f"a score: {asks}",
            ends=("score_low", "score_high"),
            who=(*levels, "model"),
        )

    return (
        ranked(OVERALL, "each model's mean score over items, with a 95 % interval"),
        ranked(BY_PART, f"the same in each {family.part}", family.space.first, family.space.second),
        comparisons_view("every two models on the items that both have a score for", f"scores of two models: {asks}"),
    )


def plugin_commands(family: Family) -> CommandFamily:
    """Its record for `dtef costs`, `drift` and its board."""
    return CommandFamily(family.name, item_subject(family), views_of(family), cuts_of(family.space))
