"""The votes in the response store, as Dagster sees them: where they are, and which version of them there is."""

import dagster as dg

from assets.stage.partitions import OWNERS
from assets.stage.resources import Store
from assets.stage.versions import build_observation_tags
from dtef_pipeline.preference.vote_selection import compute_votes_version
from dtef_pipeline.preference.votes import REVIEWER_KINDS, PlayersVote
from resources.votes.vote_store import VoteStore, read_player_votes

_IN_GROUP = "preference"
PREFERENCE_GROUP = {"group_name": _IN_GROUP}
"""Where the assets stand in the UI."""


_VOTES = dg.AssetKey("preference_votes")


@dg.multi_observable_source_asset(
    specs=[
        dg.AssetSpec(
            _VOTES,
            description="""The votes on pairs of responses that count: those in the response store that nobody voided, of people and of models
            that judge. Their data version is their number and a hash: with another vote, or one voided, `preference_scores` is stale. Observe
            it in the UI, or have `dtef preference board --refresh` do so.""",
            owners=OWNERS,
            kinds={"sql"},
            group_name=_IN_GROUP,
        )
    ]
)
def preference_votes(store: Store) -> dg.ObserveResult:
    """Looks at the votes that there are now."""
    votes = read_all_votes(store)
    kinds = {f"votes_{kind}": sum(vote.reviewer_kind == kind for vote in votes) for kind in REVIEWER_KINDS}
    return dg.ObserveResult(asset_key=_VOTES, data_version=dg.DataVersion(compute_votes_version(votes)), metadata=kinds)


def read_all_votes(store: Store) -> list[PlayersVote]:
    """The votes that count, of both kinds of reviewers."""
    with VoteStore(store.responses_url or store.settings.responses_url) as votes:
        return [vote for kind in REVIEWER_KINDS for vote in read_player_votes(votes, reviewer_kind=kind)]


def note_votes(instance: dg.DagsterInstance, version: str) -> None:
    """Tell Dagster the version of the votes that there is now."""
    instance.report_runless_asset_event(dg.AssetObservation(_VOTES, tags=build_observation_tags(version)))
