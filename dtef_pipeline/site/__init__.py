"""The static pages over all families that `dtef report` writes. Python computes values, templates turn them into HTML."""
