"""An S3 server on loopback, in a process of its own: what asks it may hold Python's lock while it waits.

    python -m tests.s3_server LOG

Prints its port, and writes each request to the file LOG as a line of JSON, [method, path, query], before it is answered. Ends with its input.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any, TextIO

import pytest
from pyarrow.fs import S3FileSystem

from tests.conftest import ROOT

START_TIMEOUT_S = 120.0
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@dataclass
class Server:
    """A running server. `requests` are (method, path, query), in the order of their arrival, since the last `forget`."""

    port: int
    log: Path
    _from: int = 0

    def url(self, place: str) -> str:
        """Of `BUCKET/PREFIX`, as the settings take it."""
        return f"s3://{place}?endpoint_override=127.0.0.1:{self.port}&scheme=http"

    def fs(self) -> S3FileSystem:
        how = {"scheme": "http", "region": "us-east-1", "allow_bucket_creation": True}
        # The first request loads half of moto.
        return S3FileSystem(endpoint_override=f"127.0.0.1:{self.port}", request_timeout=60, **how)

    @property
    def requests(self) -> list[tuple[str, str, str]]:
        lines = self.log.read_text(encoding="utf-8").splitlines()[self._from :]
        return [(method, path, query) for method, path, query in map(json.loads, lines)]

    def forget(self) -> None:
        self._from += len(self.requests)


@contextmanager
def running(log: Path, bucket: str) -> Iterator[Server]:
    """A server with a bucket for the time of the block, and the environment that its clients need."""
    with (
        pytest.MonkeyPatch.context() as patch,
        Popen([sys.executable, "-m", "tests.s3_server", str(log)], cwd=ROOT, stdin=PIPE, stdout=PIPE, text=True) as process,
    ):
        giving_up = threading.Timer(START_TIMEOUT_S, process.kill)
        giving_up.start()
        try:
            assert process.stdout is not None
            port = process.stdout.readline()
            giving_up.cancel()
            assert port, "the server did not start"
            for name, value in CREDENTIALS.items():
                patch.setenv(name, value)
            server = Server(int(port), log)
            server.fs().create_dir(bucket)
            yield server
        finally:
            giving_up.cancel()
            process.kill()


def _recorded(app: Callable[..., Any], log: TextIO) -> Callable[..., Any]:
    lock = threading.Lock()

    def recording(environ: dict[str, Any], start: Any) -> Any:
        line = json.dumps([environ["REQUEST_METHOD"], environ["PATH_INFO"], environ["QUERY_STRING"]])
        with lock:
            print(line, file=log, flush=True)
        return app(environ, start)

    return recording


def main() -> None:
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    # A line for each request: the file has them.
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    with Path(sys.argv[1]).open("w", encoding="utf-8") as log:
        application = _recorded(DomainDispatcherApplication(create_backend_app), log)
        server = make_server("127.0.0.1", 0, application, threaded=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(server.server_port, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
