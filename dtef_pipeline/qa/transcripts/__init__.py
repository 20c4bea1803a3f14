"""Transcripts that questions are about: their chunks, retrieval, prompts with numbered sources, and quotations in replies."""
