"""Negotiation: parties that divide items among themselves in words, and bidders who bid once without knowing of each other."""
