"""Requests to language models: other packages need only `Gateway`."""

from resources.gateway.gateway import Gateway as Gateway
