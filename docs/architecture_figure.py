"""Draws the packages of the code and their imports into `docs/architecture.svg`. `make figures` writes it.

A package is above all packages that it imports. An arrow that follows from two others is left out, as is every arrow to the lowest package.
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
LOWEST = "dtef"
LANES = {"dtef_pipeline": (40, 600, "#dbe9f6"), "resources": (680, 250, "#fbe6cf"), "assets": (970, 220, "#dff0d8")}
"""Left edge, width and colour of each package's lane."""
WIDTH, WIDE, HIGH, LEVEL_HEIGHT, MARGIN = 1220, 185, 54, 84, 24


class Box(NamedTuple):
    """The place of a package in the drawing: middle, top edge, width and colour."""

    x: float
    y: float
    width: float
    colour: str


def find_package(path_or_module: str) -> str | None:
    """Return the package of the drawing that contains a path or an imported name."""
    parts = path_or_module.removesuffix(".py").replace("/", ".").split(".")
    if parts[0] == "dtef_pipeline":
        return parts[1] if len(parts) > 1 and parts[1] in HOLDS else LOWEST
    within = "/".join(parts[:2])
    return within if within in HOLDS else parts[0] if parts[0] in HOLDS else None


def arrows() -> dict[str, set[str]]:
    """Return the packages that each package imports."""
    found: dict[str, set[str]] = {name: set() for name in HOLDS}
    for one in architecture.imports(ROOT):
        importer, imported = find_package(one.path), find_package(one.module)
        if importer and imported and importer != imported:
            found[importer].add(imported)
    return found


def levels(found: dict[str, set[str]]) -> list[list[str]]:
    """Return the packages by the longest path of imports below them, the lowest first. Raises ValueError for a cycle of imports."""
    heights: dict[str, int] = {}

    def height(name: str, above: tuple[str, ...] = ()) -> int:
        if name in above:
            raise ValueError(f"packages import each other in a cycle: {' -> '.join((*above, name))}")
        if name not in heights:
            below = [height(lower, (*above, name)) for lower in found[name]]
            heights[name] = 0 if name == LOWEST else 1 + max(below, default=0)
        return heights[name]

    for name in found:
        height(name)
    return [[name for name in HOLDS if heights[name] == level] for level in range(max(heights.values()) + 1)]


def reachable(found: dict[str, set[str]], name: str) -> set[str]:
    """Return every package below a package."""
    return found[name].union(*(reachable(found, below) for below in found[name]))


def direct_arrows(found: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Return the arrows that are drawn."""
    return [
        (upper, lower)
        for upper, lowers in found.items()
        for lower in sorted(lowers - {LOWEST})
        if not any(lower in reachable(found, other) for other in lowers - {lower})
    ]


def lane(name: str) -> str:
    """Return the top package of a package."""
    return name.partition("/")[0] if name.partition("/")[0] in LANES else "dtef_pipeline"


def place_boxes(rows: list[list[str]]) -> dict[str, Box]:
    """Return the box of every package; those of one top package and level share its lane."""
    boxes = {}
    for level, row in enumerate(rows):
        for package, (left, width, colour) in LANES.items():
            own = [name for name in row if lane(name) == package]
            for place, name in enumerate(own):
                x = left + width * (place + 0.5) / len(own)
                needed = 6.2 * len(HOLDS[name]) + 24
                boxes[name] = Box(x, MARGIN + (len(rows) - 1 - level) * LEVEL_HEIGHT, max(WIDE, min(needed, width)), colour)
    return boxes


def arrow(upper: Box, lower: Box) -> str:
    """Return an arrow from the upper box to the lower, past any boxes between them."""
    top, bottom = upper.y + HIGH, lower.y
    start, end, bend = upper.x, lower.x, (bottom - top) / 2
    if bottom - top > LEVEL_HEIGHT and upper.colour == lower.colour:
        start, end = upper.x - upper.width * 0.4, lower.x - lower.width * 0.4
        outside = min(start, end) - 90
        curve = f"C{outside:g} {top + bend / 2:g} {outside:g} {bottom - bend / 2:g} {end:g} {bottom:g}"
    else:
        curve = f"C{start:g} {top + bend:g} {end:g} {bottom - bend:g} {end:g} {bottom:g}"
    return f'<path d="M{start:g} {top:g}{curve}" fill="none" stroke="#777" stroke-width="1.3" marker-end="url(#tip)"/>'


def draw_box(name: str, box: Box) -> str:
    """Return the box of a package: its name and contents."""
    title = "dtef_pipeline" if name == LOWEST else name
    return (
        f'<rect x="{box.x - box.width / 2:g}" y="{box.y:g}" width="{box.width:g}" height="{HIGH}" rx="6" fill="{box.colour}" '
        'stroke="#555"/>'
        f'<text x="{box.x:g}" y="{box.y + 22:g}" text-anchor="middle" font-size="15" font-weight="bold">{escape(title)}</text>'
        f'<text x="{box.x:g}" y="{box.y + 41:g}" text-anchor="middle" font-size="12" fill="#333">{escape(HOLDS[name])}</text>'
    )


def svg() -> str:
    """Return the drawing."""
    found = arrows()
    rows = levels(found)
    boxes = place_boxes(rows)
    height = 2 * MARGIN + (len(rows) - 1) * LEVEL_HEIGHT + HIGH
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0 0L8 4L0 8z" fill="#777"/></marker></defs>',
            f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
            *(arrow(boxes[upper], boxes[lower]) for upper, lower in direct_arrows(found)),
            *(draw_box(name, box) for name, box in boxes.items()),
            "</svg>\n",
        ]
    )
