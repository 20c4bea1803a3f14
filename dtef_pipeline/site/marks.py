"""What stands in every file of the site, so that a file is known to be written here."""

PAGE_MARK = '<meta name="generator" content="dtef">'
"""In every page."""
SCRIPT_MARK = "/* dtef */"
"""How every style sheet, script and data file begins."""
