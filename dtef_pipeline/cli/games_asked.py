"""Models at the seats of a game that is played outside Dagster: asked one turn at a time, through the response store."""

from __future__ import annotations

import sys
from types import TracebackType

import click

from dtef_pipeline.asking.models import Budget
from dtef_pipeline.asking.request import Request
from dtef_pipeline.errors import DtefError
from dtef_pipeline.games.in_play import GameInPlay
from dtef_pipeline.games.players import Player
from resources.gateway import Gateway
from resources.responses.store import ResponseStore
from resources.run_manifests import this_run
from resources.settings import Settings


class NoResponse(DtefError):
    """A model gave no response, so that the episode cannot go on."""


class ModelSeats:
    """What models write when it is their turn. The response store is opened when the first model is asked."""

    def __init__(self, settings: Settings, draw: int, snapshot: str, budget: Budget) -> None:
        self._settings, self._draw, self._snapshot, self._budget = settings, draw, snapshot, budget
        self._gateway: Gateway | None = None

    def __enter__(self) -> ModelSeats:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._gateway is not None:
            self._gateway.store.close()

    def text(self, game: GameInPlay, seat: int, player: Player) -> str:
        """What the model of a player writes. Raises NoResponse where it does not respond, and what the gateway raises."""
        assert player.model is not None
        messages = game.messages(seat, player.persona)
        request = Request.of_messages(messages, player.model, self._draw, self._snapshot)
        gateway = self._gateway = self._gateway or Gateway(
            ResponseStore(self._settings.responses_url, this_run),
            budget=self._budget,
            provider_limits=self._settings.provider_limits,
        )
        if sys.stderr.isatty():
            click.echo(f"{player.name} is asked", err=True)
        failures = gateway.answer([request]).failures
        if (failure := failures.get(request.key)) is not None:
            raise NoResponse(f"{player.name} gave no response: {failure.message}")
        return str(gateway.store.responses([request.key])["text"][0].as_py())
