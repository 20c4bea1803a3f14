"""`dtef board`: every view in every format, and its choices of condition, context level, snapshot and metric."""

from __future__ import annotations

import csv
import functools
import io
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.dtef_pipeline.cli.commands import REFERENCES, ok, refused
from tests.strict_json import strict


@functools.cache
def board(*options: str) -> list[dict[str, Any]]:
    """Rows of the board of the state `scored`, which no test changes."""
    rows: list[dict[str, Any]] = strict(ok("board", *options, "--json"))
    return rows


class TestLeaderboard:
    def test_one_condition_can_be_chosen_and_one_never_scored_is_named_with_those_that_were(self, reading: Path) -> None:
        usual = "distribution/attribute-label"
        whole = board()
        assert board("--condition", usual) == whole
        message = refused("board", "--condition", "shift/narrative")
        assert "nothing is scored for --condition shift/narrative" in message
        assert f"conditions {usual}" in message

    @pytest.mark.parametrize("by", ["consistency", "metric"])
    def test_every_view_is_a_table_csv_and_strict_json_with_the_promised_columns(self, reading: Path, by: str) -> None:
        table = ok("board", "--by", by)
        assert "fake" in table
        assert "nan" not in table.lower().replace("finance", "")
        rows = board("--by", by)
        lines = list(csv.DictReader(io.StringIO(ok("board", "--by", by, "--csv"))))
        assert len(lines) == len(rows) > 0
        for row in [*rows, lines[0]]:
            assert {"model", "context_level", "n_pairs", "score", "parse_rate"} <= set(row)
        assert {row["model"] for row in rows} == {"fake", *REFERENCES}

    def test_context_levels_stand_apart_and_can_be_chosen(self, reading: Path) -> None:
        both = board()
        assert [row["context_level"] for row in both] == ["0"] * 3 + ["2"] * 3
        assert {row["n_pairs"] for row in both} == {6}
        one = board("--context", "2")
        assert [row["model"] for row in one] == [row["model"] for row in both[3:]]
        assert [row["score"] for row in one] == pytest.approx([row["score"] for row in both[3:]])
        named = board("--context", "2", "--context", "0")
        assert [row["context_level"] for row in named] == [row["context_level"] for row in both]

    def test_the_latest_snapshot_counts_unless_one_is_named(self, reading: Path) -> None:
        def score(*options: str) -> float:
            rows = board("--context", "0", *options)
            return float(next(row["score"] for row in rows if row["model"] == "fake"))

        assert score() == pytest.approx(score("--snapshot", "2026-01-03"))
        assert score() < score("--snapshot", "2026-01-01") - 0.1

    def test_metric_and_targets_are_honoured(self, reading: Path) -> None:
        js, tv = (board("--metric", m)[0] for m in ("js", "tv"))
        assert (js["metric"], tv["metric"]) == ("js", "tv")
        assert js["score"] != tv["score"]
        assert "metric 'kl': allowed: js" in refused("board", "--metric", "kl")
        assert "--targets: 'some' is not one of 'clean', 'all'" in refused("board", "--targets", "some")

    def test_unknown_rounds_and_snapshots_are_answered_with_the_known_ones(self, reading: Path) -> None:
        assert "no scores of round S9; scored so far: S1" in refused("board", "--round", "S9")
        message = refused("board", "--snapshot", "nope")
        assert "snapshots 2026-01-01" in message
        assert "conditions " not in message

    def test_nothing_scored_yet_says_what_to_do(self, ingested: Path) -> None:
        for command in (["board"], ["drift"]):
            assert re.search(r"no scores in .* yet: .*`dtef run", refused(*command))
        assert re.search(r"no results in .* yet: .*`dtef run", refused("report", "--out", ingested / "site"))


def test_two_served_models_of_a_snapshot_are_named(scored: Path, state: Path) -> None:
    """They were one row, without a word."""
    shutil.copytree(scored, state, dirs_exist_ok=True)
    for file in (state / "warehouse" / "predictions").rglob("*.parquet"):
        rows = pq.read_table(file)
        served = ["fake-new" if one and place // 2 % 2 else one for place, one in enumerate(rows["served_model"].to_pylist())]
        column = pa.array(served, rows.schema.field("served_model").type)
        pq.write_table(rows.set_column(rows.schema.get_field_index("served_model"), "served_model", column), file)
    printed = " ".join(ok("board").split())
    assert "fake in snapshot 2026-01-03 was served by 2 models" in printed
