"""While `dtef ui` is open, a page of another site cannot operate Dagster by any means a browser has; its own pages can."""

from __future__ import annotations

import functools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.conftest import ROOT
from tests.dtef_pipeline.report.browser import Browser, until

START_S = 240.0
"""How long `dtef ui` may take on a busy machine until its code is loaded."""
REPOSITORY = 'repositoryName: "__repository__", repositoryLocationName: "dtef"'
SWITCH = f'mutation {{ startSensor(sensorSelector: {{{REPOSITORY}, sensorName: "new_round"}}) {{ __typename }} }}'
LAUNCH = (
    f'mutation {{ launchRun(executionParams: {{selector: {{{REPOSITORY}, jobName: "survey_roll_ups"}}, mode: "default"}}) '
    "{ __typename ... on PythonError { message } } }"
)
REPORT = "report_asset_materialization/leaderboard"
STATE = f"""{{
  sensorOrError(sensorSelector: {{{REPOSITORY}, sensorName: "new_round"}}) {{ ... on Sensor {{ sensorState {{ status }} }} }}
  runsOrError {{ ... on Runs {{ results {{ id }} }} }}
  assetOrError(assetKey: {{path: ["leaderboard"]}}) {{ ... on Asset {{ assetMaterializations {{ timestamp }} }} }}
}}"""
ATTACKS = """
const address = ADDRESS, mutations = MUTATIONS, report = REPORT;
const told = window.told = [];
const note = (name) => (happened) => told.push(name + ' ' + happened);
const form = (action, name, value, kind) => {
  const frame = document.createElement('iframe'), made = document.createElement('form');
  frame.name = 'f' + told.length + Math.random();
  frame.onload = () => told.push('form');
  Object.assign(made, {method: 'post', action, target: frame.name, enctype: kind});
  const field = document.createElement('input');
  Object.assign(field, {name, value});
  made.append(field);
  document.body.append(frame, made);
  made.submit();
};
for (const query of mutations) {
  for (const path of ['/graphql', '/graphql%0A']) {
    const image = new Image();
    image.onload = image.onerror = () => told.push('image');
    image.src = address + path + '?query=' + encodeURIComponent(query);
    form(address + path + '?query=' + encodeURIComponent(query), 'x', 'y', 'application/x-www-form-urlencoded');
  }
  const body = JSON.stringify({query});
  form(address + '/graphql', body.slice(0, -1) + ',"x":"', '"}', 'text/plain');
  for (const type of ['application/json', 'text/plain;application/json'])
    for (const mode of ['cors', 'no-cors'])
      fetch(address + '/graphql', {method: 'POST', mode, body, headers: {'Content-Type': type}})
        .then(note(mode)).catch(note(mode));
  const socket = new WebSocket(address.replace('http', 'ws') + '/graphql', 'graphql-ws');
  socket.onopen = () => {
    told.push('opened');
    socket.send(JSON.stringify({type: 'start', id: '1', payload: {query}}));
  };
  socket.onclose = () => told.push('closed');
}
fetch(address + '/' + report, {method: 'POST', mode: 'no-cors'}).then(note('report')).catch(note('report'));
form(address + '/' + report, 'x', 'y', 'text/plain');
"""
"""Each of them launched, switched or reported with Dagster's own web server. `told`: what the browser says that became of each."""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def dagster_ui(folder: Path) -> Iterator[str]:
    """`dtef ui` for the time of the block; its address, once the code is loaded."""
    port, named = free_port(), {"DTEF_WAREHOUSE": "warehouse", "DTEF_RESPONSES": "responses.sqlite", "DAGSTER_HOME": "dagster"}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DTEF_")}
    environment |= {name: str(folder / place) for name, place in named.items()}
    command = [sys.executable, "-c", "from dtef_pipeline.cli import main; main()", "ui", "--port", str(port)]
    with (folder / "ui.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)
    address = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + START_S
        while not _is_loaded(address):
            assert process.poll() is None, (folder / "ui.log").read_text(encoding="utf-8")
            assert time.monotonic() < end, (folder / "ui.log").read_text(encoding="utf-8")
            time.sleep(0.5)
        yield address
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(START_S)


def _is_loaded(address: str) -> bool:
    try:
        return asked(address, STATE)["sensorOrError"].get("sensorState") is not None
    except httpx2.TransportError:
        return False


def asked(address: str, query: str) -> dict[str, Any]:
    """As a script asks: without an origin."""
    return dict(httpx2.post(f"{address}/graphql", json={"query": query}, timeout=60).json()["data"])


def state_of(address: str) -> tuple[str, int, int]:
    """(of the sensor, runs, materializations of the board)"""
    data = asked(address, STATE)
    made = data["assetOrError"].get("assetMaterializations") or []
    return data["sensorOrError"]["sensorState"]["status"], len(data["runsOrError"]["results"]), len(made)


@contextmanager
def foreign_site(folder: Path) -> Iterator[str]:
    """Another port of this computer: of the same site, which most sites are not, and of another origin."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with dagster_ui(tmp_path_factory.mktemp("ui")) as found:
        yield found


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_foreign_page_launches_and_switches_nothing(browser: Browser, address: str, tmp_path: Path, name: str) -> None:
    """`<img src=".../graphql?query=mutation{launchRun(...)}">` on any page that was open in the same browser launched a run."""
    script = ATTACKS.replace("ADDRESS", json.dumps(address)).replace("REPORT", json.dumps(REPORT))
    script = script.replace("MUTATIONS", json.dumps([SWITCH, LAUNCH]))
    (tmp_path / "index.html").write_text(f"<!doctype html><body><script>{script}</script>", encoding="utf-8")
    before = state_of(address)
    with foreign_site(tmp_path) as site:
        browser.visits(site.replace("127.0.0.1", name))
        # Two pictures, three forms, four fetches and a WebSocket for each of two mutations, and the report in two ways.
        until(lambda: browser.does("told.length") >= 22)
        sockets = {one for one in browser.does("told") if one in ("opened", "closed")}
    assert state_of(address) == before == ("STOPPED", 0, 0)
    assert sockets == {"closed"}


def test_the_user_interface_works(browser: Browser, address: str) -> None:
    browser.visits(f"{address}/automation")
    until(lambda: "new_round" in browser.does("document.body.innerText"))
    # What its own buttons send.
    for query, typename in ((SWITCH, "Sensor"), (LAUNCH, "LaunchRunSuccess")):
        browser.does(
            "fetch('/graphql', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: "
            f"{json.dumps(json.dumps({'query': query}))}}}).then(a => a.json()).then(a => {{ window.answer = JSON.stringify(a) }})"
        )
        until(lambda: browser.does("window.answer"))
        answer = browser.does("window.answer")
        assert f'"__typename":"{typename}"' in answer, answer
        browser.does("window.answer = undefined")
    status, runs, _ = state_of(address)
    assert (status, runs) == ("RUNNING", 1)
    assert [one for one in browser.requested if not one.startswith((address, "data:", "blob:"))] == []
