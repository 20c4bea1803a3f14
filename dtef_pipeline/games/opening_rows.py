"""The rows of `episode_prompts`: what a model is told before its first text, for each item and persona."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.games.episode_items import GameItem, still_true, truth_id
from dtef_pipeline.games.opening import opening_messages
from dtef_pipeline.games.packs import Pack
from dtef_pipeline.games.players import Player
from dtef_pipeline.games.tables import EPISODE_PROMPTS
from dtef_pipeline.identity import messages_id


def prompt_rows(pack: Pack, items: Sequence[GameItem], players: Sequence[Player], earlier: pa.Table | None = None) -> pa.Table:
    """One row per item and persona that a model among the players has, and those of `earlier` runs that still hold.

    Of a seat that does not begin, the messages are those that it would be told if it did: what others do first is not known yet.
    """
    roles = list({one.persona_name: one for one in players if one.model is not None}.values())
    told = {
        (item.seed, item.seat, player.persona_name): opening_messages(pack, item.seed, player, item.seat)
        for item in dict.fromkeys(item._replace(opponent="") for item in items)
        for player in roles
    }
    named = [(item, player.persona_name) for player in roles for item in items]
    messages = [[(one.role, one.text) for one in told[item.seed, item.seat, role]] for item, role in named]
    manifest, rows = pack.manifest, len(named)
    columns = {
        "league": [manifest.league] * rows,
        "scenario": [manifest.scenario] * rows,
        "version": [manifest.version] * rows,
        "item_id": [item.item_id for item, _ in named],
        "persona": [role for _, role in named],
        "prompt_id": [messages_id(spoken) for spoken in messages],
        "messages": messages,
        "truth_id": [truth_id(manifest)] * rows,
    }
    new = pa.table([pa.array(columns[one.name], one.type) for one in EPISODE_PROMPTS], schema=EPISODE_PROMPTS)
    kept = EPISODE_PROMPTS.empty_table() if earlier is None else still_true(earlier, manifest, truth_id(manifest))
    every = pa.concat_tables([kept.filter(pc.invert(pc.is_in(_row_name(kept), _row_name(new).combine_chunks()))), new])
    return every.take(pc.sort_indices(every, [(name, "ascending") for name in ("version", "persona", "item_id")]))


def _row_name(rows: pa.Table) -> pa.ChunkedArray:
    parts = (pc.cast(rows["version"], pa.string()), rows["item_id"], rows["persona"])
    return pc.binary_join_element_wise(*parts, "\n")
