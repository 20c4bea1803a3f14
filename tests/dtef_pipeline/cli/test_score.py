"""`dtef score` scores lines of JSON from a file or a pipe, without any state."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.dtef_pipeline.cli.commands import dtef, ok, refused
from tests.strict_json import strict


class TestScore:
    CHECKED: tuple[tuple[list[float], list[float], dict[str, float]], ...] = (
        (
            [45.2, 30.1, 15.5, 9.2],
            [40, 35, 15, 10],
            {"js": 0.948749, "cosine": 0.992099, "emd": 0.937, "emd_normalized": 0.979},
        ),
        ([50, 30, 20], [20, 30, 50], {"js": 0.690459, "emd": 0.4, "emd_normalized": 0.7}),
        ([100, 0, 0, 0, 0], [0, 100, 0, 0, 0], {"js": 0.0, "emd": 0.0, "emd_normalized": 0.75}),
    )

    def test_the_published_check_values(self, tmp_path: Path) -> None:
        lines = [
            json.dumps({"response": str(response), "expected": expected, "id": 7}) for response, expected, _ in self.CHECKED
        ]
        (tmp_path / "lines.jsonl").write_text("\n".join(lines), encoding="utf-8")
        out = [strict(line) for line in ok("score", tmp_path / "lines.jsonl").splitlines()]
        for row, (_, _, values) in zip(out, self.CHECKED, strict=True):
            assert {name: row[name] for name in values} == pytest.approx(values, abs=5e-7)
            assert (row["status"], row["score"], row["id"]) == ("ok", row["js"], 7)
            assert sum(row["predicted"]) == pytest.approx(1)
            assert {"cosine", "emd", "tv", "response", "expected"} <= set(row)

    def test_a_malformed_line_is_reported_with_its_number_and_the_rest_goes_on(self) -> None:
        good = '{"response": "[50, 50]", "expected": [50, 50], "metric": "cosine"}'
        result = dtef("score", "-", stdin=f"{good}\n{{oops\n\n{good}\n")
        assert result.exit_code == 1
        rows = [strict(line) for line in result.stdout.splitlines()]
        assert [row.get("score") for row in rows] == [pytest.approx(1), None, pytest.approx(1)]
        assert rows[1]["line"] == 2
        assert "not JSON" in rows[1]["error"]

    @pytest.mark.parametrize("text", ["\nresponse,expected\n1,2\n", '[\n{"response": "", "expected": [1, 1]}\n]'])
    def test_a_file_of_another_format_is_one_error(self, tmp_path: Path, text: str) -> None:
        """Each line of a CSV file was an error of its own."""
        (tmp_path / "answers.csv").write_text(text, encoding="utf-8")
        message = " ".join(refused("score", tmp_path / "answers.csv").split())
        assert "answers.csv is not JSON Lines; write one object per line" in message
        assert dtef("score", tmp_path / "answers.csv").stdout == ""

    def test_it_works_as_a_filter_without_any_state(self, tmp_path: Path) -> None:
        line = json.dumps({"response": "About half, I would think.", "expected": [50, 50]})
        done = subprocess.run(
            [Path(sys.executable).with_name("dtef"), "score", "-"],
            input=line,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        row = strict(done.stdout)
        assert (row["status"], row["score"], row["js"], row["predicted"]) == ("unparseable", 0.0, None, None)
        assert list(tmp_path.iterdir()) == []
