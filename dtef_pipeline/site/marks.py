"""Marks in every file of the site, which identify files written by dtef."""

PAGE_MARK = '<meta name="generator" content="dtef">'
"""In every page."""
SCRIPT_MARK = "/* dtef */"
"""How every style sheet, script and data file begins."""
