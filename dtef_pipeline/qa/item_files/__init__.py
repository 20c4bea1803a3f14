"""Files of items as they are published: each layout is read into items; unusable rows are reported and left out."""
