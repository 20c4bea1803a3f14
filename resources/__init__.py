"""The outside world: warehouse, response store, language-model gateway, survey source."""
