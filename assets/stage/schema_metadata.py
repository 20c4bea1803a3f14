"""A table's columns as the UI shows them."""

import dagster as dg
import pyarrow as pa

from dtef_pipeline.meanings import meaning
from resources.warehouse import TABLES


def column_schema(table: str, schema: pa.Schema | None = None) -> dict[str, dg.TableSchema]:
    """Asset or materialization metadata: name, type and meaning of every column. `schema`: of a table that has none of its own."""
    fields = schema or TABLES[table].schema or ()
    columns = [
        dg.TableColumn(field.name, str(field.type).replace("item: ", ""), meaning(table, field.name)) for field in fields
    ]
    return {"dagster/column_schema": dg.TableSchema(columns=columns)}
