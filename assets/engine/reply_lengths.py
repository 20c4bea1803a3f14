"""How long the replies of models usually are: the mean of earlier ones."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import duckdb

from dtef_pipeline.family.stage import Lengths
from resources.warehouse import Warehouse


def mean_lengths(warehouse: Warehouse, lengths: Iterable[Lengths]) -> dict[str, float]:
    """Mean tokens of a reply by model variant, of all partitions and snapshots; of several tables with the variant, of the last."""
    found: dict[str, float] = {}
    for one in lengths:
        if warehouse.tables([one.table]):
            sql = _SQL_OF_ROWS if one.replies else _SQL_OF_REQUESTS
            rows = warehouse.query(partial(_rows, sql.format(**one._asdict())), only=[one.table])
            found |= {str(name): float(mean) for name, mean in rows}
    return found


def _rows(sql: str, connection: duckdb.DuckDBPyConnection) -> list[Any]:
    return connection.execute(sql).fetchall()


# A row without tokens is left out: its replies stand at another row, or nobody knows how long they are.
_SQL_OF_ROWS = """
SELECT {variant}, sum(completion_tokens) / sum({replies}) FROM {table} WHERE completion_tokens > 0 AND {replies} > 0 GROUP BY 1
"""
# A request counts once, though rows that share it have 0 tokens at all but the first. Replies of 0 tokens count as they are, and requests whose
# tokens are not known are left out.
_SQL_OF_REQUESTS = """
SELECT {variant}, avg(tokens) FROM (
    SELECT {variant}, request_key, max(completion_tokens) AS tokens FROM {table} WHERE call_status = 'answered'
    GROUP BY ALL HAVING tokens > 0 OR count(*) = count(completion_tokens)
) GROUP BY ALL
"""
