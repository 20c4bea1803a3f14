"""Pairs of stored responses: making them for the command and the API."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from assets.games.game_catalog import load_known_persona_versions, load_known_scenarios
from dtef_pipeline.api.review.feedback_routes import PairRequest
from dtef_pipeline.asking.models import is_computed
from dtef_pipeline.families import FAMILY_BY_NAME
from dtef_pipeline.family.record import Family
from dtef_pipeline.games.game_in_play import replace_first_observations
from dtef_pipeline.preference.pairing import build_paired_responses, make_new_pairs
from dtef_pipeline.preference.vote_records import RunManifest
from dtef_pipeline.preference.votes import PairedResponse
from resources.evaluations.run_manifests import code_version, config_hash
from resources.settings import Settings
from resources.votes.vote_store import VoteStore
from resources.warehouse import Warehouse


class PairingResult(NamedTuple):
    """The result of pairing."""

    new: int
    pair_ids: tuple[str, ...]
    """Ids of the new pairs."""
    responses: int
    """Number of responses that match and may be paired."""
    computed: int
    """Number of matching responses of baselines that were left out."""


def pair_stored(store: VoteStore, warehouse: Warehouse, settings: Settings, request: PairRequest, user: str) -> PairingResult:
    """Make pairs of stored responses. Raises ConfigError, WarehouseError and StoreError for unreadable data."""
    every = _read_responses(warehouse, settings, FAMILY_BY_NAME[request.family], request)
    responses = [response for response in every if request.baselines or not is_computed(response.player)]
    left_out = len(every) - len(responses)
    if not responses:
        return PairingResult(0, (), 0, left_out)
    before = store.pairs(request.family)
    pairs = make_new_pairs(
        responses, before, names=store.hidden_names(responses), per_item=request.per_item, most=request.max_pairs
    )
    manifest = RunManifest(request.family, request.snapshot, code_version(), config_hash(settings))
    new = store.add_pairs(responses, pairs, manifest, user)
    return PairingResult(new, tuple(store.make_keyed(pair).pair_id for pair in pairs), len(responses), left_out)


def _read_responses(warehouse: Warehouse, settings: Settings, family: Family, request: PairRequest) -> list[PairedResponse]:
    source = family.pair_source
    if source is None:
        return []
    tables = warehouse.tables()
    if any(table not in tables for table in source.tables):
        return []
    query = f"SELECT * FROM ({source.query}) WHERE snapshot = $1"
    result = warehouse.query(
        lambda connection: connection.sql(query, params=[request.snapshot]).to_arrow_table(), only=source.tables
    )
    chosen_rows = [row for row in result.to_pylist() if _is_wanted(family, row, request)]
    if chosen_rows and "trace" in chosen_rows[0]:
        chosen_rows = replace_first_observations(chosen_rows, load_known_scenarios(settings))
    personas = load_known_persona_versions(settings) if any(row.get("persona") for row in chosen_rows) else {}
    display_names = {name: persona.display_name for name, persona in personas.items()}
    return build_paired_responses(family.name, chosen_rows, display_names)


def _is_wanted(family: Family, row: Mapping[str, Any], request: PairRequest) -> bool:
    key = family.space.key(row["first"], row["second"]) if family.space.second else row["first"]
    is_named = not request.pattern or any(fnmatchcase(key, pattern) for pattern in request.pattern)
    return is_named and (not request.models or row["model"] in request.models)
