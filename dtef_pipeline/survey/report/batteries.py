"""Which questions were asked as one block, and why the rule of batteries put them together."""

from __future__ import annotations

from html import escape

import duckdb
import pandas as pd

from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.report.markup import Column, named, paragraph, shortened, table, text, whole
from dtef_pipeline.survey.boards.linked import questionnaires, why_linked
from dtef_pipeline.text.counted import counted

_CHARACTERS_SHOWN = 100
"""Characters of a question that are shown; the download has all."""


def batteries(connection: duckdb.DuckDBPyConnection) -> str:
    """Markup of the batteries of two and more different questions, linked over rounds, with the number of the others."""
    if not has_table(connection, "survey_responses"):
        return ""
    asked = questionnaires(connection)
    different = asked.groupby("cluster")["same_item"].nunique()
    several = different[different > 1].sort_values(ascending=False, kind="stable")
    found = (
        f"{counted(asked['same_item'].nunique(), 'different question')} of {counted(asked['round'].nunique(), 'round')} make "
        f"{counted(len(different), 'battery')}: {len(several)} of two and more different questions, "
        f"{len(different) - len(several)} of a single one."
    )
    intro = f"<h3>Batteries</h3>{paragraph(_HOW_TO_READ_BATTERIES)}{paragraph(found)}"
    if not len(several):
        return intro
    shown = [_row(number, asked[asked["cluster"] == cluster]) for number, cluster in enumerate(several.index, 1)]
    of_cluster = pd.DataFrame(shown, index=several.index, columns=["battery", "why"])
    data = asked.drop(columns="battery").join(of_cluster, on="cluster", how="inner")
    columns = [
        Column("battery", "Battery", whole),
        Column("different", "Questions", whole, "Different questions; the same one asked in several rounds counts once"),
        Column("rounds", "Rounds", text),
        Column("why", "Together because", text),
        Column("texts", "Texts", named),
    ]
    return intro + table(
        pd.DataFrame(shown),
        columns,
        caption="Batteries of two and more questions",
        row_head="battery",
        data=data[["battery", "round", "question_id", "question_text", "why", "cluster"]].rename(
            columns={"cluster": "linked_battery"}
        ),
    )


_HOW_TO_READ_BATTERIES = (
    "Questions that were asked as one block, or again in other rounds, say much the same about a model, so intervals count them as one "
    "battery. docs/batteries.md explains the rule that finds them and how to correct it."
)


def _row(number: int, own: pd.DataFrame) -> dict[str, object]:
    items = own.drop_duplicates("same_item")
    texts = "".join(
        f"<li>{escape(shortened(' '.join(question.split()), _CHARACTERS_SHOWN))}</li>" for question in items["question_text"]
    )
    return {
        "battery": number,
        "different": len(items),
        "rounds": ", ".join(dict.fromkeys(own["round"])),
        "why": why_linked(own),
        "texts": f"<ul>{texts}</ul>",
    }
