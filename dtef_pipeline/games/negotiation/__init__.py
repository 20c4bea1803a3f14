"""Negotiation: parties that divide items by messages, and bidders in a sealed-bid auction."""
