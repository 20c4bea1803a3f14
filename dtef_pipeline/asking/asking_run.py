"""The code and configuration with which a response was requested."""

from __future__ import annotations

from typing import NamedTuple

from dtef_pipeline.identity import digest


class AskingRun(NamedTuple):
    """The software and its configuration at the time when responses were stored."""

    code_version: str
    config_hash: str

    @property
    def run_id(self) -> str:
        """32 hexadecimal digits, equal for runs of the same code and configuration."""
        return digest("asking run", *self)
