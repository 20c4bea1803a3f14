"""Pairs, votes and the preference board over HTTP."""
