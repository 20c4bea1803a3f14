"""Draws the house from the code into `docs/architecture.svg`: rooms, and the arrows of their imports. `make figures` writes it.

A room stands above all rooms it imports. An arrow that follows from two others is left out, as is every arrow to the ground floor.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import NamedTuple

from tests import architecture

ROOT = Path(__file__).resolve().parent.parent
DRAWING = ROOT / "docs" / "architecture.svg"
HOLDS = {
    "dtef": "errors · identity · documents · keys · tables",
    "text": "reading what a model wrote",
    "statistics": "intervals, tests",
    "asking": "models, requests, calls",
    "family": "settings of runs, stages",
    "boards": "cells, means, ranks, costs",
    "judging": "judges, their prompts and replies, consensus",
    "preference": "pairs, blinding, votes, fits",
    "drift": "snapshots, evidence, verdict",
    "report": "tables for the terminal",
    "site": "templates, charts, pages over all families",
    "survey": "adapters, prompts, reading, scoring, baselines, boards, pages",
    "rubric": "blueprints, points, similarity, scores, summary, validity",
    "qa": "items, readers, scorers, retrieval, results",
    "games": "the games, players, episodes, metrics",
    "families": "the list of families",
    "sites": "the whole site",
    "api": "the HTTP API and its pages",
    "cli": "the dtef command",
    "resources": "warehouse, files, settings",
    "resources/gateway": "asks models",
    "resources/responses": "the response store",
    "resources/votes": "votes, stored documents",
    "resources/evaluations": "stored evaluations",
    "resources/sandbox": "runs code of models",
    "assets": "definitions, launch",
    "assets/stage": "what every stage is made of",
    "assets/engine": "makes assets of records",
    "assets/evaluations": "runs asked for over HTTP",
    "assets/rubric": "the six stages, boards",
    "assets/qa": "the six stages, boards",
    "assets/games": "the stages, boards",
    "assets/preference": "votes, their scores",
    "assets/survey": "the six stages, boards, sensors",
}
GROUND = "dtef"
LANES = {"dtef_pipeline": (40, 600, "#dbe9f6"), "resources": (680, 250, "#fbe6cf"), "assets": (970, 220, "#dff0d8")}
"""Left edge, width and colour of each package's lane."""
WIDTH, WIDE, HIGH, FLOOR, MARGIN = 1220, 185, 54, 84, 24


class Box(NamedTuple):
    """Where a room is drawn: its middle, its top edge, its width and colour."""

    x: float
    y: float
    width: float
    colour: str


def room(path_or_module: str) -> str | None:
    """The room on the drawing that a path or an imported name lies in."""
    parts = path_or_module.removesuffix(".py").replace("/", ".").split(".")
    if parts[0] == "dtef_pipeline":
        return parts[1] if len(parts) > 1 and parts[1] in HOLDS else GROUND
    within = "/".join(parts[:2])
    return within if within in HOLDS else parts[0] if parts[0] in HOLDS else None


def arrows() -> dict[str, set[str]]:
    """Room -> the rooms it imports."""
    found: dict[str, set[str]] = {name: set() for name in HOLDS}
    for one in architecture.imports(ROOT):
        here, there = room(one.path), room(one.module)
        if here and there and here != there:
            found[here].add(there)
    return found


def floors(found: dict[str, set[str]]) -> list[list[str]]:
    """Rooms by the longest way down from them, the ground floor first."""
    heights: dict[str, int] = {}

    def height(name: str, above: tuple[str, ...] = ()) -> int:
        if name in above:
            raise ValueError(f"rooms import each other in a circle: {' -> '.join((*above, name))}")
        if name not in heights:
            below = [height(lower, (*above, name)) for lower in found[name]]
            heights[name] = 0 if name == GROUND else 1 + max(below, default=0)
        return heights[name]

    for name in found:
        height(name)
    return [[name for name in HOLDS if heights[name] == level] for level in range(max(heights.values()) + 1)]


def reachable(found: dict[str, set[str]], name: str) -> set[str]:
    """Every room below a room."""
    return found[name].union(*(reachable(found, below) for below in found[name]))


def shown(found: dict[str, set[str]]) -> list[tuple[str, str]]:
    """The arrows that are drawn."""
    return [
        (upper, lower)
        for upper, lowers in found.items()
        for lower in sorted(lowers - {GROUND})
        if not any(lower in reachable(found, other) for other in lowers - {lower})
    ]


def lane(name: str) -> str:
    """The package that a room belongs to."""
    return name.partition("/")[0] if name.partition("/")[0] in LANES else "dtef_pipeline"


def placed(rows: list[list[str]]) -> dict[str, Box]:
    """The box of every room; rooms of one package and floor share its lane."""
    boxes = {}
    for level, row in enumerate(rows):
        for package, (left, width, colour) in LANES.items():
            own = [name for name in row if lane(name) == package]
            for place, name in enumerate(own):
                x = left + width * (place + 0.5) / len(own)
                needed = 6.2 * len(HOLDS[name]) + 24
                boxes[name] = Box(x, MARGIN + (len(rows) - 1 - level) * FLOOR, max(WIDE, min(needed, width)), colour)
    return boxes


def arrow(upper: Box, lower: Box) -> str:
    """From the foot of the upper box to the head of the lower; past the boxes between, where there are any."""
    top, bottom = upper.y + HIGH, lower.y
    start, end, bend = upper.x, lower.x, (bottom - top) / 2
    if bottom - top > FLOOR and upper.colour == lower.colour:
        start, end = upper.x - upper.width * 0.4, lower.x - lower.width * 0.4
        outside = min(start, end) - 90
        curve = f"C{outside:g} {top + bend / 2:g} {outside:g} {bottom - bend / 2:g} {end:g} {bottom:g}"
    else:
        curve = f"C{start:g} {top + bend:g} {end:g} {bottom - bend:g} {end:g} {bottom:g}"
    return f'<path d="M{start:g} {top:g}{curve}" fill="none" stroke="#777" stroke-width="1.3" marker-end="url(#tip)"/>'


def drawn(name: str, box: Box) -> str:
    """A room: its name, and what it holds."""
    title = "dtef_pipeline" if name == GROUND else name
    return (
        f'<rect x="{box.x - box.width / 2:g}" y="{box.y:g}" width="{box.width:g}" height="{HIGH}" rx="6" fill="{box.colour}" '
        'stroke="#555"/>'
        f'<text x="{box.x:g}" y="{box.y + 22:g}" text-anchor="middle" font-size="15" font-weight="bold">{escape(title)}</text>'
        f'<text x="{box.x:g}" y="{box.y + 41:g}" text-anchor="middle" font-size="12" fill="#333">{escape(HOLDS[name])}</text>'
    )


def svg() -> str:
    """The drawing."""
    found = arrows()
    rows = floors(found)
    boxes = placed(rows)
    height = 2 * MARGIN + (len(rows) - 1) * FLOOR + HIGH
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0 0L8 4L0 8z" fill="#777"/></marker></defs>',
            f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
            *(arrow(boxes[upper], boxes[lower]) for upper, lower in shown(found)),
            *(drawn(name, box) for name, box in boxes.items()),
            "</svg>\n",
        ]
    )
