"""The litellm module, imported late (it takes 3 seconds), quiet, offline and without its own retries."""

from __future__ import annotations

import logging
import os
import warnings
from functools import cache
from typing import Any


@cache
def load_litellm() -> Any:
    """Return the module, imported once per process and set up to do nothing invisible and log nothing twice."""
    # Otherwise the import fetches the price list from the network.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    with warnings.catch_warnings():
        # pydantic warns about one declaration in LiteLLM's types, which users cannot fix.
        warnings.simplefilter("ignore")
        import litellm

        litellm.ModelResponse()
    # A server may send embeddings as base64 instead of numbers; they are read anyway.
    warnings.filterwarnings("ignore", "Pydantic serializer warnings")
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.cache = None
    litellm.num_retries = 0
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    # httpx logs every address at INFO, and some providers have the key in it.
    for name in ("httpx", "httpcore", "openai", "aiohttp"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return litellm
