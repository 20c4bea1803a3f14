"""Pages for people: markup, forms, and a module for each page."""
