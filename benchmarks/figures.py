"""`make figures`: measures the figures that README and docs quote, writes them there, and takes their pictures.

A page quotes a figure between `<!-- figure NAME -->` and `<!-- end -->`. docs/figures.json keeps what was measured, and the hashes of the
pictures; a test compares both with the pages. Simulations take a few minutes. Boards and pictures are of the state that `make demo` left; the
pictures need Chromium, too.

Run: `python -m benchmarks.figures [NAME...]`; without a name, all of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks import coverage, drift_panels, preference_coverage, qa_coverage, rubric_coverage
from benchmarks.exact_play import build_exact_game
from docs import architecture_figure
from dtef_pipeline.games import kuhn, leduc
from dtef_pipeline.games.manifest import read_manifest
from dtef_pipeline.survey.baselines.names import LEAVE_ONE_OUT, POPULATION_MARGINAL

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
RESULTS = DOCS / "figures.json"
MARKED = re.compile(r"(<!-- figure ([\w-]+) -->)(.*?)(<!-- end -->)", re.DOTALL)
PORT = 3456
LOCAL_MODEL = "local/smollm2-135m"


def pages() -> list[Path]:
    """The pages that may quote figures."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def read_quoted_figures(page: Path) -> dict[str, str]:
    """The figures of a page as they stand there, by name."""
    return {name: text.strip() for _, name, text, _ in MARKED.findall(page.read_text(encoding="utf-8"))}


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown; all columns but the first are numbers."""
    names = list(head)
    lines = [names, ["---", *["---:"] * (len(names) - 1)], *(list(row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def share(value: float) -> str:
    """A share or a rate: `.95`."""
    return f"{value:.2f}".removeprefix("0")


def drift_rule(sets: int = 500) -> str:
    numbers = (2, 5, 10, 20, 50, 100)
    flagged = [share(drift_panels.rule_flags(number, sets)) for number in numbers]
    return table(["snapshots", *map(str, numbers)], [["flagged without any drift", *flagged]])


def drift_false(sets: int = 100) -> str:
    panels: dict[str, dict[str, Any]] = {
        "own .02, AR .8, normal": {"own": 0.02, "autocorrelation": 0.8},
        "own .01, AR .8, shared shocks t3": {"own": 0.01, "autocorrelation": 0.8, "degrees": 3},
        "own .02, AR .8, all shocks t3": {"own": 0.02, "autocorrelation": 0.8, "degrees": 3, "own_degrees": 3},
        "own .02, AR .95, all shocks t3": {"own": 0.02, "autocorrelation": 0.95, "degrees": 3, "own_degrees": 3},
    }
    found = {name: drift_panels.rates(replace(drift_panels.SHARED, **given), sets, 1) for name, given in panels.items()}
    rows = ([name, share(one.first), share(one.other), share(one.night)] for name, one in found.items())
    return table(["two models", "the first", "the other", "all models"], rows)


def drift_found(sets: int = 50) -> str:
    panels: dict[str, dict[str, Any]] = {
        "two models, AR .5": {"autocorrelation": 0.5},
        "two models, AR .8": {"autocorrelation": 0.8},
        "two models, own .01, AR .5": {"own": 0.01, "autocorrelation": 0.5},
        "four models, own .01, AR .5": {"models": 4, "own": 0.01, "autocorrelation": 0.5},
    }
    rows = []
    for name, given in panels.items():
        shifted = [replace(drift_panels.SHARED, shift=-0.08, since=at, nights=at + 10, **given) for at in (5, 10, 40)]
        rows.append([name, *(share(drift_panels.rates(panel, sets, 2, looks=1).first) for panel in shifted)])
    return table(["panel", "snapshot 6", "11", "41"], rows)


def survey_coverage(sets: int = 50) -> str:
    worlds = (
        "5 questions",
        "42 questions in 7 batteries",
        "GD3: 43 questions in 13 batteries",
        "40 questions, strong common factor",
    )
    columns = {
        "typical model": "m0 score",
        "good model": "good score",
        "population marginal": f"{POPULATION_MARGINAL} score",
        "leave-one-out": f"{LEAVE_ONE_OUT} score",
        "two models": "m0 - m1",
        "good − leave-one-out": "good - others",
    }
    found = {name: coverage.covered(coverage.run(name, sets, None))["covered"] for name in worlds}
    return table(
        ["simulated survey", *columns], ([name, *map(share, one[list(columns.values())])] for name, one in found.items())
    )


def vote_coverage(sets: int = 100) -> str:
    names = (
        "8 players, 25 reviewers, 600 votes",
        "5 reviewers",
        "equal players, 5 prompts .8, 400 votes",
        "equal players, 20 prompts without effects",
        "equal players, 25 reviewers, Zipf 1",
    )
    found = {name: preference_coverage.coverage(preference_coverage.WORLDS_OF_VOTES[name], sets) for name in names}
    return table(["simulated votes", "interval coverage"], ([name, share(one["published"])] for name, one in found.items()))


def question_coverage(sets: int = 40) -> str:
    rows = []
    for name in ("3 subjects", "6 subjects", "20 subjects", "12, of 4 to 400 items"):
        shares, _ = qa_coverage.measure(qa_coverage.QA_WORLDS[name], sets)
        rows.append([name, *(share(shares[part]) if part in shares else "none" for part in ("score", "macro", "pairs"))])
    return table(["simulated suite", "score", "macro score", "difference of two models"], rows)


def blueprint_coverage(sets: int = 50) -> str:
    found: dict[str, Mapping[str, float] | pd.Series] = {
        "10 blueprints": rubric_coverage.of_sets(rubric_coverage.WORLDS["10 blueprints"], sets),
        "98 blueprints": rubric_coverage.of_sets(rubric_coverage.WORLDS["98 blueprints"], sets),
        "one blueprint, 6 prompts": rubric_coverage.of_ones(6, sets),
        "one blueprint, 40 prompts": rubric_coverage.of_ones(40, sets),
        "one blueprint, 8 prompts, rare failures": rubric_coverage.of_few(".9, or .1 with p .15, +- .05", 8, 10 * sets),
    }
    rows = []
    for name, one in found.items():
        part = "board" if "board" in one else "within"
        rows.append([name, share(one[part]), share(one[f"{part}, half width"])])
    return table(["simulated board", "interval coverage", "half width"], rows)


def exact_values(scenario: str, plays: Mapping[str, str]) -> str:
    """What each baseline of a small poker game loses to a best response, and wins per hand from the others, over both seats."""
    manifest = read_manifest(ROOT / "data" / "scenarios" / "poker" / f"{scenario}.yaml")
    game = {"kuhn": kuhn, "leduc": leduc}[scenario].of_manifest(manifest)
    exact = build_exact_game(game)
    seats = {name: [exact.vector(game.strategies[name], seat) for seat in (0, 1)] for name in plays}
    rows = []
    for name, (first, second) in seats.items():
        wins = [(exact.value(first, other[1]) - exact.value(other[0], second)) / 2 for other in seats.values()]
        values = [round(value, 4) + 0.0 for value in (exact.exploitability(first, second), *wins)]  # + 0.0: never -0
        rows.append([f"`{name}`", plays[name], *(f"{value:.4f}" for value in values)])
    return table(["baseline", "plays", "exploitability", *(f"wins from `{name}`" for name in plays)], rows)


KUHN = {"nash": "perfectly", "always-bet": "bets and calls", "always-pass": "checks and folds", "random": "any legal command"}
LEDUC = {
    "nash": "almost perfectly, from a table",
    "always-call": "checks and calls",
    "always-raise": "bets and raises while allowed, else calls",
    "random": "any legal command",
}


def dtef(*words: str) -> str:
    """What a command prints on the state of the demo."""
    command = [str(Path(sys.executable).with_name("dtef")), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | {"COLUMNS": "120"}).stdout


def demo_board(*words: str) -> str:
    """A board as a block of text, without the remarks below it."""
    board, *_ = re.split(r"\nnot shown:|\n\n(?=\S+ +[A-Z])", dtef(*words))
    lines = [line.rstrip() for line in board.strip("\n").splitlines()]
    return "\n".join(["```text", *lines, "```"])


def demo_score(model: str) -> str:
    """The score of the local model, or of the baseline that it is compared with, on the pairs that both have."""
    pairs = json.loads(dtef("board", "--by", "comparisons", "--round", "S1", "--round", "S2", "--json"))
    (pair,) = (
        row
        for row in pairs
        if row["context_level"] == "0" and {row["model"], row["other_model"]} == {LOCAL_MODEL, LEAVE_ONE_OUT}
    )
    return f"{pair['score' if pair['model'] == model else 'other_score']:.2f}"


def screenshot(picture: str, size: str, url: str) -> None:
    """A picture of a page by Chromium."""
    command = ["chromium", "--headless", "--no-sandbox", "--hide-scrollbars", "--allow-file-access-from-files"]
    command += [f"--window-size={size}", "--virtual-time-budget=20000", f"--screenshot={DOCS / picture}", url]
    subprocess.run(command, check=True, capture_output=True)


def leaderboard_picture() -> None:
    """The page of surveys in the report of the demo."""
    report = Path(os.environ["DTEF_WAREHOUSE"]).parent / "report" / "survey" / "index.html"
    screenshot("leaderboard.png", "1180,860", f"{report.as_uri()}#board-1-table.baselines=1")


def asset_graph_picture() -> None:
    """The six survey stages in the UI, on the state of the demo."""
    address = f"http://127.0.0.1:{PORT}"
    program = Path(sys.executable).with_name("dtef")
    with subprocess.Popen([program, "ui", "--port", str(PORT)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as ui:
        try:
            subprocess.run(["curl", "-s", "--retry", "99", "--retry-connrefused", "-o", os.devnull, address], check=True)
            screenshot("asset-graph.png", "1980,760", f"{address}/locations/dtef/asset-groups/survey")
        finally:
            ui.terminate()


def architecture_picture() -> None:
    architecture_figure.DRAWING.write_text(architecture_figure.svg(), encoding="utf-8")


FIGURES: Mapping[str, Callable[[], str]] = {
    "drift-rule": drift_rule,
    "drift-false": drift_false,
    "drift-found": drift_found,
    "survey-coverage": survey_coverage,
    "vote-coverage": vote_coverage,
    "question-coverage": question_coverage,
    "blueprint-coverage": blueprint_coverage,
    "kuhn": partial(exact_values, "kuhn", KUHN),
    "leduc": partial(exact_values, "leduc", LEDUC),
    "demo-score": partial(demo_score, LOCAL_MODEL),
    "demo-baseline-score": partial(demo_score, LEAVE_ONE_OUT),
    "demo-rubric": partial(demo_board, "rubric", "board", "--by", "blueprint", "--blueprint", "demo-*"),
    "demo-qa": partial(demo_board, "qa", "board", "--suite", "demo-*"),
    "demo-games": partial(demo_board, "games", "board", "--scenario", "kuhn"),
    "demo-estimate": partial(demo_board, "run", "--estimate", "--round", "S1", "--model", "gpt-4.1-mini", "--context", "0"),
    "demo-costs": partial(demo_board, "costs"),
    "demo-votes": partial(demo_board, "preference", "board", str(ROOT / "data" / "votes_sample.csv")),
}
PICTURES: Mapping[str, Callable[[], None]] = {
    "leaderboard.png": leaderboard_picture,
    "asset-graph.png": asset_graph_picture,
    "architecture.svg": architecture_picture,
}


def picture_hash(picture: str) -> str:
    """By which a test knows the picture that this script took."""
    return hashlib.sha256((DOCS / picture).read_bytes()).hexdigest()


def main(names: list[str]) -> None:
    results: dict[str, str] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    wanted = names or [*FIGURES, *PICTURES]
    with ProcessPoolExecutor() as pool:
        running = {pool.submit(FIGURES[name]): name for name in wanted if name in FIGURES}
        for done in as_completed(running):
            results[running[done]] = done.result()
            save(results)
    for name in wanted:
        if name in PICTURES:
            PICTURES[name]()
        if name.endswith(".png"):
            results[name] = picture_hash(name)
    save(results)
    for page in pages():
        text = page.read_text(encoding="utf-8")
        page.write_text(MARKED.sub(partial(write_figure, results), text), encoding="utf-8")


def save(results: Mapping[str, str]) -> None:
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


def write_figure(results: Mapping[str, str], match: re.Match[str]) -> str:
    """A marked place with what was measured; tables and blocks stand on lines of their own."""
    start, name, _, end = match.groups()
    space = "\n\n" if "\n" in results[name] else ""
    return f"{start}{space}{results[name]}{space}{end}"


if __name__ == "__main__":
    main(sys.argv[1:])
