"""A family in one file, `tests/made/spelling_family.py`, which a package of its own brings: the engine makes everything else of it.

All of it happens in one process of its own, since a family is found when the families are first looked at.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT
from tests.fake_llm_server import Call, FakeLLM

NIGHTS = ("2026-01-01", "2026-01-02", "2026-01-03")
LANGUAGES = ("de", "en")
WORDS = 24
RIGHT = {"good": (0.9, 0.9, 0.1), "bad": (0.6, 0.6, 0.6)}
"""By model, the share of words that it knows in each snapshot."""
CALLS_OF_COMMANDS = len(NIGHTS) * len(LANGUAGES) * WORDS * len(RIGHT)
STORY = """
import json, sys
from click.testing import CliRunner
from dtef_pipeline.cli import main
from dtef_pipeline.site import build
build.static_files = lambda: ()  # the chart library alone takes seconds
told = {}
for name, command in json.load(sys.stdin).items():
    result = CliRunner().invoke(main, command, prog_name="dtef")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    told[name] = [result.exit_code, result.stdout, result.stderr]
loaded = [name for name in sys.modules if name.startswith(("assets.", "dtef_pipeline.cli."))]
import dagster as dg
from assets.definitions import defs
graph = defs.resolve_asset_graph()
own = [key for key in graph.get_all_asset_keys() if graph.get(key).group_name == "spelling"]
told["dagster"] = {
    "loaded": loaded,
    "partitions": {key.to_user_string(): getattr(graph.get(key).partitions_def, "name", None) for key in own},
    "parents": {
        key.to_user_string(): sorted(one.to_user_string() for one in graph.get(key).parent_keys)
        for key in [*own, dg.AssetKey("report")]
    },
    "checks": sorted(key.name for key in graph.asset_check_keys if key.asset_key in own),
    "jobs": [job.name for job in defs.jobs if job.name.startswith("spelling")],
    "sensors": [sensor.name for sensor in defs.sensors if "spelling" in sensor.name],
}
with dg.DagsterInstance.get() as instance:
    schedule = next(one for one in defs.schedules if one.name == "spelling_nightly")
    from datetime import datetime, UTC
    context = dg.build_schedule_context(instance, datetime(2026, 1, 4, 4, tzinfo=UTC), resources=defs.resources)
    request = schedule.evaluate_tick(context).run_requests[0]
    told["night"] = {"tags": dict(request.tags), "config": request.run_config["ops"]}
    materialized = instance.get_materialized_partitions(dg.AssetKey("spelling_scores"))
    told["dagster"]["materialized"] = sorted(materialized)

import os
from pathlib import Path
from fastapi.testclient import TestClient
from dtef_pipeline.api.app import make_app
from dtef_pipeline.api.services import Services
from dtef_pipeline.api.tokens import Tokens
from resources.settings import Settings
from tests.dtef_pipeline.api.made import ROLE_TOKENS, written_tokens
sensor = next(one for one in defs.sensors if one.name == "evaluation_queue")
places = Settings.read_environment({**os.environ, "DTEF_ALLOWED_HOSTS": "testserver"})
with dg.DagsterInstance.get() as instance:
    services = Services.open_services(places, Tokens(written_tokens(Path.cwd())))
    with TestClient(make_app(services)) as client:
        client.headers["Authorization"] = f"Bearer {ROLE_TOKENS['operator']}"
        schemas = client.get("/api/openapi.json").json()["paths"]["/api/evaluations"]["post"]["requestBody"]
        told["form"] = schemas["content"]["application/json"]["schema"]["oneOf"][-1]
        faulty = {"family": "spelling", "partitions": ["fr/*"], "draws": 0, "words": 3}
        told["refused"] = client.post("/api/evaluations", json=faulty).json()
        wanted = {"family": "spelling", "partitions": ["en/*"], "models": ["good"], "snapshot": "http", "exact": True}
        told["posted"] = client.post("/api/evaluations", json=wanted).json()
        with dg.build_sensor_context(
            instance, repository_def=defs.get_repository_def(), resources=defs.resources
        ) as context:
            (request,) = sensor(context).run_requests
        told["asked"] = [request.job_name, *sorted(key.to_user_string() for key in request.asset_selection)]
        done = defs.resolve_job_def(request.job_name).execute_in_process(
            instance=instance, run_config=request.run_config, tags=request.tags, asset_selection=list(request.asset_selection)
        )
        assert done.success
        run = told["posted"]["runs"][0]["run_id"]
        told["results"] = client.get(f"/api/evaluations/{run}").json()
        told["trace"] = client.get(told["results"]["traces"][0]).json()
print(json.dumps(told))
"""


def knows(call: Call) -> str:
    """What a model writes: the word, or another one; the third time that it is asked the first one has forgotten much."""
    found = re.search(r"language (\w+) means: number (\d+)\?", call.user)
    assert found
    share = RIGHT[call.body["model"]][min(call.attempt, len(NIGHTS)) - 1]
    if random.Random(f"{call.body['model']} {call.user}").random() < share:
        return f"{found[1]}word{found[2]}"
    return "not a word" if int(found[2]) % 10 == 0 else "wrong"


def commands(folder: Path) -> dict[str, list[str]]:
    """All that is done, by name."""
    lists = [str(folder / f"{language}-common.csv") for language in LANGUAGES]
    asked = ["spelling", "run", "--model", "good", "--model", "bad"]
    return {
        "help": ["--help"],
        "verbs": ["spelling", "--help"],
        "check": ["spelling", "check", *lists, "--json"],
        "add": ["spelling", "add", *lists, "--json"],
        "estimate": [*asked, "--snapshot", NIGHTS[0], "--estimate", "--json"],
        "run": [*asked, "--snapshot", NIGHTS[0], "--no-roll-ups", "--json"],
        "estimate after": [*asked, "--snapshot", NIGHTS[0], "--estimate", "--json"],
        "budget": [*asked, "--snapshot", NIGHTS[1], "--no-roll-ups", "--max-calls", "60"],
        "continued": [*asked, "--snapshot", NIGHTS[1], "--no-roll-ups"],
        "night 3": [*asked, "--snapshot", NIGHTS[2]],
        "again": [*asked, "--snapshot", NIGHTS[2], "--no-roll-ups"],
        "list": ["spelling", "list", "--json"],
        "board": ["spelling", "board", "--json"],
        "columns": ["explain", "spelling/part", "--json"],
        "board by list": ["spelling", "board", "--by", "part", "--json"],
        "comparisons": ["spelling", "board", "--by", "comparisons", "--json"],
        "drift": ["drift", "--family", "spelling", "--json"],
        "drift by list": ["drift", "--family", "spelling", "--by", "list", "--json"],
        "series": ["sql", "SELECT model, snapshot, score FROM drift_series ORDER BY ALL", "--json"],
        "costs": ["costs", "--family", "spelling", "--by", "list", "--by", "model", "--json"],
        "all costs": ["costs", "--json"],
        "report": ["report", "--out", str(folder / "report")],
        "unknown list": ["spelling", "run", "--part", "fr/*"],
        "remove": ["spelling", "remove", "de/*", "--json"],
        "list after": ["spelling", "list", "--json"],
        "sql after": ["sql", "SELECT DISTINCT language FROM spelling_scores", "--json"],
    }


def write_installation(folder: Path, server: FakeLLM) -> dict[str, str]:
    """A package with an entry point, lists of words, models and a panel; the environment that names them."""
    package = folder / "package" / "spelling-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: spelling\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[dtef.families]\nspelling = tests.made.spelling_family:SPELLING\n")
    for language in LANGUAGES:
        rows = [f"{language}word{at},number {at},topic {at % 8}" for at in range(WORDS)]
        (folder / f"{language}-common.csv").write_text("\n".join(["word,meaning,topic", *rows]))
    spec = {"api_base": server.base_url, "retries": 0, "temperature": 0.0, "input_price": 1.0, "output_price": 2.0}
    models = {name: {**spec, "model": f"openai/{name}"} for name in RIGHT}
    (folder / "models.yaml").write_text(yaml.safe_dump({"models": models}))
    panel = {"drift": {"baseline": 2}, "spelling": {"models": ["good"], "parts": ["en/*"], "exact": True}}
    (folder / "panel.yaml").write_text(yaml.safe_dump(panel))
    state = {"WAREHOUSE": "warehouse", "RESPONSES": "responses.sqlite", "MODELS": "models.yaml", "PANEL": "panel.yaml"}
    return {
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder / "package")]),
        "DAGSTER_HOME": str(folder / "dagster"),
        **{f"DTEF_{name}": str(folder / place) for name, place in state.items()},
    }


class Told:
    """What became of the commands."""

    def __init__(self, told: dict[str, Any], calls: int, folder: Path) -> None:
        self.told, self.calls, self.folder = told, calls, folder

    def out(self, name: str) -> str:
        code, out, err = self.told[name]
        assert code == 0, f"{name}: {out}{err}"
        return str(out)

    def rows(self, name: str) -> Any:
        return json.loads(self.out(name))


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    folder = tmp_path_factory.mktemp("spelling")
    with FakeLLM(reply=knows) as server:
        settings = write_installation(folder, server)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("DTEF_")}
        done = subprocess.run(
            [sys.executable, "-c", STORY],
            input=json.dumps(commands(folder)),
            env={**kept, **settings},
            cwd=folder,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        yield Told(json.loads(done.stdout.splitlines()[-1]), server.answered, folder)


def test_the_family_is_one_short_file() -> None:
    assert len((ROOT / "tests" / "made" / "spelling_family.py").read_text().splitlines()) <= 150


def test_it_has_the_verbs_of_every_family(story: Told) -> None:
    assert "spelling" in story.out("help")
    help = story.out("verbs")
    assert all(f"  {verb} " in help for verb in ("add", "check", "list", "remove", "run", "board")), help
    assert [one["parts"] for one in story.rows("check")] == [{f"{language}/common": WORDS} for language in LANGUAGES]
    assert story.rows("add")[0]["added"] == [f"{language}/common" for language in LANGUAGES]
    (row, _) = story.rows("list")
    assert (row["list"], row["items"], row["snapshots"]) == ("de/common", WORDS, list(NIGHTS))


def test_its_estimate_is_what_is_asked_and_then_what_is_replayed(story: Told) -> None:
    each = len(LANGUAGES) * WORDS
    assert [(row["model"], row["calls"], row["replayed"]) for row in story.rows("estimate")] == [
        (name, each, 0) for name in RIGHT
    ]
    assert [(row["calls"], row["replayed"]) for row in story.rows("estimate after")] == [(0, each)] * len(RIGHT)
    assert f"{len(RIGHT) * each} calls" in story.out("run")


def test_nothing_is_asked_twice_and_a_budget_is_continued(story: Told) -> None:
    assert "60 calls" in story.out("budget")
    assert "36 calls" in story.out("continued")
    assert "sent as" not in story.out("again")
    assert story.calls == CALLS_OF_COMMANDS + WORDS  # one list by HTTP


def test_its_board_has_means_intervals_and_ranks_in_all_and_by_list(story: Told) -> None:
    best, other = story.rows("board")
    assert (best["model"], best["rank"], best["n_items"], best["n_clusters"]) == ("bad", 1, 2 * WORDS, 8)
    assert best["score_low"] < best["score"] < best["score_high"]
    assert other["score"] < 0.4
    assert {*best} <= {row["column"] for row in story.rows("columns")}
    by_list = story.rows("board by list")
    assert {row["list"] for row in by_list} == {"common"}
    assert [row["language"] for row in by_list] == ["de", "de", "en", "en"]
    means = [row["score"] for row in by_list if row["model"] == "bad"]
    assert best["score"] == pytest.approx(sum(means) / 2)


def test_models_are_compared_by_item(story: Told) -> None:
    (row,) = story.rows("comparisons")
    assert (row["model"], row["other_model"], row["n_items"], row["verdict"]) == ("bad", "good", 2 * WORDS, "better")
    best, other = story.rows("board")
    assert row["difference"] == pytest.approx(best["score"] - other["score"])


def test_a_model_that_forgets_is_seen_over_three_snapshots(story: Told) -> None:
    verdicts = {row["model"]: row for row in story.rows("drift")}
    assert {name: row["verdict"] for name, row in verdicts.items()} == {"good": "watch", "bad": "none"}
    assert verdicts["good"]["n_snapshots"] == len(NIGHTS)
    assert [row["snapshot"] for row in story.rows("series") if row["model"] == "good"] == list(NIGHTS)
    flagged = {(row["partition"], row["model"]) for row in story.rows("drift by list") if row["flagged"]}
    assert flagged == {(f"{language}/common", "good") for language in LANGUAGES}


def test_costs_count_each_call_once(story: Told) -> None:
    rows = story.rows("costs")
    assert {row["calls"] for row in rows} == {len(NIGHTS) * WORDS * len(LANGUAGES)}
    (row,) = story.rows("all costs")
    assert (row["family"], row["calls"]) == ("spelling", CALLS_OF_COMMANDS)
    assert row["cost_usd"] > 0


def test_its_report_shows_boards_comparisons_drift_and_costs(story: Told) -> None:
    story.out("report")
    for site in (story.folder / "report", story.folder / "warehouse" / "report"):
        front, board, good, drift = (
            (site / name).read_text(encoding="utf-8")
            for name in ("index.html", "spelling/index.html", "models/good.html", "drift.html")
        )
        assert "Best of 2 models: bad scores" in front
        assert all(f'<section id="{anchor}"' in front for anchor in ("models", "changes", "drift", "costs"))
        assert all(f'<section id="{anchor}"' in board for anchor in ("board", "parts"))
        assert "Compared with" in good
        assert '<section id="spelling"' in drift


def test_dagster_has_its_assets_checks_jobs_sensor_and_night(story: Told) -> None:
    found = story.told["dagster"]
    stages = ("spelling_files", "spelling_words", "spelling_responses", "spelling_scores")
    roll_ups = ("spelling_board", "spelling_costs", "spelling_drift")
    assert found["partitions"] == dict.fromkeys(stages, "word_list") | dict.fromkeys(roll_ups)
    assert found["parents"]["spelling_words"] == ["spelling_files"]
    assert found["parents"]["spelling_board"] == ["spelling_scores"]
    assert set(roll_ups) < set(found["parents"]["report"])
    assert {"spelling_words_are_unique", "spelling_scores_are_unique", "spelling_has_no_drift"} <= set(found["checks"])
    assert found["jobs"] == ["spelling_pipeline", "spelling_roll_ups"]
    assert found["sensors"] == ["spelling_boards_after_run"]
    assert found["materialized"] == ["de/common", "en/common"]


def test_a_command_loads_no_other_family(story: Told) -> None:
    others = (
        "assets.qa.",
        "assets.rubric.",
        "assets.games.",
        "dtef_pipeline.cli.qa.qa_run",
        "dtef_pipeline.cli.rubric.rubric_run",
    )
    assert not [name for name in story.told["dagster"]["loaded"] if name.startswith(others)]


def test_its_night_asks_what_the_panel_names(story: Told) -> None:
    night = story.told["night"]
    assert night["tags"]["dtef/snapshot"] == "2026-01-04"
    assert night["config"]["spelling_responses"]["config"] == {"snapshot": "2026-01-04", "models": ["good"]}
    assert night["config"]["spelling_scores"]["config"] == {"snapshot": "2026-01-04", "exact": True}


def test_what_is_wrong_is_reported_and_what_is_removed_is_gone(story: Told) -> None:
    code, _, err = story.told["unknown list"]
    assert (code, "de/common" in err) == (2, True)
    assert story.rows("remove")["removed"] == ["de/common"]
    assert [row["list"] for row in story.rows("list after")] == ["en/common"]
    assert story.rows("sql after") == [{"language": "en"}]


def test_it_is_asked_for_and_answered_over_http(story: Told) -> None:
    told = story.told
    assert {"partitions", "models", "draws", "exact", "snapshot"} <= set(told["form"]["properties"])
    assert [one["path"] for one in told["refused"]["errors"]] == ["draws", "words", "partitions"]
    assert told["asked"] == ["spelling_pipeline", "spelling_responses", "spelling_scores"]
    (metric,) = told["results"]["metrics"]
    assert (metric["model"], metric["metric"], metric["n"]) == ("good", "correct", WORDS)
    assert metric["low"] < metric["value"] < metric["high"]
    assert told["results"]["cost"]["calls"] == WORDS
    assert (told["trace"]["model"], [one["metric"] for one in told["trace"]["scores"]]) == ("good", ["correct"])
