"""`dtef doctor`: a finding per check with a remedy, nothing made or changed, no key shown."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assets.daemon_state import DaemonState, SensorTicks
from dtef_pipeline.cli.doctor import DOCTOR_CHECKS
from resources.evaluations.evaluation_store import EvaluationStore
from resources.sandbox.run import SandboxLevel
from resources.settings import Settings
from tests.conftest import ROOT
from tests.dtef_pipeline.cli.commands import dtef
from tests.strict_json import strict


def findings(code: int = 0) -> dict[str, dict[str, str]]:
    result = dtef("doctor", "--json")
    assert result.exit_code == code, result.output
    return {row["check"]: row for row in strict(result.stdout)}


def looks(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in sorted(folder.rglob("*")) if path.is_file()}


def test_places_that_are_not_there_yet_are_no_problem_and_are_not_made(state: Path) -> None:
    found = findings()
    for check in ("Dagster's home", "response store"):
        assert found[check]["message"].endswith("does not exist yet; the first command that needs it creates it")
    assert found["warehouse"]["message"].endswith("does not exist yet; `dtef add PATH` creates it")
    assert list(state.iterdir()) == []


def test_a_level_that_the_variable_forbids_names_the_variable(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It said to install bubblewrap, which was there: what kept it from use was DTEF_SANDBOX."""

    def found_level(asked: str) -> SandboxLevel:
        return SandboxLevel("sandlock", {}) if asked == "auto" else SandboxLevel(None, {})

    monkeypatch.setattr("resources.sandbox.run.choose_level", found_level)
    monkeypatch.setenv("DTEF_SANDBOX", "off")
    found = findings()["sandbox"]
    assert found["state"] == "warning"
    assert found["remedy"].endswith("sandlock: unset DTEF_SANDBOX")
    assert "bubblewrap" not in found["remedy"]


def state_of(check: str) -> tuple[str, str]:
    found = DOCTOR_CHECKS[check](Settings.read_environment())
    return found.state, f"{found.message}: {found.remedy}"


def test_a_state_in_use_is_in_order_and_stays_as_it_was(ingested: Path) -> None:
    before = looks(ingested)
    found = findings()
    assert set(found) == set(DOCTOR_CHECKS)
    assert {row["state"] for row in found.values()} <= {"ok", "warning"}
    assert found["warehouse"]["message"].startswith(f"{ingested}/warehouse: ")
    assert looks(ingested) == before


def test_on_the_terminal_a_command_can_be_pasted_and_the_last_line_counts(ingested: Path) -> None:
    (ingested / "dagster" / "dagster.yaml").write_text("- no\n", encoding="utf-8")
    result = dtef("doctor")
    assert result.exit_code == 1
    assert "\nproblem  Dagster's home " in result.stdout
    command = f"cp {ROOT}/dagster.yaml {ingested}/dagster/dagster.yaml"
    assert command in map(str.strip, result.stdout.splitlines())
    assert "1 problem" in result.stdout.splitlines()[-1]


def test_unusable_places_are_problems_with_the_variable_to_change(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (state / "file").write_bytes(b"rubbish" * 300)
    for name, place in (("DTEF_WAREHOUSE", "file"), ("DTEF_RESPONSES", "file"), ("DAGSTER_HOME", "file/home")):
        monkeypatch.setenv(name, str(state / place))
    found = findings(1)
    assert found["warehouse"]["remedy"].endswith("export DTEF_WAREHOUSE=PATH")
    assert found["response store"]["remedy"].endswith(f"mv {state}/file {state}/file.broken")
    assert found["Dagster's home"]["remedy"].endswith("export DAGSTER_HOME=PATH")
    monkeypatch.setenv("DTEF_RESPONSES", str(state))
    monkeypatch.setenv("DAGSTER_HOME", "/proc/nope")
    found = findings(1)
    assert found["response store"]["remedy"].endswith("export DTEF_RESPONSES=PATH")
    assert found["Dagster's home"]["state"] == "problem"


@pytest.mark.parametrize("url", ["mysql://u:hush@h/d", "foo://x:hush@h", "postgresql://u:hush@127.0.0.1:1/d"])
def test_an_unreachable_store_is_a_problem_without_its_password(state: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("DTEF_RESPONSES", url)
    monkeypatch.setattr("dtef_pipeline.cli.doctor._SERVER_S", 0.1)
    found = findings(1)["response store"]
    assert found["state"] == "problem"
    assert "hush" not in str(found)


def test_an_unreachable_bucket_is_a_problem_without_its_keys(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DTEF_WAREHOUSE", "s4://me:hush@bucket/p")
    found, said = state_of("warehouse")
    assert (found, "export DTEF_WAREHOUSE=PATH" in said, "hush" in said) == ("problem", True, False)


def test_settings_that_dagster_does_not_start_with_are_a_problem(ingested: Path) -> None:
    with (ingested / "dagster" / "dagster.yaml").open("a", encoding="utf-8") as settings:
        settings.write("nonsense: 1\n")
    found, said = state_of("Dagster's home")
    assert (found, "nonsense" in said) == ("problem", True)
    assert state_of("Dagster's daemon")[0] == "warning"


def test_models_and_keys_are_reported_and_no_key_is_shown(ingested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "planted-7f3a9c-key")
    monkeypatch.delenv("XAI_API_KEY", raising=False)
    panel = ingested / "panel.yaml"
    panel.write_text("models: [gpt-4.1, grok-4.20]\nrounds: [S1]\n", encoding="utf-8")
    monkeypatch.setenv("DTEF_PANEL", str(panel))
    found = findings(1)
    assert "gpt-4.1" in found["models"]["message"]
    assert "XAI_API_KEY" in found["models"]["message"]
    assert (found["panel"]["state"], found["panel"]["remedy"]) == ("problem", "export XAI_API_KEY=KEY")
    assert "planted" not in str(found)
    for section, fault in {"rubric": "beta: 9", "qa": "strct: true", "games": "seed: 1", "preference": "ties: nope"}.items():
        panel.write_text(f"models: [gpt-4.1]\n{section}: {{{fault}}}\n", encoding="utf-8")
        assert f"{panel}:2: {section}.{fault.partition(':')[0]}: " in findings(1)["panel"]["message"]
    panel.write_text("models: [gpt-4.1]\nrounds: [GD9]\n", encoding="utf-8")
    assert f"{panel}:2: rounds: GD9" in findings(1)["panel"]["message"]
    monkeypatch.setenv("DTEF_MODELS", str(panel))
    assert findings(1)["models"]["message"].startswith(f"{panel}:2: rounds: unknown key")


def with_evaluation(folder: Path) -> None:
    with closing(EvaluationStore(folder / "responses.sqlite")) as store:
        store.submit("qa", {}, {"keys": []}, [], "me")


def test_evaluations_that_wait_are_a_warning_also_where_dagster_was_never_started(state: Path) -> None:
    """It was "ok": evaluations need the daemon, though nothing was switched on by hand."""
    assert state_of("Dagster's daemon")[0] == "ok"
    with_evaluation(state)
    before = looks(state)
    found, said = state_of("Dagster's daemon")
    assert (found, "evaluations that wait or run: 1" in said) == ("warning", True)
    assert looks(state) == before


@pytest.mark.parametrize(
    ("hours_ago", "daemon", "waits", "expected", "words"),
    [
        (0, DaemonState(None, False), False, "ok", "running"),
        (0, DaemonState(None, False), True, "warning", "switched off"),
        (3, DaemonState(None, True), False, "warning", "last seen 3 hours ago"),
        (0, DaemonState(None, True, ticks=SensorTicks(None)), False, "warning", "had no tick"),
        (None, DaemonState(None, True, "OperationalError: connection refused"), False, "problem", "connection refused"),
    ],
)
def test_a_state_of_the_daemon_is_as_loud_as_it_is_bad(
    ingested: Path,
    monkeypatch: pytest.MonkeyPatch,
    hours_ago: int | None,
    daemon: DaemonState,
    waits: bool,
    expected: str,
    words: str,
) -> None:
    """The heartbeat's age is counted from the test, as it may be collected many minutes before."""
    heartbeat = None if hours_ago is None else datetime.now(UTC) - timedelta(hours=hours_ago)
    monkeypatch.setattr("assets.daemon_state.daemon_state", lambda *_: daemon._replace(last_heartbeat_at=heartbeat))
    if waits:
        with_evaluation(ingested)
    found, said = state_of("Dagster's daemon")
    assert (found, words in said) == (expected, True), said
