"""A request is a system and a user text, or a conversation; its identity never depends on which role it was asked in."""

from __future__ import annotations

from typing import Any

import pytest

from dtef_pipeline.asking.models import ModelSpec
from dtef_pipeline.asking.request import ROLES, Message, Request
from dtef_pipeline.errors import ConfigError

MODEL = ModelSpec(name="m", model="openai/m")
TALK = (Message("system", "s"), Message("user", "u"), Message("assistant", "a"), Message("user", "v"))


def plain(system: str | None = "s", user: str = "u", **settings: Any) -> Request:
    return Request("p", system, user, MODEL, 0, "base", **settings)


@pytest.mark.parametrize("role", ["", "System", "developer"])
def test_a_message_of_an_unknown_role_is_refused(role: str) -> None:
    with pytest.raises(ConfigError, match=f"role of a message '{role}': allowed: system, user, assistant, tool"):
        Message(role, "text")


def test_a_request_is_not_of_both_forms() -> None:
    with pytest.raises(ConfigError, match="one of the two forms"):
        plain(messages=TALK)


def test_a_conversation_has_a_message() -> None:
    with pytest.raises(ConfigError, match="at least one"):
        Request.build_request([], MODEL, 0, "base")


def test_both_forms_are_sent_as_a_conversation() -> None:
    assert plain().conversation == (Message("system", "s"), Message("user", "u"))
    assert Request.build_request(TALK, MODEL, 0, "base").conversation == TALK


@pytest.mark.parametrize("system", [None, ""])
def test_without_a_system_text_there_is_no_system_message(system: str | None) -> None:
    assert plain(system).conversation == (Message("user", "u"),)


def test_the_role_changes_no_identity() -> None:
    assert len({plain(role=role).key for role in ROLES}) == 1
    assert len({Request.build_request(TALK, MODEL, 0, "base", role=role).key for role in ROLES}) == 1


def test_a_conversation_has_its_id_from_everything_the_model_sees() -> None:
    ids = {Request.build_request(TALK[:end], MODEL, 0, "base").prompt_id for end in range(1, 5)}
    ids |= {Request.build_request(TALK[::-1], MODEL, 0, "base").prompt_id}
    ids |= {Request.build_request(TALK, MODEL, 0, "base", response_schema="{}").prompt_id}
    ids |= {Request.build_request(TALK, MODEL, 0, "base", answer_tokens=9).prompt_id}
    assert len(ids) == 7
