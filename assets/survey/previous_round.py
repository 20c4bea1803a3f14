"""What segments answered in the rounds before, for the baseline that repeats it."""

from __future__ import annotations

from functools import cached_property

from dtef_pipeline.survey.baselines.baselines import PREVIOUS_COLUMNS, Previous, previous_answers
from dtef_pipeline.survey.changes import SAME_SURVEY
from dtef_pipeline.survey.identity import round_order
from resources.warehouse import Warehouse


class PreviousRound:
    """What each segment answered in earlier rounds. Of a run over many rounds, each round is read once per segment."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse
        self._read: dict[tuple[str, str], tuple[list[str], Previous]] = {}
        """By (series, segment): the rounds read so far, and the latest answers in them."""

    def answers(self, round_id: str, segment: str) -> Previous:
        """The segment's latest answer to each question in earlier rounds of the round's series."""
        series = round_order(round_id)[0]
        earlier = self._earlier(round_id)
        read, answers = self._read.get((series, segment), ([], {}))
        if earlier[: len(read)] != read:  # the run went back to an earlier round
            read, answers = [], {}
        for other in earlier[len(read) :]:
            rows = self._warehouse.rows("survey_responses", columns=PREVIOUS_COLUMNS, round=other, segment=segment)
            answers = {**answers, **previous_answers(rows, round_id)}
        self._read[series, segment] = (earlier, answers)
        return answers

    def _earlier(self, round_id: str) -> list[str]:
        """The earlier rounds of the series, without copies of the round under another id, which would repeat the truth itself."""
        this = round_order(round_id)
        earlier = [other for other in self._rounds if round_order(other)[0] == this[0] and round_order(other) < this]
        return [other for other in earlier if {round_id, other} not in self._copies]

    @cached_property
    def _rounds(self) -> list[str]:
        return self._warehouse.values("survey_responses", "round")

    @cached_property
    def _copies(self) -> list[set[str]]:
        """Pairs of rounds that ingest found to be the same survey."""
        found = self._warehouse.rows("survey_findings", columns=["round", "code", "items"]).to_pylist()
        return [{row["round"], other} for row in found if row["code"] == SAME_SURVEY for other in row["items"]]
