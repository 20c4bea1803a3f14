"""Asking language models: `Gateway` is all that other rooms need."""

from resources.gateway.gateway import Gateway as Gateway
