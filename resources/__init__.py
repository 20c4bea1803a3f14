"""Access to warehouse, sources, response store and language-model gateway."""
