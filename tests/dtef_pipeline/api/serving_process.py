"""The API in a process of its own, which a test can kill: prints its port, then serves the stores of a folder."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class ServingProcess:
    """A server that listens, or will soon."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._address = ""

    def address(self) -> str:
        """`http://127.0.0.1:PORT`, as soon as it has a port."""
        if not self._address:
            assert self.process.stdout is not None
            self._address = f"http://127.0.0.1:{self.process.stdout.readline().strip()}"
        return self._address


@contextmanager
def serving_process(folder: Path) -> Iterator[ServingProcess]:
    """A server over the stores in a folder; killed at the end, if it is still there."""
    command = [sys.executable, "-m", __name__, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]) as process:
        try:
            yield ServingProcess(process)
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
