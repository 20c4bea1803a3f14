"""Which run asked for the responses in pairs. It is noted when pairs are made, so that it moves with them into other stores."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from dtef_pipeline.asking.asking_run import AskingRun
from dtef_pipeline.preference.vote_records import Record, request_record, run_record
from resources.responses.database import ResponseDatabase, asking_runs, chunks, responses


def runs_behind(connection: sa.Connection, database: ResponseDatabase, paired: Sequence[Record]) -> dict[str, list[Record]]:
    """Records of the runs behind paired responses, and of which one made which request; none of requests whose run is not known."""
    keys = sorted({key for record in paired for key in record["request_keys"]})
    run = asking_runs.c
    statement = (
        sa.select(responses.c.request_key, run.code_version, run.config_hash)
        .join(asking_runs, run.run_id == responses.c.run_id)
        .where(responses.c.request_key.in_(database.listed))
    )
    asked_by: dict[str, AskingRun] = {}
    for chunk in chunks(keys):
        for row in connection.execute(statement, database.keys(chunk)):
            asked_by[row.request_key] = AskingRun(row.code_version, row.config_hash)
    requests = [
        request_record(record["response_id"], key, asked_by[key].run_id)
        for record in paired
        for key in dict.fromkeys(record["request_keys"])
        if key in asked_by
    ]
    return {"run": [run_record(one) for one in sorted(set(asked_by.values()))], "request": requests}
