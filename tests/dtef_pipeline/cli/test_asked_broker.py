"""`dtef doctor` on the broker of several machines: a real Redis that answers, refuses a password, hangs or is away. No password is shown."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dtef_pipeline.cli.asked_broker import BROKER_PING_S, check_broker
from dtef_pipeline.cli.findings import Diagnosis
from dtef_pipeline.cli.ready import dagster_instance
from dtef_pipeline.errors import ConfigError
from resources.settings import Settings
from tests.conftest import ROOT
from tests.dtef_pipeline.cli.test_doctor import findings
from tests.redis_server import NoRedis, Redis, running_redis

PLANTED = "planted-7f3a9c"


@pytest.fixture(scope="module")
def broker() -> Iterator[Redis]:
    try:
        with running_redis() as server:
            yield server
    except NoRedis as why:
        pytest.skip(str(why))


@pytest.fixture
def celery_home(tmp_path: Path) -> Path:
    (tmp_path / "dagster.yaml").write_bytes((ROOT / "deploy" / "celery" / "dagster.yaml").read_bytes())
    return tmp_path


def found(url: str, home: Path = Path("/nowhere")) -> Diagnosis:
    return check_broker(Settings.from_environment({"DTEF_BROKER": url, "DAGSTER_HOME": str(home)}))


def place(broker: Redis) -> str:
    return f"127.0.0.1:{urlsplit(broker.url).port}/0"


def test_one_that_answers_is_in_order(broker: Redis, celery_home: Path) -> None:
    assert found(broker.url, celery_home) == Diagnosis("broker", "ok", f"redis://{place(broker)}: it answers")


@pytest.mark.parametrize("password", ["", f":{PLANTED}@"])
def test_one_that_refuses_the_password_says_where_the_right_one_stands(broker: Redis, password: str) -> None:
    row = found(f"redis://{password}{place(broker)}")
    assert (row.state, row.found.partition(" the password: ")[0]) == ("problem", f"redis://{place(broker)} refuses")
    assert row.remedy.startswith("write the password that redis.conf has (requirepass) into DTEF_BROKER")
    assert PLANTED not in str(row)


def test_one_that_is_away_is_a_problem_of_the_command_with_the_way_to_start_it(
    broker: Redis, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_redis() as gone:
        url = gone.url
    monkeypatch.setenv("DTEF_BROKER", url)
    row = findings(1)["broker"]
    assert row["found"].startswith(f"redis://127.0.0.1:{urlsplit(url).port}/0 does not answer: ")
    assert row["found"].endswith("Connection refused; no run is taken by a worker until it does")
    assert "systemctl start redis-server" in row["remedy"]
    assert str(urlsplit(url).password) not in str(row)


def test_one_that_says_nothing_is_not_waited_for() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        before = time.monotonic()
        row = found(f"redis://:{PLANTED}@127.0.0.1:{silent.getsockname()[1]}/0")
        assert time.monotonic() - before < 3 * BROKER_PING_S
    assert (row.state, "does not answer: Timeout" in row.found) == ("problem", True)
    assert PLANTED not in str(row)


@pytest.mark.parametrize(
    "url",
    [
        f"redis://:{PLANTED}/x@h:6379/0",
        f"redis://:9?{PLANTED}@h",
        f"redis://me:12/{PLANTED}@h/0",
        PLANTED,
        "redis://[h",
        f"redis://me:12#{PLANTED}@h",
        f"amqp://{PLANTED}:1/x@h",
        f"redis://:a;{PLANTED}@h",
    ],
)
def test_nothing_is_shown_of_what_is_no_address(url: str) -> None:
    row = found(url)
    assert (row.state, row.found) == ("problem", "DTEF_BROKER is no address such as redis://:PASSWORD@HOST:6379/0")
    assert PLANTED not in str(row)


def test_with_tls_an_address_needs_what_celery_wants() -> None:
    """The pages said rediss:// alone, and a worker with it ended with a trace."""
    row = found(f"rediss://:{PLANTED}@127.0.0.1:1/0")
    assert row.found.startswith("rediss://127.0.0.1:1/0: Celery does not take this address: with rediss:// it is to say which")
    assert row.remedy == "let DTEF_BROKER end in ?ssl_cert_reqs=required"
    assert "does not answer" in found(f"rediss://:{PLANTED}@127.0.0.1:1/0?ssl_cert_reqs=required").found


@pytest.mark.parametrize(
    ("url", "wrong", "remedy"),
    [
        ("Redis://:{}@h/0", "Redis has a capital letter", "begin DTEF_BROKER with redis://"),
        (
            "redis://:{}@h/0?ssl_cert_reqs=required",
            "it has the settings of TLS, and begins with redis://",
            "begin DTEF_BROKER with rediss://",
        ),
        ("redis://:{}@h/0?bogus=1", "it does not know the parameter bogus", "take it away from the end of DTEF_BROKER"),
        (
            "redis://:{}@h/0;redis://h2/0",
            "it is several, and the results of Celery need one Redis",
            "name one in DTEF_BROKER, such as ",
        ),
    ],
)
def test_what_is_wrong_with_an_address_is_said_with_its_remedy(url: str, wrong: str, remedy: str) -> None:
    """It said that a package was missing, or a TypeError."""
    row = found(url.format(PLANTED))
    assert row.state == "problem"
    assert row.found.endswith(f": Celery does not take this address: {wrong}")
    assert row.remedy.startswith(remedy)
    assert PLANTED not in str(row)


def test_a_database_that_there_is_none_of_is_no_server_that_is_away(broker: Redis) -> None:
    row = found(f"{broker.url}99")
    assert (row.state, row.found) == (
        "problem",
        f"redis://{place(broker)}99: it answers, and refuses: DB index is out of range",
    )
    assert "such as /0" in row.remedy
    assert "systemctl" not in row.remedy


def test_with_a_user_name_the_name_may_be_the_wrong_one(broker: Redis) -> None:
    row = found(f"redis://bob:{PLANTED}@{place(broker)}")
    assert row.found.startswith(f"redis://{place(broker)} refuses the user name or the password: ")
    assert row.remedy.startswith("write a user name that Redis has (ACL LIST) and its password into DTEF_BROKER")
    assert PLANTED not in str(row)


def test_several_sentinels_are_an_address(celery_home: Path) -> None:
    row = found(f"sentinel://:{PLANTED}@h1:26379;sentinel://h2:26379", celery_home)
    assert row == Diagnosis("broker", "ok", "sentinel://h1:26379;sentinel://h2:26379: not looked at, as it is no plain Redis")


@pytest.mark.parametrize("settings", ["dagster.yaml", None])
def test_one_that_dagster_does_not_know_gets_no_run(broker: Redis, tmp_path: Path, settings: str | None) -> None:
    """All was said to be well, and no worker was ever given a run."""
    if settings:
        (tmp_path / "dagster.yaml").write_bytes((ROOT / "deploy" / settings).read_bytes())
    row = found(broker.url, tmp_path)
    assert (row.state, row.found.partition(", as ")[0]) == (
        "warning",
        f"redis://{place(broker)}: it answers; no run goes to a worker",
    )
    assert f"cp deploy/celery/dagster.yaml {tmp_path}/dagster.yaml" in row.remedy


def test_an_address_in_the_settings_of_dagster_is_asked(broker: Redis, celery_home: Path) -> None:
    """Runs were said not to be shared."""
    file = celery_home / "dagster.yaml"
    template = file.read_text(encoding="utf-8")
    file.write_text(template.replace("{env: DTEF_BROKER}", broker.url), encoding="utf-8")
    assert found("", celery_home) == Diagnosis("broker", "ok", f"redis://{place(broker)}: it answers")
    file.write_text(template.replace("{env: DTEF_BROKER}", f"redis://:{PLANTED}@{place(broker)}"), encoding="utf-8")
    assert f"into the broker in {file}, " in found(broker.url, celery_home).remedy


def test_where_a_variable_is_missing_alone_no_settings_are_to_be_replaced(
    state: Path, celery_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The template of one machine was offered in place of the settings of several."""
    monkeypatch.setenv("DAGSTER_HOME", str(celery_home))
    monkeypatch.delenv("DTEF_BROKER", raising=False)
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", "postgresql://u:p@127.0.0.1:1/d")
    row = findings(1)["Dagster's home"]
    assert row["found"].endswith(": it names the environment variable DTEF_BROKER, which is not set")
    assert row["remedy"].startswith("set DTEF_BROKER, as for the services ")
    assert "cp " not in row["remedy"]
    # A command that needs Dagster says the same; it asks for the database first.
    monkeypatch.delenv("DAGSTER_POSTGRES_URL")
    with pytest.raises(ConfigError, match=r"; set DAGSTER_POSTGRES_URL, as for the services"), dagster_instance():
        pass


@pytest.mark.parametrize("package", ["redis", "celery"])
def test_without_its_packages_it_says_what_to_install(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    row = found("redis://h/0")
    assert row.found == f"redis://h/0 cannot be used: the package {package} is not installed"
    assert row.remedy.startswith("pip install -e '.[celery]'")


def test_another_kind_of_broker_is_named_without_its_password(celery_home: Path) -> None:
    row = found(f"amqp://me:{PLANTED}@h:5672/{PLANTED}", celery_home)
    assert row.found == "amqp://h:5672: not looked at, as it is no plain Redis"


def test_without_one_it_depends_on_the_settings_of_dagster(tmp_path: Path) -> None:
    assert found("", tmp_path).state == "ok"
    for settings, state in (("dagster.yaml", "ok"), ("celery/dagster.yaml", "problem")):
        (tmp_path / "dagster.yaml").write_bytes((ROOT / "deploy" / settings).read_bytes())
        assert found("", tmp_path).state == state
    assert found("", tmp_path).remedy.endswith(": export DTEF_BROKER=redis://:PASSWORD@HOST:6379/0")
    (tmp_path / "dagster.yaml").write_text("- {no", encoding="utf-8")
    assert found("", tmp_path).state == "ok"
