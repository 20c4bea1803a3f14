"""Why questions are of one linked battery, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from dtef_pipeline.survey.batteries import BY_SURVEY
from dtef_pipeline.survey.wording import Wording, common

_SHARED_WORDS = 3
"""Words that texts must share to be shown as what they share."""


def why_linked(own: pd.DataFrame) -> str:
    """Why the questions of one linked battery are together; empty where there is a single one. `own`: its rows of `questionnaires`."""
    return "; ".join(dict.fromkeys(_reasons(own)))


def _reasons(own: pd.DataFrame) -> Iterator[str]:
    for _, rows in own.groupby(["round", "battery"], sort=False):
        name = str(rows["battery"].iloc[0])
        items = rows.drop_duplicates("same_item")
        if name.startswith(BY_SURVEY):
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
