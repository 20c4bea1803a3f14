"""What the demo does of games and votes: its commands, and the numbers that pages show of them."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from statistics import fmean

import pytest
from click.testing import CliRunner

from assets.games.known_games import known_scenarios
from dtef_pipeline.asking.models import Models
from dtef_pipeline.cli.preference_group import preference
from dtef_pipeline.games.entrants import entrants, opponent_named
from dtef_pipeline.games.episode_items import items_given
from dtef_pipeline.games.matches import BaselineGames, LeaguePlan
from dtef_pipeline.games.packs import pack
from resources.settings import Settings
from tests.conftest import ROOT

DEMO_RECIPE = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\ndemo:")[2].partition("\n\n")[0]
SAMPLE_VOTES = ROOT / "data" / "votes_sample.csv"
SEEDS_OF_DEMO = "1-10"


@pytest.fixture(scope="module")
def sample_votes() -> list[dict[str, str]]:
    with SAMPLE_VOTES.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_make_demo_plays_all_baselines_and_the_model_in_this_process_a_little() -> None:
    assert re.findall(r"dtef games (\w+) ?(.*)", DEMO_RECIPE) == [
        ("run", f"--player baselines --seeds {SEEDS_OF_DEMO} --no-roll-ups"),
        ("run", "--scenario poker/kuhn --player local/smollm2-135m --opponent nash --seeds 7-8"),
        ("board", ""),
    ]


@pytest.mark.parametrize("page", ["docs/games.md", "README.md"])
def test_pages_show_what_baselines_win_in_the_demo(state: object, page: str) -> None:
    found = pack("poker/kuhn", known_scenarios(Settings.from_environment()))
    nobody = Models({}, {})
    items = items_given(found.manifest, SEEDS_OF_DEMO, [])
    opponents = {name: opponent_named(found, nobody, {}, name) for name in {item.opponent for item in items}}
    plan = LeaguePlan(found, items, entrants(found, nobody, {}, ["baselines"], []), opponents, 1, "base")
    games, won = BaselineGames(found), dict[str, list[float]]()
    for match in plan.matches():
        trace = games.trace(match.item.seed, match.by_seat(plan.n_seats))
        assert trace.result is not None
        won.setdefault(match.player.name, []).append(trace.result.rewards[match.item.seat])
    text = (ROOT / page).read_text(encoding="utf-8")
    shown = re.findall(r"^ kuhn +(baseline/\S+) +all +expected_return +(-?\d\.\d{4}) .* (\d+)$", text, re.MULTILINE)
    assert {name: float(mean) for name, mean, _ in shown} == {
        name: pytest.approx(fmean(rewards), abs=5e-5) for name, rewards in won.items()
    }
    assert {int(n) for _, _, n in shown} == {len(rewards) for rewards in won.values()}


def test_sample_votes_are_invented_and_say_so(sample_votes: list[dict[str, str]]) -> None:
    assert all(vote["reviewer_id"].startswith("invented-") for vote in sample_votes)
    assert {vote[side] for vote in sample_votes for side in ("left", "right")} == {
        f"stored/{name}" for name in ("amber", "birch", "cobalt")
    }
    by_reviewer = Counter(vote["reviewer_id"] for vote in sample_votes)
    assert len(sample_votes) == 72
    assert set(by_reviewer.values()) == {9}
    assert len(by_reviewer) == 8


def test_sample_votes_have_finite_scores_with_intervals_and_one_model_apart() -> None:
    fitted = CliRunner().invoke(preference, ["fit", str(SAMPLE_VOTES), "--json"])
    assert fitted.exit_code == 0, fitted.output
    scores = {one["model"]: one for one in json.loads(fitted.stdout)["scores"]}
    assert all(one["low"] < one["beta"] < one["high"] for one in scores.values())
    assert scores["stored/cobalt"]["high"] < scores["stored/amber"]["low"]
