"""The texts of the questions that changed, from the survey."""

import pyarrow as pa

from dtef_pipeline.survey.question_moves import add_moved_texts, list_moved_rounds
from resources.warehouse import Warehouse


def add_question_texts(warehouse: Warehouse, checks: pa.Table) -> pa.Table:
    """Return the rows with the texts of changed questions; reads the survey only if there are any."""
    if not (rounds := list_moved_rounds(checks)):
        return checks
    return warehouse.query(lambda connection: add_moved_texts(checks, connection), only=["survey_responses"], first=rounds)
