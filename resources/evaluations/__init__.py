"""Evaluations that were asked for over HTTP: what is stored of them."""
