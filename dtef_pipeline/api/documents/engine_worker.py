"""`python -m dtef_pipeline.api.documents.engine_worker`: reads a manifest as JSON and writes the errors that its engine finds.

Runs in its own process, so that a faulty engine cannot stop the server.
"""

from __future__ import annotations

import json
import os
import sys
from typing import BinaryIO


def check_manifest(source: BinaryIO, output: BinaryIO) -> None:
    """Read a manifest with version and status, write a list of [path, message]."""
    from dtef_pipeline.documents import format_path
    from dtef_pipeline.games.manifest import ScenarioManifest
    from dtef_pipeline.games.pack_files import check_manifest_engine

    manifest = ScenarioManifest.model_validate(json.load(source))
    faults = [[format_path(place), message] for place, message in check_manifest_engine(manifest)]
    output.write(json.dumps(faults).encode())
    output.flush()


if __name__ == "__main__":
    # The engine may print; its output must not mix with the answer.
    with os.fdopen(os.dup(1), "wb") as answer:
        os.dup2(2, 1)
        check_manifest(sys.stdin.buffer, answer)
