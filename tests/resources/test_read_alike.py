"""Texts that names alone tell apart: nobody is asked which of two is better that read the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dtef_pipeline.judging.hidden_names import build_blinding
from dtef_pipeline.preference.pairing import make_new_pairs, read_text
from dtef_pipeline.preference.votes import Ballot, PairedResponse, make_paired_response
from resources.votes.vote_store import VoteStore, find_equal_text_votes


def said(texts: Sequence[tuple[str, str]]) -> list[PairedResponse]:
    return [make_paired_response("qa", "made/all/1", player, text, prompt="?", names=(player,)) for player, text in texts]


SAME = said([("glimmer-one", "I am Glimmer-One."), ("sparkle-two", "i am  Sparkle Two."), ("third-one", "No.")])


def test_pairs_that_read_alike_without_names_are_not_made() -> None:
    """They were made, served and scored: the texts were compared with the names in them."""
    assert len(make_new_pairs(SAME)) == 3
    names = build_blinding(name for one in SAME for name in one.names)
    by_id = {one.response_id: one.player for one in SAME}
    made = make_new_pairs(SAME, names=names)
    assert len(made) == 2
    assert all("third-one" in (by_id[pair.left], by_id[pair.right]) for pair in made)


def test_pairs_of_elsewhere_that_read_alike_are_not_served_and_their_votes_stay_and_are_reported(tmp_path: Path) -> None:
    with VoteStore(tmp_path / "one.sqlite") as store:
        store.add_pairs(SAME, make_new_pairs(SAME))
        waiting = store.waiting("r1", 9)
        assert len(waiting) == 2
        (alike,) = {pair.pair_id for pair in store.pairs()} - set(waiting)
        other = store.take(Ballot(waiting[0], "r1", "A", 3))
        vote = store.take(Ballot(alike, "r1", "A", 3))
        assert {one for one, _, _ in store.votes()} == {vote, other}
        assert find_equal_text_votes(store) == (2, [vote])


def test_numbers_that_were_computed_are_read_with_two_decimals_and_what_a_model_wrote_as_it_is() -> None:
    text, names = "[13.861358859921921, 86, 1.25e-14, 9.5, 2.123456e-7]", build_blinding([])
    assert read_text(text, "baseline/uniform", names) == "[13.86, 86, 0.00, 9.5, 0.00]"
    assert read_text(text, "openai/x", names) == text
