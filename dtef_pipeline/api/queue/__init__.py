"""Evaluations over HTTP: submission, queue, progress and end."""
