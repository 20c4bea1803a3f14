"""Which questions were asked as one block, and why the rule of batteries put them together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

import duckdb
import pandas as pd

from dtef_pipeline.boards.cells import has_table
from dtef_pipeline.identity import digest
from dtef_pipeline.report.markup import Column, named, paragraph, shortened, table, text, whole
from dtef_pipeline.survey.batteries import BY_CURATION, BY_SURVEY
from dtef_pipeline.survey.boards.linked import asked_questions
from dtef_pipeline.survey.identity import question_key, round_order
from dtef_pipeline.survey.wording import Wording, common
from dtef_pipeline.text.counted import counted

_SHARED_WORDS = 3
"""Words that texts must share to be shown as what they share."""
_CHARACTERS_SHOWN = 100
"""Characters of a question that are shown; the download has all."""


def batteries(connection: duckdb.DuckDBPyConnection) -> str:
    """Markup of the batteries of two and more different questions, linked over rounds, with the number of the others."""
    if not has_table(connection, "survey_responses"):
        return ""
    asked = _asked(connection)
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
        data=data[["battery", "round", "question_id", "question_text", "why"]],
    )


_HOW_TO_READ_BATTERIES = (
    "Questions that were asked as one block, or again in other rounds, say much the same about a model, so intervals count them as one "
    "battery. docs/batteries.md explains the rule that finds them and how to correct it."
)


def _asked(connection: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """One row per question of a round, in the order of rounds and questionnaires, with its linked battery."""
    places = connection.execute(
        "SELECT round, question_id, min(question_order) AS place FROM survey_responses GROUP BY ALL"
    ).df()
    found = asked_questions(connection).merge(places, on=["round", "question_id"])
    found = found.assign(order=found["round"].map(round_order)).sort_values(["order", "place"], ignore_index=True)
    keys = [digest(*question_key(*one)) for one in zip(found["question_text"], found["options"], strict=True)]
    return found.assign(same_item=keys)


def _row(number: int, own: pd.DataFrame) -> dict[str, object]:
    items = own.drop_duplicates("same_item")
    texts = "".join(
        f"<li>{escape(shortened(' '.join(question.split()), _CHARACTERS_SHOWN))}</li>" for question in items["question_text"]
    )
    return {
        "battery": number,
        "different": len(items),
        "rounds": ", ".join(dict.fromkeys(own["round"])),
        "why": "; ".join(dict.fromkeys(_reasons(own))),
        "texts": f"<ul>{texts}</ul>",
    }


def _reasons(own: pd.DataFrame) -> Iterator[str]:
    """Why the questions of one linked battery are together."""
    for _, rows in own.groupby(["round", "battery"], sort=False):
        name = str(rows["battery"].iloc[0])
        items = rows.drop_duplicates("same_item")
        if name.startswith(BY_CURATION):
            yield f"named {name.removeprefix(BY_CURATION)} in the file of corrections"
        elif name.startswith(BY_SURVEY):
            yield f"named {name.removeprefix(BY_SURVEY)} by the survey"
        elif len(items) > 1:
            yield _shared(list(items["question_text"]), list(items["options"]))
    if own.groupby("same_item")["round"].nunique().max() > 1:
        yield "questions asked in several rounds"
    elif len({*own["round"]}) > 1:
        yield "questions in other words or over other options in another round"


def _shared(texts: Sequence[str], options: Sequence[Sequence[str]]) -> str:
    """What the questions of one block have in common, in words."""
    words = [question.split() for question in texts]
    opening, ending = common(words), common([[*reversed(own)] for own in words])
    if opening >= _SHARED_WORDS:
        return f"one stem: “{' '.join(words[0][:opening])} …”"
    if ending >= _SHARED_WORDS:
        return f"one stem: “… {' '.join(words[0][-ending:])}”"
    lacking = not any(Wording.of(question, own).asks for question, own in zip(texts, options, strict=True))
    return "items of one list over one scale" if lacking else "asked next to each other over one scale, or again later"
