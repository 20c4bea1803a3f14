"""The API in a process of its own, which a test can kill: prints its port, then serves the stores of a folder."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.conftest import ROOT


class ServingProcess(NamedTuple):
    """A server that listens."""

    address: str
    process: subprocess.Popen[str]

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextmanager
def serving_process(folder: Path) -> Iterator[ServingProcess]:
    """A server over the stores in a folder; killed at the end, if it is still there."""
    command = [sys.executable, "-m", __name__, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ}) as process:
        try:
            assert process.stdout is not None
            yield ServingProcess(f"http://127.0.0.1:{process.stdout.readline().strip()}", process)
        finally:
            process.kill()


def _serve(folder: Path) -> None:
    import uvicorn

    from dtef_pipeline.api.app import make_app
    from tests.dtef_pipeline.api.made import services_in

    with socket.create_server(("127.0.0.1", 0)) as listening:
        app = make_app(services_in(folder))
        print(listening.getsockname()[1], flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
