"""Stored evaluations that were requested over HTTP."""
