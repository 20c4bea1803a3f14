"""Opaque ids: shared by variants, drawn without order, and back again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.rubric.anonymise import ANALYST_IDS, Participant, derive_summary_seed, draw_pseudonyms

GPT, CLAUDE, HAIKU = "openrouter/openai/gpt-4o", "anthropic/claude-sonnet-4", "openrouter/anthropic/claude-haiku-4.5"
THREE = (Participant(GPT, 0.7, 1), Participant(GPT, 0.0, 0), Participant(CLAUDE, 0.0, 0))


def test_models_of_one_maker_share_its_id_and_unknown_makers_share_none() -> None:
    ids = draw_pseudonyms([Participant(CLAUDE), Participant(HAIKU), Participant("ollama/a"), Participant("ollama/b")], 1)
    assert len(ids.makers) == 3
    assert ids.name_model(CLAUDE).partition("/")[0] == ids.name_model(HAIKU).partition("/")[0]


def test_ids_follow_no_order_of_names_for_some_seed_and_each_for_some() -> None:
    drawn = {draw_pseudonyms(THREE, derive_summary_seed("b", snapshot, "h")).models[GPT] for snapshot in map(str, range(30))}
    assert drawn == {"MD_6000", "MD_6001"}


@pytest.mark.parametrize(
    "parts",
    [("MK_5000", "MD_9999", None, None), ("MK_9999", "MD_6000", None, None), (None, "MD_6000", "S_9", None), (None, "MD_6000", None, "T_9")],
)  # fmt: skip
def test_an_unknown_id_stands_for_nobody(parts: tuple[str | None, str, str | None, str | None]) -> None:
    assert draw_pseudonyms(THREE, 7).find_participant(*parts) is None


def test_a_model_under_the_wrong_maker_is_nobody() -> None:
    ids = draw_pseudonyms(THREE, 7)
    other = next(one for maker, one in ids.makers.items() if maker != "OpenAI")
    assert ids.find_model_by_id(other, ids.models[GPT]) is None
    assert ids.find_model_by_id(ids.makers["OpenAI"], ids.models[GPT]) == GPT


def test_the_table_names_every_id_once() -> None:
    table = draw_pseudonyms(THREE, 7).table("b", "base", {})
    assert table.schema.equals(ANALYST_IDS)
    assert sorted(table["id"].to_pylist()) == [
        f"{kind}{place}" for kind in ("MD_600", "MK_500", "S_700", "T_800") for place in (0, 1)
    ]
    named = dict(zip(table["id"].to_pylist(), table["name"].to_pylist(), strict=True))
    ids = draw_pseudonyms(THREE, 7)
    assert (named[ids.models[GPT]], named[ids.temperatures[0.7]], named[ids.systems[1]]) == (GPT, "0.7", "1")


variants = st.lists(
    st.builds(Participant, st.sampled_from([GPT, CLAUDE, HAIKU, "ollama/x"]), st.sampled_from([None, 0.0, 0.3]), st.sampled_from([None, 0, 2])),
    min_size=1,
)  # fmt: skip


@given(variants, st.integers(0, 2**64))
def test_every_variant_is_found_again_by_its_ids(participants: list[Participant], seed: int) -> None:
    ids = draw_pseudonyms(participants, seed)
    for one in participants:
        system = None if one.system is None else ids.systems[one.system]
        heat = None if one.temperature is None else ids.temperatures[one.temperature]
        maker, _, model = ids.name_model(one.model).partition("/")
        assert ids.find_participant(maker, model, system, heat) == one
