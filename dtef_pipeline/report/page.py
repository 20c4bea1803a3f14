"""The report: one self-contained HTML page, no network. What it says is in its chapters, which a family hands in."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import NamedTuple

from dtef_pipeline.report.style import style_sheet

PAGE_SCRIPT = "\n".join(
    files("dtef_pipeline.report").joinpath(name).read_text(encoding="utf-8") for name in ("page.js", "download.js")
)
"""Sorts, searches and makes files of the tables of a page."""

PAGE_MARK = '<meta name="generator" content="dtef">'
"""Stands near the top of every page: a file with it was written here."""


class Chapter(NamedTuple):
    """A part of the page. `markup` is a section (`markup.section`) whose id is `anchor`; `title` stands in the table of contents.

    `style` and `script` are what it needs beside the rules and the script of the page; a script may use the functions of `page.js`.
    """

    anchor: str
    title: str
    markup: str
    style: str = ""
    script: str = ""


def build_report(title: str, introduction: str, chapters: Sequence[Chapter]) -> str:
    """The page of the chapters in their order. `title` is text, `introduction` markup. Equal chapters give an equal page."""
    links = "".join(f'<li><a href="#{chapter.anchor}">{escape(chapter.title)}</a></li>' for chapter in chapters)
    script = "\n".join([PAGE_SCRIPT, *(chapter.script for chapter in chapters if chapter.script)])
    body = "".join(chapter.markup for chapter in chapters)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">{PAGE_MARK}'
        f"<style>{style_sheet(chapter.style for chapter in chapters)}</style></head>"
        f'<body><a class="skip" href="#main">Skip to the numbers</a><header><h1>{escape(title)}</h1>{introduction}</header>'
        f'<nav aria-label="Sections"><ul>{links}</ul></nav><main id="main">{body}</main>'
        f"<script>{script}</script></body></html>\n"
    )
