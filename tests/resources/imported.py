"""What processes of tests find imported: the response store, the gateway, and litellm, which alone takes three seconds."""

from resources.gateway.litellm_module import load_litellm
from resources.responses import claims, store  # noqa: F401 - imported for the processes
from tests.resources.gateway import gateway_setup  # noqa: F401 - as above

load_litellm()
