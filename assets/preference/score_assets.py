"""The votes in the response store as Dagster sees them, the roll-up `preference_scores` over them, and the sensor that starts it."""

from collections import Counter
from typing import Any

import dagster as dg

from assets.engine.roll_up_names import REPORT
from assets.stage.checks import asset_check, verdict
from assets.stage.family_drift import load_panel_section
from assets.stage.partitions import OWNERS, load_store_models, markdown, roll_up
from assets.stage.resources import Store
from assets.stage.roll_up import publish_tables
from assets.stage.versions import build_observation_tags
from dtef_pipeline.preference.score_publishing import preference_scores as scores_of_votes
from dtef_pipeline.preference.vote_fit import VoteSettings, compute_votes_version, filter_votes, load_vote_settings
from dtef_pipeline.preference.votes import REVIEWER_KINDS, PlayersVote
from dtef_pipeline.text.number_words import format_count
from resources.settings import Settings
from resources.votes.vote_store import VoteStore, find_equal_text_votes, read_player_votes

_GROUP = "preference"
"""Group of the assets in the UI."""
_VOTES = dg.AssetKey("preference_votes")
_SHARE_TOLERANCE = 1e-9


@dg.multi_observable_source_asset(
    specs=[
        dg.AssetSpec(
            _VOTES,
            description="The votes on pairs of responses that count: those in the response store that are not voided, of people and of models "
            "that judge. Their data version is their number and a hash: with another vote, or one voided, `preference_scores` is stale. Observe "
            "it in the UI, or have `dtef preference board --refresh` do so.",
            owners=OWNERS,
            kinds={"sql"},
            group_name=_GROUP,
        )
    ]
)
def preference_votes(store: Store) -> dg.ObserveResult:
    """Reads the current votes."""
    votes = read_all_votes(store)
    kinds = {f"votes_{kind}": sum(vote.reviewer_kind == kind for vote in votes) for kind in REVIEWER_KINDS}
    return dg.ObserveResult(asset_key=_VOTES, data_version=dg.DataVersion(compute_votes_version(votes)), metadata=kinds)


def vote_settings(settings: Settings) -> VoteSettings:
    """Return the panel's section `preference`, or its defaults. Raises ConfigError if it has a fault."""
    return load_panel_section(settings, load_vote_settings) or VoteSettings()


def read_all_votes(store: Store) -> list[PlayersVote]:
    """Return the votes that count, of both kinds of reviewers."""
    with VoteStore(store.responses_url or store.settings.responses_url) as votes:
        return [vote for kind in REVIEWER_KINDS for vote in read_player_votes(votes, reviewer_kind=kind)]


def note_votes(instance: dg.DagsterInstance, version: str) -> None:
    """Report the current version of the votes to Dagster."""
    instance.report_runless_asset_event(dg.AssetObservation(_VOTES, tags=build_observation_tags(version)))


_SHOWN_SCORES = (
    *("family", "partition", "reviewer_kind", "judge", "rank", "tier", "player"),
    *("beta", "low", "high", "n_votes", "n_reviewers"),
)


@dg.asset(deps=[dg.AssetKey("preference_votes")], **roll_up("preference_scores", code_version="5", group=_GROUP))
def preference_scores(store: Store) -> dg.MaterializeResult[Any]:
    """Whose responses reviewers prefer: one row per family, partition, kind of reviewers, judge and player.

    The 95 % intervals are by whole reviewers and prompts. Computed from the votes in the response store that are not voided, as selected by
    the panel's section `preference`. People's votes are one fit, and those of each judge another. A player without a finite score or
    interval has the reason. `dtef preference board --metric '*'` compares scores with `persona_results`, `qa_board` or another board of the
    family.
    """
    votes = read_all_votes(store)
    settings = vote_settings(store.settings)
    own_servers = load_store_models(store).own_servers
    rows = scores_of_votes(votes, settings, own_servers)
    selection = filter_votes(votes, settings, own_servers)
    vote_metadata: dict[str, Any] = {
        "votes": len(selection.votes),
        "votes_version": compute_votes_version(votes),
        "leaks_left_out": selection.leaks_left_out,
        "self_judged": selection.self_judged,
        "self_judged_left_out": selection.self_judged_left_out,
    }
    return publish_tables(store, {"preference_scores": rows}, **vote_metadata, scores=markdown(rows, _SHOWN_SCORES, n=30))


preference_roll_ups = dg.define_asset_job(
    "preference_roll_ups",
    selection=dg.AssetSelection.assets(preference_scores, REPORT),
    description="Scores of players from all votes, of people and of models that judge; then the report, which shows them.",
    run_tags={"dtef/roll_ups": "preference"},
)


@asset_check(asset=preference_scores)
def preference_shares_sum_to_one(store: Store) -> dg.AssetCheckResult:
    """Within a fit and component the shares sum to 1, and each score lies in its interval."""
    keys = ["family", "partition", "reviewer_kind", "judge", "component"]
    frame = store.warehouse.rows("preference_scores", columns=[*keys, "player", "beta", "low", "high", "share"]).to_pandas()
    scores = frame[frame["beta"].notna()]
    sums = scores.groupby(keys, dropna=False)["share"].sum()
    offenders = [f"{key}: shares sum to {total}" for key, total in sums.items() if abs(total - 1) > _SHARE_TOLERANCE]
    outside = scores[(scores["low"] > scores["beta"]) | (scores["high"] < scores["beta"])]
    offenders += [f"{row.family} {row.partition} {row.player}: outside its interval" for row in outside.itertuples()]
    return verdict(offenders, n_checked=len(frame))


@asset_check(asset=preference_scores)
def voted_texts_differ(store: Store) -> dg.AssetCheckResult:
    """Votes on two texts that differ, as reviewers read them, only in case and white space.

    Such pairs are neither made nor served: the votes were imported, or cast before the only difference, a name, was known and hidden.
    """
    with VoteStore(store.responses_url or store.settings.responses_url) as votes:
        n_votes, offenders = find_equal_text_votes(votes)
    return verdict(offenders, n_checked=n_votes, severity=dg.AssetCheckSeverity.WARN)


@asset_check(asset=preference_scores)
def votes_contain_no_names(store: Store) -> dg.AssetCheckResult:
    """Votes on pairs whose texts contain a name, which may reveal the author, counted by pair of players."""
    votes = read_all_votes(store)
    risks = Counter((vote.family, *sorted((vote.left, vote.right))) for vote in votes if vote.leak_risk)
    offenders = [f"{' '.join(key)}: {format_count(count, 'vote')}" for key, count in sorted(risks.items())]
    return verdict(offenders, n_checked=len(votes), severity=dg.AssetCheckSeverity.WARN)


@dg.sensor(
    job=preference_roll_ups,
    minimum_interval_seconds=600,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Brings the scores from votes up to date when votes were added or voided, as the panel says. Makes no API calls.",
)
def scores_after_votes(context: dg.SensorEvaluationContext, store: Store) -> dg.RunRequest | dg.SkipReason:
    """Request one run per version of the votes. A failed roll-up is not repeated for the same version."""
    votes = read_all_votes(store)
    version = compute_votes_version(votes)
    tables = store.warehouse.tables(["preference_scores"])
    if not votes and not tables:
        return dg.SkipReason("there are no votes in the response store")
    if tables and version in store.warehouse.rows("preference_scores", columns=["votes_version"])["votes_version"].to_pylist():
        return dg.SkipReason(f"the scores include all votes ({version})")
    note_votes(context.instance, version)
    return dg.RunRequest(run_key=f"scores of votes {version}")
