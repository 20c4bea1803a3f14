"""A table's columns as the UI shows them."""

import dagster as dg
import pyarrow as pa

from dtef_pipeline.tables import description
from resources.warehouse import TABLES


def column_schema(table: str, schema: pa.Schema | None = None) -> dict[str, dg.TableSchema]:
    """Asset or materialization metadata: name, type and description of every column. `schema`: of a table that has none of its own."""
    columns = [
        dg.TableColumn(field.name, str(field.type).replace("item: ", ""), description(field))
        for field in schema or TABLES[table].schema or ()
    ]
    return {"dagster/column_schema": dg.TableSchema(columns=columns)}
