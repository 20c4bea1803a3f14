"""Items of a scenario: each seed in every seat against every opponent, and the rows of `scenario_items`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.errors import ConfigError
from dtef_pipeline.games.game_in_play import build_opening_messages
from dtef_pipeline.games.manifest import ScenarioManifest
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.games.personas import BASELINE_PREFIX, Player
from dtef_pipeline.games.tables import EPISODE_PROMPTS, SCENARIO_ITEMS
from dtef_pipeline.identity import compute_messages_id, digest

NO_OPPONENT = ""
"""Opponent in tables for scenarios with one seat."""
MAX_SEEDS = 100_000
_SEED_SPAN = re.compile(r"(\d{1,12})(?:-(\d{1,12}))?")


class GameItem(NamedTuple):
    """One episode to play, by any player."""

    seed: int
    seat: int
    """Seat of the player under test."""
    opponent: str
    """Name of the player at all other seats; NO_OPPONENT: there are no other seats."""

    @property
    def item_id(self) -> str:
        return "/".join(map(str, filter(lambda part: part != NO_OPPONENT, self)))


def resolve_seeds(text: str | None, manifest: ScenarioManifest) -> list[int]:
    """Parse seeds as `parse_seeds`, or return the manifest's seeds."""
    if text is None:
        return list(range(manifest.seeds.first, manifest.seeds.first + manifest.seeds.count))
    return parse_seeds(text)


def parse_seeds(text: str) -> list[int]:
    """Return the distinct seeds in `1-100` or `1-10,42`. Raises ConfigError for another form."""
    return list(dict.fromkeys(seed for first, last in parse_seed_spans(text) for seed in range(first, last + 1)))


def parse_seed_spans(text: str) -> list[tuple[int, int]]:
    """Return the first and the last seed of each range in `1-10,42`. Raises ConfigError for another form."""
    spans = []
    for part in text.split(","):
        match = _SEED_SPAN.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if match and last < first:
            raise ConfigError(f"seeds {text!r}: the range {first}-{last} is backwards; write {last}-{first}")
        if not match or last >= first + MAX_SEEDS:
            raise ConfigError(
                f"seeds {text!r}: write numbers and ranges of at most {MAX_SEEDS:,} seeds, such as 1-100 or 1-10,42"
            )
        spans.append((first, last))
    return spans


def resolve_opponents(opponents: Sequence[str], manifest: ScenarioManifest) -> list[str]:
    """Return the opponents' names as in tables: `opponents` if any, else the manifest's baselines; NO_OPPONENT for a scenario with one seat.

    Raises ConfigError if a scenario with several seats has no opponents.
    """
    if len(manifest.seats) == 1:
        return [NO_OPPONENT]
    names = list(dict.fromkeys(opponents or [f"{BASELINE_PREFIX}{name}" for name in manifest.opponents]))
    if not names:
        raise ConfigError(f"{manifest.id}: no opponent; allowed: --opponent NAME, or opponents in its manifest")
    return names


def build_game_items(manifest: ScenarioManifest, seeds: str | None, opponents: Sequence[str]) -> list[GameItem]:
    """Build the items: every seed in all seats against every opponent, in the order of seeds. `opponents`: names, see
    `resolve_opponents`."""
    names = resolve_opponents(opponents, manifest)
    seats = range(len(manifest.seats))
    return [GameItem(seed, seat, name) for seed in resolve_seeds(seeds, manifest) for seat in seats for name in names]


def truth_id(manifest: ScenarioManifest) -> str:
    """Return a hash of what determines a game other than its players' texts: version, settings and limits. The wording of rules is part of
    prompts."""
    limits = (manifest.turn_limit, manifest.retries, manifest.on_illegal, manifest.show_legal)
    adapter = () if manifest.adapter_name == manifest.id else (manifest.adapter_name,)
    return digest("scenario", manifest.id, manifest.version, manifest.settings, len(manifest.seats), *limits, *adapter)


def build_item_rows(pack: Pack, items: Sequence[GameItem], earlier: pa.Table) -> pa.Table:
    """Return the rows of `scenario_items`, including those of `earlier` runs under the same rules."""
    shared = {**pack.manifest.key_columns, "truth_id": truth_id(pack.manifest)}
    rows = [{**shared, **item._asdict(), "item_id": item.item_id, "cluster": str(item.seed)} for item in items]
    new = pa.Table.from_pylist(rows, SCENARIO_ITEMS)
    return merge_still_valid(earlier, new, pack.manifest, ("version", "item_id"), ("version", "seed", "seat", "opponent"))


def merge_still_valid(
    earlier: pa.Table, new: pa.Table, manifest: ScenarioManifest, key: Sequence[str], order: Sequence[str]
) -> pa.Table:
    """Return the new rows and the earlier ones that are still valid, sorted by the columns `order`.

    Valid are rows of other versions, and those of this version with the same settings and limits, unless a new row has the same values in
    the columns `key`.
    """
    is_other_version = pc.not_equal(earlier["version"], manifest.version)
    has_rules = pc.or_(is_other_version, pc.equal(earlier["truth_id"], truth_id(manifest)))
    is_replaced = pc.is_in(_join_key(earlier, key), _join_key(new, key).combine_chunks())
    rows = pa.concat_tables([earlier.filter(pc.and_(has_rules, pc.invert(is_replaced))), new])
    return rows.take(pc.sort_indices(rows, [(name, "ascending") for name in order]))


def _join_key(rows: pa.Table, key: Sequence[str]) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(*(pc.cast(rows[name], pa.string()) for name in key), "\n")


def build_game_prompt_rows(pack: Pack, items: Sequence[GameItem], players: Sequence[Player], earlier: pa.Table) -> pa.Table:
    """Return one row per item and persona of a model among the players, and the rows of `earlier` runs that are still valid.

    A seat that does not move first gets the messages that it would get if it did, because the earlier moves are not known yet.
    """
    roles = list({entrant.persona_name: entrant for entrant in players if entrant.model is not None}.values())
    messages_by_seat = {
        (item.seed, item.seat, player.persona_name): build_opening_messages(pack, item.seed, player, item.seat)
        for item in dict.fromkeys(item._replace(opponent="") for item in items)
        for player in roles
    }
    shared = {**pack.manifest.key_columns, "truth_id": truth_id(pack.manifest)}
    rows = []
    for role in (player.persona_name for player in roles):
        for item in items:
            messages = [(part.role, part.text) for part in messages_by_seat[item.seed, item.seat, role]]
            prompt = {"prompt_id": compute_messages_id(messages), "messages": messages}
            rows.append({**shared, "item_id": item.item_id, "persona": role, **prompt})
    new = pa.Table.from_pylist(rows, EPISODE_PROMPTS)
    key = ("version", "item_id", "persona")
    return merge_still_valid(earlier, new, pack.manifest, key, ("version", "persona", "item_id"))
