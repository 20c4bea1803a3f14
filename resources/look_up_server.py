"""The server that looks up chunks of interviews, as the environment names it."""

from __future__ import annotations

from dtef_pipeline.errors import ConfigError
from resources.http_posts import address_fault
from resources.json_endpoint import JsonEndpoint
from resources.settings import Settings


def look_up_server(settings: Settings) -> JsonEndpoint:
    """The server of DTEF_SOCIOSCOPE_URL. Raises ConfigError, which shows nothing of the URL, where there is none or it is of no use."""
    if settings.socioscope_url is None:
        raise ConfigError(
            "retriever remote: DTEF_SOCIOSCOPE_URL is not set; allowed: the address of a server, https://... or http://..."
        )
    if fault := address_fault(settings.socioscope_url):
        raise ConfigError(f"retriever remote: DTEF_SOCIOSCOPE_URL {fault}")
    return JsonEndpoint(settings.socioscope_url, settings.socioscope_auth_env)
