"""Files of items as they are published: each layout is read into items, and a row that is not usable is named and left out."""
