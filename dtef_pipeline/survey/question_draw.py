"""Which questions `--questions N` asks: drawn over batteries, since intervals and tests count batteries, not questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.identity import digest
from dtef_pipeline.statistics.permutation import fewest_clusters
from dtef_pipeline.statistics.resampling import MIN_CLUSTERS
from dtef_pipeline.text.counted import counted

_BATTERIES_NEEDED = {"intervals": MIN_CLUSTERS, "tests and tiers": fewest_clusters(1)}
"""The fewest batteries of each: below, a score has no interval, or no difference between two models can pass for more than chance."""


def draw_order(
    round_id: str, batteries: Sequence[str], duplicate_of: Sequence[str | None], circular: Sequence[npt.NDArray[np.bool_]]
) -> list[int]:
    """The place of each question of a round in the draw, from 0: the first N places lie in as many batteries as N questions can.

    The first question of every battery comes first, in an order of batteries that the hash of their names and the round's settles; then
    the second of every battery, and so on. Behind them come those that no board needs: duplicates, and questions that define the attribute of
    all segments that answered; last those that no segment answered.

    Args:
        round_id: the round's name.
        batteries: the battery of each question, in questionnaire order.
        duplicate_of: the id of the question that each one repeats; None: it repeats none.
        circular: of each question, for every segment that answered it, whether it defines the segment's attribute.
    """
    put_off = [
        2 if not len(flags) else int(other is not None or bool(flags.all()))
        for other, flags in zip(duplicate_of, circular, strict=True)
    ]
    turn, seen = [], Counter[tuple[str, int]]()
    for kind in zip(batteries, put_off, strict=True):
        turn.append(seen[kind])
        seen[kind] += 1
    lot = {battery: digest("draw", round_id, battery) for battery in batteries}
    drawn = sorted(range(len(batteries)), key=lambda place: (put_off[place], turn[place], lot[batteries[place]]))
    found = [0] * len(drawn)
    for at, place in enumerate(drawn):
        found[place] = at
    return found


def drawn_questions(survey: pa.Table, number: int) -> pa.Array:
    """Ids of the questions that `--questions number` asks. `survey`: `question_id` and `draw_order` of `survey_responses`."""
    drawn: pa.Array = survey.filter(pc.less(survey["draw_order"], number))["question_id"].combine_chunks()
    return drawn


def drawn_sql(number: int) -> str:
    """As `drawn_questions`: the condition on rows of a table of questions, beside `survey_responses`."""
    return f"(round, question_id) IN (SELECT round, question_id FROM survey_responses WHERE draw_order < {int(number)})"


def what_it_tells(questions: pd.DataFrame, number: int | None) -> str:
    """How many questions of how many batteries are asked, and whether results can have intervals, tests and tiers; else the N that gives them.

    Args:
        questions: one row per question of the rounds: `draw_order`, `is_target`, and the linked battery `cluster`.
        number: the first so many of each round are asked; None: all.
    """
    targets = questions[questions["is_target"]]
    places = targets.groupby("cluster")["draw_order"].min().sort_values()
    asked = len(questions) if number is None else int((questions["draw_order"] < number).sum())
    batteries = len(places) if number is None else int((places < number).sum())
    many = counted(len(questions), "question")
    said = f"{asked} of {many}" if asked < len(questions) else f"all {many}"
    among = counted(len(places), "battery")
    among = f"{batteries} of {among}" if batteries < len(places) else among
    return f"{said}, in {among}: {_verdict(batteries, places)}"


def _verdict(batteries: int, places: pd.Series[int]) -> str:
    """`places`: of every battery the place in the draw of its first question, in ascending order."""
    lacking = {what: least for what, least in _BATTERIES_NEEDED.items() if batteries < least}
    if not lacking:
        return f"enough for {', '.join(_BATTERIES_NEEDED)}"
    enough = [f"enough for {what}" for what in _BATTERIES_NEEDED if what not in lacking]
    return "; ".join(enough or ["too few"]) + "; " + ", ".join(_needs(what, least, places) for what, least in lacking.items())


def _needs(what: str, least: int, places: pd.Series[int]) -> str:
    how = f"--questions {int(places.iloc[least - 1]) + 1} or more" if least <= len(places) else "there are fewer"
    return f"{what} need {least} batteries ({how})"
