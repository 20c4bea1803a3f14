"""Personas and scenarios over HTTP: documents with versions and statuses."""
