"""SQL of the scores and the served models that drift of items is computed from."""

from __future__ import annotations

from collections.abc import Sequence


def build_statements(
    scores: str, responses: str, first: str, ways: Sequence[str], response_columns: Sequence[str]
) -> tuple[str, str]:
    """The statements of a `Subject`, which make the temporary tables `scores` and `predictions`.

    `scores`: SQL of all scores, with the columns of the family's keys; `responses`: the table of responses, whose column `first` is the first
    level of partitions; `ways`: as of `Keys.asked`; `response_columns`: those of them that the responses have too.
    """
    shared = ("model", "model_variant", "snapshot")
    keys = ", ".join((first, *response_columns, *shared))
    columns = ", ".join(f"{name}::VARCHAR AS {name}" for name in (first, *response_columns, *shared))
    of_scores = ", ".join(dict.fromkeys((first, *ways, *shared)))
    return (
        f"CREATE OR REPLACE TEMP TABLE scores AS SELECT *, '' AS test FROM ({scores})",
        f"""
        CREATE OR REPLACE TEMP TABLE predictions AS
        SELECT DISTINCT {of_scores}, served_model, fingerprint FROM (SELECT DISTINCT {of_scores} FROM scores)
        JOIN (SELECT DISTINCT {columns}, served_model, fingerprint FROM {responses}) USING ({keys})
        """,
    )
