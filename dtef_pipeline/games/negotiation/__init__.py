"""Negotiation: parties that divide items by messages."""
