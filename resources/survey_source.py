"""Which file or folder each round comes from: a small manifest a round, kept in the warehouse."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow.fs as pafs

from dtef_pipeline.errors import WarehouseError
from dtef_pipeline.survey.adapters import read_survey
from dtef_pipeline.survey.model import Survey
from resources.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class Source:
    """Where a round was ingested from, how, and the hash of what was there."""

    round: str
    path: str
    adapter: str
    min_n: int
    content_hash: str


def content_hash(path: Path) -> str:
    """SHA-256 over the names and bytes of the file, or of all files below the folder."""
    total = hashlib.sha256()
    for file in sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]:
        total.update(str(file.relative_to(path.parent)).encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()[:32]


class SurveySources:
    """The manifests under `<warehouse>/sources/`."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse

    def register(self, survey: Survey, path: Path, *, min_n: int) -> Source:
        source = Source(survey.round, str(path.absolute()), survey.adapter, min_n, content_hash(path))
        fs = self.warehouse.fs
        fs.create_dir(f"{self.warehouse.root}/sources", recursive=True)
        with fs.open_output_stream(self._file(survey.round) + ".tmp") as stream:
            stream.write(json.dumps(asdict(source), indent=2).encode())
        fs.move(self._file(survey.round) + ".tmp", self._file(survey.round))
        return source

    def get(self, round_id: str) -> Source | None:
        if self.warehouse.fs.get_file_info(self._file(round_id)).type != pafs.FileType.File:
            return None
        with self.warehouse.fs.open_input_stream(self._file(round_id)) as stream:
            return Source(**json.loads(stream.read()))

    def read(self, round_id: str) -> tuple[Source, Survey]:
        """The round's survey, read afresh. Raises WarehouseError when the round was never ingested or its source is gone."""
        source = self.get(round_id)
        if source is None:
            raise WarehouseError(f"round {round_id} has no source: register it with `dtef ingest PATH --round {round_id}`")
        if not Path(source.path).exists():
            raise WarehouseError(
                f"the source of round {round_id} is gone: {source.path}; put it back or ingest it from its new place"
            )
        return source, read_survey(Path(source.path), round_id)

    def _file(self, round_id: str) -> str:
        return f"{self.warehouse.root}/sources/{round_id}.json"
