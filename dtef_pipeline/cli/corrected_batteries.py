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


def _asked(place: str) -> dict[str, dict[str, str]]:
    """By round, the texts of its questions by their ids, empty of one whose answers are all in quarantine.

    None of an object store, which is not asked, as it may be long in answering.
    """
    asked: dict[str, dict[str, str]] = {}
    tables = {"survey_quarantine": ["round", "question_id"], "survey_responses": ["round", "question_id", "question_text"]}
    for table, columns in tables.items() if "://" not in place else ():
        for row in Warehouse(place).read_or_empty(table, columns=columns).to_pylist():
            if row["question_id"]:  # a row about a whole segment has none
                asked.setdefault(row["round"], {})[row["question_id"]] = row.get("question_text", "")
    return asked
