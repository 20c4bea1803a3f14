"""Set-up says how far it is while pip works."""

from __future__ import annotations

import re
import tomllib

import install
from tests.conftest import ROOT


def test_every_package_of_the_lock_file_is_counted_once() -> None:
    assert install.expected("a==1 \\\n    --hash=sha256:0\nb-c[binary]==2 ; python_version > '3'\n    # via d==3\n") == 2
    assert install.expected((ROOT / "requirements.lock").read_text(encoding="utf-8")) > 100


def test_the_demo_needs_no_package_that_only_tests_and_servers_need() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    part = install.to_run(lock, tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8")))
    names = set(re.findall(r"^([\w.-]+)", part, re.MULTILINE))
    assert names >= {
        "dagster",
        "dagster-webserver",
        "duckdb",
        "litellm",
        "openai",
        "pyarrow",
        "rich",
        "xllamacpp",
        "hatchling",
        "pluggy",
    }
    assert names.isdisjoint({"moto", "cryptography", "mypy", "ruff", "pytest", "hypothesis", "dagster-postgres"})
    assert part.count("\nnumpy==") == lock.count("\nnumpy==") > 1  # one per range of Python versions
    assert all(entry in lock for entry in re.split(r"\n(?=\w)", part))


def test_what_pip_prints_is_counted_until_it_begins_to_install() -> None:
    """Minutes went by without a word."""
    lines = [
        "Ignoring a: markers",
        "Collecting b==1",
        "  Using cached b.whl",
        "Collecting c==2",
        "Installing collected packages: b, c",
    ]
    assert list(install.found([*lines, "Collecting d"])) == [1, 2, 3]
