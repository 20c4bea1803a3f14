"""What commands say of known blueprints whose file is gone: they are never removed without being asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dtef_pipeline.errors import DtefError
from dtef_pipeline.text.counted import counted
from resources.blueprint_files import NOTES_FOLDER, RubricFile, gone_below
from resources.settings import Settings

if TYPE_CHECKING:
    from resources.warehouse import Warehouse

_GONE_NAMED = 10


def told_as_gone(warehouse: Warehouse, folders: Sequence[Path], there: Sequence[RubricFile] = ()) -> Iterator[str]:
    """A line per blueprint whose file stood in one of the folders, with the file `there` that holds the same, if one does."""
    gone = gone_below(warehouse, folders) if folders else []
    same = {file.content_hash: file for file in there}
    for file in gone[:_GONE_NAMED]:
        if (new := same.get(file.content_hash)) is None:
            yield f"warning: {file.blueprint}: its file {file.path} is gone; it stays known with its results: {file.removal} takes it away"
        else:
            yield (
                f"warning: {file.blueprint}: its file {file.path} is gone, and {new.blueprint} holds the same: a run of "
                f"{new.blueprint} finds the stored responses, and {file.removal} takes the earlier name away"
            )
    if len(gone) > _GONE_NAMED:
        yield f"warning: the files of {counted(len(gone) - _GONE_NAMED, 'more blueprint')} are gone"


def told_by_check(folders: Sequence[Path]) -> Iterator[str]:
    """The same where there is a warehouse with notes of blueprints; else nothing."""
    place = Settings.from_environment().warehouse
    if not folders or ("://" not in place and not (Path(place) / NOTES_FOLDER).is_dir()):
        return
    from resources.warehouse import Warehouse

    try:
        yield from told_as_gone(Warehouse(place), folders)
    except (DtefError, OSError) as error:
        yield f"warning: it is not known which blueprints were added from here: {error}"
