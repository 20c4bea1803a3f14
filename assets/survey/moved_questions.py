"""The words of the questions that moved, from the survey beside the scores."""

import pyarrow as pa

from dtef_pipeline.survey.moved_questions import rounds_moved, with_texts
from resources.warehouse import Warehouse


def named(warehouse: Warehouse, checks: pa.Table) -> pa.Table:
    """The rows with the words of the questions that moved, read only where one did."""
    if not (rounds := rounds_moved(checks)):
        return checks
    return warehouse.query(lambda connection: with_texts(checks, connection), only=["survey_responses"], first=rounds)
