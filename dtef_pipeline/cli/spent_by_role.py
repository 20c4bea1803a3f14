"""What `dtef costs --family` adds up: rows of what models cost by the role that they had."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from dtef_pipeline.text.unknown_cost import row_cost_in_words

COUNTED_USAGE = ("answered", "calls", "prompt_tokens", "completion_tokens")


def spent_by(spent: pd.DataFrame, by: Sequence[str], output: str) -> pd.DataFrame:
    """The rows of a family's table of costs added up by these columns (`variant` is `model_variant`), the dearest first.

    Roles, where they are told apart, stay in the order of the table. `output`: for people (`table`), costs are told in words too.
    """
    names = list(dict.fromkeys("model_variant" if name == "variant" else name for name in by))
    groups = spent.groupby(names, sort=False, dropna=False)
    dollars = groups[["cost_usd", "unknown_cost_usd_most"]].sum(min_count=1)
    whole = groups[[*COUNTED_USAGE, "unpriced", "unknown_cost_attempts"]].sum().join(dollars).reset_index()
    whole = whole.sort_values("cost_usd", ascending=False, na_position="last", kind="stable", ignore_index=True)
    if "role" in names:
        place = {role: at for at, role in enumerate(spent["role"].unique())}
        whole = whole.sort_values("role", key=lambda role: role.map(place), kind="stable", ignore_index=True)
    if output != "table":
        return whole
    return whole.assign(cost=[row_cost_in_words(row) for row in whole.to_dict("records")])
