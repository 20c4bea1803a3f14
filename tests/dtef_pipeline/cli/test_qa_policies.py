"""`dtef qa replay-policies` replays what a run has stored, and says what it needs."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
import yaml

from dtef_pipeline.qa.policies.replay import POLICY_NAMES
from tests.conftest import ROOT
from tests.dtef_pipeline.cli.commands import ok, refused, use
from tests.fake_llm_server import Call, FakeLLM
from tests.strict_json import strict

SUMS = ROOT / "data" / "questions" / "gsm8k"
REPLAY = ("qa", "replay-policies", "gsm8k", "--seeds", "10")


def replied(call: Call) -> str:
    """`large` is right about half of the sums, `small` about none; the judge knows it by the form of the answer."""
    if call.body["model"] == "judge":
        answer = call.user.partition("[BEGIN ANSWER ")[2]
        return f'{{"score": {int("####" in answer)}, "reason": "its form"}}'
    if call.body["model"] == "large" and len(call.user) % 2:
        return next(f"#### {answer}" for text, answer in KNOWN if text in call.user)
    return "The answer is 987654."


KNOWN = [
    (row["question"], row["answer"].rpartition("#### ")[2])
    for row in map(strict, (SUMS / "test.jsonl").read_text(encoding="utf-8").splitlines())
]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models have answered sums, the larger one at ten times the price. Made once; to be read."""
    folder = tmp_path_factory.mktemp("policies")
    with FakeLLM(reply=replied) as server, pytest.MonkeyPatch.context() as patch:
        use(folder, patch)
        specs = {
            name: {"model": f"openai/{name}", "api_base": server.base_url, "input_price": price, "output_price": price}
            for name, price in (("small", 1.0), ("large", 10.0), ("judge", 1.0))
        }
        (folder / "models.yaml").write_text(yaml.safe_dump({"models": specs}), encoding="utf-8")
        patch.setenv("DTEF_MODELS", str(folder / "models.yaml"))
        ok("qa", "add", "gsm8k", SUMS)
        ok("qa", "run", "--model", "small", "--model", "large", "--judge", "judge", "--no-roll-ups")
    return folder


@pytest.fixture(autouse=True)
def _reading(asked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(asked, monkeypatch)


def test_every_policy_is_replayed_over_what_is_stored() -> None:
    rows = {row["policy"]: row for row in strict(ok(*REPLAY, "--metric", "judged", "--format", "json"))}
    assert tuple(rows) == POLICY_NAMES
    assert {row["n_items"] for row in rows.values()} == {len(KNOWN)}
    assert rows["always-cheapest"]["quality"] == 0
    assert 0 < rows["always-best"]["quality"] == pytest.approx(rows["oracle"]["quality"])
    assert rows["always-best"]["cost_usd"] == pytest.approx(10 * rows["always-cheapest"]["cost_usd"], rel=0.2)
    assert rows["oracle"]["cost_usd"] < rows["always-best"]["cost_usd"]  # the cheaper one where both are wrong


def test_results_curves_and_the_plot_are_written(tmp_path: Path) -> None:
    told = ok(*REPLAY, "--metric", "judged", "--out", tmp_path / "new", "--policy", "ucb1", "--policy", "oracle")
    assert f"gsm8k: {len(KNOWN)} items, 2 models; 10 orders of the items, seed 0" in told
    with (tmp_path / "new" / "policies.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["policy"] for row in rows] == ["ucb1", "oracle"]
    for row in rows:  # numpy's words for an array, which break lines, stood here
        assert len(strict(row["quality_shares"])) == 10
        assert sum(share["share"] for share in strict(row["shares"])) == pytest.approx(1)
    assert (tmp_path / "new" / "pareto.svg").read_text(encoding="utf-8").startswith("<svg")
    assert "ucb1" in (tmp_path / "new" / "regret.csv").read_text(encoding="utf-8")


def test_the_table_shows_how_quality_is_spread_and_counts_one_order() -> None:
    told = ok("qa", "replay-policies", "gsm8k", "--seeds", "1", "--metric", "judged", "--policy", "always-cheapest")
    assert "; 1 order of the items, seed 0" in told
    assert "100 . . . . . . . . ." in told
    assert "cost the same" not in told
    assert re.search(r"\b0\.00[0-9]{3,}\b", told), f"four decimals show too little of what an item costs: {told}"


def test_what_cannot_be_replayed_is_refused_with_what_can() -> None:
    assert "SUITE: got 'mmlu'; allowed: one of gsm8k" in refused("qa", "replay-policies", "mmlu")
    assert "--metric: got 'style'; allowed: one of" in refused(*REPLAY, "--metric", "style")
    assert "policy 'softmax': allowed: epsilon-greedy" in refused(*REPLAY, "--metric", "judged", "--policy", "softmax")
    assert "got 1 model" in refused(*REPLAY, "--metric", "judged", "--model", "small")
    assert "--model nobody: no response" in refused(*REPLAY, "--metric", "judged", "--model", "nobody")
