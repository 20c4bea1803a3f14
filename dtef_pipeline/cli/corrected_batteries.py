"""The file of corrected batteries, as `dtef doctor` looks at it: whether it can be read, and whether its rows name what there is."""

from __future__ import annotations

from collections.abc import Iterator

from assets.survey.curation_file import known_curation
from dtef_pipeline.cli.findings import Diagnosis
from dtef_pipeline.errors import DtefError
from dtef_pipeline.text.counted import counted
from resources.settings import Settings
from resources.warehouse import Warehouse

_MEND = "mend the file that DTEF_BATTERIES names (docs/batteries.md says what it may hold)"


def check_batteries(settings: Settings) -> Iterator[Diagnosis]:
    """Nothing where no file is named."""
    if settings.batteries is None:
        return
    try:
        curation = known_curation(settings)
    except DtefError as error:
        yield Diagnosis("batteries", "problem", str(error), f"{_MEND}, or go on without: unset DTEF_BATTERIES")
        return
    asked = _asked(settings.warehouse)
    questions, rounds = curation.unknown_questions(asked), curation.unknown_rounds(asked) if asked else []
    if questions:
        remedy = f"{_MEND}; until then these rounds cannot be read again"
        yield Diagnosis("batteries", "problem", "; ".join([*questions, *rounds]), remedy)
    elif rounds:
        yield Diagnosis("batteries", "warning", "; ".join(rounds), f"{_MEND}, or read the round: dtef ingest PATH")
    else:
        found = f"{settings.batteries}: says of {counted(len(curation.rows), 'question')} where it belongs"
        yield Diagnosis("batteries", "ok", found)


def _asked(place: str) -> dict[str, set[str]]:
    """The ids of each round's questions; none of an object store, which is not asked, as it may be long in answering."""
    asked: dict[str, set[str]] = {}
    for table in () if "://" in place else ("survey_responses", "survey_quarantine"):
        rows = Warehouse(place).read_or_empty(table, columns=["round", "question_id"])
        for round_id, question_id in zip(rows["round"].to_pylist(), rows["question_id"].to_pylist(), strict=True):
            if question_id:  # a row about a whole segment has none
                asked.setdefault(round_id, set()).add(question_id)
    return asked
