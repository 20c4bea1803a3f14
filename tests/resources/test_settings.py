"""Settings: what another process is given, and that no secret is among it."""

from __future__ import annotations

from pathlib import Path

from resources.settings import Settings


def test_another_process_gets_the_places_in_full_and_no_secret() -> None:
    given = {"DTEF_PANEL": "panel.yaml", "DTEF_WEBHOOK": "https://h.example/secret"}
    passed = Settings.from_environment(given).environment()
    assert passed["DTEF_PANEL"] == str(Path("panel.yaml").absolute())
    assert "secret" not in str(passed)


def test_the_webhook_is_not_shown() -> None:
    settings = Settings.from_environment({"DTEF_WEBHOOK": "https://h.example/secret"})
    assert settings.webhook == "https://h.example/secret"
    assert "secret" not in repr(settings)
