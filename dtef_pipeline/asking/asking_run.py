"""With which code and configuration a response was asked for."""

from __future__ import annotations

from typing import NamedTuple

from dtef_pipeline.identity import digest


class AskingRun(NamedTuple):
    """The software and its set-up, as they were when responses were stored."""

    code_version: str
    config_hash: str

    @property
    def run_id(self) -> str:
        """32 hexadecimal digits: runs of the same code and configuration have the same."""
        return digest("asking run", *self)
