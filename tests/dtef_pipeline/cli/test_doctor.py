"""`dtef doctor`: a line per check with a remedy, nothing made or changed, no key shown."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote

import pytest

from dtef_pipeline.cli import asked_bucket, installed
from dtef_pipeline.cli.asked_models import check_models
from dtef_pipeline.cli.findings import Diagnosis
from dtef_pipeline.cli.installed import check_installation, locked_versions
from dtef_pipeline.cli.kept_state import check_state
from dtef_pipeline.errors import WarehouseError
from resources.responses.store import ResponseStore
from resources.sandbox.run import FoundLevel
from resources.settings import Settings
from tests.conftest import ROOT
from tests.dtef_pipeline.cli.commands import SAMPLE, dtef
from tests.made.responses import response
from tests.strict_json import strict


def findings(code: int = 0) -> dict[str, dict[str, str]]:
    result = dtef("doctor", "--format", "json")
    assert result.exit_code == code, result.output
    return {row["check"]: row for row in strict(result.stdout)}


def looks(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in sorted(folder.rglob("*"))}


def test_a_state_in_use_is_in_order_and_stays_as_it_was(ingested: Path) -> None:
    before = looks(ingested)
    found = findings()
    assert {row["state"] for row in found.values()} <= {"ok", "warning"}
    assert found["warehouse"]["found"].startswith(f"{ingested}/warehouse: ")
    assert "never started" in found["Dagster's daemon"]["found"]
    assert {"Python", "packages", "versions", "free disk space", "models file", "models to ask", "panel"} <= set(found)
    assert found["panel"]["found"].endswith("`nightly_drift` asks the baselines about every round that has been run")
    assert looks(ingested) == before


def test_on_the_terminal_every_check_is_a_line_and_the_last_one_counts(ingested: Path) -> None:
    printed = dtef("doctor").stdout
    assert all(len(line) <= 110 or "/" in line for line in printed.splitlines()), "a path is not broken"
    assert [line for line in printed.splitlines() if line.startswith("ok       Python ")] != []
    (ingested / "dagster" / "dagster.yaml").write_text("- no\n", encoding="utf-8")
    result = dtef("doctor")
    assert result.exit_code == 1
    assert "\nproblem  Dagster's home " in result.stdout
    assert "-> mend it, or take the template for one machine:\n" in result.stdout
    command = f"cp {ROOT}/dagster.yaml {ingested}/dagster/dagster.yaml"
    assert command in map(str.strip, result.stdout.splitlines()), "it can be pasted"
    assert "1 problem" in result.stdout.splitlines()[-1]


def test_places_that_are_not_there_yet_are_no_problem_and_are_not_made(state: Path) -> None:
    found = findings()
    for check in ("Dagster's home", "response store"):
        assert found[check]["found"].endswith("is not there yet; the first command that needs it makes it")
    assert found["warehouse"]["found"].endswith("is not there yet; `dtef ingest PATH` makes it")
    assert list(state.iterdir()) == []


def test_places_that_cannot_be_used_are_problems_with_the_variable_to_change(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (state / "file").write_bytes(b"rubbish" * 300)
    for name, place in (("DTEF_WAREHOUSE", "file"), ("DTEF_RESPONSES", "file"), ("DAGSTER_HOME", "file/home")):
        monkeypatch.setenv(name, str(state / place))
    found = findings(1)
    assert (found["warehouse"]["state"], found["warehouse"]["found"]) == ("problem", f"{state}/file is no folder")
    assert found["response store"]["found"] == f"{state}/file cannot be read: file is not a database"
    assert found["response store"]["remedy"].endswith(f"mv {state}/file {state}/file.broken")
    home = f"{state}/file/home cannot be made: {state}/file is a file, where a folder is needed"
    assert found["Dagster's home"]["found"] == home
    assert (
        found["Dagster's home"]["remedy"]
        == "take the usual place: unset DAGSTER_HOME; or name another place: export DAGSTER_HOME=PATH"
    )

    monkeypatch.setattr("dtef_pipeline.cli.kept_state.damage_of", lambda path, within_s: "Page 7 is never used")
    with ResponseStore(state / "damaged.sqlite") as store:
        store.add([response(1)])
    monkeypatch.setenv("DTEF_RESPONSES", str(state / "damaged.sqlite"))
    damaged = findings(1)["response store"]
    assert (damaged["state"], "Page 7" in damaged["found"], "backup" in damaged["remedy"]) == ("problem", True, True)

    (state / "folder").mkdir()
    monkeypatch.setenv("DTEF_RESPONSES", str(state / "folder"))
    monkeypatch.setenv("DAGSTER_HOME", "/proc/nope")
    found = findings(1)
    assert found["response store"]["remedy"] == f"export DTEF_RESPONSES={state}/folder/responses.sqlite"
    assert found["Dagster's home"]["state"] == "problem"
    assert "DAGSTER_HOME" not in found["free disk space"]["found"]

    for place, said in (("/proc/nope", "/proc holds no files of users"), (str(state / "file"), "file is no folder")):
        monkeypatch.setenv("DTEF_SURVEYS", place)
        row = {one.check: one for one in check_state(Settings.from_environment())}["landing folder"]
        assert (row.state, row.remedy.partition("; ")[0]) == ("problem", "take the usual place: unset DTEF_SURVEYS")
        assert said in row.found


def test_an_object_store_that_is_not_reached_is_no_fault_of_the_address(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(root: str) -> None:
        cause = OSError("curlCode: 6, Could not resolve hostname") if root.startswith("s3") else ValueError("unknown type")
        raise WarehouseError(f"cannot use the warehouse {root}") from cause

    monkeypatch.setattr(asked_bucket, "open_root", unreachable)
    for root, remedy in (
        ("s3://bucket/prefix", "see whether that server can be reached"),
        ("s4://bucket/prefix", "name a folder, or"),
    ):
        monkeypatch.setenv("DTEF_WAREHOUSE", root)
        assert {one.check: one for one in check_state(Settings.from_environment())}["warehouse"].remedy.startswith(remedy)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysql://u:hush@h/d", "no support for 'mysql'; allowed: sqlite, postgresql"),
        ("foo://x", "no support for 'foo'"),
        ("postgresql://u:hush@127.0.0.1:1/d", "cannot open the response store postgresql+psycopg://u:***@127.0.0.1:1/d: "),
    ],
)
def test_a_response_store_that_commands_would_refuse_is_a_problem(
    state: Path, monkeypatch: pytest.MonkeyPatch, url: str, said: str
) -> None:
    monkeypatch.setenv("DTEF_RESPONSES", url)
    (found,) = (one for one in check_state(Settings.from_environment()) if one.check == "response store")
    assert found.state == "problem"
    assert said in found.found
    assert "hush" not in str(found)


def test_an_empty_store_is_one_that_is_about_to_be_made(state: Path) -> None:
    (state / "responses.sqlite").touch()
    found = next(check_state(Settings.from_environment()))
    assert (found.state, found.found) == ("ok", f"{state}/responses.sqlite: no responses yet")


def test_broken_files_of_the_warehouse_are_counted_and_named(ingested: Path) -> None:
    first, second, *_ = sorted((ingested / "warehouse" / "survey_responses").rglob("*.parquet"))
    first.write_bytes(first.read_bytes()[:300])
    second.write_bytes(b"")
    row = findings(1)["warehouse"]
    assert row["found"].startswith("broken: 2 of ")
    assert str(first) in row["found"]
    assert f"dtef run --round S1 --segment {unquote(first.parent.name.partition('=')[2])} " in row["remedy"]
    assert row["remedy"].count(" --ingest") == 2
    assert row["remedy"].startswith("this makes them again, with the stored responses of all models: ")


def test_a_store_of_newer_code_says_so(ingested: Path) -> None:
    with closing(sqlite3.connect(ingested / "responses.sqlite")) as store:
        store.execute("CREATE TABLE IF NOT EXISTS response_store (schema_version INTEGER PRIMARY KEY)")
        store.execute("INSERT INTO response_store VALUES (99)")
        store.commit()
    assert "has the schema version 99" in findings(1)["response store"]["found"]


def test_a_storage_that_dagster_cannot_read_or_start_with_is_a_problem_with_the_commands_that_mend_it(ingested: Path) -> None:
    home = ingested / "dagster"
    index = home / "history" / "runs" / "index.db"
    again = f"dtef ingest {SAMPLE} --round S1"
    index.write_bytes(b"rubbish" * 300)
    row = findings(1)["Dagster's storage"]
    assert row["found"] == f"{index} cannot be read: file is not a database"
    assert row["remedy"].endswith(f"mv {index} {index}.broken && {again}")

    index.rename(f"{index}.broken")
    row = findings(1)["Dagster's rounds"]
    assert row["found"].startswith(
        "in the warehouse, but not known here, so they cannot be run: S1; they were ingested with another home, or"
    )
    assert row["remedy"] == again

    with (home / "dagster.yaml").open("a", encoding="utf-8") as settings:
        settings.write("nonsense: 1\n")
    said = f'{home}/dagster.yaml: Dagster does not start with it: Received unexpected config entry "nonsense" at the root'
    assert findings(1)["Dagster's home"]["found"] == said


def test_what_a_panel_names_is_looked_for_and_a_limit_in_dollars_needs_prices(
    ingested: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel, models = ingested / "panel.yaml", ingested / "models.yaml"
    monkeypatch.setenv("DTEF_PANEL", str(panel))
    monkeypatch.setenv("DTEF_MODELS", str(models))
    models.write_text("models: {mine: {model: openai/x, api_base: 'http://127.0.0.1:1/v1'}}\n", encoding="utf-8")
    for text, said in (
        ("models: [mine]\nrounds: [GD9]\n", f"{panel}:2: rounds: GD9 not ingested; ingested: S1"),
        ("segments: ['country:atlantis']\n", f"{panel}:1: segments: country:atlantis in none of the chosen rounds"),
        ("models: [nobody]\n", f"{panel}:1: models.0: no model or collection 'nobody'"),
        ("models: [mine]\nmax_cost_usd: 5\n", f"{panel}: max_cost_usd cannot be kept without a price of mine"),
    ):
        panel.write_text(text, encoding="utf-8")
        found = {one.check: one for one in check_models(Settings.from_environment())}
        assert found["panel"].state == "problem"
        assert found["panel"].found.startswith(said)
    panel.write_text("models: [mine]\nrounds: [S9]\n", encoding="utf-8")
    monkeypatch.setenv("DTEF_WAREHOUSE", str(ingested / "nothing-yet"))
    row = {one.check: one for one in check_models(Settings.from_environment())}["panel"]
    assert (row.state, row.remedy) == ("warning", "dtef ingest PATH")
    assert row.found.endswith("no round is ingested yet, so what it names is not there: S9")
    models.write_text("modls: 3\n", encoding="utf-8")
    found = {one.check: one for one in check_models(Settings.from_environment())}
    assert (found["models file"].state, found["panel"].state) == ("problem", "warning")
    assert "cannot be looked for while the models file has a problem" in found["panel"].found


def test_models_and_keys_are_told_and_no_key_is_shown(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "planted-7f3a9c-key")
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "XAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    panel = state / "panel.yaml"
    panel.write_text("models: [gpt-4.1, grok-4.20]\nrounds: [S1]\n", encoding="utf-8")
    monkeypatch.setenv("DTEF_PANEL", str(panel))
    monkeypatch.setenv("DTEF_WEBHOOK", "https://h.example/hush")
    monkeypatch.setenv("DTEF_SOCIOSCOPE_URL", "https://i.example/hush?token=planted")
    monkeypatch.setenv("DTEF_SOCIOSCOPE_AUTH", "planted")
    found = findings(1)
    assert "gpt-4.1" in found["models to ask"]["found"]
    assert "XAI_API_KEY (1 model)" in found["keys"]["found"], "one line has all keys"
    assert found["panel"]["remedy"] == "export XAI_API_KEY=KEY"
    assert "not to be asked now: grok-4.20: environment variable XAI_API_KEY is not set" in found["panel"]["found"]
    assert found["webhook"]["found"] == "https://h.example/... (not tried)"
    assert found["look-ups"]["found"] == "https://i.example/... with a secret (not tried)"
    assert "planted" not in str(found)
    assert "hush" not in str(found)

    monkeypatch.setenv("DTEF_MODELS", str(panel))
    monkeypatch.setenv("DTEF_SOCIOSCOPE_URL", "https://me:planted@i.example/hush")
    found = findings(1)
    assert found["models file"]["found"].startswith(f"{panel}:2: rounds: unknown key")
    assert found["look-ups"]["state"] == "problem"
    assert "DTEF_SOCIOSCOPE_URL has a user name or a password in it" in found["look-ups"]["found"]
    assert "planted" not in str(found["look-ups"])


def test_packages_that_are_not_as_needed_or_locked_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"duckdb": "0.9", "click": None}
    monkeypatch.setattr(installed, "_version", lambda name: versions.get(name, "1"))
    monkeypatch.setattr(installed, "requires", lambda _: ["duckdb>=1.1", "click>=8", "flask; extra == 'dev'"])
    by_check: dict[str, Diagnosis] = {finding.check: finding for finding in check_installation()}
    assert by_check["packages"].found == "duckdb 0.9 is installed, >=1.1 is needed; click is not installed"
    assert by_check["lock"].state == "warning"
    pins = locked_versions(
        "a==1 ; python_version < '3' \\\n    --hash=sha256:0\n# b==3\na==2 ; python_version >= '3' \\\nb[x]==4\n"
    )
    assert pins == {"a": "2", "b": "4"}


def test_a_file_of_corrected_batteries_is_looked_at(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = state / "batteries.yaml"
    file.write_text("batteries:\n  - {round: S1, question_id: s1-07, battery: trust}\n", encoding="utf-8")
    monkeypatch.setenv("DTEF_BATTERIES", str(file))
    found = findings(1)["batteries"]
    assert found["found"] == f"{file}:2: row 1: reason: is missing"
    assert found["remedy"].endswith("or go on without: unset DTEF_BATTERIES")


def test_rows_of_corrected_batteries_that_name_what_is_not_there_are_told(
    ingested: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = ingested / "batteries.yaml"
    row = "  - {round: %s, question_id: %s, battery: trust, reason: one scale}\n"
    monkeypatch.setenv("DTEF_BATTERIES", str(file))
    file.write_text("batteries:\n" + row % ("S1", "s1-07") + row % ("S11", "s1-07"), encoding="utf-8")
    found = findings()["batteries"]
    stale = f"{file}:3: row 2: round: got 'S11', which is not ingested: nothing to correct by 1 row; allowed: S1"
    assert (found["state"], found["found"]) == ("warning", stale)
    file.write_text("batteries:\n" + row % ("S1", "s1-77"), encoding="utf-8")
    found = findings(1)["batteries"]
    unknown = f"{file}:2: row 1: question_id: got 's1-77', which round S1 does not ask; allowed: s1-"
    assert found["found"].startswith(unknown)
    named = 's1-07 ("How much do you trust your nearest hospital?")'
    assert named in found["found"], "a list of bare ids says nothing to the one who mixed them up"


def test_the_sandbox_is_named_with_the_reason_for_none_better(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert findings()["sandbox"]["found"].split(" ")[0] in ("sandlock", "bwrap", "unshare", "none")
    monkeypatch.setenv("DTEF_SANDBOX", "rlimits")
    found = findings()["sandbox"]
    assert (found["state"], found["found"].split(":")[0]) == ("warning", "none (no rlimits")
    monkeypatch.setenv("DTEF_SANDBOX", "jail")
    assert "allowed: auto, sandlock, bwrap" in findings(1)["sandbox"]["found"]


@pytest.mark.parametrize(("wish", "level"), [("off", None), ("rlimits", None), ("unshare", "unshare")])
def test_a_sandbox_that_the_variable_keeps_from_a_better_level_names_the_variable(
    state: Path, monkeypatch: pytest.MonkeyPatch, wish: str, level: str | None
) -> None:
    """It said to install bubblewrap, which was there: what kept it from use was DTEF_SANDBOX."""

    def found_level(asked: str) -> FoundLevel:
        return FoundLevel("sandlock", {}) if asked == "auto" else FoundLevel(level, {})

    monkeypatch.setattr("resources.sandbox.run.found_level", found_level)
    monkeypatch.setenv("DTEF_SANDBOX", wish)
    found = findings()["sandbox"]
    assert found["state"] == "warning"
    assert f"because DTEF_SANDBOX is {wish}; without it the level is sandlock: unset DTEF_SANDBOX" in found["remedy"]
    assert "bubblewrap" not in found["remedy"]


def test_a_sandbox_without_any_better_level_says_what_to_install(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resources.sandbox.run.found_level", lambda _: FoundLevel(None, {}))
    for wish in ("auto", "off"):
        monkeypatch.setenv("DTEF_SANDBOX", wish)
        assert "install bubblewrap" in findings()["sandbox"]["remedy"]
