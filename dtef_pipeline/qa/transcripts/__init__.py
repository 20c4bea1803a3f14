"""Transcripts that questions are about: their chunks, finding the ones that matter, prompts with numbered sources, and quotations in replies."""
