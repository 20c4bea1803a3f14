"""What processes of tests find imported: the response store and the gateway."""

from resources.responses import claims, store  # noqa: F401 - imported for the processes
from tests.resources.gateway import gateway_setup  # noqa: F401 - as above
