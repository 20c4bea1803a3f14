"""The site: static pages over all families that `dtef report` writes. Python computes values, templates make HTML of them."""
