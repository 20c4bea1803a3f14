"""What boards say of models that a provider served under one name in one snapshot."""

from __future__ import annotations

from collections.abc import Sequence

from dtef_pipeline.boards.served import mixed_served
from dtef_pipeline.cli.terminal_width import say
from resources.warehouse import Warehouse

SERVED_REMEDY = "; --served gives each a row of its own"


def say_mixed(
    warehouse: Warehouse, table: str, first: Sequence[str] = (), snapshot: str | None = None, remedy: str = ""
) -> None:
    """A line for each model whose responses in one snapshot come from several served models. `first`: values of the first level of the space."""
    if not warehouse.tables([table]):
        return
    for line in warehouse.query(lambda connection: list(mixed_served(connection, table, snapshot)), only=[table], first=first):
        say(f"{line}{remedy}")
