"""The outside world: warehouse, sources, response store, language-model gateway."""
