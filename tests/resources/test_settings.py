"""Settings: what another process is given, and that no secret is among it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtef_pipeline.errors import ConfigError
from resources.settings import Settings


def test_another_process_gets_the_places_in_full_and_no_secret() -> None:
    given = {"DTEF_PANEL": "panel.yaml", "DTEF_WEBHOOK": "https://h.example/secret"}
    passed = Settings.read_environment(given).environment()
    assert passed["DTEF_PANEL"] == str(Path("panel.yaml").absolute())
    assert "secret" not in str(passed)


def test_a_home_of_dagster_that_is_no_full_path_is_a_problem() -> None:
    """It was another home in every folder that one stands in, and Dagster's own commands refuse it."""
    problem = Settings.read_environment({"DAGSTER_HOME": "rel"}).home_problem
    assert problem == f"DAGSTER_HOME is rel, which is not a full path: name it as DAGSTER_HOME={Path('rel').absolute()}"
    assert Settings.read_environment({"DAGSTER_HOME": "/full"}).home_problem is None
    assert Settings.read_environment({}).home_problem is None


def test_the_webhook_is_not_shown() -> None:
    settings = Settings.read_environment({"DTEF_WEBHOOK": "https://h.example/secret"})
    assert settings.webhook == "https://h.example/secret"
    assert "secret" not in repr(settings)


def test_of_the_server_that_looks_up_neither_address_nor_secret_are_shown_or_passed_on() -> None:
    given = {
        "DTEF_SOCIOSCOPE_URL": "https://h.example/planted",
        "DTEF_SOCIOSCOPE_AUTH": "planted",
        "DTEF_SOCIOSCOPE_MODEL": "a:b",
    }
    settings = Settings.read_environment(given)
    assert (settings.socioscope_auth_env, settings.socioscope_model) == ("DTEF_SOCIOSCOPE_AUTH", "a:b")
    assert "planted" not in repr(settings) + str(settings.environment())
    blank = Settings.read_environment(dict.fromkeys(given, " "))
    assert (blank.socioscope_url, blank.socioscope_auth_env, blank.socioscope_model) == (None, None, None)


def test_limits_of_providers_are_read() -> None:
    given = {"DTEF_PROVIDER_LIMITS": " openai=60, openai/127.0.0.1:8000=4,", "DTEF_PARTITIONS_PER_RUN": "50"}
    settings = Settings.read_environment(given)
    assert settings.provider_limits == {"openai": 60, "openai/127.0.0.1:8000": 4}
    assert settings.partitions_per_run == 50
    assert hash(settings) == hash(Settings.read_environment(given))
    assert Settings.read_environment({}).provider_limits == {}


LIMITS = dict.fromkeys(["openai", "=3", "openai=0", "openai=-2", "openai=many", "a=1,a=2"], "DTEF_PROVIDER_LIMITS")
PARTITIONS = dict.fromkeys(["0", "1.5", "all"], "DTEF_PARTITIONS_PER_RUN")


@pytest.mark.parametrize(("given", "name"), {**LIMITS, **PARTITIONS, "perhaps": "DTEF_TRACEBACK"}.items())
def test_a_value_that_is_none_is_refused_by_name(given: str, name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} is {given!r}; allowed: "):
        Settings.read_environment({name: given})
